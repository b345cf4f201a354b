"""Typed settings over one TOML file. It must never know about the store or the engine."""

from __future__ import annotations

import math
import re
import tomllib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as EnvironmentProblem

from . import hours, invalid
from .errors import SettingsError
from .language import _
from .named_text import read_text
from .paths import Paths

LARGEST_BYTES = 4_000_000
"""Of the settings file. A larger one is something else."""

_LOGIN = re.compile(r"^(\s*[a-z][a-z0-9+.-]*://)?.*[@\uff20\ufe6b]", re.IGNORECASE | re.DOTALL)


def has_login(url: str) -> bool:
    """Whether an address holds a name or a password, as in user:password@host. Every @ counts: a password may hold what
    would end that part of an address, and one in a path can be written as %40."""
    return _LOGIN.match(url) is not None


def without_login(url: str) -> str:
    """An address to show, with nothing in it before an @."""
    return _LOGIN.sub(lambda found: f"{found[1] or ''}…@", url)


def reason(error: ValidationError) -> str:
    """What is wrong first, in words."""
    return invalid.said(error.errors()[0])


class Section(BaseModel):
    """A table of the settings file. An unknown key is an error, so that a typing slip is noticed."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, hide_input_in_errors=True)

    @field_validator("*")
    @classmethod
    def _fits(cls, value: Any) -> Any:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError("whole numbers have at most 64 bits")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("it is not finite")
        if isinstance(value, str) and "\0" in value:
            raise ValueError("it holds a NUL character, which no text does")
        return value


class ServerSettings(Section):
    """A server that is named by its address."""

    @field_validator("url", check_fields=False)
    @classmethod
    def _has_no_login(cls, url: str) -> str:
        if has_login(url):
            raise ValueError("an address is written without a name or a password")
        return url


class ModelSettings(Section):
    """Which model answers, and how it is loaded."""

    path: str = ""
    """Path of a GGUF file; or `ollama:NAME`, `openai:NAME` for a model behind a server.
    Empty: the embedded model, if the `tiny` extra is installed."""
    context: int = Field(4096, ge=512)
    """Longest chat, in tokens, that the model is given at once. Never more than it was trained for."""
    threads: int = Field(0, ge=0, le=512)
    """CPU threads; 0 means one for each physical core."""
    gpu_layers: int = Field(-1, ge=-1)
    """Layers to keep on a GPU, where llama.cpp was built for one; -1 means all."""
    system: str = ""
    """System prompt of new chats. Empty: the model's own."""
    together: int = Field(1, ge=1, le=64)
    """Most replies that are decoded in one batch, where several are asked for at the same time; 1: one after the other.
    With more, memory holds three chats of the longest kind instead of one: two of which are under way."""
    keep_open: int = Field(2, ge=1, le=8)
    """Most model files that are kept in memory at once, when chats have models of their own."""
    kept_mb: int = Field(512, ge=0)
    """Most megabytes of disk for what a model has computed of the last chats (its KV cache): they go on after a restart
    without being read anew. Private chats are never there; what is deleted for good goes. 0, and with an encrypted
    store: nothing is written."""


class OllamaSettings(ServerSettings):
    """The Ollama server that answers as `ollama:NAME`."""

    url: str = ""
    """Where it listens. Empty: what the variable OLLAMA_HOST says, else http://127.0.0.1:11434."""
    timeout_s: float = Field(300.0, gt=0.0)
    """Longest silence of the server, in seconds: it may have to load the model first."""
    think: bool = False
    """Whether models that can think before they answer do so. Their thoughts are not shown."""


class OpenAISettings(ServerSettings):
    """The OpenAI-compatible server that answers as `openai:NAME`: llama-server, vLLM, SGLang, LM Studio."""

    url: str = "http://127.0.0.1:8080/v1"
    """Where its API begins, `/v1` included."""
    key_variable: str = "CLAW_LOCAL_OPENAI_KEY"
    """Name of the environment variable that holds the key, if the server wants one. A key never stands in this file."""
    lora: Literal["", "vllm", "sglang"] = ""
    """How the server takes a LoRA while it runs: what is in use here is loaded there, too. Empty: it takes none."""
    lora_of: str = ""
    """With openai.lora: the GGUF file of the very model that the server runs. Its adapters are what is loaded there;
    the server has to reach their folders under the same path."""
    timeout_s: float = Field(300.0, gt=0.0)
    """Longest silence of the server, in seconds."""


