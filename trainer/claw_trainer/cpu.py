"""Making torch behave on a processor that others use too. `prepare` comes before torch is imported.

It must never import torch at its top.
"""

from __future__ import annotations

import ctypes
import os
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 1 << 30
SPINS = "10000"
"""About 30 microseconds: longer than llama.cpp's threads wait for one another on free cores."""


def prepare() -> None:
    """Set what OpenMP and the C allocator read once. No effect on what torch computes.

    Waiting threads spin for a moment, then sleep. Endless spinning made a training step seven times slower on two cores
    that other programs used too; sleeping at once made llama.cpp, which shares the OpenMP library and meets hundreds of
    times a token, 2.5 times slower. Freed memory is kept for the next tensor: handing every large one back costs more
    than filling it.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    os.environ.setdefault("KMP_BLOCKTIME", "1")
    if sys.platform == "linux":
        try:
            mallopt = ctypes.CDLL("libc.so.6").mallopt
        except (OSError, AttributeError):
            return  # another C library: slower, not wrong
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


def choose_matmul(*, exact: bool) -> None:
    """Choose how this process's float32 matrices are multiplied.

    Where the processor multiplies bfloat16 in hardware, the products' inputs are rounded to it and summed in float32:
    two to four times as fast, and the rounding is smaller than that of the quantised weights.

    Args:
        exact: multiply in float32 everywhere.
    """
    import torch

    has_bf16 = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    torch.set_float32_matmul_precision("medium" if has_bf16 and not exact else "highest")
