"""Asking: a message goes in, a reply comes out, and what it says of the reply before it goes to the judge.

It must never decide what is learned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..adapters.registry import AdapterChoice
from ..engine.base import Sampling
from ..engine.opening import read_name
from ..errors import UsageError
from ..language import _
from ..reply import Answer, Reply
from ..signals import turns
from ..store import Chat, StoredMessage
from ..store.chats import Teaching
from . import drawing
from .drafting import Choices, Drafting, SamplingChoice
from .text import clean, first_words

LEFT_OVER = 20
"""Most turns, left unjudged by an earlier program, that are judged beside a new one."""


class Asking(Drafting):
    """The part of `Assistant` that answers."""

    _looked_back = False

    def ask(self, text: str, **options: Any) -> Answer:
        """Ask and wait for the whole answer. Options as for `stream`."""
        return self.stream(text, **options).answer

    def stream(
        self,
        text: str,
        *,
        chat: int | None = None,
        model: str | None = None,
        system: str | None = None,
        sampling: SamplingChoice = None,
        adapter: AdapterChoice = None,
        learn: bool | None = None,
        memory: bool = True,
        must_call: bool = False,
    ) -> Reply:
        """Ask. The message is stored before this returns; the answer comes as the Reply is iterated.

        Args:
            chat: go on with this chat; None starts a new one.
            model: what answers this once, as `--model` takes it; None means the chat's own, else the settings'.
            system: the chat's system prompt from now on.
            sampling: a Sampling, or a mapping of what to change of the chat's and the settings' sampling.
            adapter: an adapter's id or name, or "base"; None means the chat's own, else the one in use.
            learn: False: neither this message nor its reply may teach. None: as the chat and the switch say.
            memory: whether active hints enter the prompt.
            must_call: the reply is to call a tool, in a chat that has a workspace.

        Raises:
            UsageError: there is no text. NotFoundError: no such chat or adapter. StoreError: it could not be stored.
        """
        text = self._question(text)
        choices = replace(self._choices(model, sampling, adapter, memory), must_call=must_call)

        def put() -> tuple[Chat, Teaching, int | None, int, int]:
            with self.store.database.write():
                record = self._chat_for(text, chat, system, learn)
                teaching = self._teaching(record, learn)
                return record, teaching, *self.store.messages.go_on(record.id, text, learn=teaching)

        record, teaching, previous_id, user_id, reply_id = self.store.database.keeping(put)
        return self._reply(record, user_id, reply_id, choices, self._judging(teaching, previous_id))

    def regenerate(
        self,
        message_id: int,
        *,
        model: str | None = None,
        sampling: SamplingChoice = None,
        adapter: AdapterChoice = None,
        memory: bool = True,
    ) -> Reply:
        """Answer the same message once more, as a new branch. Where the chat may teach, the earlier reply counts as not
        wanted; else nothing is noted about it."""
        old = self.store.messages.get(message_id)
        if old.role != "assistant" or old.parent_id is None:
            raise UsageError(_("Only a reply of the assistant can be asked for again."))
        choices = self._choices(model, sampling, adapter, memory)
        record = self.chat(old.chat_id)
        teaching = self._teaching_again(record, old.parent_id)
        if old.state == "done" and teaching == "yes" and self.store.messages.teaching_of(message_id) != "never":
            self.store.messages.let_teach(message_id)
            self.store.signals.add(message_id, "regenerate", -1)
        user_id, reply_id = self.store.database.keeping(
            lambda: self.store.messages.begin_turn(record.id, None, parent_id=old.parent_id, learn=teaching)
        )
        return self._reply(record, user_id, reply_id, choices, lambda: None)

    def unask(self, reply_id: int, before_id: int) -> bool:
        """Take back `regenerate`, which was stopped before a word came: the empty version goes, the earlier one is
        shown again, and unless it was asked for again before, it counts as it did.

        Args:
            reply_id: the stopped version. before_id: the one it was to take the place of.

        Returns:
            Whether it went: False where it says something.
        """
        return self.store.messages.remove_empty(reply_id, before_id)

    def edit_question(
        self,
        message_id: int,
        text: str,
        *,
        model: str | None = None,
        sampling: SamplingChoice = None,
        adapter: AdapterChoice = None,
        learn: bool | None = None,
        memory: bool = True,
    ) -> Reply:
        """Ask a question of a chat in other words, as a new branch; the old one stays with all that followed it.

        Raises:
            UsageError: it is not a question, or there is no text. NotFoundError: no such message or adapter.
        """
        old = self.store.messages.get(message_id)
        if old.role != "user":
            raise UsageError(
                _(
                    "Message {message_id} is not one of yours: only a question can be asked in other words.",
                    message_id=message_id,
                )
            )
        text = self._question(text)
        choices = self._choices(model, sampling, adapter, memory)
        record = self.chat(old.chat_id)
        teaching = self._teaching_again(record, message_id) if learn is None else self._teaching(record, learn)
        user_id, reply_id = self.store.database.keeping(
            lambda: self.store.messages.begin_turn(record.id, text, parent_id=old.parent_id, learn=teaching)
        )
        return self._reply(record, user_id, reply_id, choices, self._judging(teaching, old.parent_id))

    def _go_on(
        self,
        result: StoredMessage,
        *,
        with_tools: bool,
        model: str | None = None,
        sampling: SamplingChoice = None,
        adapter: AdapterChoice = None,
        memory: bool = True,
    ) -> Reply:
        """The reply to what a tool returned. Nothing is judged: the tool has been read where it was called."""
        choices = replace(self._choices(model, sampling, adapter, memory), tools=with_tools)
        record = self.chat(result.chat_id)
        teaching = self._teaching_again(record, result.id)
        user_id, reply_id = self.store.database.keeping(
            lambda: self.store.messages.begin_turn(record.id, None, parent_id=result.id, learn=teaching)
        )
        return self._reply(record, user_id, reply_id, choices, lambda: None)

    def _question(self, text: str) -> str:
        text = clean(text)
        if not text.strip():
            raise UsageError(_('There is no question. Put it in quotes: claw-local ask "How do I boil an egg?"'))
        return text

    def _choices(self, model: str | None, sampling: SamplingChoice, adapter: AdapterChoice, memory: bool) -> Choices:
        if adapter is None:
            self.adapters.check_profile()
        elif adapter and adapter != "base":
            adapter = self.adapters.get(adapter).id
        if model:
            read_name(model)
        if sampling is not None and not isinstance(sampling, Sampling):
            sampling = drawing.checked(sampling)
        return Choices(model, sampling, adapter, memory)

    def _chat_for(self, text: str, chat: int | None, system: str | None, learn: bool | None) -> Chat:
        system = None if system is None else clean(system)
        if chat is None:
            return self.new_chat(title=first_words(text), system=system, learn=learn is not False)
        record = self.chat(chat)
        if system is not None:
            record = self.store.chats.update(chat, system=system)
        if not record.title:
            record = self.store.chats.update(chat, title=first_words(text))
        return record

    def _teaching(self, chat: Chat, learn: bool | None) -> Teaching:
        return "never" if learn is False else "yes" if self.learn.enabled and chat.learn else "off"

    def _teaching_again(self, chat: Chat, question_id: int) -> Teaching:
        """What was asked in private is answered in private again."""
        return self._teaching(chat, False if self.store.messages.teaching_of(question_id) == "never" else None)

    def _judging(self, teaching: Teaching, previous_id: int | None) -> Callable[[], None]:
        """What happens once the reply has begun: the message before it is judged."""

        def begun() -> None:
            if teaching == "yes" and previous_id is not None:
                # What the person says now, with learning on, is about that reply, whenever it was written.
                self.store.messages.let_teach(previous_id)
                self._judge_later(previous_id)

        return begun

    def _judge_later(self, reply_id: int) -> None:
        for turn in turns.pair_some(self.store, [reply_id]):
            self._judge.put(turn)
        if not self._looked_back and self.store.samples.count_unjudged() > 1:
            for turn in turns.waiting(self.store)[:LEFT_OVER]:
                if turn.reply.id != reply_id:
                    self._judge.put(turn)
        self._looked_back = True
