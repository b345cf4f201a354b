"""Could the trainer run? torch, peft and bitsandbytes, each in a process of its own. Chatting needs none of them."""

from __future__ import annotations

import importlib.util

from ..idle import extra
from ..idle.vram import NOTHING
from .check import Check, python_command, tidy
from .child import Outcome, run_probe

PARTS = ("torch", "peft", "bitsandbytes")
TIMEOUT_S = 120.0


def learning_outcome(part: str) -> Outcome | None:
    """Run the probe of one part; None if it is not installed."""
    if importlib.util.find_spec(part) is None:
        return None
    return run_probe(part, timeout_s=TIMEOUT_S)


def check_learning(part: str, outcome: Outcome | None, *, learns_on: str = "") -> Check:
    """Judge how the probe of one part ended. `learns_on`: what a run would compute on, in words."""
    pip = f"{python_command()} -m pip install"
    if outcome is None:
        return Check(part, "warning", "not installed: learning needs it", extra.as_typed(extra.install_command()))
    if not outcome.worked:
        return Check(
            part,
            "problem",
            f"installed, but it does not work: {tidy(outcome.ending)}",
            f"{pip} --force-reinstall --no-deps {part}",
        )
    version = outcome.result.get("version", "")
    match part:
        case "torch" if learns_on.startswith(NOTHING):
            remedy = "Set learning.device to auto, or install a torch that was built for CUDA."
            return Check(part, "warning", f"{version}, learns on {learns_on}", remedy)
        case "torch":
            return Check(part, "ok", f"{version}, {f'learns on {learns_on}' if learns_on else 'works'}")
        case "peft":
            return Check(part, "ok", f"{version}, with transformers {outcome.result.get('transformers', '')}")
        case _:
            return Check(part, "ok", f"{version}, NF4 works")
