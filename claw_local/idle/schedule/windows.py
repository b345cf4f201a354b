"""A task of Windows' Task Scheduler. Format: Task Scheduler Schema (MS-TSCH, 2.5)."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from pathlib import Path, PureWindowsPath
from xml.etree import ElementTree

from ...errors import LearnError
from ...language import _
from .calling import call
from .plan import EVERY_S, Plan, Scheduled, template

NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"


class TaskScheduler:
    """`schtasks`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def xml(self) -> str:
        """The task. Raises LearnError: it cannot be called from there."""
        if "PYTHONPATH" in self.plan.environment:
            raise LearnError(
                _("A task can only call an installed claw-local. Install it first: pip install . in its folder.")
            )
        ElementTree.register_namespace("", NAMESPACE)
        task = ElementTree.fromstring(template("claw-local-learn.xml"))
        program, *arguments = self.plan.command
        for name, text in {
            "Exec/Command": _without_window(program),
            "Exec/Arguments": subprocess.list2cmdline(arguments),
            "Repetition/Interval": f"PT{EVERY_S // 60}M",
        }.items():
            found = task.find(".//" + "/".join(f"{{{NAMESPACE}}}{part}" for part in name.split("/")))
            assert found is not None, f"the template has no {name}"
            found.text = text
        return '<?xml version="1.0" encoding="UTF-16"?>\n' + ElementTree.tostring(task, encoding="unicode")

    def install(self) -> Scheduled:
        """See `Scheduling`."""
        with tempfile.TemporaryDirectory(prefix="claw-local-") as folder:
            file = Path(folder) / "task.xml"
            file.write_text(self.xml(), "utf-16")
            call("schtasks", "/Create", "/TN", self.plan.name, "/XML", str(file), "/F")
        return self.status()

    def status(self) -> Scheduled:
        """See `Scheduling`."""
        shown = ""
        with contextlib.suppress(LearnError):
            shown = call("schtasks", "/Query", "/TN", self.plan.name, "/XML")
        installed = bool(shown)
        return Scheduled(
            system="Windows",
            name=self.plan.name,
            installed=installed,
            active=installed and "<Enabled>false</Enabled>" not in shown,
            current=installed and _calls(shown) == _calls(self.xml()),
            files=(),
        )

    def remove(self) -> bool:
        """See `Scheduling`."""
        there = self.status().installed
        if there:
            with contextlib.suppress(LearnError):
                call("schtasks", "/End", "/TN", self.plan.name)
            call("schtasks", "/Delete", "/TN", self.plan.name, "/F")
        return there


def _without_window(program: str) -> str:
    """pythonw.exe beside python.exe, if it is there: it opens no black window every few minutes."""
    path = PureWindowsPath(program)
    silent = path.with_name("pythonw.exe")
    return str(silent) if path.name.lower() == "python.exe" and Path(silent).is_file() else program


def _calls(xml: str) -> tuple[str | None, str | None]:
    """Which program a task calls, and with what."""
    try:
        task = ElementTree.fromstring(xml.partition("?>")[2] if xml.lstrip().startswith("<?xml") else xml)
    except ElementTree.ParseError:
        return None, None
    command, arguments = (task.find(f".//{{{NAMESPACE}}}{name}") for name in ("Command", "Arguments"))
    return (command.text if command is not None else None), (arguments.text if arguments is not None else None)
