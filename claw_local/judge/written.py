"""Whether a hint that the judge put into its own words may stand for what the person said. It must never write one.

The person is the only one who can give a hint (DESIGN §4), so a written one has to say what they said: in their
language, about what they spoke of, with all that can be verified in it, and nothing out of the reply.
"""

from __future__ import annotations

import re

from ..signals.checks import infer_checks
from ..signals.texts import language_of
from . import filters

WRITTEN_FILTERS = ("other_language", "from_the_reply", "not_what_was_said")
"""Filters for written hints, after those in `filters.FILTERS`."""
COPIED_WORDS = 5
"""So many words in a row out of the reply are a copy of it."""

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_EMPTY = frozenset(
    "the and for are was not but you your that this with from have has had can could would should please just more "
    "less answer answers reply replies respond response use using write next time always never want wants user person "
    "it its them they their too very so into about than then only also when what how bitte immer nicht und der die "
    "das eine pour les des avec sans por favor con una que del".split()
)
"""Words that a hint and a message have in common without being about the same thing."""


def failed(hint: str, *, message: str, reply: str, own: str) -> list[str]:
    """The names of the filters a written hint does not pass, none if it may be kept.

    Args:
        message: the person's message, without attachments.
        reply: the reply it was about.
        own: the hint in the person's own words, "" if there is none.

    other_language: not the language the person wrote in. from_the_reply: it repeats the reply. not_what_was_said: it
    loses or turns round a wish that can be verified, or speaks of nothing the person spoke of.
    """
    names = filters.failed(hint)
    theirs, its = language_of(message), language_of(hint)
    if _script(message) != _script(hint) or (theirs and its and theirs != its):
        names.append("other_language")
    if _copies(hint, reply, message):
        names.append("from_the_reply")
    if not _says_the_same(hint, message, own):
        names.append("not_what_was_said")
    return names


def _script(text: str) -> str:
    return "cjk" if len(_CJK.findall(text)) > 0.3 * sum(c.isalpha() for c in text) else "other"


def _copies(hint: str, reply: str, message: str) -> bool:
    theirs, replied, said = (_units(text) for text in (hint, reply, message))
    runs = {tuple(replied[n : n + COPIED_WORDS]) for n in range(len(replied) - COPIED_WORDS + 1)}
    spoken = {tuple(said[n : n + COPIED_WORDS]) for n in range(len(said) - COPIED_WORDS + 1)}
    return any(
        (run := tuple(theirs[n : n + COPIED_WORDS])) in runs and run not in spoken
        for n in range(len(theirs) - COPIED_WORDS + 1)
    )


def _says_the_same(hint: str, message: str, own: str) -> bool:
    wished, written = set(infer_checks([own or message])), set(infer_checks([hint]))
    if wished or written:
        # Nothing that can be verified may get lost, and nothing may come in: it would be trained on.
        return wished == written
    return bool(_content(hint) & _content(message))


def _content(text: str) -> set[str]:
    """What it speaks of: longer words, by their beginnings so that forms of a word agree; pairs of CJK characters."""
    words = {word[:5] for word in _units(text) if len(word) > 2 and word not in _EMPTY and not _CJK.match(word)}
    cjk = "".join(_CJK.findall(text))
    return words | {cjk[n : n + 2] for n in range(len(cjk) - 1)}


def _units(text: str) -> list[str]:
    """Words, and each character of Chinese and Japanese for itself."""
    return [
        unit for word in _WORD.findall(text.lower()) for unit in (_CJK.findall(word) if _CJK.search(word) else [word])
    ]
