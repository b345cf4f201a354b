"""How a small update survives in coarse weights. It must never know which weight it is, or whose update.

An adapter moves a weight by far less than the steps between the values that a block of 4 bits can hold. Rounded to the
nearest, nearly all of it would be lost. So a weight is moved by one whole step with the probability that makes the mean
right (stochastic rounding): what is added is the update, plus noise that has no direction, a few hundredths of what the
quantisation itself put there. Scales stay as they are. The draws are the same every time. Blocks whose update is larger
than that are made afresh.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ..engine.gguf_file import BLOCKS
from . import blocks

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]
    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]

T = TypeVar("T", bound=Any)

MOST_STEPS = 0.5
"""Mean size of a block's update, in steps, above which the block is made afresh."""
PLAIN = frozenset({0, 1, 30})
"""F32, F16, BF16: fine enough that rounding to the nearest loses nothing."""


@dataclass(frozen=True)
class Codes:
    """Where the bits of each value's code stand in a block, found by trying.

    Attributes:
        kind: the ggml type.
        bits: [k, n] place of bit k of value n's code in the block, lowest bit first; bytes are read lowest bit first.
        signed: whether the highest bit makes a code smaller, as in two's complement.
        even: whether all steps of a value are of one size.
    """

    kind: int
    bits: Ints
    signed: bool
    even: bool

    @property
    def highest(self) -> int:
        return (1 << len(self.bits)) - 1

    def level(self, old: Bytes, code: int) -> Array:
        """[m, n] what every value of the blocks [m, bytes] would be with this code."""
        import numpy as np

        size, count = BLOCKS[self.kind][1], self.bits.shape[1]
        filled = np.zeros(8 * size, np.uint8)
        for place, where in enumerate(self.bits):
            filled[where] = self._raw(code) >> place & 1
        mask = np.zeros(8 * size, np.uint8)
        mask[self.bits] = 1
        packed, masked = (np.packbits(bits, bitorder="little") for bits in (filled, mask))
        return blocks.undo(old & ~masked | packed, self.kind, count)

    def around(self, old: Bytes, values: Array) -> tuple[Ints, Array, Array]:
        """For the values [m, n] of blocks [m, bytes]: their codes, and what one code more and one less would add; 0 at
        the end of the codes."""
        import numpy as np

        if self.even:
            low = self.level(old, 0)
            step = (self.level(old, self.highest) - low) / np.float32(self.highest)
            now = np.rint((values - low) / np.where(step == 0, np.inf, step)).astype(np.int64)
            zero = np.float32(0)
            return now, np.where(now < self.highest, step, zero), np.where(now > 0, -step, zero)
        levels = np.stack([self.level(old, code) for code in range(self.highest + 1)])  # [codes, m, n]
        now = np.abs(levels - values).argmin(0)
        up, down = (
            np.take_along_axis(levels, np.clip(now + by, 0, self.highest)[None], 0)[0] - values for by in (1, -1)
        )
        return now, up, down

    def put(self, data: Bytes, rows: Ints, places: Ints, codes: Ints) -> None:
        """Write codes of single values, [j] blocks and places in them, into blocks [m, bytes]."""
        import numpy as np

        raw = self._raw(codes)
        for place, where in enumerate(self.bits):
            byte, bit = where[places] >> 3, (where[places] & 7).astype(np.uint8)
            # Two values may share a byte: `at` takes one after the other.
            np.bitwise_and.at(data, (rows, byte), ~(np.uint8(1) << bit))
            np.bitwise_or.at(data, (rows, byte), (raw >> place & 1).astype(np.uint8) << bit)

    def _raw(self, code: T) -> T:
        """Codes, which are in the order of the values, as they are written."""
        raw: T = code ^ (1 << (len(self.bits) - 1)) if self.signed else code
        return raw


class Rounding:
    """Makes the rows of one weight.

    Args:
        kind: the ggml type to write.
        keeps_grid: whether the rows come from blocks of this very type.
        name: the weight's; it begins the draws.
    """

    def __init__(self, kind: int, *, keeps_grid: bool, name: str) -> None:
        import numpy as np

        self._kind = kind
        self._codes = codes_of(kind) if keeps_grid and kind not in PLAIN else None
        self._random = np.random.default_rng(zlib.crc32(name.encode()))

    def made(self, data: Bytes, values: Array, update: Array) -> Bytes:
        """Blocks of values + update.

        Args:
            data: the blocks that the values come from.
            values, update: [rows, length].
        """
        import numpy as np

        if self._codes is None:
            return blocks.make(values + update, self._kind)
        count, size = BLOCKS[self._kind]
        old, values, wanted = data.reshape(-1, size), values.reshape(-1, count), update.reshape(-1, count)
        now, up, down = self._codes.around(old, values)
        # A negative scale turns the order round; at the end of the codes there is no step to take.
        goes_up = np.where(up != 0, up > 0, down < 0) == (wanted > 0)
        step = np.abs(np.where(goes_up, up, down))
        share = np.abs(wanted) / np.where(step > 0, step, np.inf)
        rows, places = np.nonzero(self._random.random(share.shape, np.float32) < share)
        made = old.copy()
        self._codes.put(made, rows, places, now[rows, places] + np.where(goes_up[rows, places], 1, -1))
        steps = np.abs(wanted) / np.maximum(np.maximum(np.abs(up), np.abs(down)), np.float32(1e-30))
        afresh = (steps.mean(1) > MOST_STEPS) | (steps.max(1) > 1)
        if afresh.any():
            made[afresh] = blocks.make(values[afresh] + wanted[afresh], self._kind)
        return made


@cache
def codes_of(kind: int) -> Codes | None:
    """Where the codes of a type stand; None: its values share bits, or its blocks cannot be made here.

    Each bit of one block is turned over: a bit of one value's code changes that value alone, and the higher it is the
    more; those of scales change many.
    """
    import numpy as np

    count, size = BLOCKS[kind]
    try:
        some = np.random.default_rng(1).standard_normal((1, count)).astype(np.float32)
        block = blocks.make(some, kind)  # [1, bytes]
        plain = np.unpackbits(block, axis=1, bitorder="little")
        turned = np.packbits(plain ^ np.eye(8 * size, dtype=np.uint8), axis=1, bitorder="little")
        with np.errstate(all="ignore"):
            changes = blocks.undo(turned, kind, count) - blocks.undo(block, kind, count)  # [bits, n]
    except (blocks.CannotMake, NotImplementedError, ValueError, KeyError):
        return None
    alone = np.flatnonzero((changes != 0).sum(1) == 1)
    whose = (changes[alone] != 0).argmax(1)
    many = np.bincount(whose, minlength=count)
    if many.min() != many.max() or many[0] == 0:
        return None
    # What setting the bit adds: one that was set was turned off.
    adds = changes[alone, whose] * (1 - 2.0 * plain[0, alone])
    order = np.lexsort((np.abs(adds), whose)).reshape(count, -1).T  # [k, n]
    ratios = adds[order] / adds[order[0]]
    signed = bool((ratios[-1] < 0).all())
    if (ratios[:-1] < 0).any() or (not signed and (ratios[-1] < 0).any()):
        return None
    even = np.allclose(np.abs(ratios), 2.0 ** np.arange(len(ratios))[:, None], rtol=0.01)
    return Codes(kind, alone[order], signed, bool(even))
