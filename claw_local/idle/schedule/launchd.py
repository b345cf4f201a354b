"""A launchd agent of the person's. Format: launchd.plist(5)."""

from __future__ import annotations

import contextlib
import os
import plistlib
from pathlib import Path
from typing import Any

from ...errors import LearnError
from ...files import write_whole
from ...language import _
from .calling import accepts, call
from .plan import EVERY_S, Plan, Scheduled, template


class Launchd:
    """`launchctl`, in the person's graphical session."""

    def __init__(self, plan: Plan, *, folder: Path | None = None) -> None:
        self.plan = plan
        self.label = f"local.{plan.name}"
        self.file = (folder or Path.home() / "Library" / "LaunchAgents") / f"{self.label}.plist"

    @property
    def _domain(self) -> str:
        return f"gui/{os.getuid()}"

    def agent(self) -> dict[str, Any]:
        """The agent's keys."""
        keys: dict[str, Any] = plistlib.loads(template("claw-local-learn.plist").encode())
        keys.update(Label=self.label, ProgramArguments=list(self.plan.command), StartInterval=EVERY_S)
        if self.plan.environment:
            keys["EnvironmentVariables"] = dict(self.plan.environment)
        return keys

    def install(self) -> Scheduled:
        """See `Scheduling`."""
        try:
            accepts("launchctl", "bootout", f"{self._domain}/{self.label}")  # What was there before.
            self.file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.file, plistlib.dumps(self.agent()))
            call("launchctl", "bootstrap", self._domain, str(self.file))
        except (LearnError, OSError) as error:
            with contextlib.suppress(LearnError):
                self.remove()
            if isinstance(error, LearnError):
                raise
            raise LearnError(
                _("{file} cannot be written: {error}.", file=self.file, error=error.strerror or error)
            ) from error
        return self.status()

    def status(self) -> Scheduled:
        """See `Scheduling`."""
        installed = self.file.is_file()
        return Scheduled(
            system="launchd",
            name=self.label,
            installed=installed,
            active=installed and accepts("launchctl", "print", f"{self._domain}/{self.label}"),
            current=installed and self._keys() == self.agent(),
            files=(self.file,) if installed else (),
        )

    def remove(self) -> bool:
        """See `Scheduling`. bootout sends the run's program SIGTERM, which lets it leave."""
        there = self.file.exists()
        if there:
            accepts("launchctl", "bootout", f"{self._domain}/{self.label}")
        try:
            self.file.unlink(missing_ok=True)
        except OSError as error:
            raise LearnError(
                _(
                    "{file} cannot be removed: {error}. Remove it by hand.",
                    file=self.file,
                    error=error.strerror or error,
                )
            ) from error
        return there

    def _keys(self) -> Any:
        try:
            return plistlib.loads(self.file.read_bytes())
        except (OSError, ValueError, plistlib.InvalidFileException):
            return None
