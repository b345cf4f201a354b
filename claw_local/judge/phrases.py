"""What the wording of a next message says, learned from labelled messages. It must never know a model's opinion.

A linear model over the words of a message, its pairs and triples of words, its runs of letters, and what it shares with
question and reply: quick, the same beside every model, and right about short everyday messages that no list of words
foresees. `claw_trainer.judge_phrases` makes it from the shipped train split; the features are the ones computed here.
"""

from __future__ import annotations

import hashlib
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
import numpy.typing as npt

from .calibration import VERDICTS, Floats, VerdictName, log_softmax

FILE = "phrases.npz"
MOST_CHARACTERS = 600
"""How much of a message is read: what people say about a reply stands at the beginning, and time stays bounded."""
LETTERS = (2, 3, 4, 5)
"""Lengths of the runs of letters."""

Keys = npt.NDArray[np.uint32]

_TOKEN = re.compile(r"[a-zà-ÿß']+|\d+|[\u3040-\u30ff]+|[\u4e00-\u9fff]|[^\w\s]")
_SHARED = re.compile(r"[a-zà-ÿß']{4,}|[\u3040-\u30ff]+|[\u4e00-\u9fff]")
_SAYS_SOMETHING = re.compile(r"[a-zà-ÿß']{2,}|[\u3040-\u30ff\u4e00-\u9fff]")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Phrases:
    """A linear model of wordings.

    Attributes:
        keys: [F] what `features` gives for the wordings that it knows, ascending.
        weights: [F, 3] of `VERDICTS`, in steps of `step` nats.
        step: nats.
        bias: [3] nats.
    """

    keys: Keys
    weights: npt.NDArray[np.int8]
    step: float
    bias: Floats

    def evidence(self, question: str, reply: str, message: str) -> Floats:
        """[3] log-probabilities of `VERDICTS` in nats by a message's wording; zeros where it knows none of it."""
        if not message.strip():
            return np.zeros(len(VERDICTS))
        rows = known(self.keys, features(question, reply, message))
        if not len(rows):
            return np.zeros(len(VERDICTS))
        total = self.weights[rows].sum(axis=0, dtype=np.int64) * (self.step / np.sqrt(len(rows)))
        return log_softmax(self.bias + total)

    def telling(self, message: str, verdict: VerdictName, most: int = 3) -> list[str]:
        """The words, or neighbouring words, of a message that speak most for a verdict, the strongest first."""
        found = {
            f"{mark}:{text}": text
            for mark, text in _neighbours(message[:MOST_CHARACTERS].lower())
            if _SAYS_SOMETHING.search(text)
        }
        by_weight = []
        for name, text in found.items():
            rows = known(self.keys, np.array([_key(name)], dtype=np.uint32))
            if len(rows):
                weights = self.weights[rows[0]].astype(float)
                by_weight.append((weights[VERDICTS.index(verdict)] - weights.mean(), text))
        kept: list[str] = []
        for weight, text in sorted(by_weight, reverse=True):
            if weight > 0 and len(kept) < most and not any(text in other or other in text for other in kept):
                kept.append(text)
        return kept


def known(keys: Keys, found: Keys) -> npt.NDArray[np.intp]:
    """Where in `keys` (ascending) the features stand that it has."""
    places = np.minimum(np.searchsorted(keys, found), max(0, len(keys) - 1))
    result: npt.NDArray[np.intp] = places[keys[places] == found] if len(keys) else places[:0]
    return result


def features(question: str, reply: str, message: str) -> Keys:
    """[n] the features of a message, ascending, each once: CRC-32 of their names."""
    message = message[:MOST_CHARACTERS]
    names = {*_wording(message.lower()), *_shape(question, reply, message)}
    return np.unique(np.array([_key(name) for name in names], dtype=np.uint32))


def _key(name: str) -> int:
    return zlib.crc32(name.encode("utf-8", "replace"))


def _wording(text: str) -> Iterator[str]:
    for mark, neighbours in _neighbours(text):
        yield f"{mark}:{neighbours}"
    words = _TOKEN.findall(text)
    for place, word in enumerate(words[:4]):
        yield f"p{place}:{word}"
    if words:
        yield f"first:{' '.join(words[:2])}"
        yield f"last:{' '.join(words[-2:])}"
    line = f"^{_SPACE.sub(' ', text.strip())}$"
    for size in LETTERS:
        for start in range(len(line) - size + 1):
            yield f"c{size}:{line[start : start + size]}"


def _neighbours(text: str) -> Iterator[tuple[str, str]]:
    """Words, pairs and triples of them, each with its mark."""
    words = _TOKEN.findall(text)
    for size, mark in ((1, "w"), (2, "b"), (3, "t")):
        for start in range(len(words) - size + 1):
            yield mark, " ".join(words[start : start + size])


def _shape(question: str, reply: str, message: str) -> Iterator[str]:
    """How long it is, whether it asks, and in quarters how much of it was said before."""
    mine = set(_SHARED.findall(message.lower()))
    of_question, of_reply = (
        int(4 * len(mine & set(_SHARED.findall(said[: 10 * MOST_CHARACTERS].lower()))) / max(1, len(mine)))
        for said in (question, reply)
    )
    asks = message.rstrip()[-1:] in ("?", "？")
    yield f"length:{min(8, len(_TOKEN.findall(message.lower())) // 4)}"
    yield f"asks:{asks}"
    yield f"question:{of_question}"
    yield f"reply:{of_reply}"
    yield f"asks:{asks} question:{of_question} reply:{of_reply}"


@cache
def raw() -> bytes:
    """The shipped file's bytes, for the judge's version."""
    return resources.files("claw_local.data").joinpath("judge").joinpath(FILE).read_bytes()


@cache
def version() -> str:
    """SHA-256 of the shipped file."""
    return hashlib.sha256(raw()).hexdigest()


@cache
def shipped() -> Phrases:
    """The one that comes with the package."""
    with np.load(io.BytesIO(raw()), allow_pickle=False) as arrays:
        return Phrases(arrays["keys"], arrays["weights"], float(arrays["step"]), arrays["bias"].astype(np.float64))


def evidence(question: str, reply: str, message: str) -> Floats:
    """See `Phrases.evidence`, of the shipped one."""
    return shipped().evidence(question, reply, message)
