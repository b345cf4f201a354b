"""How text is cut into words for the search index, and what people type into a query. It must never know about SQL.

Words are folded (case, width, accents: "Übung" is found as "ubung"). Writing without spaces between words (Chinese,
Japanese, Thai, ...; Korean too, whose words carry endings) goes in as overlapping pairs of characters, so that any part
of it can be found. An emoji is a word of its own.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

LONGEST_QUERY = 400
MOST_TERMS = 16

_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecd\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af"
)
_RUN = re.compile(f"[{_UNSPACED}]+")
_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")
# Accents, and characters that have no width of their own.
_MARKS = re.compile("[\u0300-\u036f\u200b-\u200f\u2060\ufe00-\ufe0f\ufeff\u00ad]")
_CHUNK = re.compile(r'"([^"]*)"?|([^\s"]+)')
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»＂「」『』", '"'))


@dataclass(frozen=True)
class Term:
    """What must stand together in a message: the words of a phrase, or one word as typed.

    Attributes:
        tokens: as they stand in the index, one after the other.
        open: whether the last may go on; "typed" words are asked for whole first.
        literal: the folded text, to find the place in the message again.
    """

    tokens: tuple[str, ...]
    open: bool
    typed: bool
    literal: str


def fold(text: str) -> str:
    """Text without what a search does not tell apart."""
    if text.isascii():
        return text.lower()
    text = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", text.casefold())


def indexed(text: str) -> str:
    """Text as the index takes it: words between spaces."""
    folded = fold(text)
    if folded.isascii():
        return folded
    return _RUN.sub(lambda run: f" {' '.join(_pairs(run[0], last=True))} ", _EMOJI.sub(_emoji, folded))


def parse(query: str) -> list[Term]:
    """The terms of a query. Quotes make a phrase; nothing else is a command, and nothing is an error."""
    terms: list[Term] = []
    for quoted, word in _CHUNK.findall(query[:LONGEST_QUERY].translate(_QUOTES)):
        term = _term(quoted or word, phrase=bool(quoted))
        if term is not None and term not in terms:
            terms.append(term)
    return terms[:MOST_TERMS]


def pattern(terms: list[Term]) -> re.Pattern[str]:
    """Finds the terms in folded text."""
    either = "|".join(
        ("" if _UNSPACED_START.match(term.literal) else r"(?<![^\W_])") + r"[\W_]*".join(_parts(term.literal))
        for term in sorted(terms, key=lambda term: -len(term.literal))
    )
    return re.compile(either)


_UNSPACED_START = re.compile(f"[{_UNSPACED}\u2600-\u27bf\U0001f000-\U0001faff]")


def _term(text: str, *, phrase: bool) -> Term | None:
    folded = fold(text)
    runs = _parts(folded, raw=True)
    tokens: list[str] = []
    for place, run in enumerate(runs):
        if _RUN.match(run):
            # What follows the last character of a run in the message is not known, unless the query says it.
            tokens += _pairs(run, last=place < len(runs) - 1 or len(run) == 1)
        else:
            tokens.append(_EMOJI.sub(lambda found: _emoji(found).strip(), run))
    if not tokens:
        return None
    lonely = _RUN.match(runs[-1]) is not None and len(runs[-1]) == 1
    spaced = _RUN.match(runs[-1]) is None and not _EMOJI.match(runs[-1])
    return Term(tuple(tokens), lonely or (spaced and not phrase), typed=spaced, literal=folded)


def _parts(folded: str, *, raw: bool = False) -> list[str]:
    """The runs of characters that make words; `raw`: not escaped for a pattern."""
    runs: list[str] = []
    kind = ""
    for character in folded:
        before, kind = kind, _kind(character)
        if kind and kind == before and kind != "emoji":
            runs[-1] += character
        elif kind:
            runs.append(character)
    return runs if raw else [re.escape(run) for run in runs]


def _kind(character: str) -> str:
    if _EMOJI.match(character):
        return "emoji"
    if _RUN.match(character):
        return "unspaced"
    category = unicodedata.category(character)
    return "word" if category[0] in "LN" or category in ("Mn", "Mc", "Co") else ""


def _pairs(run: str, *, last: bool) -> list[str]:
    pairs = [run[n : n + 2] for n in range(len(run) - 1)]
    return [*pairs, run[-1]] if last else pairs


def _emoji(found: re.Match[str]) -> str:
    # The index knows letters only: an emoji stands there as a letter of the private use area.
    return f" {chr(0xF0000 + (ord(found[0]) & 0xFFFF))} "
