"""What a scripted person sees in an answer: named checks, each a plain function of the answer and of the prompt.

It must never use the product's own checks (`claw_local.signals`): a fault in those has to show in the result. To add a
check, write a function of `Seen` with keyword parameters and put `@check` above it; personas can name it at once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints


@dataclass(frozen=True)
class Prompt:
    """What the person asks. `fields` are the parts it was made of, such as a pupil's name."""

    text: str
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """An answer with the prompt it answers."""

    answer: str
    prompt: Prompt


Look = Callable[..., bool]
_LOOKS: dict[str, Look] = {}
_TYPES: dict[Any, str] = {int: "a whole number", str: "a text", list[str]: "a list of texts"}


def check(look: Look) -> Look:
    """Let personas name this function."""
    _LOOKS[look.__name__] = look
    return look


@dataclass(frozen=True)
class Check:
    """One named check with its parameters. `name` is what corrections refer to.

    Raises:
        ValueError: no check of that kind, or parameters it does not take.
    """

    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        look = _LOOKS.get(self.kind)
        if look is None:
            raise ValueError(f"there is no check called {self.kind!r}; known are {', '.join(kinds())}")
        wanted = _parameters(look)
        for key, value in self.parameters.items():
            if key not in wanted:
                takes = ", ".join(wanted) or "no parameters"
                raise ValueError(f"the check {self.kind} has no parameter {key!r}; it takes {takes}")
            if not _fits(value, wanted[key][0]):
                raise ValueError(f"the parameter {key} of the check {self.kind} must be {_TYPES[wanted[key][0]]}")
            if isinstance(value, str) and key == "pattern":
                _compiled(value)
        missing = [key for key, (_, needed) in wanted.items() if needed and key not in self.parameters]
        if missing:
            raise ValueError(f"the check {self.kind} needs the parameter {missing[0]!r}")
        if not self.name:
            object.__setattr__(self, "name", self.kind)

    @property
    def about_length(self) -> bool:
        """Whether it bounds how long an answer is."""
        return self.kind.startswith(("max_", "min_"))

    def passes(self, answer: str, prompt: Prompt) -> bool:
        """Whether the answer has the property. An empty answer has none."""
        return bool(answer.strip()) and _LOOKS[self.kind](Seen(answer, prompt), **self.parameters)


def kinds() -> list[str]:
    """Every kind of check there is."""
    return sorted(_LOOKS)


def describe(kind: str) -> str:
    """What a kind of check looks for, with its parameters: one line."""
    look = _LOOKS[kind]
    takes = ", ".join(_parameters(look))
    summary = (inspect.getdoc(look) or "").splitlines()[0]
    return f"{kind}({takes}): {summary}"


def _parameters(look: Look) -> dict[str, tuple[Any, bool]]:
    """Type of each parameter, and whether it must be given."""
    types = get_type_hints(look)
    return {
        name: (types[name], parameter.default is parameter.empty)
        for name, parameter in inspect.signature(look).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }


def _fits(value: Any, kind: Any) -> bool:
    if kind == list[str]:
        return isinstance(value, list) and bool(value) and all(isinstance(entry, str) and entry for entry in value)
    return isinstance(value, kind) and not isinstance(value, bool)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error


# Marks

_LIST = re.compile(
    r"^[ \t>]*(?:[-*+][ \t]+\S|[•◦▪‣·●○–][ \t]*\S|\(?\d{1,2}[.)][ \t]+\S|\(?[a-h]\)[ \t]+\S|"
    r"(?:\*\*)?step[ \t]*\d{1,2}\b)",
    re.MULTILINE | re.IGNORECASE,
)
_RUN_ON_LIST = re.compile(r"(?:^|\s)1[.)] \S.*?\s2[.)] \S", re.DOTALL)
_BOLD = re.compile(r"(?<![\w*])\*\*(?=[^\s*])|(?<!\w)__(?=[^\s_])|<(?:b|strong)>", re.IGNORECASE)
_HEADING = re.compile(
    r"^ {0,3}#{1,6}[ \t]*\S|^[^\n|]*\S[ \t]*\n(?:={3,}|-{3,})[ \t]*$|^[ \t]*(\*\*|__)[^*_\n]{1,80}\1[ \t]*:?[ \t]*$",
    re.MULTILINE,
)
_TABLE = re.compile(r"^[ \t]*\|.*\|[ \t]*$|^[ \t]*:?-{2,}:?[ \t]*\|", re.MULTILINE)
_CODE = re.compile(r"^[ \t]*(?:```|~~~)|`[^`\n]+`", re.MULTILINE)
_EMOJI = re.compile("[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\u2600-\u26ff\u2700-\u27bf\u2b50\u2b55]")


