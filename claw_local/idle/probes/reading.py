"""What a probe answers: a value, or that it is unknown and why. It must never know what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Reading(Generic[T]):
    """One measured value.

    Attributes:
        value: None if it is unknown.
        why: where it comes from, or why it is unknown, in a few words.
    """

    value: T | None
    why: str = ""

    @property
    def known(self) -> bool:
        return self.value is not None


def unknown(why: str) -> Reading[T]:
    """There is no value, for this reason."""
    return Reading(None, why)
