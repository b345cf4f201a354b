"""Comparing: one question, two adapters' replies, and a vote that does not know which is which.

It must never tell them apart: the order is drawn, and neither ids nor order say which adapter wrote which.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from ..adapters.registry import AdapterChoice
from ..errors import UsageError
from ..language import _
from ..reply import Reply
from ..store import Chat
from .asking import Asking
from .branches import Branches
from .drafting import Choices, SamplingChoice


class Comparing(Asking, Branches):
    """The part of `Assistant` that compares."""

    def compare(
        self,
        text: str,
        first: AdapterChoice,
        second: AdapterChoice,
        *,
        chat: int | None = None,
        model: str | None = None,
        system: str | None = None,
        sampling: SamplingChoice = None,
        learn: bool | None = None,
        memory: bool = True,
    ) -> tuple[Reply, Reply]:
        """Ask one question of two adapters (an id, or "base"). Two sibling replies, in an order drawn at random.

        The question that was asked last in the chat is not asked anew: that would speak against the reply it has. They
        are two more versions of that reply.

        Stream them one after the other, then ask for a vote and call `prefer`. Both are stored at once; one that is not
        wanted after all is given up with its `close()`.

        Raises:
            UsageError: there is no text, or the adapters are the same. NotFoundError: no such chat or adapter.
        """
        text = self._question(text)
        pair = self._pair_of(first, second, model, sampling, memory)
        record = self._chat_for(text, chat, system, learn)
        asked = self._asked_last(record, text)
        if asked is not None:
            return self.compare_again(asked, first, second, model=model, sampling=sampling, memory=memory)
        teaching = self._teaching(record, learn)
        with self.store.database.write():
            previous_id, user_id, first_id = self.store.messages.go_on(record.id, text, learn=teaching)
            __, second_id = self.store.messages.begin_turn(record.id, None, parent_id=user_id, learn=teaching)
        judged = self._judging(teaching, previous_id)
        return (
            self._reply(record, user_id, first_id, pair[0], judged),
            self._reply(record, user_id, second_id, pair[1], lambda: None),
        )

    def compare_again(
        self,
        question_id: int,
        first: AdapterChoice,
        second: AdapterChoice,
        *,
        model: str | None = None,
        sampling: SamplingChoice = None,
        memory: bool = True,
    ) -> tuple[Reply, Reply]:
        """Ask a question that was compared once more: two more versions of its reply, in an order drawn anew. Nothing
        is noted about the earlier ones.

        Raises:
            UsageError: it is no question, or the adapters are the same. NotFoundError: no such message or adapter.
        """
        question = self.store.messages.get(question_id)
        if question.role != "user":
            raise UsageError(
                _(
                    "Message {question_id} is not one of yours: only a question can be asked again.",
                    question_id=question_id,
                )
            )
        pair = self._pair_of(first, second, model, sampling, memory)
        record = self.chat(question.chat_id)
        teaching = self._teaching_again(record, question_id)
        with self.store.database.write():
            first_id, second_id = (
                self.store.messages.begin_turn(record.id, None, parent_id=question_id, learn=teaching)[1] for _ in pair
            )
        return (
            self._reply(record, question_id, first_id, pair[0], lambda: None),
            self._reply(record, question_id, second_id, pair[1], lambda: None),
        )

    def prefer(self, winner_id: int | None, ids: Sequence[int]) -> bool:
        """A blind vote between replies to one question: thumbs for them, and the winner is shown.

        Returns whether it counts: a tie (None) says nothing, nor does a choice between replies with the same text.

        Raises:
            UsageError: these are not replies to one question, or the winner is none of them.
            NotFoundError: no such message.
        """
        replies = [self.store.messages.get(identity) for identity in dict.fromkeys(ids)]
        if len(replies) < 2 or any(
            reply.role != "assistant" or reply.parent_id != replies[0].parent_id for reply in replies
        ):
            raise UsageError(_("A vote needs two replies to the same question."))
        if winner_id is None:
            return False
        if winner_id not in ids:
            raise UsageError(_("Message {winner_id} is none of the replies that were compared.", winner_id=winner_id))
        differ = not alike([reply.content for reply in replies])
        with self.store.database.write():
            for reply in replies if differ else ():
                self.store.signals.add(reply.id, "thumb", 1 if reply.id == winner_id else -1)
            self.show_version(winner_id)
        return differ

    def _asked_last(self, chat: Chat, text: str) -> int | None:
        """The id of the question that the chat's last reply answers, if it is this one, line breaks left aside."""
        last = self.store.messages.get(chat.head_id) if chat.head_id else None
        if last is None or last.role != "assistant" or last.parent_id is None:
            return None
        question = self.store.messages.get(last.parent_id)
        same = question.role == "user" and question.content.split() == text.split()
        return question.id if same else None

    def _pair_of(
        self,
        first: AdapterChoice,
        second: AdapterChoice,
        model: str | None,
        sampling: SamplingChoice,
        memory: bool,
    ) -> list[Choices]:
        """What each of the two replies is written with, in the order they come. Raises UsageError, NotFoundError."""
        pair = [self._choices(model, sampling, adapter, memory) for adapter in (first, second)]
        if (pair[0].adapter or "base") == (pair[1].adapter or "base"):
            raise UsageError(_("Both sides are the same adapter. Name two, or one and `base`."))
        random.SystemRandom().shuffle(pair)
        return pair


def alike(texts: Sequence[str]) -> bool:
    """Whether all say the same, blanks at the ends left aside."""
    return len({text.strip() for text in texts}) == 1
