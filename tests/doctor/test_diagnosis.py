"""All checks together, on this machine, and with faults planted for the child processes."""

from __future__ import annotations

import importlib.util
import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from claw_local.doctor import as_json, checks, examine, exit_code, run_checks
from claw_local.doctor.child import Outcome
from claw_local.doctor.learning import PARTS, check_learning
from claw_local.idle import extra
from claw_local.settings import Settings

HOME = ["private", "leftovers", "work", "search", "adapters", "log", "own files"]
ORDER = ["python", "settings", "folder", "disk", "database", *HOME, "engine", "model", "memory", "gpu", *PARTS]


def test_a_healthy_installation_passes(home, model_path):
    settings = Settings()
    settings.model.path = str(model_path)
    begun: list[str] = []
    found = list(checks(home, settings, on_start=begun.append))
    assert [check.name for check in found] == ORDER
    assert exit_code(found) == 0
    assert not [check for check in found if check.state == "problem"]
    assert begun[0] == "python"
    assert str(Path.home()) == "/" or str(Path.home()) not in str(as_json(found)).replace(str(home.data), "")
    assert not home.data.exists()  # the doctor changes nothing
    for check in found:
        if check.name in PARTS and importlib.util.find_spec(check.name) is None:
            assert check.state == "warning"


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_every_fault_is_found_in_one_go(home, tmp_path, monkeypatch):
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / "llama_cpp.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    for part in PARTS:
        (faults / f"{part}.py").write_text(f"raise ImportError('{part} is broken')")
    monkeypatch.setenv("PYTHONPATH", str(faults))
    home.make().settings.write_text("[model]\npath = 3.5\n")
    home.database.write_bytes(b"rubbish" * 1000)
    found = {check.name: check for check in run_checks(home)}
    for name in ("settings", "database", "engine", "model"):
        assert found[name].state == "problem", name
        assert found[name].remedy, name
    assert exit_code(found.values()) == 1
    for part in PARTS:
        assert found[part].state in ("problem", "warning")


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_people_see_the_findings_and_get_the_exit_status(home, tmp_path, monkeypatch):
    (tmp_path / "llama_cpp.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    for part in PARTS:
        (tmp_path / f"{part}.py").write_text("raise ImportError('left out here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    out = io.StringIO()
    assert examine(home, Console(file=out, width=120)) == 1
    assert "problem engine" in out.getvalue()
    assert "Chatting does not work yet" in out.getvalue()


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_learning_that_is_not_installed_is_a_warning(part):
    check = check_learning(part, None)
    assert check.state == "warning"
    assert check.remedy == extra.as_typed(extra.install_command())


@pytest.mark.parametrize(
    ("learns_on", "state"),
    [("NVIDIA Pretended (cuda:0, 6.0 GiB of 8.0 GiB free)", "ok"), ("nothing (learning.device is cuda)", "warning")],
)
def test_what_a_run_would_compute_on_is_named(learns_on, state):
    check = check_learning("torch", Outcome(0, {"version": "2.9"}), learns_on=learns_on)
    assert (check.state, check.detail) == (state, f"2.9, learns on {learns_on}")
    assert bool(check.remedy) == (state == "warning")
