"""Typed settings over one TOML file. It must never know about the store or the engine."""

from __future__ import annotations

import tomllib
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as EnvironmentProblem

from .errors import SettingsError
from .paths import Paths


class Section(BaseModel):
    """A table of the settings file. An unknown key is an error, so that a typing slip is noticed."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)


class ModelSettings(Section):
    """Which model answers, and how it is loaded."""

    path: str = ""
    """Path of a GGUF file. Empty: the embedded model, if the `tiny` extra is installed."""
    context: int = Field(4096, ge=512)
    """Longest chat, in tokens, that the model is given at once. Never more than it was trained for."""
    threads: int = Field(0, ge=0, le=512)
    """CPU threads; 0 means one for each physical core."""
    gpu_layers: int = Field(-1, ge=-1)
    """Layers to keep on a GPU, where llama.cpp was built for one; -1 means all."""
    system: str = ""
    """System prompt of new chats. Empty: the model's own."""


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


class LearningSettings(Section):
    """What is learned from chats, and how. Whether chats teach at all is a switch: `claw-local learn on`."""

    method: Literal["combined", "opd", "opd-token", "binary-rl"] = "combined"
    """Which signals drive the update (DESIGN §5)."""
    steps: int = Field(8, ge=1)
    """Optimiser steps of one run."""
    rollouts: int = Field(8, ge=0)
    """Fresh answers learned from at each step (hindsight replay)."""
    replay: int = Field(4, ge=0)
    """Stored turns used at each step, beside the fresh answers."""
    rollout_tokens: int = Field(140, ge=16)
    """Longest fresh answer, in tokens."""
    learning_rate: float = Field(3e-4, gt=0.0)
    """Constant AdamW learning rate."""
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
    min_lessons: int = Field(1, ge=1)
    """Fewest lessons (judged turns with a score or a hint) that a run needs."""
    seed: int = 0
    """Seed of a run's random choices."""


class GateSettings(Section):
    """Bounds a candidate adapter must keep (DESIGN §6)."""

    min_length_ratio: float = Field(0.6, ge=0.0, le=1.0)
    """Mean words of its answers, over those of the adapter now in use, at least this.
    A wish for short answers, if one is active, lifts the bound."""
    max_kl_base: float = Field(0.5, gt=0.0)
    """Largest mean KL to the base model on the guard prompts, in nats per token."""
    max_repetition: float = Field(0.15, ge=0.0, le=1.0)
    """Largest share, beyond the adapter now in use, of repeated 4-grams in its answers."""
    confidence: float = Field(0.9, gt=0.5, lt=1.0)
    """Confidence of the bootstrap interval that must exclude zero."""


class Settings(BaseSettings):
    """Everything a person can set. The environment (CLAW_LOCAL_MODEL__PATH=...) goes before settings.toml."""

    model_config = SettingsConfigDict(
        env_prefix="CLAW_LOCAL_", env_nested_delimiter="__", extra="forbid", validate_assignment=True
    )

    model: ModelSettings = Field(default_factory=ModelSettings)
    sampling: SamplingSettings = Field(default_factory=SamplingSettings)
    memory: MemorySettings = Field(default_factory=MemorySettings)
    learning: LearningSettings = Field(default_factory=LearningSettings)
    gate: GateSettings = Field(default_factory=GateSettings)

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


def load(paths: Paths) -> Settings:
    """Read the settings.

    Raises:
        SettingsError: the file is not TOML, or a value is out of its range; the message names file and key.
    """
    try:
        values = tomllib.loads(paths.settings.read_text("utf-8")) if paths.settings.is_file() else {}
        return Settings(**values)
    except UnicodeDecodeError as error:
        raise SettingsError(f"{paths.settings} is not UTF-8 text. Save it as UTF-8, or rename the file.") from error
    except EnvironmentProblem as error:
        raise SettingsError(
            f"A CLAW_LOCAL_ variable in the environment is not valid: {error}. "
            "One setting looks like CLAW_LOCAL_MODEL__PATH=model.gguf."
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            f"{paths.settings} is not valid TOML: {error}. Mend that line, or rename the file."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise SettingsError(
            f"The setting {key} is not valid: {first['msg']}. Mend it in {paths.settings} (or in the environment)."
        ) from error
    except OSError as error:
        raise SettingsError(
            f"Cannot read {paths.settings}: {error.strerror or error}. Make it readable, or change CLAW_LOCAL_HOME."
        ) from error
