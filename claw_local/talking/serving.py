"""Answers for other programs: the same model, adapters, hints and store as in our own chats, whole histories at a time.

It must never know about HTTP, nor wait for anyone: who may ask, and when, others decide.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal

from ..adapters.registry import AdapterChoice
from ..engine.base import ChatEngine, Generation, Prompt, Sampling, has_tokens
from ..engine.call_reader import CallReader
from ..engine.echoes import without_echoes
from ..engine.grammar import ShapeError
from ..engine.pool import Lease
from ..errors import NotFoundError
from ..idle import activity
from ..reply import Draft, Reply
from ..signals.sessions import NOWHERE, Line, Place
from ..store import AdapterRecord, Chat, Hint, Signal
from . import forming, noting
from .asked import (
    Asked,
    Began,
    Caller,
    CallPiece,
    CannotAnswer,
    Embedded,
    Ended,
    Offered,
    Piece,
    TooLong,
)
from .keeping import Keeping, Kept, is_aside
from .offering import Offering
from .own_prompts import OwnPrompts
from .writing import Write, through_engine

if TYPE_CHECKING:
    from ..assistant import Assistant, TakenBack

LONGEST_TEXT = 8192
_NOBODY = Chat(0, "", "", "", False, False, None, "", "")


@dataclass
class _Made:
    """All that is known of a reply before it begins."""

    engine: ChatEngine
    prompt: Prompt
    sampling: Sampling
    adapter: AdapterRecord | None
    hints: list[Hint]
    reader: CallReader | None
    place: Place
    bound: bool
    content: str
    """Of which `Restored.content` the place is."""


class Serving:
    """`assistant.serving`: answers for other programs. Each method may be called from any thread.

    Attributes:
        write: how a reply is begun; whoever writes several together puts their own in its place.
    """

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant
        self._store = assistant.store
        self._offering = Offering(assistant)
        self._keeping = Keeping(assistant)
        self._own = OwnPrompts()
        self.write: Write = through_engine(assistant)

    # Asking

    def models(self) -> list[Offered]:
        """What can be asked for, what is in use first. Raises ModelError."""
        return self._offering.models()

    def answer(self, asked: Asked, cancel: threading.Event) -> Generator[Piece | Ended]:
        """Answer; `cancel` from any thread, or closing this, ends it within a token.

        Raises:
            CannotAnswer: it cannot be answered as it is. NotFoundError: no such model.
            ModelError, EngineError, AdapterError, StoreError: it failed here.
        """
        started = time.perf_counter()
        choice = self._offering.choose(asked.model)
        aside = is_aside(asked)
        lease = self._assistant._engines.lease(self._assistant._source(""))
        try:
            made = self._make(lease.engine, asked, choice, aside)
            with self._assistant.meaning(made.content):
                kept = self._keep(asked, made, aside)
                if kept is None:
                    activity.note(self._store)
        except BaseException:
            lease.release()
            raise
        yield from self._written(asked, made, kept, lease, cancel, started)

    def count(self, asked: Asked) -> int:
        """How many tokens its prompt has. Raises as `answer`."""
        choice = self._offering.choose(asked.model)
        with self._assistant._engines.using(self._assistant._source("")) as engine:
            return noting.counted(self._make(engine, asked, choice, is_aside(asked)).prompt)

    def embed(self, model: str, texts: Sequence[str | Sequence[int]], cancel: threading.Event) -> Embedded:
        """One vector a text; `cancel` stops between two of them. Raises as `answer`."""
        self._offering.choose(model)
        self._store.database.accept()
        activity.note(self._store)
        with self._assistant._engines.using(self._assistant._source("")) as engine:
            if not has_tokens(engine):
                raise CannotAnswer("What answers here is behind a server, which gives no vectors.", field="model")
            tokens = [engine.tokenize(text) if isinstance(text, str) else list(text) for text in texts]
            longest = min(engine.info.context, LONGEST_TEXT)
            for one in tokens:
                if not 0 < len(one) <= longest:
                    raise TooLong(f"A text has 1 to {longest} tokens here, not {len(one)}. Cut it up.", field="input")
                forming.check_ids(engine, one, "input")
            vectors = tuple(tuple(engine.embed([one])[0]) for one in tokens if not cancel.is_set())
        return Embedded(vectors, sum(map(len, tokens)), self._offering.base())

    def detokenize(self, token_ids: Sequence[int]) -> str:
        """Raises CannotAnswer: these are no tokens of the model's."""
        with self._assistant._engines.using(self._assistant._source("")) as engine:
            if not has_tokens(engine):
                raise CannotAnswer("What answers here is behind a server, whose tokens nobody here sees.")
            forming.check_ids(engine, token_ids, "context")
            return engine.detokenize(token_ids)

    def feedback(
        self,
        caller: Caller,
        message_id: int,
        verdict: Literal["good", "bad"] | None = None,
        *,
        hint: str | None = None,
        edit: str | None = None,
    ) -> Signal:
        """What the person says outright about a reply of this caller's.

        Raises:
            NotFoundError: the caller has no such message. CannotAnswer: what it says may not teach.
            UsageError: nothing was said about it.
        """
        self._check_own(caller, message_id)
        if not caller.learn:
            raise CannotAnswer("What comes with this key does not teach. Its owner can switch that on.")
        return self._assistant.feedback(message_id, verdict, hint=hint, edit=edit)

    def take_back(self, caller: Caller, message_id: int) -> TakenBack:
        """Take back what was said outright about a reply of this caller's; also where it may not teach any more.
        Raises NotFoundError: the caller has no such message."""
        self._check_own(caller, message_id)
        return self._assistant.take_back(message_id)

    def _check_own(self, caller: Caller, message_id: int) -> None:
        missing = NotFoundError(f"There is no message {message_id} of yours.")
        try:
            message = self._store.messages.get(message_id)
        except NotFoundError:
            raise missing from None
        if self._store.sessions.key_of(message.chat_id) != caller.key or message.role != "assistant":
            raise missing

    # Before the first word

    def _make(self, engine: ChatEngine, asked: Asked, choice: AdapterChoice, aside: bool) -> _Made:
        adapter = self._assistant.adapters.choose_for(_NOBODY, engine.info.adapters_of, choice)
        changes = {name: value for name, value in asdict(asked.drawn).items() if value not in (None, ())}
        formed = forming.form(engine, asked, self._assistant.default_sampling(**changes))
        kept = asked.caller.learn and not aside
        self._store.database.accept()  # Each request finds its place anew: no number is known from before.
        content = self._assistant.content
        place = self._keeping.place(asked) if kept else NOWHERE
        hints: list[Hint] = []
        if kept and not formed.bound and choice != "base":
            hints = self._assistant._active_hints(engine, place.chat_id or 0, adapter)
        known = {message.id: message for message in self._store.messages.some([one for one in place.ids if one])}
        replies = [known.get(identity) for identity in place.ids]
        prompt = forming.prompt(engine, asked, formed, replies, [hint.text for hint in hints])
        reader = CallReader(formed.form) if formed.tools else None
        return _Made(engine, prompt, formed.sampling, adapter, hints, reader, place, formed.bound, content)

    def _keep(self, asked: Asked, made: _Made, aside: bool) -> Kept | None:
        if not asked.caller.learn:
            return None
        if aside:
            return self._keeping.put_aside(asked)
        kept = self._keeping.put(asked, made.place, bound=made.bound)
        self._store.messages.describe(
            kept.reply_id,
            model=made.engine.info.name,
            model_sha256=made.engine.info.sha256,
            adapter_id=made.adapter.id if made.adapter else 0,
            hint_ids=[hint.id for hint in made.hints],
            system="\n\n".join(one.content for one in asked.messages if one.role == "system"),
        )
        if made.hints:
            self._store.hints.count_use([hint.id for hint in made.hints])
        return kept

    # Word by word

    def _written(
        self, asked: Asked, made: _Made, kept: Kept | None, lease: Lease, cancel: threading.Event, started: float
    ) -> Generator[Piece | Ended]:
        generations: list[Generation] = []
        own = self._own.ask(asked.caller.key, made.prompt.token_ids)

        def begin(stop: threading.Event) -> tuple[Generation, Iterator[str]]:
            asker = f"{asked.caller.key}:{asked.caller.address}"
            generation, pieces = self.write(made.engine, made.prompt, made.sampling, made.adapter, asker, stop)
            generations.append(generation)
            return generation, without_echoes(made.prompt, generation, pieces)

        pieces = self._kept(begin, made, kept, lease, cancel) if kept else _unkept(begin, lease, cancel)
        said: list[str] = []
        told = noted = 0
        nonce = f"{kept.reply_id}_" if kept else secrets.token_hex(6)
        began = False
        try:
            for text in chain(pieces, [None]):
                # The end, too: what was held back comes out then.
                reader, generation = made.reader, generations[0]
                if reader is None:
                    words = text or ""
                else:
                    cut = generation.finish_reason == "length"
                    words = reader.finish(cut=cut) if text is None else reader.push(text)
                said.append(words)
                logprobs = noting.logprobs(made.engine, generation.noted[noted:])
                noted = len(generation.noted)
                if not began:
                    began = True
                    message_id = kept.reply_id if kept else 0
                    shown = self._offering.shown(made.adapter)
                    yield Piece(began=Began(shown, message_id, noting.counted(made.prompt)))
                if words or logprobs:
                    yield Piece(words, logprobs=logprobs)
                calls = reader.calls if reader else []
                for index, (name, arguments) in enumerate(calls[told:], start=told):
                    yield Piece(call=CallPiece(index, f"call_{nonce}{index}", name, arguments))
                told = len(calls)
        except ShapeError as error:
            raise CannotAnswer(str(error), field=forming.SHAPE) from error
        finally:
            pieces.close()
        if kept:
            with self._assistant.meaning(made.content):
                self._keeping.finished(asked, kept, Line("assistant", "".join(said), tuple(calls)))
        self._own.answered(asked.caller.key, (*generation.prompt_ids, *generation.response_ids))
        yield replace(
            noting.ended(made.engine, generation, called=bool(calls), own=own),
            model=self._offering.shown(made.adapter),
            message_id=kept.reply_id if kept else 0,
            session_id=asked.session.id,
            load_s=lease.load_s,
            total_s=time.perf_counter() - started,
        )

    def _kept(
        self,
        begin: Callable[[threading.Event], tuple[Generation, Iterator[str]]],
        made: _Made,
        kept: Kept,
        lease: Lease,
        cancel: threading.Event,
    ) -> Generator[str]:
        draft = Draft(
            model=made.engine.info.name,
            begin=begin,
            release=lease.release,
            adapter_id=made.adapter.id if made.adapter else 0,
            hints=tuple(hint.text for hint in made.hints),
            load_s=lease.load_s,
        )
        reply = Reply(
            self._store,
            chat_id=kept.chat_id,
            user_message_id=kept.user_id,
            message_id=kept.reply_id,
            prepare=lambda: draft,
            begun=kept.begun,
            cancel=cancel,
            content=made.content,
        )
        try:
            yield from reply
        finally:
            reply.close()


def _unkept(
    begin: Callable[[threading.Event], tuple[Generation, Iterator[str]]], lease: Lease, cancel: threading.Event
) -> Generator[str]:
    try:
        _, pieces = begin(cancel)
        try:
            yield from pieces
        finally:
            if isinstance(pieces, Generator):
                pieces.close()
    finally:
        lease.release()
