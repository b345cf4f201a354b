"""Asking: a message goes in, a reply comes out, and what it says of the reply before it goes to the judge.

It must never decide what is learned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..adapters.registry import AdapterChoice, slots
from ..engine.base import ChatEngine, Generation, Message, Sampling, has_tokens
from ..engine.estimate import tokens_in
from ..engine.opening import read_name
from ..engine.pool import Lease
from ..engine.tool_prompts import ToolSpec, calling, rendered
from ..errors import UsageError
from ..memory import fast
from ..memory.prompt import prompt_messages
from ..reply import Answer, Draft, Reply
from ..signals import turns
from ..store import AdapterRecord, Chat, Hint, StoredMessage
from ..store.chats import Teaching
from . import drawing, working
from .opened import Opened
from .text import clean, first_words

if TYPE_CHECKING:
    from .working import Tools

LEFT_OVER = 20
"""Most turns, left unjudged by an earlier program, that are judged beside a new one."""

SamplingChoice = Sampling | Mapping[str, Any] | None
"""A `Sampling` is taken as it is; a mapping changes what the chat and the settings say; None changes nothing."""


@dataclass(frozen=True)
class Choices:
    """What one call chose for its reply."""

    model: str | None = None
    sampling: SamplingChoice = None
    adapter: AdapterChoice = None
    memory: bool = True
    tools: bool = True
    must_call: bool = False


class Asking(Opened):
    """The part of `Assistant` that answers."""

    tools: Tools

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
        record = self._chat_for(text, chat, system, learn)
        teaching = self._teaching(record, learn)
        previous_id, user_id, reply_id = self.store.messages.go_on(record.id, text, learn=teaching)
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
            raise UsageError("Only a reply of the assistant can be asked for again.")
        choices = self._choices(model, sampling, adapter, memory)
        record = self.chat(old.chat_id)
        teaching = self._teaching_again(record, old.parent_id)
        if old.state == "done" and teaching == "yes" and self.store.messages.teaching_of(message_id) != "never":
            self.store.messages.let_teach(message_id)
            self.store.signals.add(message_id, "regenerate", -1)
        user_id, reply_id = self.store.messages.begin_turn(record.id, None, parent_id=old.parent_id, learn=teaching)
        return self._reply(record, user_id, reply_id, choices, lambda: None)

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
            raise UsageError(f"Message {message_id} is not one of yours: only a question can be asked in other words.")
        text = self._question(text)
        choices = self._choices(model, sampling, adapter, memory)
        record = self.chat(old.chat_id)
        teaching = self._teaching_again(record, message_id) if learn is None else self._teaching(record, learn)
        user_id, reply_id = self.store.messages.begin_turn(record.id, text, parent_id=old.parent_id, learn=teaching)
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
        user_id, reply_id = self.store.messages.begin_turn(record.id, None, parent_id=result.id, learn=teaching)
        return self._reply(record, user_id, reply_id, choices, lambda: None)

    def _question(self, text: str) -> str:
        text = clean(text)
        if not text.strip():
            raise UsageError('There is no question. Put it in quotes: claw-local ask "How do I boil an egg?"')
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

    def _reply(self, record: Chat, user_id: int, reply_id: int, choices: Choices, begun: Callable[[], None]) -> Reply:
        def prepare() -> Draft:
            lease = self._engines.lease(self._source(record.model if choices.model is None else choices.model))
            try:
                engine = lease.engine
                chosen = self.adapters.choose_for(record, engine.info.sha256, choices.adapter)
                active = self._active_hints(engine, record.id, chosen) if choices.memory else []
                messages = prompt_messages(
                    record.system,
                    self.store.messages.branch(user_id),
                    [hint.text for hint in active],
                    model_sha256=engine.info.sha256,
                )
                drawn = self._drawn(record, choices.sampling)
                tools, problems = self.tools.told(record) if choices.tools else ((), [])
                if tools:
                    drawn = calling(drawn, tools, must=choices.must_call)
                draft = self._draft(reply_id, lease, record.system, messages, drawn, chosen, active, tools)
                draft.notices.extend(problems)
                return draft
            except BaseException:
                lease.release()
                raise

        def ended(text: str) -> None:
            if self.store.messages.teaching_of(reply_id) == "yes":
                self._judge.read_ahead(self.store.messages.get(user_id).content, text)

        return Reply(
            self.store,
            chat_id=record.id,
            user_message_id=user_id,
            message_id=reply_id,
            prepare=prepare,
            begun=begun,
            ended=ended,
        )

    def _side_reply(
        self,
        record: Chat,
        request_id: int,
        reply_id: int,
        messages: Callable[[str], Sequence[Message]],
        sampling: Sampling,
        cancel: threading.Event | None,
    ) -> Reply:
        """A reply beside the conversation, without hints. `messages`: the prompt for the model of that hash."""

        def prepare() -> Draft:
            lease = self._engines.lease(self._source(record.model))
            try:
                sha256 = lease.engine.info.sha256
                chosen = self.adapters.choose_for(record, sha256)
                return self._draft(reply_id, lease, record.system, messages(sha256), sampling, chosen, [])
            except BaseException:
                lease.release()
                raise

        return Reply(
            self.store,
            chat_id=record.id,
            user_message_id=request_id,
            message_id=reply_id,
            prepare=prepare,
            begun=lambda: None,
            cancel=cancel,
        )

    def _draft(
        self,
        reply_id: int,
        lease: Lease,
        system: str,
        messages: Sequence[Message],
        drawn: Sampling,
        chosen: AdapterRecord | None,
        active: Sequence[Hint],
        tools: Sequence[ToolSpec] = (),
    ) -> Draft:
        engine = lease.engine
        prompt = rendered(engine, messages, tools, reserve=min(drawn.max_tokens, engine.info.context // 4))
        self.store.messages.describe(
            reply_id,
            model=engine.info.name,
            model_sha256=engine.info.sha256,
            adapter_id=chosen.id if chosen else 0,
            hint_ids=[hint.id for hint in active],
            system=system,
            toolset_id=working.kept(self.store, tools),
        )
        if active:
            self.store.hints.count_use([hint.id for hint in active])

        def begin(cancel: threading.Event) -> tuple[Generation, Iterator[str]]:
            with self._beginning:
                if has_tokens(engine):
                    engine.set_adapters(slots(chosen))
                return engine.generate(prompt, drawn, cancel=cancel)

        return Draft(
            model=engine.info.name,
            begin=begin,
            release=lease.release,
            adapter_id=chosen.id if chosen else 0,
            hints=tuple(hint.text for hint in active),
            load_s=lease.load_s,
            notices=[_dropped(prompt.dropped)] if prompt.dropped else [],
        )

    def _drawn(self, chat: Chat, choice: SamplingChoice) -> Sampling:
        if isinstance(choice, Sampling):
            return choice
        return drawing.draw(self.settings.sampling, chat.sampling, choice or {})

    def _active_hints(self, engine: ChatEngine, chat_id: int, chosen: AdapterRecord | None) -> list[Hint]:
        """What holds and the adapter has not learned. The hints' states tell it of the adapter in use; of another one,
        it tells itself."""
        if not self.settings.memory.enabled:
            return []
        in_use = self.store.adapters.active(engine.info.sha256)
        other = (chosen.id if chosen else 0) != (in_use.id if in_use else 0)
        return fast.choose(
            self.store,
            chat_id=chat_id,
            budget_tokens=self.settings.memory.budget_tokens,
            count=lambda text: len(engine.tokenize(text)) if has_tokens(engine) else tokens_in(text),
            learned=other,
            without=chosen.metrics.get("learned_hints", ()) if other and chosen else (),
        )

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


def _dropped(count: int) -> str:
    noun = "message" if count == 1 else "messages"
    return (
        f"This chat is longer than the model can read at once: its {count} oldest {noun} were left out of the prompt."
    )
