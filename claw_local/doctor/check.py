"""What one check found, and what all of them mean together. Must never run anything."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

State = Literal["ok", "warning", "problem"]

CHAT_CRITICAL = frozenset({"python", "settings", "folder", "disk", "database", "engine", "model", "memory"})


@dataclass(frozen=True)
class Check:
    """One finding.

    Attributes:
        name: what was looked at: "python", "engine", "torch", ...
        state: "ok"; "warning": something works less well or not yet; "problem": it does not work.
        detail: what was found, one line.
        remedy: what to do; "" where there is nothing to do.
    """

    name: str
    state: State
    detail: str
    remedy: str = ""


def exit_code(found: Iterable[Check]) -> int:
    """1 when chatting would not work, else 0. Learning that does not work is a problem, but not of chatting."""
    return int(any(check.state == "problem" and check.name in CHAT_CRITICAL for check in found))


def as_json(found: Iterable[Check]) -> dict[str, Any]:
    """{"ok": whether chatting works, "checks": [{"name", "state", "detail", "remedy"}, ...]}"""
    listed = list(found)
    return {
        "ok": exit_code(listed) == 0,
        "checks": [
            {"name": check.name, "state": check.state, "detail": check.detail, "remedy": check.remedy}
            for check in listed
        ],
    }


def from_error(name: str, error: Exception, otherwise: str) -> Check:
    """A problem from an error's message: its first sentence is the finding, the rest the remedy (or `otherwise`)."""
    detail, rest = first_sentence(tidy(error))
    return Check(name, "problem", detail, rest or otherwise)


def first_sentence(text: str) -> tuple[str, str]:
    """A message's first sentence without its full stop, and the rest; "" if there is none."""
    detail, *rest = re.split(r"\.\s+(?=[A-ZÀ-Þ`])|。", text, maxsplit=1)
    return detail.rstrip("."), rest[0].strip() if rest else ""


def tidy(text: object) -> str:
    """The text with the home folder's path as ~: what the doctor says is often pasted for others to read."""
    home = str(Path.home())
    return str(text).replace(home, "~") if len(home) > 1 else str(text)


def python_command() -> str:
    """How to start this very Python from a shell: from here if it lies below, else in full."""
    path = Path(sys.executable)
    if path.is_relative_to(Path.cwd()):
        return os.path.join(".", path.relative_to(Path.cwd()))
    return tidy(path)


def size(count: float) -> str:
    """Bytes for people: 92 MB, 1.5 GB."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
