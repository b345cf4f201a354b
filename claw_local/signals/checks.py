"""Checks: properties of a text that can be verified, inferred from wishes in everyday words (DESIGN §5).

They follow the families of IFEval (arXiv 2311.07911). This module must never know who wished, or what a model is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import about, texts
from .wishes import read_wishes

Value = int | str | None

_LANGUAGES = {
    "en": "English", "de": "German", "es": "Spanish", "fr": "French",
    "zh": "Chinese", "ja": "Japanese", "ko": "Korean", "ru": "Russian",
}  # fmt: skip


@dataclass(frozen=True)
class _Kind:
    """What a kind of check means.

    Attributes:
        test: (text, value) -> whether the text has the property.
        words: in plain words; {n} stands for the value, {s} for an "s" where the value is not 1.
        family: checks of one family cannot both be wished for: the later wish replaces the earlier ones.
        takes: type of the value, None for none.
        asked: (text, question) -> the same for what only its question can tell; None where that question cannot.
        rough: whether it is a guess by word lists, to which a judge that passed its exam is preferred.
    """

    test: Callable[[str, Any], bool]
    words: str
    family: str
    takes: type[int] | type[str] | None = None
    asked: Callable[[str, str], bool | None] | None = None
    rough: bool = False


def _bare(text: str) -> str:
    return text.strip().strip("*_\"'“”").lower()


def _is_language(text: str, language: str) -> bool:
    """A text too short to tell passes where its script fits."""
    guess = texts.language_of(text)
    return guess == language or (not guess and language not in ("zh", "ja", "ko", "ru"))


def _says_name(text: str, question: str) -> bool | None:
    people = about.people_in(question)
    return about.names_somebody(text, people) if people else None


def _is_specific(text: str, question: str) -> bool | None:
    """A name alone takes up nothing of the matter."""
    names = {name.lower()[: about.STEM] for name in about.people_in(question)}
    matter = about.matter(question) - names
    return len(matter & about.matter(text)) >= about.TAKEN_UP if len(matter) >= about.LEAST_MATTER else None


_KINDS: dict[str, _Kind] = {
    "no_lists": _Kind(lambda t, _: not texts.has_list(t), "no lists", "list"),
    "uses_list": _Kind(lambda t, _: texts.has_list(t), "a list", "list"),
    "no_bold": _Kind(lambda t, _: not texts.has_bold(t), "no bold", "bold"),
    "uses_bold": _Kind(lambda t, _: texts.has_bold(t), "something in bold", "bold"),
    "no_headings": _Kind(lambda t, _: not texts.has_heading(t), "no headings", "heading"),
    "uses_headings": _Kind(lambda t, _: texts.has_heading(t), "headings", "heading"),
    "no_tables": _Kind(lambda t, _: not texts.has_table(t), "no tables", "table"),
    "uses_table": _Kind(lambda t, _: texts.has_table(t), "a table", "table"),
    "no_code": _Kind(lambda t, _: not texts.has_code(t), "no code", "code"),
    "uses_code": _Kind(lambda t, _: texts.has_code(t), "code", "code"),
    "no_emoji": _Kind(lambda t, _: not texts.has_emoji(t), "no emoji", "emoji"),
    "uses_emoji": _Kind(lambda t, _: texts.has_emoji(t), "an emoji", "emoji"),
    "lowercase": _Kind(lambda t, _: t == t.lower(), "all in lowercase", "case"),
    "uppercase": _Kind(lambda t, _: t == t.upper(), "all in capitals", "case"),
    "no_question": _Kind(lambda t, _: not texts.has_question(t), "no questions", "question"),
    "has_question": _Kind(lambda t, _: texts.has_question(t), "a question", "question"),
    "max_sentences": _Kind(lambda t, n: texts.count_sentences(t) <= n, "at most {n} sentence{s}", "length", int),
    "min_sentences": _Kind(lambda t, n: texts.count_sentences(t) >= n, "at least {n} sentence{s}", "length", int),
    "max_words": _Kind(lambda t, n: texts.count_words(t) <= n, "at most {n} word{s}", "length", int),
    "min_words": _Kind(lambda t, n: texts.count_words(t) >= n, "at least {n} word{s}", "length", int),
    "max_paragraphs": _Kind(lambda t, n: texts.count_paragraphs(t) <= n, "at most {n} paragraph{s}", "paragraphs", int),
    "min_paragraphs": _Kind(
        lambda t, n: texts.count_paragraphs(t) >= n, "at least {n} paragraph{s}", "paragraphs", int
    ),
    "starts_with": _Kind(lambda t, v: _bare(t).startswith(_bare(v)), "begins with “{n}”", "opening", str),
    "not_starts_with": _Kind(lambda t, v: not _bare(t).startswith(_bare(v)), "does not begin with “{n}”", "", str),
    "ends_with": _Kind(
        lambda t, v: _bare(t).rstrip(".!").endswith(_bare(v).rstrip(".!")), "ends with “{n}”", "ending", str
    ),
    "avoids": _Kind(lambda t, v: _bare(v) not in t.lower(), "does not say “{n}”", "", str),
    "language": _Kind(_is_language, "in {n}", "language", str),
    "warm": _Kind(lambda t, _: about.sounds_warm(t), "warm and friendly", "warmth", rough=True),
    "says_name": _Kind(lambda t, _: True, "says the person's name", "name", asked=_says_name),
    "specific": _Kind(lambda t, _: True, "about what was written", "matter", asked=_is_specific, rough=True),
}

KINDS: tuple[str, ...] = tuple(_KINDS)
"""Every kind of check there is."""


@dataclass(frozen=True)
class Check:
    """One verifiable property.

    Raises:
        ValueError: no such kind, or a value it does not take.
    """

    kind: str
    value: Value = None

    def __post_init__(self) -> None:
        known = _KINDS.get(self.kind)
        if known is None:
            raise ValueError(f"There is no check called {self.kind!r}; known are {', '.join(KINDS)}.")
        if known.takes is None and self.value is not None:
            raise ValueError(f"The check {self.kind} takes no value, but was given {self.value!r}.")
        if known.takes is not None and (not isinstance(self.value, known.takes) or isinstance(self.value, bool)):
            raise ValueError(f"The check {self.kind} takes one {known.takes.__name__}, not {self.value!r}.")

    @property
    def family(self) -> str:
        """Checks of one family cannot both be wished for; "" means it clashes with none."""
        return _KINDS[self.kind].family

    @property
    def rough(self) -> bool:
        """Whether it is a guess by word lists: of tone or sense, not of form."""
        return _KINDS[self.kind].rough

    def passes(self, text: str, question: str = "") -> bool:
        """Whether the text, an answer to `question`, has the property; True where that question cannot tell."""
        return self.judge(text, question) is not False

    def judge(self, text: str, question: str = "") -> bool | None:
        """The same, with None where the question cannot tell: no answer can say a name when nobody is named."""
        kind = _KINDS[self.kind]
        return kind.test(text, self.value) if kind.asked is None else kind.asked(text, question)

    def describe(self) -> str:
        """In plain words, such as "no lists" or "at most 2 sentences"."""
        shown = _LANGUAGES.get(str(self.value), self.value) if self.kind == "language" else self.value
        return _KINDS[self.kind].words.format(n=shown, s="" if self.value == 1 else "s")

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"kind": self.kind} if self.value is None else {"kind": self.kind, "value": self.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Check:
        """The opposite of `to_dict`. Raises ValueError as the constructor does."""
        return cls(str(data.get("kind")), data.get("value"))


def infer_checks(hints: Sequence[str]) -> list[Check]:
    """The checks that wishes in everyday words come down to, oldest hint first. What cannot be verified gives none.

    A later hint replaces what clashes with it in earlier ones ("use lists again"). Wishes for brevity or length without
    a number become a bound of words (`wishes.BRIEF_WORDS`, `wishes.LONG_WORDS`): rough, yet shown to the person.
    """
    kept: dict[Check, None] = {}
    for hint in hints:
        wishes = read_wishes(hint)
        cleared = set(wishes.cleared)
        fresh = [Check(kind, value) for kind, value in wishes.checks]
        cleared |= {check.family for check in fresh if check.family}
        kept = {check: None for check in kept if check.family not in cleared}
        kept.update(dict.fromkeys(fresh))
    return list(kept)


def score(text: str, checks: Sequence[Check], question: str = "") -> float | None:
    """What an answer is worth by its checks: +1 if all pass, else -1 plus half the share that passes.

    A text that breaks one wish of three is still not as wished, so it never scores above -0.5: most checks pass by
    themselves ("no headings"), and a reward for that would teach the broken one. An empty text scores -1. None where
    there is no check, or none that can tell about an answer to this question.
    """
    found = [passed for check in checks if (passed := check.judge(text, question)) is not None]
    if not found:
        return None
    if not text.strip():
        return -1.0
    return 1.0 if all(found) else -1.0 + 0.5 * sum(found) / len(found)
