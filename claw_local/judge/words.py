"""What the words of a next message say by themselves: praise, complaint, wish. It must never know the model's opinion.

The words are data (`data/judge_words.json`), so are their weights: a log-linear prior a person can read and change.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from .calibration import VERDICTS, Floats

SAME_TASK = 0.25
"""The same share from which a task counts as the task asked before, put another way."""
SAME_QUESTION = 0.75
"""Share of common words (Jaccard) from which a message counts as the question asked again."""

_WORD = re.compile(r"[^\W_]{3,}|[\u3040-\u30ff\u3400-\u9fff]{2}")
_HINGE = re.compile(r"\b(?:but|however|although|except|only|aber|pero|mais|nur)\b|但|不过|でも|けど|ただ", re.I)

_FILE = re.compile(r"[\w.-]+/[\w./-]+|\b\w[\w-]+\.[A-Za-z]\w{0,4}\b")
"""A file's name or path, by its shape."""

_LONGEST_TASK = 200
"""Characters; whoever writes more says more than a task."""
_NAMED_WITH_FORM = 2
"""So many things a task names that speaks of an answer's form, too: "with bullet points" names one."""
_SAME_BEGINNING = 4
"""Letters by which two forms of a word are known: "boats", "boat"."""
_MORE = re.compile(
    r"^(?:in|as|with|by|of|for|on|to|pls|please|auf|mit|als|en|con|avec|comme)\b|[.!?…]\s*\S|[?？]\s*$|"
    r"[\u3040-\u30ff\u3400-\u9fff]|\b(?:i|i'?m|im|i'?ve|he|she|they|her|his|their|one\.)(?!\w)",
    re.I,
)
"""Said of the manner of something said before, in more than one sentence, as a question, or of a person."""


@cache
def data() -> dict[str, Any]:
    """The word lists."""
    loaded: dict[str, Any] = json.loads(raw())
    return loaded


def raw() -> str:
    """The file's text, for the judge's version."""
    return resources.files("claw_local.data").joinpath("judge_words.json").read_text("utf-8")


@cache
def pattern(name: str) -> re.Pattern[str]:
    """The words of one group, in every language at once."""
    group = data()[name]
    return re.compile(group if isinstance(group, str) else "|".join(f"(?:{part})" for part in group.values()), re.I)


def tidy(text: str) -> str:
    """One line, straight apostrophes."""
    return " ".join(text.replace("’", "'").split())


def find_praise(text: str) -> list[re.Match[str]]:
    """Praise and thanks in a tidy text, without those turned round ("not helpful", "make it more useful")."""
    return [
        found for found in pattern("praise").finditer(text) if not pattern("unpraise").search(text[: found.start()])
    ]


def features(question: str, reply: str, message: str, *, working: bool = False) -> dict[str, float]:
    """How strongly each group of words speaks, 0 to 1, by the names under `weights`; `working` as in `AnyJudge`."""
    text = tidy(message)
    found = dict.fromkeys(data()["weights"], 0.0)
    if pattern("acknowledgement").search(text):
        return {**found, "acknowledgement": 1.0}
    asked_again = _overlap(text, question) >= SAME_QUESTION
    praise = find_praise(text)
    complaint = pattern("complaint").search(text) is not None
    correction = pattern("correction").search(text) is not None
    wish = pattern("request").search(text) is not None
    hinge = _HINGE.search(text)
    if praise:
        # "Great, but shorter": what follows the hinge weighs more.
        split = hinge is not None and hinge.start() > praise[0].start()
        found["praise"] = 0.5 if split else 1.0
        if not split:
            rest = text[praise[-1].end() :]
            wish = correction = False
            complaint = complaint and pattern("complaint").search(rest) is not None
    found.update(complaint=float(complaint), correction=float(correction), repeat=float(asked_again))
    asks = pattern("question_start").search(text) is not None
    # Who works with tools asks for the next piece of work in the same words as others for a better reply: "Write that
    # into the file". So what they ask is about the reply only if it names its form, and no file that it is to go to.
    about_form = names_form(text) and not _FILE.search(text) if working else wish_is_about(text, reply, asks)
    own_task = is_own_task(question, reply, text) and not (praise or complaint or correction or asked_again)
    new_task = (own_task or is_new_task(question, text)) and not correction
    found["wish"] = float(wish and about_form and not new_task)
    quiet = not (praise or complaint or correction or found["wish"] or asked_again)
    if own_task:
        found["own_task"] = 1.0
    elif quiet and new_task:
        found["new_subject"] = 1.0
    elif quiet and pattern("follow_up").search(text):
        found["follow_up"] = 1.0
    elif quiet and asks and len(text) > 8 and not _overlap(text, f"{question} {reply}"):
        found["new_subject"] = 1.0
    return found


