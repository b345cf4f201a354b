"""What the person likes, as checks with their evidence: from what they wished for, and from the replies they accepted,
rejected and edited (DESIGN §5). It must never know where texts are kept, or who trains on it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal

from .checks import Check, infer_checks

Source = Literal["hint", "replies"]

LEAST_ACCEPTED = 4
LEAST_REJECTED = 3
"""Fewest accepted and rejected replies from which anything is concluded."""
MOST_CHANCE = 0.05
"""Largest probability of the pattern being chance at which a check is taken up (one of a number: a tenth of it)."""
LEAST_KEPT = 0.9
"""Least share of the accepted replies that must have the property."""

_PLAIN = (
    "no_lists", "uses_list", "no_bold", "uses_bold", "no_headings", "uses_headings", "no_tables", "no_code", "no_emoji",
    "uses_emoji", "lowercase", "no_question", "has_question",
)  # fmt: skip
_NUMBERS = (
    *(("max_sentences", n) for n in (1, 2, 3, 5)),
    *(("max_words", n) for n in (25, 50, 100)),
    *(("min_words", n) for n in (50, 100, 150)),
)


@dataclass(frozen=True)
class Preference:
    """One thing the person likes.

    Attributes:
        check: what can be verified of a text.
        source: said in a hint, or seen in how replies were received.
        confidence: 0 to 1; what was said is 1.
        evidence: where it comes from, in plain words.
    """

    check: Check
    source: Source
    confidence: float
    evidence: str

    @property
    def words(self) -> str:
        """In plain words, such as "no lists"."""
        return self.check.describe()


def preferences(
    hints: Sequence[str],
    accepted: Sequence[str] = (),
    rejected: Sequence[str] = (),
    *,
    denied: Collection[str] = (),
) -> list[Preference]:
    """What the person likes, what was said before what was seen.

    Args:
        hints: wishes in the person's words, oldest first.
        accepted, rejected: texts of replies; of an edited reply, the new text was accepted and the old one rejected.
        denied: plain words of checks that the person said are not theirs.
    """
    found = []
    for check in infer_checks(hints):
        said = next((hint for hint in reversed(hints) if check in infer_checks([hint])), hints[-1])
        found.append(Preference(check, "hint", 1.0, f"you said “{' '.join(said.split())}”"))
    taken = {preference.check.family for preference in found}
    seen = [preference for preference in _seen(accepted, rejected) if preference.check.family not in taken]
    return [preference for preference in (*found, *seen) if preference.words not in denied]


def _seen(accepted: Sequence[str], rejected: Sequence[str]) -> list[Preference]:
    accepted, rejected = ([text for text in texts if text.strip()] for texts in (accepted, rejected))
    if len(accepted) < LEAST_ACCEPTED or len(rejected) < LEAST_REJECTED:
        return []
    best: dict[str, tuple[float, Preference]] = {}
    candidates = [(Check(kind), MOST_CHANCE) for kind in _PLAIN]
    candidates += [(Check(kind, number), MOST_CHANCE / len(_NUMBERS)) for kind, number in _NUMBERS]
    for check, most_chance in candidates:
        kept, broken = (sum(map(check.passes, texts)) for texts in (accepted, rejected))
        chance = _fisher(kept, len(accepted), broken, len(rejected))
        if kept < LEAST_KEPT * len(accepted) or chance > most_chance:
            continue
        evidence = (
            f"{kept} of {len(accepted)} replies you liked were like that, "
            f"and {broken} of {len(rejected)} you did not like"
        )
        if check.family not in best or chance < best[check.family][0]:
            best[check.family] = chance, Preference(check, "replies", 1 - chance, evidence)
    return [preference for _, preference in best.values()]


def _fisher(kept: int, accepted: int, broken: int, rejected: int) -> float:
    """One-sided exact test (Fisher 1922): the probability of at least `kept` among the accepted, margins given."""
    passing, total = kept + broken, accepted + rejected
    ways = sum(
        comb(accepted, k) * comb(rejected, passing - k)
        for k in range(kept, min(accepted, passing) + 1)
        if passing - k <= rejected
    )
    return ways / comb(total, passing)