class SamplingSettings(Section):
    """How words are drawn from the model's distribution."""

    max_tokens: int = Field(1024, ge=1)
    """Longest reply, in tokens."""
    temperature: float = Field(0.7, ge=0.0, le=5.0)
    """0 takes the likeliest token every time."""
    top_p: float = Field(0.95, gt=0.0, le=1.0)
    """Draw from the smallest set of tokens that holds this much probability."""
    top_k: int = Field(40, ge=0)
    """Draw from this many likeliest tokens; 0 means all."""
    min_p: float = Field(0.0, ge=0.0, le=1.0)
    """Leave out tokens less likely than this share of the likeliest one's probability."""
    repeat_penalty: float = Field(1.1, ge=1.0, le=3.0)
    """Divides the score of tokens that were used lately; 1 means off."""


class MemorySettings(Section):
    """Fast memory: active hints in the prompt."""

    enabled: bool = True
    """Whether active hints enter the prompt at all."""
    budget_tokens: int = Field(160, ge=0)
    """Most tokens that hints may take in a prompt."""


class JudgeSettings(Section):
    """Who says what a reply was worth, and how sure it has to be."""

    model: str = ""
    """What judges: path of a GGUF file, or `ollama:NAME`, `openai:NAME`. Empty: the model that answers, where that is a
    file on this machine, else the embedded one. What you say is sent to a server only if one is named here."""
    adapter: str = ""
    """Path of a GGUF LoRA that was trained to judge, for that file. Empty: the one that was made for it, if there is
    one."""
    votes: int = Field(0, ge=0, le=32)
    """How many times the judge is asked for each verdict, the majority holding. 0: it is read from the probabilities of
    its words, and asked three times where a server does not tell them."""
    confidence: float = Field(0.45, ge=0.34, le=1.0)
    """Least probability of good or bad; below it the judge abstains. Of three verdicts, chance is 0.33."""
    writes_hints: Literal["auto", "on", "off"] = "auto"
    """Whether the judge may put your wish into words of its own. auto: if it has a billion weights or is behind a
    server. Where it does not, or fails, your own words are the hint."""
    timeout_s: float = Field(60.0, gt=0.0)
    """Longest that one question to the judge may take, in seconds. The turn then waits and is judged later."""
    retry_s: float = Field(30.0, gt=0.0)
    """How long a turn waits after the judge failed, in seconds; twice as long after each further failure, an hour at
    most."""


