"""Making torch behave on a processor that others use too. `prepare` comes before torch is imported.

It must never import torch at its top.
"""

from __future__ import annotations

import ctypes
import os
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 1 << 30


def prepare() -> None:
    """Set what OpenMP and the C allocator read once. No effect on what torch computes.

    Waiting threads sleep instead of spinning: while other programs run, spinning made a training step seven times
    slower on two cores, and on quiet ones it gains nothing that can be measured. Freed memory is kept for the next
    tensor: handing every large one back costs more than filling it.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("KMP_BLOCKTIME", "0")
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
