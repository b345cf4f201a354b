"""The virtual environment .venv and the stamp that says what is installed in it. Knows nothing of pip's output."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .remedies import BootstrapError, venv_failed

GIGABYTE = 1_000_000_000
CHAT_BYTES = int(1.5 * GIGABYTE)
LEARN_BYTES = 6 * GIGABYTE


@dataclass(frozen=True)
class Stamp:
    """What a finished installation left behind.

    Attributes:
        key: what it was made from, see `Environment.key`.
        extras: the extras that are installed.
        flags: CMAKE_ARGS that llama.cpp was asked to be built with.
    """

    key: str
    extras: frozenset[str]
    flags: str


class Environment:
    """The project's own virtual environment.

    Args:
        root: the folder with pyproject.toml; .venv lies in it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.stamp_file = self.folder / "claw-local-stamp.json"
        self.log = self.folder / "bootstrap.log"
        self.scratch = self.folder / "scratch"
        self.constraints = root / "packaging" / "constraints-cpu.txt"

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def key(self) -> str:
        """Changes when an installation must be looked at again: the requirements, the Python, the folder's place."""
        digest = hashlib.sha256()
        for file in (self.root / "pyproject.toml", self.constraints, self.folder / "pyvenv.cfg"):
            digest.update(file.read_bytes() if file.exists() else b"-")
            digest.update(b"\0")
        digest.update(os.fsencode(self.root))
        return digest.hexdigest()

    def read_stamp(self) -> Stamp | None:
        """The stamp of the last finished installation, or None if there is none or it cannot be read."""
        try:
            values = json.loads(self.stamp_file.read_text("utf-8"))
            return Stamp(str(values["key"]), frozenset(map(str, values["extras"])), str(values["flags"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_stamp(self, extras: Iterable[str], flags: str) -> None:
        """Record a finished installation; the file appears whole or not at all."""
        aside = self.stamp_file.with_suffix(".tmp")
        aside.write_text(json.dumps({"key": self.key(), "extras": sorted(extras), "flags": flags}, indent=2), "utf-8")
        os.replace(aside, self.stamp_file)

    def drop_stamp(self) -> None:
        """An installation begins: until it is finished, nothing is promised."""
        self.stamp_file.unlink(missing_ok=True)

    def missing(self, extras: Iterable[str]) -> frozenset[str] | None:
        """The extras that must still be installed; None if the environment itself must be set up again."""
        stamp = self.read_stamp()
        if stamp is None or stamp.key != self.key() or not self.python.exists():
            return None
        return frozenset(extras) - stamp.extras

    def pip_version(self) -> tuple[int, ...] | None:
        """Version of the environment's pip; None if the environment does not work."""
        try:
            done = subprocess.run(
                [str(self.python), "-m", "pip", "--version"], capture_output=True, text=True, timeout=60, check=True
            )
            numbers = done.stdout.split()[1].split(".")
        except (OSError, subprocess.SubprocessError, IndexError):
            return None
        return tuple(int(number) for number in numbers if number.isdigit())

    def make(self) -> None:
        """Make .venv afresh with the Python that runs this.

        Raises:
            BootstrapError: it could not be made; the message has the remedy.
        """
        command = [sys.executable, "-m", "venv", "--clear", str(self.folder)]
        done = subprocess.run(
            command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        if done.returncode != 0:
            raise BootstrapError(venv_failed(done.stdout, sys.version_info[:2], _system()))

    def check_space(self, extras: Iterable[str]) -> None:
        """Refuse early what cannot end well.

        Raises:
            BootstrapError: the disk has too little room for these extras.
        """
        needed = LEARN_BYTES if "train" in set(extras) else CHAT_BYTES
        free = shutil.disk_usage(self.root).free
        if free < needed:
            raise BootstrapError(
                f"The disk that holds {self.root} has {free / GIGABYTE:.1f} GB free; this needs about "
                f"{needed / GIGABYTE:.1f} GB. Free some space, then run the same command again."
            )


def _system() -> str:
    return {"win32": "Windows", "darwin": "Darwin"}.get(sys.platform, "Linux")
