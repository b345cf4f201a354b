"""What can be seen in a set of answers without knowing what was wished: how long, how repetitive, how much alike, how
often a refusal, an echo, or in another language. It must never know which adapter wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..signals.texts import language_of

_REFUSAL = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|afraid|unable|not able|not comfortable)|i (?:can ?not|can't|cannot|won't|will not|must "
    r"decline|am not going to|do not feel)\b|i apologi[sz]e\b|as an ai\b|it(?:'s| is) (?:not appropriate|illegal)|"
    r"es tut mir leid|ich kann (?:das|dir|ihnen|dabei)? ?nicht|lo siento|no puedo|je suis désolée?|je ne peux pas)"
    r"|对不起|抱歉|我(?:不能|无法)|申し訳|できません|お答えできません",
    re.I,
)
_OPENING = 160
"""Characters in which a refusal shows itself; what comes after an answer has begun is no longer one."""
_SHINGLE = 3


@dataclass(frozen=True)
class Qualities:
    """Of one set of answers.

    Attributes:
        words: mean number of words.
        repetition: mean share of repeated word 4-grams within an answer.
        sameness: mean share (Jaccard) of word 3-grams that two answers to different questions have in common.
        refusals: share of answers that refuse.
        empty: how many are empty.
        echo: mean share of an answer's word 3-grams that stand in its question.
        foreign: share of answers in another language than their question, of those where both can be told.
    """

    words: float = 0.0
    repetition: float = 0.0
    sameness: float = 0.0
    refusals: float = 0.0
    empty: int = 0
    echo: float = 0.0
    foreign: float = 0.0


def qualities(answers: Sequence[str], questions: Sequence[str] = ()) -> Qualities:
    """Of answers to different questions; `questions`: as many, or none where they are not known."""
    if not answers:
        return Qualities()
    pairs = list(zip(questions, answers, strict=True)) if questions else []
    return Qualities(
        words=float(np.mean([len(answer.split()) for answer in answers])),
        repetition=float(np.mean([repetition(answer) for answer in answers])),
        sameness=sameness(answers),
        refusals=sum(is_refusal(answer) for answer in answers) / len(answers),
        empty=sum(not answer.strip() for answer in answers),
        echo=float(np.mean([echo(question, answer) for question, answer in pairs])) if pairs else 0.0,
        foreign=foreign(pairs),
    )


def is_refusal(text: str) -> bool:
    """Whether an answer begins by declining."""
    return _REFUSAL.search(text[:_OPENING].replace("’", "'")) is not None


def repetition(text: str, n: int = 4) -> float:
    """Share of a text's word n-grams that stood in it before; 0 for a text too short to have two."""
    words = text.lower().split()
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if len(grams) > 1 else 0.0


def sameness(answers: Sequence[str]) -> float:
    """Mean Jaccard similarity of the word 3-grams of each pair; a short answer counts as one whole."""
    sets = [shingles for answer in answers if (shingles := _shingles(answer))]
    pairs = [len(a & b) / len(a | b) for a, b in combinations(sets, 2)]
    return float(np.mean(pairs)) if pairs else 0.0


def echo(question: str, answer: str) -> float:
    """Share of the answer's word 3-grams that stand in the question; an answer too short to have one echoes nothing."""
    said = _words(answer)
    asked = _grams(_words(question))
    grams = [tuple(said[i : i + _SHINGLE]) for i in range(len(said) - _SHINGLE + 1)]
    return sum(gram in asked for gram in grams) / len(grams) if grams else 0.0


def foreign(pairs: Sequence[tuple[str, str]]) -> float:
    """Share of (question, answer) pairs in two languages, of those where both languages can be told."""
    known = [(language_of(question), language_of(answer)) for question, answer in pairs]
    known = [pair for pair in known if all(pair)]
    return sum(asked != said for asked, said in known) / len(known) if known else 0.0


def _words(text: str) -> list[str]:
    words = [word.strip(".,;:!?\"'*-()").lower() for word in text.split()]
    return [word for word in words if word]


def _grams(words: Sequence[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(words[i : i + _SHINGLE]) for i in range(len(words) - _SHINGLE + 1))


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = _words(text)
    if len(words) <= _SHINGLE:
        return frozenset([tuple(words)]) if words else frozenset()
    return _grams(words)