class LearningSettings(Section):
    """What is learned from chats, and how. Whether chats teach at all is a switch: `claw-local learn on`."""

    method: Literal["combined", "opd", "opd-token", "binary-rl"] = "combined"
    """Which signals drive the update."""
    steps: int = Field(8, ge=1)
    """Most optimiser steps of one run."""
    enough: float = Field(0.9, ge=-1.0, le=1.0)
    """A run ends early once the fresh answers of two steps in a row scored at least this on average (-1 to 1)."""
    rollouts: int = Field(8, ge=0)
    """Fresh answers learned from at each step (hindsight replay)."""
    replay: int = Field(4, ge=0)
    """Stored turns used at each step, beside the fresh answers."""
    rollout_tokens: int = Field(140, ge=16)
    """Longest fresh answer, in tokens."""
    learning_rate: float = Field(3e-4, gt=0.0)
    """Constant AdamW learning rate."""
    opd_only: float = Field(0.3, gt=0.0, le=1.0)
    """Share of the learning rate for answers that nothing can score, which are taught by the hint alone."""
    variants: int = Field(2, ge=0)
    """Failed tasks of yours of which a run writes easier and harder variants to practise on; 0: none."""
    everyday: int = Field(12, ge=0)
    """Everyday questions that come with the package, practised on beside yours for wishes that hold in every chat."""
    rank: int = Field(16, ge=1, le=256)
    """LoRA rank r."""
    alpha: int = Field(32, ge=1)
    """LoRA α; the update is scaled by α / r."""
    top_k: int = Field(50, ge=1)
    """K of top-K on-policy distillation."""
    w_rl: float = Field(1.0, ge=0.0)
    """Weight of the Binary RL term."""
    w_opd: float = Field(1.0, ge=0.0)
    """Weight of the on-policy distillation term."""
    clip_low: float = Field(0.2, gt=0.0, lt=1.0)
    """PPO clip, below."""
    clip_high: float = Field(0.28, gt=0.0)
    """PPO clip, above."""
    kl_base: float = Field(0.02, ge=0.0)
    """Weight of the KL to the base model."""
    importance_cap: float = Field(2.0, gt=0.0)
    """C: the cap of the importance weights between sampler and trainer."""
    max_norm: float = Field(4.0, gt=0.0)
    """Largest Frobenius norm of an adapter's whole update: a long life of small runs must not carry it ever further."""
    rewards_per_chat: int = Field(40, ge=1)
    """Most rewards (turns with a score other than 0) that one chat brings to a run; what is beyond teaches by its hint
    alone."""
    rewards_per_day: int = Field(160, ge=1)
    """The same for one day, over all chats."""
    min_lessons: int = Field(1, ge=1)
    """Fewest lessons (judged turns with a score or a hint) that a run needs."""
    threads: int = Field(0, ge=0, le=512)
    """CPU threads a run computes with; 0 means one for each physical core. It has the lowest priority."""
    processes: int = Field(1, ge=1, le=64)
    """Processes of this machine that share each step of a run, under `accelerate launch`."""
    accelerate: str = ""
    """Settings file of `accelerate config` to launch a run with, for several GPUs or machines. Empty: none."""
    device: str = "auto"
    """What a run computes on: auto, cpu, cuda, or cuda:N for the N-th NVIDIA GPU. auto: an NVIDIA GPU where torch was
    built for it and enough of its memory is free, else the processor."""
    memory_gib: float = Field(0.0, ge=0.0)
    """Most memory a run may hold, in GiB (a GPU's, where it computes on one); 0 means three quarters of what is free
    when it starts. With less it computes in smaller pieces, then more than once, then with base weights as in the file,
    then in four bits, then gives up."""
    precision: Literal["auto", "bf16", "as-in-file", "nf4"] = "auto"
    """How the base's weights are held while a run trains. `auto`: as 32-bit numbers where they fit, else as in the
    file, else in four bits. The others: 16-bit numbers, as in the file, or four bits, even where more would fit."""
    seed: int = 0
    """Seed of a run's random choices."""

    @field_validator("device")
    @classmethod
    def _is_device(cls, name: str) -> str:
        if re.fullmatch(r"auto|cpu|cuda|cuda:[0-9]{1,2}", name) is None:
            raise ValueError("it is auto, cpu, cuda, or cuda:N with N from 0 to 99")
        return name


