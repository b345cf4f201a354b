"""What bootstrap.py can be asked: chat, learn, test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .environment import Environment
from .install import Installer
from .progress import LiveLine
from .remedies import BootstrapError

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = {
    "chat": frozenset({"tiny"}),
    "learn": frozenset({"tiny", "train"}),
    "test": frozenset({"tiny", "train", "dev"}),
}
SWITCH = """
from claw_local.idle.learning import SWITCH
from claw_local.paths import locate
from claw_local.store import Store

paths = locate()
state = Store(paths).flags.get(SWITCH) if paths.database.is_file() else None
print("on" if state == "on" else "off")
"""
"""Says whether learning is on, in a Python that has the package."""
USAGE = """usage: python3 packaging/bootstrap.py chat  [options of claw-local chat]
       python3 packaging/bootstrap.py learn
       python3 packaging/bootstrap.py test  [options of pytest]

chat   sets up .venv with the embedded model and opens the chat
learn  adds what learning needs (torch, peft, bitsandbytes) to .venv
test   sets up everything and runs the checks and the tests; with options, only the tests
"""


def main(arguments: list[str]) -> int:
    """Run one verb; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE, end="")
        return 0
    if not arguments or arguments[0] not in EXTRAS:
        sys.stderr.write(f"There is no {arguments[0]!r} here.\n{USAGE}" if arguments else USAGE)
        return 2
    verb, rest = arguments[0], arguments[1:]
    if verb == "learn" and rest:
        sys.stderr.write("learn takes no options.\n" + USAGE)
        return 2
    environment = Environment(ROOT)
    line = LiveLine()
    try:
        Installer(environment, line).ensure(EXTRAS[verb], constrained=verb == "test")
    except BootstrapError as error:
        line.clear()
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        line.clear()
        sys.stderr.write(f"Set-up stopped: {error}. Mend that, then run the same command again.\n")
        return 1
    except KeyboardInterrupt:
        line.clear()
        sys.stderr.write("Stopped. Nothing is broken: the same command goes on from what is already there.\n")
        return 130
    python = str(environment.python)
    if verb == "chat":
        return hand_over([python, "-m", "claw_local", "chat", *rest])
    if verb == "test":
        return hand_over([python, str(ROOT / "packaging" / "check.py"), *rest])
    command = environment.python.parent / "claw-local"
    print(f"What learning needs is installed.{'' if not _is_off(python) else _how_on(os.path.relpath(command))}")
    return 0


def _how_on(command: str) -> str:
    return f" Whether your chats teach is up to you: {command} learn on"


def _is_off(python: str) -> bool:
    """Whether learning is known to be off. False too where the store cannot be opened without asking anybody."""
    try:
        asked = subprocess.run(
            [python, "-P", "-c", SWITCH], check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.stdout.strip() == b"off"


def hand_over(command: list[str]) -> int:
    """Become that command; on Windows, where a process cannot, run it and pass its exit status on."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execv(command[0], command)
    try:
        return subprocess.call(command)
    except KeyboardInterrupt:
        return 130
