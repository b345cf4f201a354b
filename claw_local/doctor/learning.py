"""Could the trainer run? torch, peft and bitsandbytes, each in a process of its own. Chatting needs none of them."""

from __future__ import annotations

import importlib.util

from ..idle import extra
from ..idle.vram import NOTHING
from ..language import _
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
        remedy = tidy(extra.as_typed(extra.install_command()))
        return Check(part, "warning", _("not installed: learning needs it"), remedy)
    if not outcome.worked:
        return Check(
            part,
            "problem",
            _("installed, but it does not work: {ending}", ending=tidy(outcome.ending)),
            " ".join((pip, "--force-reinstall --no-deps", part)),
        )
    version = outcome.result.get("version", "")
    match part:
        case "torch" if learns_on.startswith(_(NOTHING)):
            remedy = _("Set learning.device to auto, or install a torch that was built for CUDA.")
            return Check(
                part, "warning", _("{version}, learns on {learns_on}", version=version, learns_on=learns_on), remedy
            )
        case "torch":
            told = {"version": version, "learns_on": learns_on}
            return Check(
                part,
                "ok",
                _("{version}, learns on {learns_on}", **told) if learns_on else _("{version}, works", **told),
            )
        case "peft":
            return Check(
                part,
                "ok",
                _(
                    "{version}, with transformers {other}",
                    version=version,
                    other=outcome.result.get("transformers", ""),
                ),
            )
        case _:
            return Check(part, "ok", _("{version}, NF4 works", version=version))
