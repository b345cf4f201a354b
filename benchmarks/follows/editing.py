"""Turning a reply into one that keeps a wish, and into one that breaks it, with little else changed.

So neither the subject nor, where the wish is not about length, the length of a reply tells whether it follows. It must
never decide whether a text follows: the checks do.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Edit = Callable[[str, random.Random], str]

_MARKER = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+", re.MULTILINE)
_HEADING = re.compile(r"^#+ .*\n*", re.MULTILINE)
_EMOJI = ("🙂", "🌿", "🎉", "👍", "☀️")
_QUESTIONS = ("Would you like to know more?", "Does that help?", "Which of these will you try first?")
_TITLES = ("In short", "What matters", "The answer", "Good to know")


def sentences(text: str) -> list[str]:
    """The sentences, on one line each, without Markdown's marks."""
    return [part for part in re.split(r"(?<=[.!?])\s+", prose(text)) if part]


def prose(text: str) -> str:
    """The text as one paragraph without lists, bold and headings."""
    lines = [line.strip().replace("**", "") for line in _MARKER.sub("", _HEADING.sub("", text)).split("\n")]
    ended = [line if line[-1] in ".!?" else f"{line.rstrip(':;,')}." for line in lines if line]
    return " ".join(ended)


def listed(text: str, dice: random.Random) -> str:
    mark = dice.choice(("- ", "* ", "{n}. "))
    return "\n".join(mark.format(n=n) + part for n, part in enumerate(sentences(text), start=1))


def bold(text: str, dice: random.Random) -> str:
    words = text.split(" ")
    places = [n for n, word in enumerate(words) if len(word) > 4 and word.isalpha()]
    for place in dice.sample(places, min(2, len(places))):
        words[place] = f"**{words[place]}**"
    return " ".join(words)


def first(count: int) -> Edit:
    return lambda text, _: " ".join(sentences(text)[:count])


def words(count: int) -> Edit:
    """Whole sentences of about this many words in all, the last one cut if need be."""
    return lambda text, _: " ".join(prose(text).split()[:count]).rstrip(",;:") + "."


def _emoji(text: str, dice: random.Random) -> str:
    return f"{text.rstrip()} {dice.choice(_EMOJI)}"


def _asks(text: str, dice: random.Random) -> str:
    return f"{_asks_not(text, dice)} {dice.choice(_QUESTIONS)}"


def _asks_not(text: str, _: random.Random) -> str:
    return " ".join(part for part in sentences(text) if not part.endswith("?"))


def _headed(text: str, dice: random.Random) -> str:
    return f"## {dice.choice(_TITLES)}\n\n{text}"


def _in_paragraphs(text: str, _: random.Random) -> str:
    parts = sentences(text)
    half = max(1, len(parts) // 2)
    return f"{' '.join(parts[:half])}\n\n{' '.join(parts[half:])}"


def _plain(text: str, _: random.Random) -> str:
    return prose(text)


def _half_lower(text: str, _: random.Random) -> str:
    parts = sentences(text)
    return " ".join([parts[0].lower(), *parts[1:]])


def _half_upper(text: str, _: random.Random) -> str:
    parts = sentences(text)
    return " ".join([parts[0].upper(), *parts[1:]])


EDITS: dict[str, tuple[tuple[Edit, ...], tuple[Edit, ...]]] = {
    "no_lists": ((_plain,), (listed,)),
    "uses_list": ((listed,), (_plain,)),
    "max_sentences": ((first(1), first(2)), (first(3), first(4), first(6))),
    "min_sentences": ((first(4), first(5), first(7)), (first(3), first(2))),
    "max_words": ((words(25), words(38)), (words(48), words(60))),
    "min_words": ((words(52), words(70)), (words(30), words(46))),
    "lowercase": ((lambda t, _: t.lower(),), (_plain, _half_lower)),
    "no_bold": ((_plain,), (bold,)),
    "uses_bold": ((bold,), (_plain,)),
    "ends_with": ((lambda t, _: f"{prose(t)} Take care!",), (_plain, lambda t, _: f"Take care! {prose(t)}")),
    "no_emoji": ((_plain,), (_emoji,)),
    "uses_emoji": ((_emoji,), (_plain,)),
    "uppercase": ((lambda t, _: t.upper(),), (_plain, _half_upper)),
    "has_question": ((_asks,), (_asks_not,)),
    "starts_with": ((lambda t, _: f"Well now, {prose(t)}",), (_plain, lambda t, _: f"{prose(t)} Well now.")),
    "uses_headings": ((_headed,), (_plain,)),
    "max_paragraphs": ((_plain,), (_in_paragraphs,)),
}
"""By wish: edits that keep it, and edits that break it. The checks have the last word on what came of them."""
