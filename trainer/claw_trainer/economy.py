"""Learning with less memory: what a run needs, how much it may have, and what is tried when that is too little.

Each level is slower or coarser than the one before: smaller micro-batches, then activations computed again instead of
kept (gradient checkpointing), then base weights as they are in the file, dequantised as they are used, then in NF4
(QLoRA). It must never know what is learned.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch

from claw_local import heap
from claw_local.adapters.gguf import MODULES
from claw_local.engine.gguf_file import GgufHeader
from claw_local.errors import ClawError, LearnError
from claw_local.idle.share import ECONOMIES, MOST_ECONOMY
from claw_local.settings import LearningSettings

from .blocks import KINDS

Holding = Literal["dequantised", "as-in-file", "nf4"]
"""How the base's matrices are held, each in less memory than the one before."""
HOLDINGS: tuple[Holding, ...] = get_args(Holding)

MICRO_TOKENS, LESS_TOKENS = 512, 128
"""Tokens whose activations are held at once, and with less memory."""
CHUNK_ROWS, LESS_ROWS = 256, 64
PACKED_TOKENS, LESS_PACKED = 2048, 512
PROGRAM_BYTES = 700 << 20
"""torch and the other libraries, llama.cpp's contexts."""
NF4_BYTES = 0.57
"""Bytes of a weight in NF4, its share of the scales included."""
CHUNK_BYTES = 64 << 20
"""What is dequantised at once, and what lies between it and the bytes, where weights are held as in the file."""
_WORDS = (
    "out of memory",
    "can't allocate memory",
    "enough memory",
    "cannot allocate memory",
    "bad alloc",
    "bad_alloc",
    "alloc_failed",  # cuBLAS and cuDNN, of a GPU
)


class OverBound(MemoryError):
    """The process holds more memory than learning may have."""


@dataclass(frozen=True)
class Sizes:
    """What memory depends on, of a model and a LoRA.

    Attributes:
        linear, other: weights in the blocks' linear layers, and all others.
        linear_stored, other_stored: bytes of them when those that can be are held as in the file.
        lora: weights of the LoRA.
        blocks, width, inner, vocabulary: the model's shape.
        hold: how the base's weights are held at the levels that ask for no less.
        itemsize: bytes of a dequantised weight.
    """

    linear: int
    other: int
    linear_stored: int
    other_stored: int
    lora: int
    blocks: int
    width: int
    inner: int
    vocabulary: int
    hold: Holding = "dequantised"
    itemsize: int = 4

    @classmethod
    def of(cls, header: GgufHeader, rank: int, learning: LearningSettings | None = None) -> Sizes:
        """Raises KeyError: it is no whole language model."""
        linear = other = linear_stored = other_stored = lora = inner = 0
        blocks: set[str] = set()
        for name, tensor in header.tensors.items():
            parts = name.split(".")
            values = math.prod(tensor.shape)
            known = len(tensor.shape) == 2 and tensor.type in KINDS
            stored = tensor.size if known and tensor.size else 4 * values
            if parts[0] == "blk":
                blocks.add(parts[1])
            if parts[0] == "blk" and parts[2] in MODULES.values() and parts[-1] == "weight":
                linear += values
                linear_stored += stored
                lora += rank * sum(tensor.shape)
                inner = max(inner, *tensor.shape)
            else:
                other += values
                other_stored += stored
        width, vocabulary = header.tensors["token_embd.weight"].shape
        found = cls(linear, other, linear_stored, other_stored, lora, len(blocks), width, inner, vocabulary)
        if learning is None:
            return found
        return replace(found, hold=hold_of(learning), itemsize=2 if learning.precision == "bf16" else 4)

    def weight_bytes(self, hold: Holding, itemsize: int = 4) -> int:
        """Bytes of the base's weights: `itemsize` each where they are dequantised."""
        if hold == "dequantised":
            return itemsize * (self.linear + self.other)
        return int(self.other_stored + (NF4_BYTES * self.linear if hold == "nf4" else self.linear_stored))

    def bytes_at(self, level: int) -> int:
        """Estimate of the most memory that training needs at a level, in bytes."""
        hold = holding_at(level, self.hold)
        weights = self.weight_bytes(hold, self.itemsize) + (0 if hold == "dequantised" else CHUNK_BYTES)
        adapter = 4 * 5 * self.lora  # the LoRA, its gradient, two moments, and a parent to compare with
        tokens, rows = (MICRO_TOKENS, CHUNK_ROWS) if level < 1 else (LESS_TOKENS, LESS_ROWS)
        of_block = 4 * tokens * (16 * self.width + 8 * self.inner)
        kept = self.blocks * of_block if level < 2 else of_block + 4 * tokens * self.width * self.blocks
        logits = 4 * 5 * rows * self.vocabulary
        return int(weights + adapter + kept + logits) + PROGRAM_BYTES


