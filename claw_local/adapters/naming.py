"""How adapters are called: by id, by name, and several at once with weights. It must never look into a database."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ..errors import UsageError
from ..language import _

RESERVED = frozenset({"base", "default", "none", "all"})
MOST_WEIGHT = 4.0
_NAME = re.compile(r"[^\W\d_][\w.-]{0,39}")


def checked_name(name: str) -> str:
    """A name that can be typed wherever an id can.

    Raises:
        UsageError: it cannot.
    """
    name = name.strip()
    if not _NAME.fullmatch(name) or name.lower() in RESERVED:
        raise UsageError(
            _(
                "{name!r} cannot be an adapter's name. It begins with a letter and has at most "
                "40 letters, digits, dots, hyphens or underscores; {reserved} are taken.",
                name=name[:60],
                reserved=", ".join(sorted(RESERVED)),
            )
        )
    return name


def is_free(name: str, taken: Sequence[str]) -> bool:
    """Whether none of these is the same name; capitals make no difference."""
    return name.casefold() not in {other.casefold() for other in taken}


def is_usable(name: str, taken: Sequence[str]) -> bool:
    """Whether an adapter can be called so beside these."""
    return bool(_NAME.fullmatch(name)) and name.lower() not in RESERVED and is_free(name, taken)


def weighted(words: Sequence[str]) -> list[tuple[str, float]]:
    """ "work:0.7 home:0.3", as one word or several, as names or ids with weights; without a weight it is 1.

    Raises:
        UsageError: there is none, one stands twice, or a weight is no number above 0.
    """
    found: list[tuple[str, float]] = []
    for word in " ".join(words).replace(",", " ").split():
        name, colon, number = word.partition(":")
        try:
            weight = float(number) if colon else 1.0
        except ValueError:
            weight = math.nan
        if not name or not 0 < weight <= MOST_WEIGHT:
            raise UsageError(
                _(
                    "{word!r} is no adapter with a weight. Write it like work:0.7, with a "
                    "weight above 0 and at most {most:g}.",
                    word=word[:60],
                    most=MOST_WEIGHT,
                )
            )
        found.append((name, weight))
    if not found:
        raise UsageError(_("Say which adapter: an id or a name from `claw-local adapters list`, or `base`."))
    return found
