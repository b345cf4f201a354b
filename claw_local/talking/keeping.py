"""What a program says, put where it belongs: in which chat, after which message, and what of it may teach.

Only of programs that may teach is anything kept. It must never know how a reply is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..signals import sessions
from ..signals.lines import looks_aside
from ..store.chats import Teaching
from .asked import Asked, Said
from .calling import in_text
from .text import clean, first_words

if TYPE_CHECKING:
    from ..assistant import Assistant


@dataclass(frozen=True)
class Kept:
    """A reply that is about to be written, in the store.

    Attributes:
        begun: to be called once it has begun: then what was said is read as a verdict on the reply before.
        print_of: the fingerprint by which a finished reply is known again; None for a side turn.
    """

    chat_id: int
    user_id: int
    reply_id: int
    begun: Callable[[], None]
    print_of: Callable[[sessions.Line], str] | None


def is_aside(asked: Asked) -> bool:
    """Whether a request is a side turn: it says so, or looks like housekeeping."""
    said = [(one.role, one.content) for one in asked.messages if one.role != "system"]
    if asked.prompt is not None or asked.prompt_ids or not said or said[-1][0] == "assistant":
        return True
    if asked.session.turn:
        return asked.session.turn == "side"
    system = "\n".join(one.content for one in asked.messages if one.role == "system")
    return looks_aside(system, said)


def lines_of(said: Sequence[Said]) -> list[sessions.Line]:
    """A history as sessions are known by."""
    return [
        sessions.Line(one.role, one.content, tuple((call.name, call.arguments) for call in one.calls))
        for one in said
        if one.role != "system"
    ]


class Keeping:
    """Sessions of other programs in one assistant's store."""

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant
        self._store = assistant.store

    def place(self, asked: Asked) -> sessions.Place:
        """Where a request goes on. Only for main-line turns."""
        return sessions.find(
            self._store,
            asked.caller.key,
            lines_of(asked.messages),
            name=clean(asked.session.id),
            scope=clean(asked.session.user),
        )

    def put(self, asked: Asked, place: sessions.Place, *, bound: bool) -> Kept:
        """Keep what is new of a main-line request, and make room for its reply.

        Args:
            bound: the reply has to keep to a form, so its words are not quite the model's own: it never teaches.
        """
        said = [one for one in asked.messages if one.role != "system"]
        lines = lines_of(said)
        prints = sessions.fingerprints(lines)
        scope, key = clean(asked.session.user), asked.caller.key
        with self._store.database.write():
            chat_id = place.chat_id if place.chat_id is not None else self._new_chat(asked, said[-1])
            teaching = self._assistant._teaching(self._assistant.chat(chat_id), None)
            parent = place.parent_id
            previous = self._before(parent, said[place.known :])
            for one, print_ in zip(said[place.known :], prints[place.known :], strict=True):
                # What another model wrote, or somebody changed, is no reply of this one.
                may: Teaching = "never" if one.role == "assistant" else teaching
                parent = self._store.messages.add(chat_id, one.role, clean(_text(one)), parent_id=parent, learn=may)
                sessions.note(self._store, key, print_, parent, scope=scope)
            assert parent is not None, "a request has a message to answer"
            if place.again:
                self._asked_again(parent, teaching)
            reply_id = self._store.messages.add(
                chat_id, "assistant", "", parent_id=parent, state="streaming", learn="never" if bound else teaching
            )
            self._store.sessions.touch(chat_id)
        return Kept(
            chat_id,
            parent,
            reply_id,
            self._assistant._judging(teaching, previous),
            lambda line: sessions.fingerprints([*lines, line])[-1],
        )

    def put_aside(self, asked: Asked) -> Kept | None:
        """Keep a side turn with its session, if that is known by name; else it is not kept."""
        name = clean(asked.session.id)
        chat_id = self._store.sessions.named(asked.caller.key, name, since="") if name else None
        if chat_id is None:
            return None
        said = asked.messages[-1].content if asked.messages else asked.prompt or ""
        with self._store.database.write():
            user_id = self._store.messages.add(
                chat_id, "user", clean(said), parent_id=None, turn_type="side", learn="never"
            )
            reply_id = self._store.messages.add(
                chat_id, "assistant", "", parent_id=user_id, state="streaming", turn_type="side", learn="never"
            )
        return Kept(chat_id, user_id, reply_id, lambda: None, None)

    def finished(self, asked: Asked, kept: Kept, line: sessions.Line) -> None:
        """A reply has come to its end: it can be known again, and its session may end with it."""
        if kept.print_of is not None:
            scope = clean(asked.session.user)
            sessions.note(self._store, asked.caller.key, kept.print_of(line), kept.reply_id, scope=scope)
        if asked.session.done:
            self._store.sessions.touch(kept.chat_id, ended=True)

    def _new_chat(self, asked: Asked, last: Said) -> int:
        system = "\n\n".join(one.content for one in asked.messages if one.role == "system")
        chat = self._assistant.new_chat(title=first_words(clean(last.content)), system=clean(system))
        self._store.sessions.begin(chat.id, asked.caller.key, clean(asked.session.id))
        return chat.id

    def _before(self, parent: int | None, new: Sequence[Said]) -> int | None:
        """The reply that the first new message is the next state of."""
        if parent is None or not new or new[0].role not in ("user", "tool"):
            return None
        return parent if self._store.messages.get(parent).role == "assistant" else None

    def _asked_again(self, question_id: int, teaching: Teaching) -> None:
        """Another version was asked for: where the chat may teach, the one before counts as not wanted."""
        if teaching != "yes":
            return
        replies = self._store.messages.answers(question_id)
        if replies and replies[-1].state == "done" and replies[-1].response_ids:
            self._store.messages.let_teach(replies[-1].id)
            self._store.signals.add(replies[-1].id, "regenerate", -1)


def _text(one: Said) -> str:
    """A message as it is kept: what it calls stands in its text."""
    return "\n".join([*([one.content] if one.content else []), *(in_text(call) for call in one.calls)])