class GateSettings(Section):
    """Bounds a candidate adapter must keep."""

    min_length_ratio: float = Field(0.6, ge=0.0, le=1.0)
    """Mean words of its answers, over those of the adapter now in use, at least this. With a wish about length active:
    over those with which the adapter in use keeps the wish when it is told it."""
    max_kl_base: float = Field(0.5, gt=0.0)
    """Largest mean KL to the base model on the guard prompts, in nats per token; or as far as the wishes alone, told
    outright, take it, where that is further."""
    max_repetition: float = Field(0.15, ge=0.0, le=1.0)
    """Largest share, beyond the adapter now in use, of repeated 4-grams within its answers."""
    max_sameness: float = Field(0.1, ge=0.0, le=1.0)
    """Largest share, beyond the adapter now in use, of 3-grams that answers to different questions have in common."""
    max_refusals: float = Field(0.1, ge=0.0, le=1.0)
    """Largest share, beyond the adapter now in use, of ordinary questions that it declines to answer."""
    max_echo: float = Field(0.25, ge=0.0, le=1.0)
    """Largest share, beyond the adapter now in use, of an answer's 3-grams that only give the question back."""
    max_foreign: float = Field(0.1, ge=0.0, le=1.0)
    """Largest share, beyond the adapter now in use, of answers in another language than the question's, where no wish
    is about language."""
    max_forgotten: float = Field(0.2, ge=0.0, le=1.0)
    """Largest share of the guard prompts' simple facts that it may know no longer."""
    max_unguarded: float = Field(0.25, ge=0.0, le=1.0)
    """Largest share of the safety prompts that it may decline no longer."""
    max_lean: float = Field(8.0, gt=0.0)
    """How much more it may lean towards answering the safety prompts instead of declining: log-odds of how an answer
    begins, in nats."""
    min_closer: float = Field(0.05, ge=0.0, lt=1.0)
    """Least share of the distance to what it says when told the wishes that must be gone, for that to count as better:
    a smaller one is noise."""
    confidence: float = Field(0.9, gt=0.5, lt=1.0)
    """Confidence of the bootstrap interval that must exclude zero."""


class AdapterSettings(Section):
    """Which of the personal adapters is meant."""

    profile: str = ""
    """A profile made by `claw-local adapters use ID --profile NAME`, to go by. Empty: what is in use for all."""


class ToolsSettings(Section):
    """What the assistant may do in a chat's workspace. A chat has none until you give it one."""

    steps: int = Field(12, ge=1, le=100)
    """Most replies in a row that may call tools, before one has to answer you."""
    run: bool = True
    """Whether commands can be run at all. Each asks first in any case."""
    timeout_s: float = Field(60.0, gt=0.0, le=3600.0)
    """Longest that a command may take, in seconds."""
    result_chars: int = Field(6000, ge=200, le=200_000)
    """Longest result of a tool that the model is shown, in characters; of a longer one the middle is left out."""
    pass_on: str = ""
    """Names of environment variables, with blanks between them, that commands get beside the usual ones; * stands for
    anything."""


class IdleSettings(Section):
    """When it learns by itself, while nobody is there. Only while learning is on, and not while it is held
    (`claw-local learn pause`). `claw-local learn now` asks for none of this."""

    enabled: bool = True
    """Whether it learns by itself at all: in the open app, and by the timer of `claw-local learn schedule install`."""
    min_lessons: int = Field(4, ge=1)
    """Fewest new lessons that a run is begun for."""
    away_minutes: float = Field(10.0, ge=0.5, le=1440.0)
    """How long nobody has typed anything to the assistant, in minutes."""
    desktop_minutes: float = Field(5.0, ge=0.0, le=1440.0)
    """How long keyboard and mouse have been left alone anywhere on the desktop, in minutes; 0: that does not matter.
    Where it cannot be known, only away_minutes counts."""
    on_mains: bool = True
    """Whether it learns on mains power only. A machine without a battery is on mains."""
    max_load: float = Field(0.3, gt=0.0, le=1.0)
    """Largest share of the processor that other programs may be using, 1 being all of it."""
    max_temperature: float = Field(85.0, ge=20.0, le=150.0)
    """Highest temperature of the processor during a run, in °C; a run begins only 10 below it. Where it cannot be
    known, it is not asked for."""
    max_gpu: float = Field(0.2, gt=0.0, le=1.0)
    """Largest share of an NVIDIA GPU that may be in use when a run begins, 1 being all of it."""
    hours: str = ""
    """When it may: "22:00-07:00", several with commas between them. Empty: at any time of the day."""
    daily_minutes: float = Field(120.0, ge=0.0, le=1440.0)
    """Most minutes a day that it learns by itself."""
    notify: bool = False
    """Whether the desktop says so when a run has changed something. The app says it in any case."""

    @field_validator("hours")
    @classmethod
    def _are_hours(cls, text: str) -> str:
        hours.parse(text)
        return text


