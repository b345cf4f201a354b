"""A context that is made when it is first needed, and made anew when a longer text comes.

It must never know what is computed in it.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import EngineError
from ..language import _
from ._native import NativeContext

_STEP = 512


class GrowingContext:
    """Holds one context at a time.

    Args:
        make: makes a context with room for so many tokens.
        free: frees one.
        least, most: smallest and largest room, in tokens.
        purpose: what it is for, as in "the text to ...".
        larger: whether a setting can make `most` larger.
    """

    def __init__(
        self,
        make: Callable[[int], NativeContext],
        free: Callable[[NativeContext], None],
        *,
        least: int,
        most: int,
        purpose: str,
        larger: bool,
    ) -> None:
        self._make = make
        self._free = free
        self._least = least
        self._most = most
        self._purpose, self._larger = purpose, larger
        self._room = 0
        self._context: NativeContext | None = None

    def fit(self, count: int) -> NativeContext:
        """A context with room for `count` tokens: the same as before if that is long enough.

        Raises:
            EngineError: more than `most`, or not enough memory.
        """
        if count > self._most:
            raise EngineError(
                _(
                    "The text to {purpose} has {count} tokens, and there is room for {most}. Shorten it, or set a "
                    "larger model.context.",
                    purpose=self._purpose,
                    count=count,
                    most=self._most,
                )
                if self._larger
                else _(
                    "The text to {purpose} has {count} tokens, and this model was made for no more than {most}. "
                    "Shorten it, or use another model.",
                    purpose=self._purpose,
                    count=count,
                    most=self._most,
                )
            )
        if self._context is None or self._room < count:
            if self._context is not None:
                self._free(self._context)
                self._context = None
            self._room = min(self._most, max(self._least, -(-count // _STEP) * _STEP))
            self._context = self._make(self._room)
        return self._context
