"""The engine behind everything: a GGUF model in this process, through llama.cpp.

One model and several contexts over the same weights: the chat's, whose KV cache is kept from turn to turn (or in its
place one for many replies at once); the judge's, on the base model with a prefix of its own; one for scoring; and one
for each batch of replies. It must never know about the store, the judge or what is learned.

Two locks, two meanings. `_lock` is safety: whoever computes, loads or frees holds it, for one step (a token, or one
batch of prompt tokens). `_turns` is order: a reply keeps its turn until it ends, and the judge waits.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..errors import AdapterError, EngineError
from ..settings import ModelSettings
from ._batch import cells, waves, write_together
from ._embedding import embed
from ._growing import GrowingContext
from ._kept import LEAST, KeptSequence, chunks
from ._native import Adapters, NativeContext, NativeModel, Stopped, Threads, can_use_gpu
from ._sampler import as_seed, fresh_seed
from ._stopping import StopFlag
from ._threads import FixedThreads, FreeThreads, usable_cores
from ._turns import Turns
from ._writing import Writing
from .base import AdapterSlot, Cancelled, Generation, Logits, Message, ModelInfo, Prompt, Sampling, ToolText
from .models import check_adapter, check_model, contexts_that_fit, model_sha256
from .prompts import PromptRenderer
from .template import ChatTemplate, TemplateError
from .together import Ground, Request, Together

CHAT_BATCH = 256
JUDGE_BATCH = 32
"""The judge computes in small batches, so that it can be cancelled soon. It gives way to the chat within a batch."""
JUDGE_CONTEXT = 2048
SCORE_CONTEXT = 1024
SCORE_ROWS = 64
"""Positions whose logits are in memory at once while a text is scored."""


class _Closed(EngineError):
    """The engine was closed meanwhile."""

    def __init__(self) -> None:
        super().__init__("The model is no longer loaded: claw-local is closing. Start it again.")


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
        trained = model.trained_context or info.context
        self._model = model
        self._info = info
        self._renderer = renderer
        self._threads = threads
        self._lock = threading.Lock()
        self._vocabulary = threading.RLock()
        self._stop_judge = StopFlag()
        self._turns = Turns(hurry=self._stop_judge.set)
        self._closed = False
        self._contexts: list[NativeContext] = []
        self._loaded: dict[tuple[str, int, int], int] = {}
        self._adapters: Adapters = ()
        self._judge_adapters: Adapters = ()
        self._judge_lock = threading.Lock()
        self._judge: KeptSequence | None = None
        self._judge_context = GrowingContext(
            lambda room: self._new_context(room, batch=JUDGE_BATCH, stop=self._stop_judge),
            self._free_context,
            least=min(JUDGE_CONTEXT, trained),
            most=max(min(JUDGE_CONTEXT, trained), info.context),
            purpose="judge",
        )
        self._score_lock = threading.Lock()
        self._scored: tuple[NativeContext, tuple[int, ...]] | None = None
        self._score_context = GrowingContext(
            lambda room: self._new_context(room, batch=CHAT_BATCH, outputs=SCORE_ROWS),
            self._free_context,
            least=min(SCORE_CONTEXT, trained),
            most=max(min(SCORE_CONTEXT, trained), info.context),
            purpose="score",
        )
        self._chat: KeptSequence | None = None
        self._together: Together | None = None
        with self._computing():
            if together > 1:
                self._together = Together(self._ground(together, roomy))
            else:
                self._chat = KeptSequence(self._new_context(info.context, batch=CHAT_BATCH))

    def _ground(self, together: int, roomy: bool) -> Ground:
        """What many replies at once are computed on: room for two chats of the longest kind, or for one where there is
        not enough memory. Beside it, half as much is kept for next turns."""
        limit = self._info.context

        def make(room: int) -> NativeContext:
            # Without the fused kernel, each token would be compared with the cells of all, not only with its own.
            return self._new_context(
                room, batch=CHAT_BATCH + together, sequences=together, outputs=together, fused=True
            )

        room = 2 * limit if roomy else limit
        try:
            context = make(room)
        except EngineError:
            room = limit
            context = make(room)
        return Ground(self._model, context, self._turns, self._computing, _Closed, room, limit, together)

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
                    f"The chat template of {path} is broken ({error}). Use another model file."
                ) from error
            return cls(model, info, PromptRenderer(template, model), threads, together=settings.together, roomy=roomy)
        except BaseException:
            model.close()
            raise

    @property
    def info(self) -> ModelInfo:
        return self._info

    # Text and tokens

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        with self._reading():
            return self._model.tokenize(text, special=special)

    def detokenize(self, token_ids: Sequence[int]) -> str:
        with self._reading():
            return self._model.detokenize(token_ids)

    def token_bytes(self, token: int) -> bytes:
        with self._reading():
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
        with self._reading():
            return self._renderer.takes_tools

    def render(self, messages: Sequence[Message], *, reserve: int = 0) -> Prompt:
        """Apply the model's own chat template; see `Engine.render`. At most half of the context is reserved."""
        return self.render_tools(messages, (), reserve=reserve)

    def render_tools(self, messages: Sequence[Message], tools: Sequence[ToolText], *, reserve: int = 0) -> Prompt:
        """The same with tools the template offers; see `Engine.render_tools`."""
        room = self._info.context - min(max(1, reserve), self._info.context // 2)
        with self._reading():
            return self._renderer.render(messages, room, tools)

    def embed(self, texts: Sequence[Sequence[int]]) -> list[list[float]]:
        """Vectors of texts; see `Engine.embed`. Each text takes a turn of its own, after replies that wait."""
        return [self._embed_one(text) for text in texts]

    def _embed_one(self, text: Sequence[int]) -> list[float]:
        if not text or len(text) > self._info.context:
            raise EngineError(f"A text to embed has 1 to {self._info.context} tokens, not {len(text)}. Cut it up.")
        who = object()
        try:
            self._turns.take(who)
            with self._computing():
                return embed(self._model, text, threads=self._threads.now())
        finally:
            self._turns.leave(who)

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
        generation = self._begin(prompt.token_ids, sampling, sampling.seed)
        generation.dropped = prompt.dropped
        if self._together is not None:
            return generation, self._together.stream(generation, self._adapters, cancel)
        return generation, self._stream(generation, self._adapters, cancel, time.perf_counter())

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
            raise EngineError("This model answers one after the other. Set model.together to 2 or more.")
        generation = self._begin(prompt_ids, sampling, sampling.seed)
        applied = self._adapters if adapters is None else self._load_adapters(adapters)
        return self._together.enter(
            Request(generation, applied, client=client, cancel=cancel, on_piece=on_piece, on_end=on_end)
        )

    @property
    def together(self) -> Together | None:
        """What writes many replies at once; None if this engine writes one after the other."""
        return self._together

    def _begin(self, prompt_ids: Sequence[int], sampling: Sampling, seed: int | None) -> Generation:
        if self._closed:
            raise _Closed
        if not prompt_ids:
            raise EngineError("There is nothing to answer: the prompt is empty. Write a message first.")
        if len(prompt_ids) >= self._info.context:
            raise EngineError(
                f"The prompt of {len(prompt_ids)} tokens fills the context of {self._info.context}. "
                "Shorten the chat, or set a larger model.context."
            )
        if min(prompt_ids) < 0 or max(prompt_ids) >= self._model.n_vocab:
            raise EngineError("The prompt holds tokens that the model does not have. Were they another model's?")
        return Generation(tuple(prompt_ids), sampling, seed=fresh_seed() if seed is None else as_seed(seed))

    def _stream(
        self, generation: Generation, adapters: Adapters, cancel: threading.Event | None, started: float
    ) -> Iterator[str]:
        chat, turns = self._chat, self._turns
        assert chat is not None
        writing = Writing(generation, self._model, limit=self._info.context, started=started)
        try:
            fed = turns.take(writing, cancel, urgent=True) and self._feed(chat, writing, adapters, cancel)
            while fed:
                with self._computing():
                    piece = writing.accept(chat.context.logits(-1))
                if piece:
                    turns.rest(writing)
                    yield piece
                if writing.done:
                    return
                if _is_set(cancel) or not turns.take(writing, cancel, urgent=True):
                    break
                if chat.user is writing:
                    with self._computing():
                        chat.append(generation.response_ids[-1])
                else:  # Another reply used the chat's KV cache while this one was not read.
                    fed = self._feed(chat, writing, adapters, cancel)
            if rest := writing.end("cancelled"):
                yield rest
        except _Closed:
            return
        finally:
            writing.end("cancelled")
            turns.leave(writing)

    def _feed(self, chat: KeptSequence, writing: Writing, adapters: Adapters, cancel: threading.Event | None) -> bool:
        """Bring the chat's KV cache to where `writing` stands. False if it was cancelled."""
        generation = writing.generation
        again = bool(generation.response_ids)
        steps = chat.feed([*generation.prompt_ids, *generation.response_ids], adapters, writing)
        while True:
            if _is_set(cancel):
                return False
            with self._computing():
                computed = next(steps, None)
            if computed is None:
                return True
            if not again:
                generation.evaluated += computed

    def generate_many(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, *, cancel: threading.Event | None = None
    ) -> list[Generation]:
        """Sample one reply for each prompt, decoded together; see `Engine.generate_many`.

        Raises:
            EngineError: a prompt is empty or fills the whole context.
        """
        started = time.perf_counter()
        seeds = [None if sampling.seed is None else sampling.seed + n for n in range(len(prompts))]
        generations = [self._begin(prompt, sampling, seed) for prompt, seed in zip(prompts, seeds, strict=True)]
        if not prompts:
            return []
        adapters, limit = self._adapters, self._info.context
        runs = waves(prompts, sampling.max_tokens, limit)
        room = max(cells([prompts[n] for n in run], sampling.max_tokens, limit) for run in runs)
        together = max(len(run) for run in runs)
        who = object()
        context: NativeContext | None = None
        writings: list[Writing] = []
        try:
            running = self._turns.take(who, cancel)
            if running:
                with self._computing():
                    context = self._new_context(room, batch=CHAT_BATCH, sequences=together, outputs=together)
                    context.apply(adapters)
            for run in runs:
                writings = [Writing(generations[n], self._model, limit=limit, started=started) for n in run]
                steps = iter(()) if context is None else write_together(context, writings)
                while running := running and not _is_set(cancel) and self._turns.give_way(who, cancel):
                    with self._computing():
                        if next(steps, who) is who:
                            break
                for writing in writings:
                    writing.end("cancelled")
        finally:
            for writing in writings:
                writing.end("cancelled")
            self._turns.leave(who)
            if context is not None:
                with self._lock:
                    self._free_context(context)
        return generations

    # Scores

    def logits(self, token_ids: Sequence[int], *, start: int) -> Logits:
        """[T - start, V] raw logits; see `Engine.logits`.

        Raises:
            EngineError: T is longer than the model's context, or `start` is not inside.
        """
        count = len(token_ids)
        if not 0 <= start < count:
            raise EngineError(f"Logits from position {start} on were asked for, of a text of {count} tokens.")
        out = np.empty((count - start, self._model.n_vocab), np.float32)
        # Batches of two tokens or more: they round alike, see `_kept.LEAST`.
        first = max(0, min(start, count - LEAST))
        first = 0 if first == 1 else first
        adapters, who = self._adapters, object()
        with self._score_lock:
            try:
                self._turns.take(who)
                with self._computing():
                    context = self._score_context.fit(count)
                    kept = self._keep_scored(context, token_ids[:first], adapters)
                for begin, end in [*chunks(kept, first, CHAT_BATCH), *chunks(first, count, SCORE_ROWS)]:
                    self._turns.give_way(who)
                    with self._computing():
                        wanted = range(max(0, start - begin), end - begin)
                        context.decode(token_ids[begin:end], begin, 0, wanted)
                        for place in wanted:
                            out[begin + place - start] = context.logits(place)
                self._scored = (context, tuple(token_ids))
            finally:
                self._turns.leave(who)
        return out

    def _keep_scored(self, context: NativeContext, prefix: Sequence[int], adapters: Adapters) -> int:
        """Leave as much of `prefix` in the scoring context as the text scored before began with; returns how much."""
        before, self._scored = self._scored, None  # Until the text is whole again, nothing is known of what is there.
        stale = context.apply(adapters)
        kept = 0
        if before is not None and before[0] is context and not stale:
            most = min(len(prefix), len(before[1]))
            kept = next((n for n in range(most) if prefix[n] != before[1][n]), most)
            kept = max(0, kept - (len(prefix) - kept == 1))  # What is left to compute is no batch of one.
        if kept == 0 or not context.remove(0, kept):
            context.clear()
            return 0
        return kept

    def next_logits(
        self, prefix: Sequence[int], suffix: Sequence[int], *, cancel: threading.Event | None = None
    ) -> Logits:
        """[V] raw logits after prefix + suffix, on the base model with the judge's own adapters, if it has some; see
        `Engine.next_logits`.

        Raises:
            Cancelled: `cancel` was set before it was done.
            EngineError: prefix and suffix are empty, or longer than the model's context.
        """
        token_ids = [*prefix, *suffix]
        if not token_ids:
            raise EngineError("There is nothing to judge: the text is empty.")
        who = object()
        while not self._judge_lock.acquire(timeout=0.05):
            if _is_set(cancel):
                raise Cancelled
        try:
            if not self._turns.take(who, cancel):
                raise Cancelled
            with self._computing():
                judge = self._judge_sequence(len(token_ids))
            steps = judge.feed(token_ids, self._judge_adapters, who)
            while True:
                self._stop_judge.clear()  # Before it gives way: a reply that begins to wait after that sets it again.
                if _is_set(cancel) or not self._turns.give_way(who, cancel):
                    raise Cancelled
                try:
                    with self._computing():
                        if next(steps, None) is None:
                            return judge.context.logits(-1).copy()
                except Stopped:
                    steps = judge.feed(token_ids, self._judge_adapters, who)
        finally:
            self._turns.leave(who)
            self._judge_lock.release()

    def generate_aside(
        self, prompt: Prompt, sampling: Sampling, *, cancel: threading.Event | None = None
    ) -> Generation:
        """Write a whole text as the judge; see `Engine.generate_aside`. Replies go first, as with `next_logits`.

        Raises:
            Cancelled: `cancel` was set before it was done.
            EngineError: the prompt is empty or fills the whole context.
        """
        generation = self._begin(prompt.token_ids, sampling, sampling.seed)
        writing = Writing(generation, self._model, limit=self._info.context, started=time.perf_counter())
        try:
            while not writing.done:
                logits = self.next_logits(generation.prompt_ids, generation.response_ids, cancel=cancel)
                with self._computing():
                    writing.accept(logits)
        finally:
            writing.end("cancelled")
        return generation

    @property
    def replying(self) -> bool:
        """See `Engine.replying`."""
        return self._turns.urgent

    def _judge_sequence(self, count: int) -> KeptSequence:
        context = self._judge_context.fit(count)
        if self._judge is None or self._judge.context is not context:
            self._judge = KeptSequence(context)
        return self._judge

    # Adapters

    def set_adapters(self, adapters: Sequence[AdapterSlot]) -> None:
        """Apply exactly these LoRAs from the next call on; see `Engine.set_adapters`. Takes at most one step's time.

        Raises:
            AdapterError: a file is missing, damaged, or does not fit the model; what was applied before stays.
        """
        self._adapters = self._load_adapters(adapters)

    def set_judge_adapters(self, adapters: Sequence[AdapterSlot]) -> None:
        """Judge (`next_logits`) with exactly these LoRAs from the next call on; replies are not touched.

        Raises:
            AdapterError: a file is missing, damaged, or does not fit the model; what was applied before stays.
        """
        self._judge_adapters = self._load_adapters(adapters)

    def _load_adapters(self, adapters: Sequence[AdapterSlot]) -> Adapters:
        loaded: list[tuple[int, float]] = []
        for slot in adapters:
            if not math.isfinite(slot.scale):
                raise AdapterError(f"The scale of {slot.path} is not a number. Give one such as 1.0.")
            loaded.append((self._adapter(slot.path), float(slot.scale)))
        return tuple(loaded)

    def _adapter(self, path: Path) -> int:
        key = check_adapter(path, self._info)
        if (loaded := self._loaded.get(key)) is not None:
            return loaded
        who = object()
        try:
            if self._together is not None:  # It computes step after step: a lock alone might not be had in between.
                self._turns.take(who, urgent=True)
            with self._computing():
                if key not in self._loaded:
                    self._loaded[key] = self._model.load_adapter(path)
                return self._loaded[key]
        finally:
            self._turns.leave(who)

    # Life and death

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Hold the lock for one step. Raises EngineError if the engine is closed."""
        with self._lock:
            if self._closed:
                raise _Closed
            yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Keep the vocabulary alive; does not wait for what computes."""
        with self._vocabulary:
            if self._closed:
                raise _Closed
            yield

    def _new_context(
        self,
        room: int,
        *,
        batch: int,
        sequences: int = 1,
        outputs: int = 1,
        stop: StopFlag | None = None,
        fused: bool = False,
    ) -> NativeContext:
        context = NativeContext(
            self._model,
            context=room,
            batch=max(batch, sequences),
            threads=self._threads,
            sequences=sequences,
            outputs=outputs,
            stop=stop,
            fused=fused,
        )
        self._contexts.append(context)
        return context

    def _free_context(self, context: NativeContext) -> None:
        """Only with the lock held. After `close`, nothing is left to free."""
        if context in self._contexts:
            self._contexts.remove(context)
            context.close()

    def close(self) -> None:
        """Free everything: contexts, then the model with its adapters. A reply under way ends as "cancelled"."""
        if self._together is not None:
            self._together.close()
        with self._lock, self._vocabulary:
            if self._closed:
                return
            self._closed = True
            for context in self._contexts:
                context.close()
            self._contexts.clear()
            self._loaded.clear()
            self._model.close()

    def __enter__(self) -> LlamaCppEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_set(cancel: threading.Event | None) -> bool:
    return cancel is not None and cancel.is_set()
