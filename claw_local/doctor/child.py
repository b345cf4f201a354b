"""Runs what may crash or hang in a process of its own, and says how that ended. Knows nothing of what is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..language import _

PACKAGE_ROOT = Path(__file__).resolve().parents[2]
ILLEGAL_INSTRUCTION = (-4, 0xC000001D)  # killed by signal 4 (POSIX); STATUS_ILLEGAL_INSTRUCTION (Windows)


@dataclass(frozen=True)
class Outcome:
    """How a child process ended.

    Attributes:
        returncode: its exit status; negative: the signal that killed it; None: it ran past its time and was killed.
        result: the JSON object it printed last; empty if it printed none.
        said: the last line of what it printed otherwise, most often the error.
        output: all of what it printed.
        limit_s: how long it was given.
    """

    returncode: int | None
    result: dict[str, Any] = field(default_factory=dict)
    said: str = ""
    output: str = ""
    limit_s: float = 0.0

    @property
    def worked(self) -> bool:
        return self.returncode == 0

    @property
    def illegal_instruction(self) -> bool:
        return self.returncode in ILLEGAL_INSTRUCTION

    @property
    def ending(self) -> str:
        """How it failed, in words."""
        if self.returncode is None and self.limit_s:
            return _("it did not finish in {seconds:g} s", seconds=self.limit_s)
        if self.returncode is None:
            return _("it did not finish in time")
        if self.illegal_instruction:
            return _("it died of an illegal instruction")
        if self.returncode < 0:
            return _("it was killed by signal {number}", number=-self.returncode)
        return self.said or _("it ended with status {status} and said nothing", status=self.returncode)


def run_child(command: Sequence[str], *, timeout_s: float) -> Outcome:
    """Run a command to its end, or kill it after `timeout_s`. Never raises for what the command does."""
    search_path = [os.environ.get("PYTHONPATH", ""), str(PACKAGE_ROOT)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(part for part in search_path if part),
        "PYTHONUTF8": "1",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            encoding="utf-8",
            errors="replace",
            env=environment,
        )
    except subprocess.TimeoutExpired as late:
        said = late.stdout or ""
        output = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
        return Outcome(returncode=None, output=output, limit_s=timeout_s)
    except OSError as error:
        return Outcome(
            returncode=1,
            said=_("{command} could not be started: {error}", command=command[0], error=error.strerror or error),
        )
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    result = _json_object(lines[-1]) if lines else None
    said = lines[-1] if lines and result is None else ""
    return Outcome(returncode=done.returncode, result=result or {}, said=said, output=done.stdout)


def run_probe(name: str, *arguments: str, timeout_s: float) -> Outcome:
    """Run one probe of `claw_local.doctor.probe` with this Python."""
    return run_child([sys.executable, "-P", "-m", f"{__package__}.probe", name, *arguments], timeout_s=timeout_s)


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
