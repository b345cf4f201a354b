"""A systemd user timer and the service it starts. Formats: systemd.timer(5), systemd.service(5), systemd.syntax(7)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from string import Template

from ...errors import LearnError
from ...files import write_whole
from ...language import _
from .calling import accepts, call
from .plan import EVERY_S, Plan, Scheduled, template


class Systemd:
    """`systemctl --user`."""

    def __init__(self, plan: Plan, *, environment: Mapping[str, str] = os.environ) -> None:
        self.plan = plan
        config = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        self.folder = Path(config) / "systemd" / "user"
        self.service = self.folder / f"{plan.name}.service"
        self.timer = self.folder / f"{plan.name}.timer"

    def texts(self) -> dict[Path, str]:
        """The files and what stands in them."""
        environment = [f"Environment={quoted(f'{name}={value}')}" for name, value in self.plan.environment.items()]
        words = {
            "COMMAND": " ".join(quoted(word, command=True) for word in self.plan.command),
            "ENVIRONMENT": "\n".join(environment),
            "EVERY_S": str(EVERY_S),
            "SERVICE": self.service.name,
        }
        texts = {
            self.service: Template(template("claw-local-learn.service")).substitute(words),
            self.timer: Template(template("claw-local-learn.timer")).substitute(words),
        }
        return {file: text.replace("\n\n\n", "\n\n") for file, text in texts.items()}

    def install(self) -> Scheduled:
        """See `Scheduling`."""
        if not accepts("systemctl", "--user", "show-environment"):
            raise LearnError(
                _(
                    "No systemd of your own runs here (`systemctl --user` does not answer), so "
                    "there is no timer to set up. The open app learns too."
                )
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for file, text in self.texts().items():
                write_whole(file, text.encode())
            call("systemctl", "--user", "daemon-reload")
            call("systemctl", "--user", "enable", self.timer.name)
            call("systemctl", "--user", "restart", self.timer.name)
        except (LearnError, OSError) as error:
            with contextlib.suppress(LearnError):
                self.remove()
            if isinstance(error, LearnError):
                raise
            raise LearnError(
                _("{folder} cannot be written: {error}.", folder=self.folder, error=error.strerror or error)
            ) from error
        return self.status()

    def status(self) -> Scheduled:
        """See `Scheduling`."""
        installed = self.timer.is_file() and self.service.is_file()
        next_at = ""
        if installed:
            with contextlib.suppress(LearnError):
                shown = call("systemctl", "--user", "list-timers", "--all", "--no-legend", "--full", self.timer.name)
                next_at = " ".join(shown.split()[:4]) if shown.strip() else ""
        return Scheduled(
            system="systemd",
            name=self.plan.name,
            installed=installed,
            active=installed and accepts("systemctl", "--user", "is-active", "--quiet", self.timer.name),
            current=installed and all(_says(file, text) for file, text in self.texts().items()),
            files=(self.service, self.timer) if installed else (),
            next_at=next_at if next_at[:1].isalpha() else "",
        )

    def remove(self) -> bool:
        """See `Scheduling`. A home without systemd has its files removed all the same."""
        there = self.timer.exists() or self.service.exists()
        answers = accepts("systemctl", "--user", "show-environment")
        if answers and there:
            accepts("systemctl", "--user", "disable", "--now", self.timer.name)
            accepts("systemctl", "--user", "stop", self.service.name)
        wants = self.folder / "timers.target.wants"
        for file in (wants / self.timer.name, self.timer, self.service):
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise LearnError(
                    _("{file} cannot be removed: {error}. Remove it by hand.", file=file, error=error.strerror or error)
                ) from error
        if answers and there:
            accepts("systemctl", "--user", "daemon-reload")
            accepts("systemctl", "--user", "reset-failed", self.service.name)
        for folder in (wants, self.folder, self.folder.parent):
            with contextlib.suppress(OSError):  # It is not there, or holds something else.
                folder.rmdir()
        return there


def quoted(word: str, *, command: bool = False) -> str:
    """A word as it stands in a unit: in quotes, with what systemd would read as something else escaped.

    Args:
        command: whether it stands in a command line, where $ begins a variable.
    """
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n").replace("\t", "\\t")
    return f'"{text.replace("$", "$$") if command else text}"'


def _says(file: Path, text: str) -> bool:
    try:
        return file.read_text("utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False
