"""Which model to fetch for this machine: a short list, by memory and GPU. It must never reach the network.

The list is data/models.json: files that exist, under licences that allow any use.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ..language import N_, _
from .models import LEARNABLE

NVIDIA_TIMEOUT_S = 5.0
APPLE_GPU_SHARE = 0.66
"""Share of the memory that macOS lets the GPU hold."""
OWN_NEED = 700_000_000
"""Bytes beside the file: 4096 tokens of context, Python and the app."""
MEMORY_SHARE = 0.7
"""Share of the main memory that a model may fill, so that other programs keep theirs."""
PATIENCE_BYTES = 2_600_000_000
"""Bytes of weights a word may cost without a GPU: about five words a second on an everyday computer."""

ABOUT = (
    N_("English; quick on any machine, and it knows little."),
    N_("Many languages; quick on any machine, for short and simple answers."),
    N_("English; good answers for its size."),
    N_("Many languages; a good all-rounder for a small machine."),
    N_("Many languages; strong for its size, and answers without thinking aloud first."),
    N_("Many languages; good at most things."),
    N_("Many languages; thinks before it answers."),
    N_("Many languages; very good answers."),
    N_("Many languages; very good answers, thinks before them."),
    N_("Many languages; excellent answers, and quick, since a tenth of it works on each word."),
)
"""What models.json says of the models."""


@dataclass(frozen=True)
class Memory:
    """What this machine has, in bytes. `gpu`: 0 if llama.cpp uses none here."""

    main: int
    gpu: int = 0

    @property
    def for_model(self) -> int:
        """The largest model file that runs well here."""
        return max(self.gpu - OWN_NEED, int(self.main * MEMORY_SHARE) - OWN_NEED)


@dataclass(frozen=True)
class Recommended:
    """A model worth fetching.

    Attributes:
        repo, file: where it is on the Hugging Face Hub; `models pull REPO:FILE` fetches it.
        learns: whether it can be trained here, not only chatted with.
        why: a sentence or two for a person.
    """

    name: str
    repo: str
    file: str
    size_bytes: int
    licence: str
    learns: bool
    why: str


def this_memory() -> Memory:
    """What this machine has. Takes a moment where it has to ask a driver."""
    import psutil

    from ._native import can_use_gpu

    main = int(psutil.virtual_memory().total)
    return Memory(main, gpu_bytes(main) if can_use_gpu() else 0)


def gpu_bytes(main: int) -> int:
    """Memory of the largest GPU, in bytes; 0 if none is known."""
    if platform.system() == "Darwin":
        return int(main * APPLE_GPU_SHARE) if platform.machine() == "arm64" else 0
    return max(_nvidia_bytes(), _amd_bytes(Path("/sys/class/drm")))


def recommend(memory: Memory) -> list[Recommended]:
    """Models for a machine, the best choice first; where nothing fits, the smallest."""
    entries = json.loads(resources.files("claw_local.data").joinpath("models.json").read_text("utf-8"))
    fitting = [entry for entry in entries if entry["size_bytes"] <= memory.for_model] or entries[:1]
    fitting.sort(key=lambda entry: (_is_quick(entry, memory), entry["size_bytes"]), reverse=True)
    # This assistant is chosen because it learns: the largest that can, and is quick, comes before larger ones. What
    # thinks aloud first is slow to answer and slow to learn from, so it is nobody's first model.
    learning = [entry for entry in fitting if entry["architecture"] in LEARNABLE and not entry.get("thinks")]
    order = [*learning[:1], *(entry for entry in fitting if entry is not learning[0])] if learning else fitting
    return [_recommended(entry, memory) for entry in order]


def _is_quick(entry: dict[str, Any], memory: Memory) -> bool:
    size, active = int(entry["size_bytes"]), float(entry["active_share"])
    return size <= memory.gpu - OWN_NEED or size * active <= PATIENCE_BYTES


def _recommended(entry: dict[str, Any], memory: Memory) -> Recommended:
    learns = entry["architecture"] in LEARNABLE
    words = [_(entry["about"])]
    if entry["size_bytes"] <= memory.gpu - OWN_NEED:
        words.append(_("Fits in the GPU's memory."))
    else:
        words.append(_("Fits in memory.") if entry["size_bytes"] <= memory.for_model else _("May not fit in memory."))
    if not _is_quick(entry, memory):
        words.append(_("Slow without a GPU."))
    words.append(_("Can learn from you.") if learns else _("Chats, but cannot be trained yet."))
    return Recommended(
        name=entry["name"],
        repo=entry["repo"],
        file=entry["file"],
        size_bytes=entry["size_bytes"],
        licence=entry["licence"],
        learns=learns,
        why=" ".join(words),
    )


def _nvidia_bytes() -> int:
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0
    try:
        done = subprocess.run(
            [program, "--query-gpu=memory.total", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=NVIDIA_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    sizes = [int(line) for line in done.stdout.split() if line.isdecimal()]
    return max(sizes, default=0) * 2**20


def _amd_bytes(folder: Path) -> int:
    sizes = [0]
    for file in folder.glob("card*/device/mem_info_vram_total"):
        try:
            sizes.append(int(file.read_text()))
        except (OSError, ValueError):
            continue
    return max(sizes)