def is_task(text: str) -> bool:
    """Whether it asks for something of its own ("write a short poem about rain"), whatever was answered before."""
    return pattern("task").search(tidy(text)) is not None


def is_new_task(question: str, message: str) -> bool:
    """Whether a message is a task, and not the question's once more in other words."""
    again = is_task(question) and _overlap(message, question) >= SAME_TASK
    return is_task(message) and not again


def is_own_task(question: str, reply: str, message: str) -> bool:
    """Whether it sets a task that has to do neither with the question nor with the reply, and so says nothing of it.

    "Name three fruits." after an answer about Paris is asked in the words of a wish about it ("Name the year."). What
    tells them apart is what is asked for: it begins as a task, points back at nothing, and names something that
    neither question nor reply speaks of.
    """
    text = tidy(message)
    start = pattern("own_task").match(text)
    if start is None or len(text) > _LONGEST_TASK:
        return False
    rest = text[start.end() :].strip()
    if _MORE.search(rest) or pattern("points_back").search(rest):
        return False
    named = plain_words(pattern("form").sub(" ", rest))
    before = {word[:_SAME_BEGINNING] for word in plain_words(f"{question} {reply}")}
    if any(word[:_SAME_BEGINNING] in before for word in plain_words(rest)):
        return False
    return len(named) >= (_NAMED_WITH_FORM if names_form(rest) or re.search(r"[:\n]", rest) else 1)


def names_form(text: str) -> bool:
    """Whether it speaks of an answer's form or manner: length, lists, tone, level, language, units."""
    return pattern("form").search(tidy(text)) is not None


def wish_is_about(text: str, reply: str, asks: bool) -> bool:
    """Whether a request is about this answer, not a new task: it names its form, points at it, or asks nothing else."""
    points = re.search(
        r"\b(?:it|that|this|them|again|instead|redo|answer|das|es|esto|ça|cela|lo)\b|再|重|もう", text, re.I
    )
    return names_form(text) or points is not None or not asks


def evidence(question: str, reply: str, message: str, *, working: bool = False) -> Floats:
    """[3] nats to add to good, neutral and bad. `working`: see `AnyJudge.judge`."""
    nats = np.zeros(len(VERDICTS))
    weights: dict[str, tuple[Any, float]] = data()["weights"]
    for name, strength in features(question, reply, message, working=working).items():
        verdict, weight = weights[name]
        nats[VERDICTS.index(verdict)] += weight * strength
    return nats


AGAINST = ("complaint", "correction", "wish", "repeat")


def speaks_against(question: str, reply: str, message: str, *, working: bool = False) -> bool:
    """Whether any word of a message is one of complaint, of correction, of a wish about the reply, or asks it again."""
    found = features(question, reply, message, working=working)
    return any(found[name] > 0 for name in AGAINST)


def plain_words(text: str) -> frozenset[str]:
    """The words that carry what a text is about, in small letters."""
    return frozenset(word.lower() for word in _WORD.findall(text)) - _STOP


def _overlap(one: str, other: str) -> float:
    mine, theirs = plain_words(one), plain_words(other)
    return len(mine & theirs) / len(mine | theirs) if mine and theirs else 0.0


_STOP = frozenset(
    "the and for are was what who how when where which why can you does did that this with from tell give about have "
    "has not but let some any there your will would could should please wie was der die das ist und ein eine los las "
    "que por una les des est qui quel quelle comment".split()
)