@check
def no_lists(seen: Seen) -> bool:
    """No line begins with a bullet, a number, a letter in brackets or "Step 1"; nothing runs on as "1. … 2. …"."""
    return _LIST.search(seen.answer) is None and _RUN_ON_LIST.search(seen.answer) is None


@check
def lists(seen: Seen, *, entries: int = 2) -> bool:
    """At least that many lines are entries of a list."""
    return len(_LIST.findall(seen.answer)) >= entries


@check
def no_bold(seen: Seen) -> bool:
    """Nothing in bold."""
    return _BOLD.search(seen.answer) is None


@check
def bold(seen: Seen) -> bool:
    """Something in bold."""
    return not no_bold(seen)


@check
def no_headings(seen: Seen) -> bool:
    """No headings: no # lines, no underlined ones, no line that is nothing but bold."""
    return _HEADING.search(seen.answer) is None


@check
def headings(seen: Seen) -> bool:
    """At least one heading."""
    return not no_headings(seen)


@check
def no_tables(seen: Seen) -> bool:
    """No table."""
    return _TABLE.search(seen.answer) is None


@check
def no_code(seen: Seen) -> bool:
    """No code block and no code span."""
    return _CODE.search(seen.answer) is None


@check
def code(seen: Seen) -> bool:
    """A code block or a code span."""
    return not no_code(seen)


@check
def no_emoji(seen: Seen) -> bool:
    """No emoji."""
    return _EMOJI.search(seen.answer) is None


@check
def emoji(seen: Seen) -> bool:
    """At least one emoji."""
    return not no_emoji(seen)


# Length

_MARKER = re.compile(r"^[ \t>]*(?:#{1,6}[ \t]+|[-*+•][ \t]+|\d{1,2}[.)][ \t]+)", re.MULTILINE)
_SHORT_FORM = re.compile(
    r"\b(?:e\.g|i\.e|vs|etc|mr|mrs|ms|dr|prof|st|no|approx|a\.m|p\.m)\.(?=\s+(?-i:[a-z0-9(]))", re.I
)
_TITLE = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St)\.(?=\s)|(?<![\w.])[A-Z]\.(?=\s+[A-Z])")
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]*_]*(?=\s|$)|[。！？]+")
_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")


def words(text: str) -> list[str]:
    """The words of a text, without marks."""
    return _WORD.findall(text)


def sentences(text: str) -> int:
    """How many sentences a reader counts. Each entry of a list is one, and so is what was cut off in its middle."""
    bare = _TITLE.sub("Name", _SHORT_FORM.sub("short", _MARKER.sub("\n\n", text)))
    blocks = re.split(r"\n[ \t]*\n|\n(?=[^a-z\n])", bare)
    return sum(1 for block in blocks for piece in _SENTENCE_END.split(block) if _WORD.search(piece))


def _paragraphs(text: str) -> int:
    return sum(1 for block in re.split(r"\n[ \t]*\n", text) if block.strip())


@check
def max_sentences(seen: Seen, *, n: int) -> bool:
    """At most n sentences."""
    return sentences(seen.answer) <= n


@check
def min_sentences(seen: Seen, *, n: int) -> bool:
    """At least n sentences."""
    return sentences(seen.answer) >= n


@check
def max_words(seen: Seen, *, n: int) -> bool:
    """At most n words."""
    return len(words(seen.answer)) <= n


@check
def min_words(seen: Seen, *, n: int) -> bool:
    """At least n words."""
    return len(words(seen.answer)) >= n


@check
def max_paragraphs(seen: Seen, *, n: int) -> bool:
    """At most n blocks of text between blank lines."""
    return _paragraphs(seen.answer) <= n


