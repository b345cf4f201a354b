"""A flag that llama.cpp looks at between the steps of a computation, so that one under way can be broken off at once.

It looks many hundred times for each batch of tokens, from its own threads: a callback in Python would hold up both it
and every Python thread. So the callback is the C library's `strlen`, on a text that is empty (go on) or one letter long
(stop): llama.cpp takes the answer for a truth value. It must never know what is computed.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any


class StopFlag:
    """Set it from any thread. Works where the processor computes; on a GPU a step goes on to its end."""

    def __init__(self) -> None:
        self._text = ctypes.create_string_buffer(2)

    def set(self) -> None:
        self._text[0] = b"x"

    def clear(self) -> None:
        self._text[0] = b"\0"

    def give_to(self, parameters: Any, callback_type: Any) -> None:
        """Put it into a context's parameters. The flag has to live as long as the context."""
        library = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
        parameters.abort_callback = ctypes.cast(library.strlen, callback_type)
        parameters.abort_callback_data = ctypes.addressof(self._text)
