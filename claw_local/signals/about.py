"""What an answer takes from its question: a person's name, its matter, and how warm it sounds.

The words, by language, are data: `data/about.json`. It must never know about wishes or scores.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import Any

LEAST_MATTER = 4
"""Words of matter a question needs before anybody can ask of an answer that it takes them up."""
TAKEN_UP = 2
"""Different words of the question's matter in an answer that speaks of it."""
STEM = 5
"""Letters by which forms of a word agree: "bubbles", "bubbling"."""
SHORTEST = 4
"""Letters of the shortest word that says what a text is about."""

_NAME = r"[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]+(?:-[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]+)?"
_LOWER = r"[a-zß-öø-ÿ]"
_WORD = re.compile(r"[^\W\d_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_KANJI_PAIR = re.compile(r"(?=([\u3400-\u9fff]{2}|[\u30a0-\u30ff]{2}))")


@cache
def _data() -> dict[str, Any]:
    text = resources.files("claw_local.data").joinpath("about.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


@cache
def _people() -> list[re.Pattern[str]]:
    return [re.compile(one.replace("NAME", _NAME).replace(r"\p", _LOWER)) for one in _data()["people"]]


@cache
def _phrases(kind: str) -> re.Pattern[str]:
    """One pattern for all languages: people and models mix them, and few of these words mean two things."""
    parts = []
    for phrases in _data()[kind].values():
        for phrase in phrases:
            if _CJK.search(phrase):
                parts.append(re.escape(phrase))
            else:
                parts.append(
                    rf"\b{re.escape(phrase).removesuffix(re.escape('*'))}" + ("" if phrase[-1] == "*" else r"\b")
                )
    return re.compile("|".join(parts), re.I)


def people_in(question: str) -> list[str]:
    """Names of the people that a question speaks of, in their order; none where nothing says that it is a person."""
    nobody = set(_data()["no_name"])
    found = {match.start(1): match.group(1) for pattern in _people() for match in pattern.finditer(question)}
    return list(dict.fromkeys(found[at] for at in sorted(found) if found[at] not in nobody))


def names_somebody(text: str, people: list[str]) -> bool:
    """Whether it says one of the names."""
    return any(re.search(rf"\b{re.escape(name)}\b", text) for name in people)


def matter(text: str) -> set[str]:
    """What a text is about: the beginnings of its longer words, and pairs of Chinese characters or katakana."""
    general = _data()["general"]
    words = (word.lower() for word in _WORD.findall(text) if not _CJK.search(word))
    latin = {word[:STEM] for word in words if len(word) >= SHORTEST and word not in general}
    return latin | set(_KANJI_PAIR.findall(text))


def sounds_warm(text: str) -> bool:
    """Whether it praises, thanks, wishes well or shows care, and has no harsh word."""
    plain = text.replace("’", "'")
    return _phrases("warm").search(plain) is not None and _phrases("harsh").search(plain) is None
