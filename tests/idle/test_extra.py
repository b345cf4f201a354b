"""What learning needs, and the command that brings it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from claw_local.idle import extra


def test_what_is_shut_out_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    assert "peft" in extra.missing()


def test_the_set_up_script_installs_where_its_environment_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(extra.__file__).resolve().parents[2]
    monkeypatch.setattr(sys, "prefix", str(root / ".venv"))
    command = extra.install_command()
    assert command[1:] == [str(root / "packaging" / "bootstrap.py"), "learn"]
    assert extra.as_typed(command).startswith("python3 ")


def test_elsewhere_pip_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert extra.as_typed(extra.install_command()) == f'{sys.executable} -m pip install "claw-local[train]"'
