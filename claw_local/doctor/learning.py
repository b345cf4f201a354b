"""Could the trainer run? torch, peft and bitsandbytes, each in a process of its own. Chatting needs none of them."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

from ..idle import extra
from ..idle.vram import NOTHING
from ..language import _
from .check import Check, python_command, tidy
from .child import Outcome, run_probe

PARTS = ("torch", "peft", "bitsandbytes")
_QUICKEST_FIRST = ("torch", "bitsandbytes", "peft")
TIMEOUT_S = 120.0
"""For all of them in one process, and for each that is tried on its own after that one failed."""


def learning_outcomes() -> dict[str, Outcome | None]:
    """How the probe of each part ended; None: it is not installed.

    One process tries all of them, for most of the time goes into importing torch. Where that process fails, each part
    that it had not come to the end of is tried on its own, so that it is known which one it is; where it ran out of
    time, they are not tried again.
    """
    there = [part for part in _QUICKEST_FIRST if importlib.util.find_spec(part) is not None]
    shared = run_probe("together", *there, timeout_s=TIMEOUT_S) if there else None
    done = {} if shared is None else _worked(shared.output)
    found: dict[str, Outcome | None] = dict.fromkeys(PARTS)
    for part in there:
        if part in done:
            found[part] = Outcome(0, done[part])
        elif shared is not None and shared.returncode is None:
            found[part] = shared
        else:
            found[part] = run_probe(part, timeout_s=TIMEOUT_S)
    return found


def _worked(output: str) -> dict[str, dict[str, Any]]:
    """What the shared process said of each part that works."""
    found = {}
    for line in output.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and said.get("part") in PARTS:
            found[str(said.pop("part"))] = said
    return found


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
