"""Drafting: which model, adapter, hints and tools a reply is made with, and the prompt of it.

It must never know what the person said before, nor what becomes of the reply.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..adapters.registry import AdapterChoice, apply
from ..engine.base import ChatEngine, Generation, Message, Sampling, has_tokens
from ..engine.echoes import without_echoes
from ..engine.estimate import tokens_in
from ..engine.pool import Lease
from ..engine.tool_forms import ToolSpec
from ..engine.tool_prompts import calling, in_words, rendered
from ..language import ngettext
from ..memory import fast
from ..memory.prompt import prompt_messages
from ..reply import Draft, Reply
from ..store import AdapterRecord, Chat, Hint
from . import drawing
from .opened import Opened
from .working import kept

if TYPE_CHECKING:
    from .working import Tools

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


class Drafting(Opened):
    """The part of `Assistant` that prepares replies."""

    tools: Tools

    def _reply(self, record: Chat, user_id: int, reply_id: int, choices: Choices, begun: Callable[[], None]) -> Reply:
        def prepare() -> Draft:
            lease = self._engines.lease(self._source(record.model if choices.model is None else choices.model))
            try:
                engine = lease.engine
                chosen = self.adapters.choose_for(record, engine.info.adapters_of, choices.adapter)
                active = self._active_hints(engine, record.id, chosen) if choices.memory else []
                messages = prompt_messages(
                    record.system,
                    self.store.messages.branch(user_id),
                    [hint.text for hint in active],
                    model_sha256=engine.info.sha256,
                    in_words=in_words(engine),
                )
                drawn = self._drawn(record, choices.sampling)
                tools, problems = self.tools.told(record) if choices.tools else ((), [])
                if tools:
                    drawn = calling(engine, drawn, tools, must=choices.must_call)
                draft = self._draft(
                    reply_id, lease, record.system, messages, drawn, chosen, active, tools, chat_id=record.id
                )
                draft.notices.extend(problems)
                return draft
            except BaseException:
                lease.release()
                raise

        def ended(text: str) -> None:
            # What the person says next is about an answer; a call of a tool is answered by the tool.
            if self.store.messages.teaching_of(reply_id) == "yes" and not self.tools.calls(reply_id):
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
                chosen = self.adapters.choose_for(record, lease.engine.info.adapters_of)
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
        *,
        chat_id: int | None = None,
    ) -> Draft:
        """`chat_id`: the chat it goes on with; None: it stands beside it."""
        engine = lease.engine
        prompt = rendered(engine, messages, tools, reserve=min(drawn.max_tokens, engine.info.context // 4))

        def note() -> None:
            self.store.messages.describe(
                reply_id,
                model=engine.info.name,
                model_sha256=engine.info.sha256,
                adapter_id=chosen.id if chosen else 0,
                hint_ids=[hint.id for hint in active],
                system=system,
                toolset_id=kept(self.store, tools),
            )
            if active:
                self.store.hints.count_use([hint.id for hint in active])

        self.store.database.keeping(note)

        def begin(cancel: threading.Event) -> tuple[Generation, Iterator[str]]:
            shelving = self._shelving if chat_id is not None else None
            with self._beginning:
                if shelving is not None and chat_id is not None:
                    shelving.bring(engine, chat_id, prompt.token_ids)
                apply(engine, chosen)
                generation, pieces = engine.generate(prompt, drawn, cancel=cancel)
            if shelving is not None and chat_id is not None:
                shelving.begun(chat_id, reply_id, generation)
            return generation, without_echoes(prompt, generation, pieces)

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
        in_use = self.store.adapters.active(engine.info.adapters_of)
        other = (chosen.id if chosen else 0) != (in_use.id if in_use else 0)
        return fast.choose(
            self.store,
            chat_id=chat_id,
            budget_tokens=self.settings.memory.budget_tokens,
            count=lambda text: len(engine.tokenize(text)) if has_tokens(engine) else tokens_in(text),
            learned=other,
            without=chosen.metrics.get("learned_hints", ()) if other and chosen else (),
        )


def _dropped(count: int) -> str:
    return ngettext(
        "This chat is longer than the model can read at once: its oldest message was left out of the prompt.",
        "This chat is longer than the model can read at once: "
        "its {number} oldest messages were left out of the prompt.",
        count,
    )
