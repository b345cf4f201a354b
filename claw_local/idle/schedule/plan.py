"""What the system's timer is to call, and what any of the three timers can do. It must never touch the system."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass, field
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from ...paths import HOME_VARIABLE, Paths

EVERY_S = 300
"""Between two calls."""
NAME = "claw-local-learn"
_PLACES = ("XDG_DATA_HOME", "XDG_CONFIG_HOME")
"""Variables that say where everything is kept, if they are set."""


@dataclass(frozen=True)
class Plan:
    """What is called.

    Attributes:
        name: of the timer; each home folder has its own.
        command: program and arguments, whole paths.
        environment: variables that it needs beside those that the system gives it.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scheduled:
    """How it stands.

    Attributes:
        installed: whether the timer is there; active: whether it is running.
        current: whether it calls what it would call if it were installed now.
        files: the files that it consists of.
        next_at: when it calls next, in the system's own words; "" if that is not known.
        system: "systemd", "launchd" or "Windows".
    """

    system: str
    name: str
    installed: bool
    active: bool
    current: bool
    files: tuple[Path, ...]
    next_at: str = ""


class Scheduling(Protocol):
    """One system's timer."""

    plan: Plan

    def install(self) -> Scheduled:
        """Set it up, or bring it up to date. Raises LearnError: the system refused; nothing is left behind then."""

    def status(self) -> Scheduled:
        """How it stands."""

    def remove(self) -> bool:
        """Take it away with all its files; a run that it began leaves first. Returns whether there was one. Raises
        LearnError."""


def make_plan(paths: Paths, *, executable: str = sys.executable) -> Plan:
    """What is to be called for this home folder, by this Python."""
    command = [executable, "-P", "-m", "claw_local", "learn", "tick"]
    environment = {name: os.environ[name] for name in _PLACES if os.environ.get(name)}
    name = NAME
    if os.environ.get(HOME_VARIABLE):
        command += ["--home", str(paths.data.absolute())]
        name += "-" + hashlib.sha256(str(paths.data.absolute()).encode()).hexdigest()[:8]
    if not _found_without_help(executable):
        homes = [spec.origin for spec in map(find_spec, ("claw_local", "claw_trainer")) if spec and spec.origin]
        environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(str(Path(home).parents[1]) for home in homes))
    return Plan(name, tuple(command), environment)


def template(name: str) -> str:
    """A unit as it is shipped, with $NAMES where something is filled in."""
    return (resources.files("claw_local") / "data" / "schedule" / name).read_text("utf-8")


def _found_without_help(executable: str) -> bool:
    """Whether that Python finds the package wherever it is started: as an installed one does."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    look = "import importlib.util as u, sys; sys.exit(u.find_spec('claw_local') is None)"
    try:
        done = subprocess.run(
            [executable, "-P", "-c", look], env=environment, cwd=Path(executable).anchor, check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
