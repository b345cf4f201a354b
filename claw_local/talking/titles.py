"""Titles: the model names a chat, in a side turn that is kept but never trained on.

It must never put a title in the place of one the person gave, nor one that says nothing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

from ..engine.base import Message, Sampling
from ..errors import ClawError
from ..memory.prompt import prompt_messages
from ..reply import Reply
from ..store import Chat, StoredMessage
from .asking import Asking
from .text import TITLE_LENGTH, first_words

REQUEST = "Write a title for this conversation: at most six words, no quotes. Answer with the title alone."
DRAWN = Sampling(max_tokens=24, temperature=0.2, top_p=0.9, repeat_penalty=1.1, seed=1, stop=("\n\n",))
MOST_WORDS = 9
OLDEST = 4
"""How many of a chat's first messages its title is made from."""

LEAST_STEM, LONGEST_STEM = 3, 5
"""How many first letters must agree for two words to be forms of one: "boiled" and "boil", "egg" and "eggs"."""

_LITTLE = frozenset("the and for how you your with what this that into from are can our why who not all use".split())
_PREFIX = re.compile(r"^(?:(?:the |a )?(?:title|titel|titre|título|标题|題名)[^:：]{0,12}[:：]\s*)", re.I)
_QUOTED = re.compile(r"[\"“«]([^\"“”«»]{3,60})[\"”»]")
"""A title that a model announces: 'Here is one: "Boiling Eggs"'."""
_SUBTITLE = re.compile(r"\s*[:：–—]\s*")
_MARKS = "\"'`“”„«»‘’「」『』《》*_#<>[](){}"
_SAYS_NOTHING = re.compile(
    r"^(?:i|i'm|i’m|i'd|we|you|sure|sorry|here|of course|certainly|yes|no|okay|ok|please|thank|hello|hi|as an|my|"
    r"this (?:is|conversation)|the (?:title|conversation|user|question|answer)|answer|title|untitled|conversation|"
    r"question)\b|\b(?:conversation|title|as an ai|language model|six words|cannot|can't)\b",
    re.I,
)
_WORD = re.compile(r"[^\W_]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class Titles(Asking):
    """The part of `Assistant` that names chats."""

    def write_title(self, chat_id: int, *, cancel: threading.Event | None = None) -> str | None:
        """Let the model name a chat, once it has an answer. None, and the title left as it is: the person has named the
        chat, the model's words are no good, it could not answer, or `cancel` was set.

        Raises:
            NotFoundError: no such chat. StoreError: it could not be stored.
        """
        chat = self.chat(chat_id)
        branch = [message for message in self.messages(chat_id) if message.content][:OLDEST]
        if len(branch) < 2 or not _is_automatic(chat, branch):
            return None
        reply = self._side_turn(chat, branch, cancel)
        try:
            answer = reply.answer
        except ClawError:
            return None
        words = answer.text.strip()
        if answer.finish_reason != "stop" and "\n" not in words:
            return None  # Cut off in the middle of its first line.
        title = usable(words, [message.content for message in branch])
        if title is None:
            return None
        with self.store.database.write():
            # It may have been renamed, or deleted, meanwhile.
            if self.chat(chat_id).title != chat.title:
                return None
            self.store.chats.update(chat_id, title=title, touch=False)
        return title

    def _side_turn(self, chat: Chat, branch: Sequence[StoredMessage], cancel: threading.Event | None) -> Reply:
        with self.store.database.write():
            request_id = self.store.messages.add(
                chat.id, "user", REQUEST, parent_id=None, turn_type="side", learn="never"
            )
            reply_id = self.store.messages.add(
                chat.id, "assistant", "", parent_id=request_id, state="streaming", turn_type="side", learn="never"
            )

        def messages(model_sha256: str) -> list[Message]:
            # The chat itself stands before the request, as it was: what the model has computed of it is used again.
            told = prompt_messages(chat.system, branch, [], model_sha256=model_sha256)
            return [*told, Message("user", REQUEST)]

        return self._side_reply(chat, request_id, reply_id, messages, DRAWN, cancel)


def _is_automatic(chat: Chat, branch: Sequence[StoredMessage]) -> bool:
    """Whether a chat's title is still the beginning of its question, or there is none."""
    return not chat.title or any(
        chat.title == first_words(message.content) for message in branch if message.role == "user"
    )


def usable(words: str, said: Sequence[str]) -> str | None:
    """The title in what a model wrote; None if there is no good one.

    Good is a short line about the chat: it shares a word with what was said, but does not only repeat how it began,
    and is no refusal, no talk about titles, and no sentence to the person.
    """
    lines = [line.strip() for line in words.strip().splitlines() if line.strip()]
    if not lines:
        return None
    quoted = _QUOTED.search(lines[0])
    title = _PREFIX.sub("", (quoted[1] if quoted else lines[0]).strip(_MARKS + " "))
    if len(_WORD.findall(title)) > MOST_WORDS:
        title = _SUBTITLE.split(title, maxsplit=1)[0]
    title = " ".join(title.strip(_MARKS + " .,:;-–—。，").split())
    counted = _WORD.findall(title)
    if not title or not title.isprintable() or len(title) > TITLE_LENGTH or not 1 <= len(counted) <= MOST_WORDS:
        return None
    if len(title) < 3 and not _WIDE.search(title):
        return None
    if _SAYS_NOTHING.search(title) or any(mark in title for mark in '"“”„«»'):
        return None
    key = _key(title)
    if any(_key(text).startswith(key) or key.startswith(_key(text)) for text in [*said, REQUEST] if _key(text)):
        return None
    return title if _is_about(title, " ".join(said)) else None


def _key(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _is_about(title: str, said: str) -> bool:
    """Whether a word of the title, or the beginning of one, was said; in writing without spaces, two characters."""
    said = said.lower()
    wide = "".join(_WIDE.findall(title))
    if wide:
        return any(wide[n : n + 2] in said for n in range(max(1, len(wide) - 1)))
    known = {word for word in _WORD.findall(said) if len(word) >= LEAST_STEM}
    named = {word for word in _WORD.findall(title.lower()) if len(word) >= LEAST_STEM and word not in _LITTLE}
    return any(_same_stem(word, other) for word in named for other in known)


def _same_stem(word: str, other: str) -> bool:
    length = min(LONGEST_STEM, len(word), len(other))
    return word[:length] == other[:length]
