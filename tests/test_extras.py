"""The command that brings an extra is one that works as it stands: for the very Python that runs, in any shell."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import sys

import pytest

from claw_local import extras


def test_the_command_names_this_python_whose_environment_need_not_be_active() -> None:
    if importlib.util.find_spec("pip") is None:
        pytest.skip("needs pip")
    typed = extras.to_type("serve")
    assert typed == f'{sys.executable} -m pip install "claw-local[serve]"'
    words = shlex.split(typed)
    assert subprocess.run([*words[:3], "--version"], check=True, capture_output=True).stdout.startswith(b"pip ")


def test_a_path_with_a_blank_is_quoted() -> None:
    assert extras.as_typed(["/my files/python", "-m", "pip"]) == '"/my files/python" -m pip'


def test_where_there_is_no_pip_uv_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert extras.to_type("web") == f'uv pip install --python {sys.executable} "claw-local[web]"'
