"""How busy an NVIDIA GPU is. Others are not asked: a run uses none of them."""

from __future__ import annotations

from ...language import N_, _
from .commands import NoAnswer, NotThere, ask
from .reading import Reading, unknown

ABSENT = N_("no NVIDIA GPU here")


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
