"""The heap of this process. Many threads that take and free memory leave it full of holes, which stay with it."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Hand what is free in the heap back to the system, where the C library can (glibc). Takes some milliseconds."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        except (OSError, AttributeError):  # Another C library.
            return
