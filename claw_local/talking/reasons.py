"""Why an answer came out as it did: what wrote it, with which hints. It must never guess: all of it was noted then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..errors import NotFoundError, UsageError
from ..language import _
from ..store import AdapterRecord, Chat, Hint, StoredMessage
from ..store.chats import Teaching
from .opened import Opened


@dataclass(frozen=True)
class Why:
    """What stood behind one reply.

    Attributes:
        by: a model here; the person, who wrote the reply as it should have been; or whoever wrote it where the chat was
            imported from. Of the last two nothing else is known.
        model: the model's name.
        adapter: the adapter that wrote it; None is the base model (or an adapter that is no longer there).
        hints: the hints that were in its prompt, those since removed left out.
        hints_removed: how many those are.
        system: the system prompt it was written under.
        sampling: how it was drawn, the seed included; empty while it is being written.
        prompt_tokens, completion_tokens: lengths of prompt and reply; 0 where nobody counted.
        timings: seconds: "load", "first_token", "total".
        example_of: of the person's own text, whether the reply that it corrects may teach: then it is the example for
            it. None: it is no such text, or a later one is the example.
    """

    by: Literal["model", "person", "elsewhere"]
    model: str
    adapter: AdapterRecord | None
    hints: list[Hint]
    system: str
    sampling: dict[str, Any]
    prompt_tokens: int
    completion_tokens: int
    timings: dict[str, float]
    example_of: Teaching | None = None
    hints_removed: int = 0


class Reasons(Opened):
    """The part of `Assistant` that says why."""

    def why(self, message_id: int) -> Why:
        """What stood behind a reply.

        Raises:
            NotFoundError: no such message. UsageError: it is not a reply.
        """
        message = self.store.messages.get(message_id)
        if message.role != "assistant":
            raise UsageError(_("Message {message_id} is not a reply of the assistant.", message_id=message_id))
        hints = []
        for hint_id in message.hint_ids:
            try:
                hints.append(self.store.hints.get(hint_id))
            except NotFoundError:
                continue
        try:
            adapter = self.store.adapters.get(message.adapter_id) if message.adapter_id else None
        except NotFoundError:
            adapter = None
        chat = self.chat(message.chat_id)
        by: Literal["model", "person", "elsewhere"] = (
            "model" if message.by_model else "elsewhere" if chat.origin else "person"
        )
        return Why(
            by=by,
            model=message.model,
            adapter=adapter,
            hints=hints,
            system=message.system,
            sampling=dict(message.sampling),
            prompt_tokens=len(message.prompt_ids) or int(message.timings.get("prompt_tokens", 0)),
            completion_tokens=len(message.response_ids) or int(message.timings.get("completion_tokens", 0)),
            timings={name: seconds for name, seconds in message.timings.items() if not name.endswith("_tokens")},
            example_of=self._example_of(message, chat) if by == "person" else None,
            hints_removed=len(message.hint_ids) - len(hints),
        )

    def _example_of(self, message: StoredMessage, chat: Chat) -> Teaching | None:
        """Whether what this text corrects may teach; see `Why.example_of`."""
        others = [one for one in self.store.messages.siblings(message.id) if one.role == "assistant"]
        if any(one.id > message.id and not one.by_model for one in others):
            return None
        signals = self.store.signals.of([one.id for one in others])
        corrected = [one.id for one in others if any(signal.source == "edit" for signal in signals[one.id])]
        if not corrected:
            return None
        teaching = {self.store.messages.teaching_of(one) for one in corrected} if chat.learn else set()
        return "yes" if "yes" in teaching else "off" if "off" in teaching else "never"