def holding_at(level: int, least: Holding) -> Holding:
    """How a level holds the base's weights: as `least` says, or in less memory."""
    return HOLDINGS[max(HOLDINGS.index(least), level - 2)]


def hold_of(learning: LearningSettings) -> Holding:
    """How a person's settings ask for the base's weights to be held, if memory is enough for it."""
    if learning.precision == "nf4":
        return "nf4"
    return "as-in-file" if learning.precision == "as-in-file" else "dequantised"


class Economy:
    """How hard a run saves memory."""

    def __init__(
        self, level: int, bound: int, note: Callable[[int, str], None], *, hold: Holding = "dequantised"
    ) -> None:
        """Args:
        level: where it begins: an index into `ECONOMIES`.
        bound: bytes the process may hold; 0 for no bound.
        note: told each new level, and why, in words.
        hold: how the base's weights are held where the level does not ask for less.
        """
        self.level = level
        self.bound = bound
        self.held: Callable[[], int] = held_bytes
        self._note = note
        self._hold = hold

    @property
    def micro_tokens(self) -> int:
        return MICRO_TOKENS if self.level < 1 else LESS_TOKENS

    @property
    def chunk_rows(self) -> int:
        return CHUNK_ROWS if self.level < 1 else LESS_ROWS

    @property
    def packed_tokens(self) -> int:
        return PACKED_TOKENS if self.level < 1 else LESS_PACKED

    @property
    def recomputes(self) -> bool:
        return self.level >= 2

    @property
    def hold(self) -> Holding:
        return holding_at(self.level, self._hold)

    def fit(self, sizes: Sizes) -> None:
        """Begin at a level that is estimated to fit. Raises LearnError: none is."""
        while self.bound and (need := sizes.bytes_at(self.level)) > self.bound:
            self.harder(f"about {need / 2**30:.1f} GiB needed, {self.bound / 2**30:.1f} GiB allowed")

    def watch(self) -> None:
        """Raises OverBound: the process holds more than it may."""
        if self.bound and (held := self.held()) > self.bound:
            raise OverBound(f"{held / 2**30:.1f} GiB held, {self.bound / 2**30:.1f} GiB allowed")

    def harder(self, why: str) -> None:
        """Save more memory from now on.

        Raises:
            LearnError: there is nothing more to save.
        """
        if self.level >= MOST_ECONOMY:
            raise LearnError(
                f"Learning needs more memory than there is, even with {ECONOMIES[-1]} ({why}). Close other programs, "
                "set learning.memory_gib higher, or learn with a smaller model."
            )
        self.level += 1
        self._note(self.level, f"{ECONOMIES[self.level]}: {why}")


def held_bytes() -> int:
    """Main memory that this process holds for itself; not the files it maps, which the system may take back."""
    import psutil

    memory = psutil.Process().memory_info()
    return int(memory.rss - getattr(memory, "shared", 0))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out: Python's, torch's for any device, or an engine's."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    words = str(error).lower()
    if isinstance(error, ClawError):
        return any(mark in words for mark in (*_WORDS, "of memory for its weights"))
    return isinstance(error, RuntimeError) and any(mark in words for mark in _WORDS)


def in_words(error: BaseException) -> str:
    """One line of it, short."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:160]


def give_back() -> None:
    """Collect what is no longer used, and hand it back to the system."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    heap.give_back()