@check
def min_paragraphs(seen: Seen, *, n: int) -> bool:
    """At least n blocks of text between blank lines."""
    return _paragraphs(seen.answer) >= n


# Words


def _holds(text: str, phrase: str) -> bool:
    """Whether the phrase stands in the text as whole words; a star at its end lets the word go on ("disappoint*")."""
    bare = phrase.rstrip("*")
    left = r"(?<!\w)" if bare[:1].isalnum() else ""
    right = r"(?!\w)" if bare[-1:].isalnum() and not phrase.endswith("*") else ""
    return re.search(left + re.escape(bare).replace(r"\ ", r"\s+") + right, text, re.IGNORECASE) is not None


@check
def contains(seen: Seen, *, phrases: list[str], at_least: int = 1) -> bool:
    """At least so many (one) of the phrases stand in it, as whole words; "encourag*" lets the word go on."""
    return sum(_holds(seen.answer, phrase) for phrase in phrases) >= at_least


@check
def avoids(seen: Seen, *, phrases: list[str]) -> bool:
    """None of the phrases stands in it."""
    return not any(_holds(seen.answer, phrase) for phrase in phrases)


@check
def starts_with(seen: Seen, *, phrases: list[str]) -> bool:
    """It begins with one of the phrases."""
    start = seen.answer.lstrip(" \n\t*_\"'“#").lower()
    return any(start.startswith(phrase.lower()) for phrase in phrases)


@check
def not_starts_with(seen: Seen, *, phrases: list[str]) -> bool:
    """It begins with none of the phrases."""
    return not starts_with(seen, phrases=phrases)


@check
def ends_with(seen: Seen, *, phrases: list[str]) -> bool:
    """It ends with one of the phrases; a full stop or an exclamation mark behind it does not matter."""
    end = seen.answer.rstrip(" \n\t*_\"'”").lower()
    return any(end.endswith(phrase.lower()) or end.rstrip(".!").endswith(phrase.lower()) for phrase in phrases)


@check
def matches(seen: Seen, *, pattern: str) -> bool:
    """The regular expression is found in it (case does not matter; ^ and $ are ends of lines)."""
    return _compiled(pattern).search(seen.answer) is not None


@check
def matches_not(seen: Seen, *, pattern: str) -> bool:
    """The regular expression is not found in it."""
    return not matches(seen, pattern=pattern)


@check
def lowercase(seen: Seen) -> bool:
    """No capital letters."""
    return seen.answer == seen.answer.lower()


@check
def uppercase(seen: Seen) -> bool:
    """Capital letters only."""
    return seen.answer == seen.answer.upper()


@check
def question(seen: Seen) -> bool:
    """It asks something."""
    return re.search(r"\?(?=[\"'”’)\]*_\s]|$)|？", seen.answer) is not None


@check
def no_question(seen: Seen) -> bool:
    """It asks nothing."""
    return not question(seen)


# What the prompt was about

_SMALL_WORDS = frozenset(
    "a about after again all also an and any are as at be because been before but by can could did do does done for "
    "from get gets give go goes got had has have he her hers him his how i if in into is it its just like make makes "
    "many may me more most much my no not of off on one only or our out over she should so some than that the their "
    "them then there these they this those to too under up us use very was we were what when where which who why will "
    "with would write wrote you your work homework comment answer".split()
)


def content_words(text: str) -> set[str]:
    """The words that carry the sense of a text: no small words, plural and singular alike."""
    found = {word.lower().replace("’", "'").removesuffix("'s") for word in words(text)}
    return {_stem(word) for word in found if len(word) > 2 and word not in _SMALL_WORDS}


def _stem(word: str) -> str:
    """Enough to bring "rise", "rises" and "rising" together."""
    for ending in ("ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


@check
def names(seen: Seen, *, field: str = "name") -> bool:
    """It says what stands in that field of the prompt, such as a pupil's name."""
    return _holds(seen.answer, seen.prompt.fields[field])


@check
def echoes(seen: Seen, *, field: str = "work", count: int = 2) -> bool:
    """It takes up at least so many words of sense from that field of the prompt."""
    return len(content_words(seen.prompt.fields[field]) & content_words(seen.answer)) >= count
