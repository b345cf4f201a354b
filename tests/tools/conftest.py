"""A workspace with a few files, and the tools that work in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_local.paths import Paths
from claw_local.settings import ToolsSettings
from claw_local.tools.base import Call, Prepared, Result
from claw_local.tools.toolbox import Toolbox


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The workspace; beside it lies what must never be reached."""
    place = tmp_path / "work"
    (place / "sub").mkdir(parents=True)
    (place / "a.txt").write_text("one\ntwo\nthree\n", "utf-8")
    (place / "sub" / "b.txt").write_text("deep\n", "utf-8")
    (tmp_path / "outside.txt").write_text("SECRET\n", "utf-8")
    return place


class Tried:
    """Prepares and does what is called at once, as if the person said yes."""

    def __init__(self, box: Toolbox) -> None:
        self.box = box

    def prepare(self, name: str, **arguments: object) -> Prepared:
        return self.box.prepare(Call(name, dict(arguments)))

    def __call__(self, name: str, **arguments: object) -> Result:
        return self.box.perform(self.prepare(name, **arguments))


@pytest.fixture
def tried(root: Path, tmp_path: Path) -> Tried:
    home = tmp_path / "home"
    home.mkdir()
    return Tried(Toolbox(root, Paths(data=home, config=home), ToolsSettings(timeout_s=5.0)))
