"""Reading wishes about form from everyday words. It must never know what a check does with them.

The words themselves, by language, are data: `data/wishes.json`. A sentence is read from left to right: a word such as
"without" turns what follows it away until its reach ends ("no lists, headings or bold, but use tables").
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

BRIEF_WORDS = 60
"""What "shorter" or "be brief" means where no number is given: at most this many words."""
LONG_WORDS = 80
"""What "more detail" means where no number is given: at least this many words."""

Wish = tuple[str, int | str | None]

_AWAY = {
    "list": "no_lists", "bold": "no_bold", "heading": "no_headings", "table": "no_tables", "code": "no_code",
    "emoji": "no_emoji",
}  # fmt: skip
_WANTED = {
    "list": "uses_list", "bold": "uses_bold", "heading": "uses_headings", "table": "uses_table", "code": "uses_code",
    "emoji": "uses_emoji", "lowercase": "lowercase", "uppercase": "uppercase",
}  # fmt: skip
_CASE = ("lowercase", "uppercase")
_PROSE: tuple[Wish, ...] = (("no_lists", None), ("no_bold", None), ("no_headings", None))
_MARKUP: tuple[Wish, ...] = (*_PROSE, ("no_tables", None))
_MARKUP_FAMILIES = ("list", "bold", "heading", "table")
_MANNERS = (
    ("warm", "warm", "warmth", "cool"),
    ("name", "says_name", "name", "no_name"),
    ("specific", "specific", "matter", ""),
)
"""Phrase, check, family, and the phrase that takes it back."""
_QUOTED = re.compile(r"[\"“«„]([^\"”»“]{2,60})[\"”»“]|(?<!\w)['‘]([^'’]{2,60}(?:['’]\w[^'’]*)?)['’](?!\w)")


_SHARED = ("border", "away", "wanted", "away_after", "wanted_after", "permitted_after")


@dataclass
class Wishes:
    """What one hint asks for.

    Attributes:
        checks: (kind, value) of each check.
        cleared: families of which earlier wishes no longer hold, without a new one in their place.
    """

    checks: list[Wish] = field(default_factory=list)
    cleared: set[str] = field(default_factory=set)


@cache
def _data() -> dict[str, Any]:
    text = resources.files("claw_local.data").joinpath("wishes.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


@cache
def _latin() -> list[dict[str, Any]]:
    """The tables of languages with spaces, each with the negations and verbs of all: "bitte keine bullet points"."""
    tables = list(_data()["latin"].values())
    shared = {key: "|".join(f"(?:{table[key]})" for table in tables) for key in _SHARED}
    return [{**table, **shared, "spaced": True} for table in tables]


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.I)


def read_wishes(hint: str) -> Wishes:
    """Read one hint. Each language's words are looked for: people mix them, and few words mean two things."""
    text = " ".join(hint.replace("’", "'").split())
    unquoted = _QUOTED.sub(" ", text)
    general: dict[Wish, None] = {}
    special: dict[Wish, None] = {}
    cleared: set[str] = set()
    cjk = re.search(r"[\u3040-\u30ff\u3400-\u9fff]", text) is not None
    japanese = re.search(r"[\u3040-\u30ff]", text) is not None
    tables = [_data()["cjk"]["ja" if japanese else "zh"]] if cjk else []
    tables += _latin() if re.search(r"[A-Za-z]{3}", text) else []
    for table in tables:
        _read_topics(unquoted, table, general, special, cleared)
        lengths = _lengths(unquoted, table)
        special.update(dict.fromkeys(lengths))
        _read_phrases(unquoted, table, special, numbered=any(not kind.endswith("paragraphs") for kind, _ in lengths))
        _read_manner(unquoted, table, special, cleared)
        _read_language(unquoted, table, special)
        _read_quotes(text, table, special)
    return _settle(general, special, cleared)


def _settle(general: dict[Wish, None], special: dict[Wish, None], cleared: set[str]) -> Wishes:
    """What is said of one thing outweighs what is said of all: "plain prose, but with bold"."""
    named = {topic for topic in _AWAY if (_AWAY[topic], None) in special or (_WANTED[topic], None) in special}
    opposed = {(kinds[topic], None) for topic in named for kinds in (_AWAY, _WANTED)}
    checks = [wish for wish in general if wish not in opposed] + list(special)
    return Wishes(checks, cleared)


def _clause_start(text: str, end: int, table: dict[str, Any]) -> int:
    start = 0
    for found in _regex(table["border"]).finditer(text, 0, end):
        start = found.end()
    return start


def _polarity(text: str, start: int, end: int, table: dict[str, Any], *, inherits: bool = True) -> bool | None:
    """Whether the topic at text[start:end] is wanted (True), wished away (False), or only mentioned (None).

    With `inherits`, a clause without a verb goes on with what the one before it said: "no lists, headings or bold".
    """
    after = text[end:]
    if _regex(table["away_after"]).search(after):
        return False
    at = start
    while True:
        clause = _clause_start(text, at, table)
        before = text[clause:start]
        # A verb behind a negation stays under it: "don't use", "I don't want". A border would end its reach.
        if _regex(table["away"]).search(before):
            return False
        if _regex(table["wanted"]).search(before):
            return True
        border = text[:clause].rstrip()
        if not inherits or clause == 0 or not border.endswith((",", "，", "、")) or len(before.split()) > 3:
            return True if _regex(table["wanted_after"]).search(after) else None
        at = len(border) - 1


