"""The stamp: when nothing needs to be done, and when something does."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from bootstrapping.environment import Environment
from bootstrapping.install import child_environment, engine_requirement, uses_gpu
from bootstrapping.remedies import BootstrapError

CHAT = frozenset({"tiny"})
TEST = frozenset({"tiny", "train", "dev"})


@pytest.fixture
def environment(tmp_path: Path, root: Path) -> Environment:
    """A folder with the project's real requirements and an environment that looks finished."""
    (tmp_path / "packaging").mkdir()
    shutil.copy(root / "pyproject.toml", tmp_path)
    shutil.copy(root / "packaging" / "constraints-cpu.txt", tmp_path / "packaging")
    made = Environment(tmp_path)
    made.python.parent.mkdir(parents=True)
    made.python.touch()
    (made.folder / "pyvenv.cfg").write_text("version = 3.11.7\n")
    return made


def test_nothing_is_installed_before_the_first_run(environment):
    assert environment.missing(CHAT) is None


def test_after_a_finished_installation_nothing_is_missing(environment):
    environment.write_stamp(CHAT, "-DGGML_NATIVE=OFF")
    assert environment.missing(CHAT) == frozenset()
    assert environment.missing(TEST) == {"train", "dev"}


def test_chat_after_test_installs_nothing(environment):
    environment.write_stamp(TEST, "")
    assert environment.missing(CHAT) == frozenset()


def test_an_interrupted_installation_leaves_no_stamp(environment):
    environment.write_stamp(CHAT, "")
    environment.drop_stamp()
    assert environment.missing(CHAT) is None


@pytest.mark.parametrize("file", ["pyproject.toml", "packaging/constraints-cpu.txt", ".venv/pyvenv.cfg"])
def test_a_change_of_the_requirements_or_of_the_python_is_noticed(environment, file):
    environment.write_stamp(CHAT, "")
    with (environment.root / file).open("a") as changed:
        changed.write("# changed\n")
    assert environment.missing(CHAT) is None


def test_a_copied_folder_does_not_use_the_environment_of_the_old_one(environment, tmp_path):
    environment.write_stamp(CHAT, "")
    shutil.copytree(environment.root, tmp_path / "copy", ignore=shutil.ignore_patterns("copy"))
    assert Environment(tmp_path / "copy").missing(CHAT) is None


def test_an_environment_whose_python_went_away_is_made_again(environment):
    environment.write_stamp(CHAT, "")
    environment.python.unlink()
    assert environment.missing(CHAT) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"key": 1}', '{"key": "x", "extras": 3, "flags": ""}'])
def test_a_damaged_stamp_counts_as_none(environment, text):
    environment.stamp_file.write_text(text)
    assert environment.missing(CHAT) is None


def test_too_small_a_disk_is_said_before_anything_is_downloaded(environment, monkeypatch):
    usage = shutil._ntuple_diskusage(10**10, 10**10 - 10**9, 10**9)
    monkeypatch.setattr("bootstrapping.environment.shutil.disk_usage", lambda _: usage)
    with pytest.raises(BootstrapError, match=r"1\.0 GB free; this needs about 1\.5 GB"):
        environment.check_space(CHAT)


def test_an_environment_that_does_not_work_has_no_pip(environment):
    assert environment.pip_version() is None


def test_the_engine_is_the_one_the_project_asks_for(root):
    assert engine_requirement(root / "pyproject.toml").startswith("llama-cpp-python>=")


def test_the_build_sees_the_flags_and_what_else_was_set(monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("MARK", "kept")
    seen = child_environment("-DGGML_NATIVE=OFF", tmp_path)
    assert seen["TMPDIR"] == str(tmp_path)
    assert (seen["CMAKE_ARGS"], seen["MARK"], seen["PIP_USER"]) == ("-DGGML_NATIVE=OFF", "kept", "0")


def test_the_probes_last_line_says_whether_the_gpu_is_used():
    assert uses_gpu('loading\n{"gpu_offload": true}\n')
    assert not uses_gpu('{"gpu_offload": false}')
    assert not uses_gpu("Segmentation fault")


def test_the_first_file_is_readable_by_old_pythons(root):
    """It must be able to say that the Python is too old: nothing newer than Python 3.6 in it."""
    import ast

    ast.parse((root / "packaging" / "bootstrap.py").read_text("utf-8"), feature_version=(3, 6))
    assert "annotations" not in (root / "packaging" / "bootstrap.py").read_text("utf-8")
    assert sys.version_info >= (3, 11)
