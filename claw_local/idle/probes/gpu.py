"""How busy the NVIDIA GPUs are, and how much of their memory is free. Others are not asked: a run uses none of them."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace

from ...errors import ClawError
from ...language import N_, _
from .commands import NoAnswer, NotThere, ask
from .reading import Reading, unknown

ABSENT = N_("no NVIDIA GPU here")


@dataclass(frozen=True)
class Card:
    """One GPU. `number`: as torch counts them, in the order of the bus; `free`, `total`: bytes of its memory."""

    number: int
    name: str
    free: int
    total: int


def busiest(program: str = "nvidia-smi") -> Reading[float]:
    """Share of the busiest GPU's time in use, 0 to 1; unknown without a GPU. Source: nvidia-smi."""
    try:
        text = ask(program, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits")
    except NotThere:
        return unknown(_(ABSENT))
    except NoAnswer as error:
        return unknown(str(error))
    shares = []
    for line in text.splitlines():
        try:
            shares.append(float(line.strip()) / 100.0)
        except ValueError:  # "[N/A]": some cards do not tell.
            continue
    return Reading(max(shares)) if shares else unknown(_("the GPU does not tell how busy it is"))


def present(program: str = "nvidia-smi") -> bool:
    """Whether there is an NVIDIA driver to ask. Quick."""
    return shutil.which(program) is not None


def cards(program: str = "nvidia-smi") -> list[Card]:
    """The GPUs this program may use, as CUDA_VISIBLE_DEVICES has them; none without one. Source: nvidia-smi.

    Raises:
        ClawError: nvidia-smi is there, and failed or did not answer.
    """
    try:
        text = ask(program, "--query-gpu=uuid,memory.free,memory.total,name", "--format=csv,noheader,nounits")
    except NotThere:
        return []
    except NoAnswer as error:
        raise ClawError(f"{error}; reinstall the NVIDIA driver if there is a GPU") from error
    found = []
    for number, line in enumerate(text.splitlines()):
        parts = [part.strip() for part in line.split(",", 3)]
        try:
            found.append((parts[0], Card(number, parts[3], int(parts[1]) << 20, int(parts[2]) << 20)))
        except (ValueError, IndexError):  # "[N/A]": a card that shares the machine's memory.
            continue
    return _visible(found, os.environ.get("CUDA_VISIBLE_DEVICES"))


def _visible(found: list[tuple[str, Card]], chosen: str | None) -> list[Card]:
    """Those that CUDA_VISIBLE_DEVICES leaves, numbered as it does: its first unknown entry ends the list."""
    if chosen is None:
        return [card for _, card in found]
    left: list[Card] = []
    for entry in (part.strip() for part in chosen.split(",")):
        if entry.isdigit():
            meant = [card for _, card in found if card.number == int(entry)]
        else:
            meant = [card for uuid, card in found if entry and uuid.startswith(entry)]
        if len(meant) != 1:
            break
        left.append(replace(meant[0], number=len(left)))
    return left