def _read_topics(
    text: str, table: dict[str, Any], general: dict[Wish, None], special: dict[Wish, None], cleared: set[str]
) -> None:
    for topic, pattern in table["topics"].items():
        for found in _regex(pattern).finditer(text):
            if topic != "prose" and _regex(table["permitted_after"]).search(text[found.end() :]):
                cleared.update(_MARKUP_FAMILIES if topic == "markup" else ["case" if topic in _CASE else topic])
                continue
            wanted = _polarity(text, found.start(), found.end(), table, inherits=topic != "prose")
            if topic == "prose":
                if wanted is not False:  # "Plain sentences." alone is a wish.
                    general.update(dict.fromkeys(_PROSE))
            elif topic == "markup":
                if wanted is False:
                    general.update(dict.fromkeys(_MARKUP))
                elif wanted:
                    cleared.update(_MARKUP_FAMILIES)
            elif topic == "question":
                if wanted is False:
                    special[("no_question", None)] = None
            elif topic in _CASE:
                if wanted is False:
                    cleared.add("case")
                else:
                    special[(topic, None)] = None
            elif wanted is not None:
                # The later mention holds: "no lists ... well, use lists".
                special.pop(((_AWAY if wanted else _WANTED)[topic], None), None)
                special[((_WANTED if wanted else _AWAY)[topic], None)] = None


def _read_phrases(text: str, table: dict[str, Any], special: dict[Wish, None], *, numbered: bool) -> None:
    found = {name for name, pattern in table["phrases"].items() if _regex(pattern).search(text)}
    if "no_question" in found:
        special.pop(("has_question", None), None)
        special[("no_question", None)] = None
    elif "has_question" in found:
        special.pop(("no_question", None), None)
        special[("has_question", None)] = None
    if "no_capitals" in found:
        special.pop(("uppercase", None), None)
        special[("lowercase", None)] = None
    if not numbered and len({"brief", "long"} & found) == 1:
        special[("max_words", BRIEF_WORDS) if "brief" in found else ("min_words", LONG_WORDS)] = None


def _read_manner(text: str, table: dict[str, Any], special: dict[Wish, None], cleared: set[str]) -> None:
    """What an answer takes from its question, and how it sounds. Enough of it lifts an earlier wish: no more."""
    found = {name for name, pattern in table["phrases"].items() if _regex(pattern).search(text)}
    for name, kind, family, against in _MANNERS:
        if against in found:
            special.pop((kind, None), None)
            cleared.add(family)
        elif name in found and family not in cleared:
            special[(kind, None)] = None


def _lengths(text: str, table: dict[str, Any]) -> list[Wish]:
    numbers: dict[str, int] = table["numbers"]
    words = "|".join(sorted((re.escape(word) for word in numbers), key=len, reverse=True))
    spaced = "spaced" in table
    gap = (
        r"(?:[ -]+(?:(?:or|to|bis|oder|a|o|ou|à) \w+ )?(?:short |brief |simple |plain |kurzen |kurze )?)"
        if spaced
        else r"\s*"
    )
    left, right = (r"\b", r"\b") if spaced else ("", "")
    wishes: list[Wish] = []
    for unit, names in table["units"].items():
        for found in _regex(rf"{left}(\d{{1,4}}|{words}){gap}(?:{names}){right}").finditer(text):
            raw = found.group(1).lower()
            bound = "min" if _regex(table["at_least"]).search(text[: found.start()]) else "max"
            after = text[found.end() :]
            above = _regex(table["at_least_after"]).search(after) is not None
            number = int(raw) if raw.isdecimal() else numbers[raw]
            if _regex(table["too_few_after"]).search(after):  # "Two sentences are not enough."
                wishes.append((f"min_{unit}", number + 1))
                continue
            ranged = re.match(rf"{re.escape(found.group(1))} (?:or|to|bis|oder|ou|à|o|a) (\w+)", found.group(), re.I)
            if ranged and bound == "max":
                top = ranged.group(1).lower()
                number = int(top) if top.isdecimal() else numbers.get(top, number)
            wishes.append((f"{'min' if above else bound}_{unit}", number))
        if spaced and "or_two" in table:
            for found in _regex(table["or_two"]).finditer(text):
                if _regex(rf"^(?:{names})$").match(found.group(1)):
                    wishes.append((f"max_{unit}", 2))
    return _possible(wishes)


def _possible(wishes: list[Wish]) -> list[Wish]:
    """Without bounds that a later one makes impossible: at most two, and then at least four, is at least four."""
    kept: dict[tuple[str, str], Wish] = {}
    for kind, value in wishes:
        bound, unit = kind.split("_", 1)
        other = kept.get(("min" if bound == "max" else "max", unit))
        low, high = (value, other[1]) if other and bound == "min" else (other[1] if other else None, value)
        if other and isinstance(low, int) and isinstance(high, int) and low > high:
            del kept["min" if bound == "max" else "max", unit]
        kept[bound, unit] = (kind, value)
    return list(kept.values())


def _read_language(text: str, table: dict[str, Any], special: dict[Wish, None]) -> None:
    for name, code in table["languages"].items():
        pattern = table.get("in_language", "") + name + (r"\b" if name.isascii() else "")
        found = _regex(pattern).search(text)
        if found and _polarity(text, found.start(), found.start(), table) is not False:
            special[("language", code)] = None


def _read_quotes(text: str, table: dict[str, Any], special: dict[Wish, None]) -> None:
    if "starts" not in table:
        return
    for found in _QUOTED.finditer(text):
        phrase = (found.group(1) or found.group(2)).strip()
        before = text[: found.start()].rstrip(" :,")
        away = _regex(table["avoids"] + "$").search(text[: found.start()]) is not None
        if _regex(table["starts"] + "$").search(before):
            special[("not_starts_with" if away else "starts_with", phrase)] = None
        elif _regex(table["ends"] + "$").search(before):
            special[("avoids" if away else "ends_with", phrase)] = None
        elif away:
            special[("avoids", phrase)] = None
