"""The engine behind everything: a GGUF model in this process, through llama.cpp.

One model and several contexts over the same weights, each in a room of its own: the chat's, whose KV cache is kept
from turn to turn (`_alone`), or in its place one for many replies at once (`together`); the judge's, on the base
model with a prefix of its own (`_aside`); one for scoring (`_scoring`); and one for each batch of replies (`_many`).
What they share is the `_machine`. It must never know about the store, the judge or what is learned.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import AdapterError, EngineError
from ..language import _
from ..settings import ModelSettings
from ._alone import Alone
from ._aside import Aside
from ._loaded import Loaded
from ._machine import Machine
from ._many import write_many
from ._native import Adapters, NativeModel, Threads, can_use_gpu
from ._remembered import Remembered, named, prefix
from ._scoring import Scoring
from ._threads import FixedThreads, FreeThreads, usable_cores
from .base import AdapterSlot, Generation, Logits, Message, ModelInfo, Prompt, Sampling, ToolText
from .models import check_model, contexts_that_fit, model_sha256
from .prompts import PromptRenderer
from .template import ChatTemplate, TemplateError
from .together import Request, Together, make_ground


class LlamaCppEngine:
    """A loaded model; implements `Engine`. Make one with `open`."""

    def __init__(
        self,
        model: NativeModel,
        info: ModelInfo,
        renderer: PromptRenderer,
        threads: Threads,
        *,
        together: int = 1,
        roomy: bool = True,
    ) -> None:
        self._model = model
        self._info = info
        self._renderer = renderer
        self._machine = Machine(model, threads, info.context)
        self._loaded = Loaded(self._machine, info, busy=together > 1)
        self._adapters: Adapters = ()
        self._aside = Aside(self._machine)
        self._scoring = Scoring(self._machine)
        self._alone: Alone | None = None
        self._together: Together | None = None
        with self._machine.computing():
            if together > 1:
                self._together = Together(make_ground(self._machine, together, roomy=roomy))
            else:
                self._alone = Alone(self._machine)

    @classmethod
    def open(cls, path: Path, settings: ModelSettings, *, cache_dir: Path | None) -> LlamaCppEngine:
        """Check the file, load it, and make room for the chat.

        Args:
            cache_dir: folder that remembers the file's hash between starts.

        Raises:
            ModelError: the file is missing, damaged, too big for this machine, or refused by llama.cpp.
            EngineError: llama.cpp is not usable, or there is not enough memory.
        """
        on_gpu = settings.gpu_layers != 0 and can_use_gpu()
        threads = FixedThreads(settings.threads) if settings.threads else FreeThreads(usable_cores())
        header = check_model(path, context=settings.context, on_gpu=on_gpu)
        roomy = on_gpu or contexts_that_fit(path, header, settings.context) >= 3  # What is kept takes one as well.
        sha256 = model_sha256(path, cache_dir)
        model = NativeModel(path, gpu_layers=settings.gpu_layers)
        try:
            context = min(settings.context, model.trained_context or settings.context)
            name = path.stem if not path.stem.startswith("sha256-") else header.text("general.name") or path.stem
            info = ModelInfo(
                name=name,
                path=path,
                sha256=sha256,
                architecture=header.text("general.architecture"),
                parameters=model.parameters,
                context=context,
            )
            try:
                template = ChatTemplate(
                    model.chat_template(), bos=model.token_text(model.bos), eos=model.token_text(model.eos)
                )
            except TemplateError as error:
                raise EngineError(
                    _(
                        "The chat template of {path} is broken ({error}). Use another model file.",
                        path=path,
                        error=error,
                    )
                ) from error
            may_grow = not model.trained_context or context < model.trained_context
            renderer = PromptRenderer(template, model, may_grow=may_grow)
            return cls(model, info, renderer, threads, together=settings.together, roomy=roomy)
        except BaseException:
            model.close()
            raise

    @property
    def info(self) -> ModelInfo:
        return self._info

    # Text and tokens

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        with self._machine.reading():
            return self._model.tokenize(text, special=special)

    def detokenize(self, token_ids: Sequence[int]) -> str:
        with self._machine.reading():
            return self._model.detokenize(token_ids)

    def token_bytes(self, token: int) -> bytes:
        with self._machine.reading():
            return self._model.piece(token)

    @property
    def vocabulary(self) -> int:
        return self._model.n_vocab

    @property
    def begin_token(self) -> int | None:
        return self._model.bos if self._model.adds_bos and self._model.bos >= 0 else None

    @property
    def chat_template(self) -> str:
        return self._renderer.source

    @property
    def takes_tools(self) -> bool:
        with self._machine.reading():
            return self._renderer.takes_tools

    def render(self, messages: Sequence[Message], *, reserve: int = 0) -> Prompt:
        """Apply the model's own chat template; see `Engine.render`. At most half of the context is reserved."""
        return self.render_tools(messages, (), reserve=reserve)

    def render_tools(self, messages: Sequence[Message], tools: Sequence[ToolText], *, reserve: int = 0) -> Prompt:
        """The same with tools the template offers; see `Engine.render_tools`."""
        room = self._info.context - min(max(1, reserve), self._info.context // 2)
        with self._machine.reading():
            return self._renderer.render(messages, room, tools)

    def embed(self, texts: Sequence[Sequence[int]]) -> list[list[float]]:
        """Vectors of texts; see `Engine.embed`. Each text takes a turn of its own, after replies that wait."""
        return [self._scoring.embed(text) for text in texts]

    # Replies

    def generate(
        self, prompt: Prompt, sampling: Sampling, *, cancel: threading.Event | None = None
    ) -> tuple[Generation, Iterator[str]]:
        """Begin a reply; see `Engine.generate`.

        Nothing is computed before the iterator is read. Adapters are those set at this call, until the reply's end.
        A reply that is given up (the iterator closed or dropped) ends as "cancelled".

        Raises:
            EngineError: the prompt is empty or fills the whole context.
        """
        generation = self._machine.begin(prompt.token_ids, sampling, sampling.seed)
        generation.dropped = prompt.dropped
        if self._together is not None:
            return generation, self._together.stream(generation, self._adapters, cancel)
        assert self._alone is not None
        return generation, self._alone.stream(generation, self._adapters, cancel, time.perf_counter())

    def submit(
        self,
        prompt_ids: Sequence[int],
        sampling: Sampling,
        *,
        adapters: Sequence[AdapterSlot] | None = None,
        client: Hashable = "",
        cancel: threading.Event | None = None,
        on_piece: Callable[[str], None] | None = None,
        on_end: Callable[[Request], None] | None = None,
    ) -> Request:
        """Ask for a reply that is decoded in one batch with all others; returns at once. Only of an engine that was
        opened with `together` above 1.

        Args:
            adapters: the LoRAs it is written with, to its end; None means those that are set now.
            client: who asks; clients are served in turn.
            cancel: stops it within one token, as `Request.cancel` does.
            on_piece, on_end: called with each piece of text, and once with the request when it is over, from the thread
                that computes: they must be quick, and must not raise.

        Raises:
            EngineError: the prompt is empty, fills the whole context, or holds tokens the model does not have.
            AdapterError: as `set_adapters`.
        """
        if self._together is None:
            raise EngineError(_("This model answers one after the other. Set model.together to 2 or more."))
        generation = self._machine.begin(prompt_ids, sampling, sampling.seed)
        applied = self._adapters if adapters is None else self._loaded.load(adapters)
        return self._together.enter(
            Request(generation, applied, client=client, cancel=cancel, on_piece=on_piece, on_end=on_end)
        )

    @property
    def together(self) -> Together | None:
        """What writes many replies at once; None if this engine writes one after the other."""
        return self._together

    def generate_many(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, *, cancel: threading.Event | None = None
    ) -> list[Generation]:
        """Sample one reply for each prompt, decoded together; see `Engine.generate_many`.

        Raises:
            EngineError: a prompt is empty or fills the whole context.
        """
        return write_many(self._machine, prompts, sampling, self._adapters, cancel)

    # Scores

    def logits(self, token_ids: Sequence[int], *, start: int) -> Logits:
        """[T - start, V] raw logits; see `Engine.logits`.

        Raises:
            EngineError: T is longer than the model's context, or `start` is not inside.
        """
        return self._scoring.logits(token_ids, start, self._adapters)

    def next_logits(
        self, prefix: Sequence[int], suffix: Sequence[int], *, cancel: threading.Event | None = None
    ) -> Logits:
        """[V] raw logits after prefix + suffix, on the base model with the judge's own adapters, if it has some; see
        `Engine.next_logits`.

        Raises:
            Cancelled: `cancel` was set before it was done.
            EngineError: prefix and suffix are empty, or longer than the model's context.
        """
        return self._aside.next_logits([*prefix, *suffix], cancel)

    def generate_aside(
        self, prompt: Prompt, sampling: Sampling, *, cancel: threading.Event | None = None
    ) -> Generation:
        """Write a whole text as the judge; see `Engine.generate_aside`. Replies go first, as with `next_logits`.

        Raises:
            Cancelled: `cancel` was set before it was done.
            EngineError: the prompt is empty or fills the whole context.
        """
        return self._aside.generate(prompt.token_ids, sampling, cancel)

    @property
    def replying(self) -> bool:
        """See `Engine.replying`."""
        return self._machine.turns.urgent

    # Adapters

    def set_adapters(self, adapters: Sequence[AdapterSlot]) -> None:
        """Apply exactly these LoRAs from the next call on; see `Engine.set_adapters`. Takes at most one step's time.

        Raises:
            AdapterError: a file is missing, damaged, or does not fit the model; what was applied before stays.
        """
        self._adapters = self._loaded.load(adapters)

    def set_judge_adapters(self, adapters: Sequence[AdapterSlot]) -> None:
        """Judge (`next_logits`) with exactly these LoRAs from the next call on; replies are not touched.

        Raises:
            AdapterError: a file is missing, damaged, or does not fit the model; what was applied before stays.
        """
        self._aside.adapters = self._loaded.load(adapters)

    # Life and death

    @property
    def on_gpu(self) -> bool:
        """Whether it holds a GPU's memory."""
        return self._model.on_gpu and not self._machine.closed

    def remember(self) -> Remembered:
        """What `recall` needs for the last chats to go on as if this engine had stayed open. While no reply is under
        way."""
        if self._machine.closed:
            return Remembered()
        with self._machine.computing():
            files = self._loaded.files()
            chat = self._alone.chat.save() if self._alone is not None else None
            held = self._together.seats.save() if self._together is not None else [chat] if chat is not None else []
            return Remembered(tuple(prefix(one, files) for one in held), named(self._adapters, files))

    def recall(self, remembered: Remembered) -> None:
        """Take over what another engine of the same model remembered, before the first reply. What does not fit any
        longer, such as an adapter that is gone, is left out."""
        for one in remembered.prefixes:
            try:
                adapters = self._loaded.load(one.adapters)
            except AdapterError:
                continue
            with self._machine.computing():
                if self._together is not None:
                    self._together.seats.put_back(one.tokens, adapters, one.state)
                elif self._alone is not None:
                    self._alone.chat.put_back(one.tokens, adapters, one.state)
        with suppress(AdapterError):
            self.set_adapters(remembered.adapters)

    def close(self) -> None:
        """Free everything: contexts, then the model with its adapters. A reply under way ends as "cancelled"."""
        if self._together is not None:
            self._together.close()
        self._machine.close()

    def __enter__(self) -> LlamaCppEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
