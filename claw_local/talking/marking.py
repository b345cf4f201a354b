"""Marking: what the person says outright about a reply, and what they take back of it.

It must never decide what is learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import NothingError, UsageError
from ..language import _
from ..memory import fast
from ..store import Hint, Signal, StoredMessage
from ..store.records import SignalSource
from .opened import Opened
from .text import clean

OUTRIGHT: tuple[SignalSource, ...] = ("thumb", "edit")
"""The sources by which the person says it outright."""


@dataclass(frozen=True)
class TakenBack:
    """What was taken back of a reply.

    Attributes:
        signals: the marks and corrections that count no more; empty if there was none.
        hints: those that were given with them, which are in no prompt any more.
        learned_by: ids of the adapters that had learned from the reply before; what they learned stays in them.
    """

    message_id: int
    signals: tuple[Signal, ...] = ()
    hints: tuple[Hint, ...] = ()
    learned_by: tuple[int, ...] = ()


class Marking(Opened):
    """The part of `Assistant` that is told what a reply was worth."""

    def feedback(
        self,
        message_id: int,
        verdict: Literal["good", "bad"] | None = None,
        *,
        hint: str | None = None,
        edit: str | None = None,
    ) -> Signal:
        """What the person says outright about a reply: a thumb, a hint, or the text as it should have been.

        An edited text becomes a new branch of the chat, which goes on from there. A hint alone leaves a thumb that was
        given before as it is.

        Raises:
            NotFoundError: no such message. UsageError: it is not a reply, or nothing was said about it.
        """
        message = self.store.messages.get(message_id)
        if message.role != "assistant":
            raise NothingError(
                _(
                    "Message {message_id} is not a reply of the assistant, so there is nothing to judge.",
                    message_id=message_id,
                )
            )
        if verdict is None and not hint and not edit:
            raise UsageError(_("Say good or bad, give a hint, or give the text as it should have been."))
        text = clean(hint or "").strip()
        return self.store.database.keeping(lambda: self._mark(message, verdict, text, edit))

    def _mark(
        self, message: StoredMessage, verdict: Literal["good", "bad"] | None, text: str, edit: str | None
    ) -> Signal:
        message_id = message.id
        with self.store.database.write():
            signal = None
            if verdict is not None or not edit:
                score = self._thumb(message_id) if verdict is None else 1 if verdict == "good" else -1
                signal = self.store.signals.add(message_id, "thumb", score, hint=text)
            if edit:
                self.store.messages.add(
                    message.chat_id,
                    "assistant",
                    clean(edit),
                    parent_id=message.parent_id,
                    learn="never",  # The person's own words: a demonstration for the reply, not one of the model's.
                    # What was said after an older reply stays in view.
                    make_head=self.chat(message.chat_id).head_id == message_id,
                )
                signal = self.store.signals.add(message_id, "edit", -1, hint=text)
            if text:
                kept = self.store.hints.add(text, message_id=message_id, chat_id=message.chat_id, scope=scope_of(text))
                fast.remember(self.store, kept)
        assert signal is not None
        return signal

    def _thumb(self, message_id: int) -> int:
        """What the person said a reply was worth; without that, one with a hint was not what they wanted: -1."""
        given = [one.score for one in self.store.signals.of([message_id])[message_id] if one.source == "thumb"]
        return given[-1] if given else -1

    def said_outright(self, message_id: int, sources: Sequence[SignalSource] = OUTRIGHT) -> TakenBack:
        """What `take_back` would take back."""
        signals = [one for one in self.store.signals.of([message_id])[message_id] if one.source in sources]
        if not signals:
            return TakenBack(message_id)
        words = {one.hint for one in signals if one.hint and one.state == "active"}
        hints = [one for one in self.store.hints.of_message(message_id) if one.text in words]
        learned = [one.id for one in self.store.adapters.list() if message_id in one.lineage]
        return TakenBack(message_id, tuple(signals), tuple(hints), tuple(learned))

    def take_back(self, message_id: int, sources: Sequence[SignalSource] = OUTRIGHT) -> TakenBack:
        """Take back what the person said outright about a reply: the thumb, the correction, and the hints that came
        with them. The text of a correction stays in its chat, as a version that teaches nothing. What the judge and
        tools say of the reply counts again.

        Raises:
            NotFoundError: no such message.
        """
        self.store.messages.get(message_id)
        return self.store.database.keeping(lambda: self._take_back(message_id, sources))

    def _take_back(self, message_id: int, sources: Sequence[SignalSource]) -> TakenBack:
        with self.store.database.write():
            taken = self.said_outright(message_id, sources)
            self.store.signals.withdraw(taken.signals)
            for hint in taken.hints:
                self.store.hints.remove(hint.id)
        return taken


def scope_of(text: str) -> Literal["everywhere", "turn"]:
    """Where a hint that was given outright holds."""
    from ..judge.hints import is_about_content

    return "turn" if is_about_content(text) else "everywhere"
