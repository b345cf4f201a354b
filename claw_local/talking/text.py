"""Text as it comes from a person, made fit to be stored and shown. It must never know about chats."""

from __future__ import annotations

from ..signals.attached import own_words, split

TITLE_LENGTH = 60


def clean(text: str) -> str:
    """What a person or a pipe gave, as text that can be stored: no NUL, no half surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def first_words(text: str) -> str:
    """A title for a chat that has none yet: the beginning of its first question."""
    said = own_words(text) or next((part.name for part in split(text) if not isinstance(part, str)), "")
    line = " ".join(said.split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
