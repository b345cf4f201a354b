"""Could the trainer run? torch, peft and bitsandbytes, each in a process of its own. Chatting needs none of them."""

from __future__ import annotations

import importlib.util

from ..idle import extra
from .check import Check, python_command, tidy
from .child import Outcome, run_probe

PARTS = ("torch", "peft", "bitsandbytes")
TIMEOUT_S = 120.0


def learning_outcome(part: str) -> Outcome | None:
    """Run the probe of one part; None if it is not installed."""
    if importlib.util.find_spec(part) is None:
        return None
    return run_probe(part, timeout_s=TIMEOUT_S)


def check_learning(part: str, outcome: Outcome | None) -> Check:
    """Judge how the probe of one part ended."""
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
        case "torch":
            return Check(part, "ok", f"{version}, on {outcome.result.get('device', 'cpu')}")
        case "peft":
            return Check(part, "ok", f"{version}, with transformers {outcome.result.get('transformers', '')}")
        case _:
            return Check(part, "ok", f"{version}, NF4 works")
