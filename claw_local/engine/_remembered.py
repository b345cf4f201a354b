"""What an engine that gives its memory back knows of the last chats, so that they go on as if it had stayed.

It lies in main memory alone, never on the disk: what is said in a chat that is kept nowhere is kept nowhere. It must
never know why the engine goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ._native import Adapters, State
from .base import AdapterSlot


@dataclass(frozen=True)
class Prefix:
    """The tokens a KV cache holds, the adapters they were computed with, and the cache itself."""

    tokens: tuple[int, ...]
    adapters: tuple[AdapterSlot, ...]
    state: State


@dataclass(frozen=True)
class Remembered:
    """What an engine knew when it was closed.

    Attributes:
        prefixes: of the last chats, the oldest first.
        adapters: those that were set.
    """

    prefixes: tuple[Prefix, ...] = ()
    adapters: tuple[AdapterSlot, ...] = ()


def named(adapters: Adapters, files: Mapping[int, Path]) -> tuple[AdapterSlot, ...]:
    """Loaded LoRAs by their files, since their addresses end with the model."""
    return tuple(AdapterSlot(files[address], scale) for address, scale in adapters)


def prefix(kept: tuple[Sequence[int], Adapters, State], files: Mapping[int, Path]) -> Prefix:
    """What a sequence told of itself, without addresses."""
    tokens, adapters, state = kept
    return Prefix(tuple(tokens), named(adapters, files), state)