class AppSettings(Section):
    """How the app looks, and which language it speaks."""

    language: Literal["auto", "en", "zh", "de", "es", "fr", "ja"] = "auto"
    """Language of the app's texts: English, Chinese, German, Spanish, French or Japanese. auto: what LC_ALL,
    LC_MESSAGES or LANG say. The language of a chat is the one you write in."""
    theme: str = ""
    """Name of the app's colours: claw-dark (if empty), claw-light, claw-contrast, or a file in the themes folder."""
    plain: bool = False
    """Whether `claw-local chat` talks line by line, as with --plain, without boxes, colours or animation. Other
    commands then say how far they are in lines instead of bars."""


class Settings(BaseSettings):
    """Everything a person can set. The environment (CLAW_LOCAL_MODEL__PATH=...) goes before settings.toml."""

    model_config = SettingsConfigDict(
        env_prefix="CLAW_LOCAL_",
        env_nested_delimiter="__",
        extra="forbid",
        validate_assignment=True,
        hide_input_in_errors=True,
    )

    model: ModelSettings = Field(default_factory=ModelSettings)
    ollama: OllamaSettings = Field(default_factory=OllamaSettings)
    openai: OpenAISettings = Field(default_factory=OpenAISettings)
    sampling: SamplingSettings = Field(default_factory=SamplingSettings)
    memory: MemorySettings = Field(default_factory=MemorySettings)
    judge: JudgeSettings = Field(default_factory=JudgeSettings)
    learning: LearningSettings = Field(default_factory=LearningSettings)
    gate: GateSettings = Field(default_factory=GateSettings)
    idle: IdleSettings = Field(default_factory=IdleSettings)
    adapters: AdapterSettings = Field(default_factory=AdapterSettings)
    tools: ToolsSettings = Field(default_factory=ToolsSettings)
    app: AppSettings = Field(default_factory=AppSettings)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (env_settings, init_settings)


def for_many(settings: Settings, most: int = 8) -> Settings:
    """The same for a program that answers several clients: so many replies are decoded together, unless the person has
    said how many."""
    if "together" in settings.model.model_fields_set:
        return settings
    return settings.model_copy(update={"model": settings.model.model_copy(update={"together": most})})


def load(paths: Paths) -> Settings:
    """Read the settings.

    Raises:
        SettingsError: the file is not TOML, or a value is out of its range; the message names file and key.
    """
    try:
        return Settings(**tomllib.loads(text_of(paths)))
    except UnicodeDecodeError as error:
        raise SettingsError(
            _("{settings} is not UTF-8 text. Save it as UTF-8, or rename the file.", settings=paths.settings)
        ) from error
    except EnvironmentProblem as error:
        raise SettingsError(
            _(
                "A CLAW_LOCAL_ variable in the environment is not valid: {error}. One setting "
                "looks like CLAW_LOCAL_MODEL__PATH=model.gguf.",
                error=error,
            )
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            _(
                "{settings} is not valid TOML: {error}. Mend that line, or rename the file.",
                settings=paths.settings,
                error=error,
            )
        ) from error
    except ValidationError as error:
        key = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise SettingsError(
            _(
                "The setting {key} is not valid: {error}. Mend it in {settings} (or in the environment).",
                key=key,
                error=reason(error),
                settings=paths.settings,
            )
        ) from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(
            _(
                "{settings} (or the environment) holds a value that is too large or too deeply "
                "nested to be read. Mend it, or rename the file.",
                settings=paths.settings,
            )
        ) from error
    except OSError as error:
        raise cannot_read(paths, error) from error


def text_of(paths: Paths) -> str:
    """The settings file; "" where there is none. Raises OSError: it is none, or cannot be read. UnicodeDecodeError."""
    try:
        return read_text(paths.settings, most=LARGEST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return ""


def cannot_read(paths: Paths, error: OSError) -> SettingsError:
    """What to say of it."""
    return SettingsError(
        _(
            "Cannot read {settings}: {error}. Make it a file that can be read, or change CLAW_LOCAL_HOME.",
            settings=paths.settings,
            error=error.strerror or error,
        )
    )
