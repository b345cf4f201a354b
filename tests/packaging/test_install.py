"""Installing, step by step. Commands are recorded instead of run: compiling llama.cpp takes ten minutes, and a CPU that
lacks an instruction cannot be had here."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from bootstrapping.environment import Environment
from bootstrapping.install import Installer
from bootstrapping.progress import LiveLine
from bootstrapping.remedies import BootstrapError
from bootstrapping.running import Finished

CHAT = frozenset({"tiny"})
TEST = frozenset({"tiny", "train", "dev"})
FINE = Finished(0, '{"gpu_offload": false}', 1.0)
WITH_GPU = Finished(0, '{"gpu_offload": true}', 1.0)
ILLEGAL = Finished(-4, "", 1.0)
AFRESH = {"--no-cache-dir", "--force-reinstall", "--no-binary"}


class Recorded:
    """An environment that looks made, and the commands an installer would run in it."""

    def __init__(self, folder: Path, root: Path) -> None:
        (folder / "packaging").mkdir()
        shutil.copy(root / "pyproject.toml", folder)
        shutil.copy(root / "packaging" / "constraints-cpu.txt", folder / "packaging")
        self.environment = Environment(folder)
        self.environment.python.parent.mkdir(parents=True)
        self.environment.python.touch()
        self.environment.pip_version = lambda: (25, 0)  # type: ignore[method-assign]
        self.screen = io.StringIO()
        self.commands: list[list[str]] = []
        self.probes: list[Finished] = []
        self.pip: Callable[[list[str]], Finished] = lambda command: Finished(0, "", 1.0)

    def ensure(self, extras: frozenset[str], *, constrained: bool = False) -> bool:
        installer = Installer(self.environment, LiveLine(self.screen))
        installer._run = self._run  # type: ignore[method-assign]
        return installer.ensure(extras, constrained=constrained)

    @property
    def builds(self) -> list[bool]:
        """For each time llama.cpp was installed: was it compiled afresh?"""
        engine = [command for command in self.commands if any(part.startswith("llama-cpp-python>") for part in command)]
        return [set(command) >= AFRESH for command in engine]

    def _run(self, command: list[str], stage: str, flags: str, timeout_s: float | None = None) -> Finished:
        self.commands.append(command)
        if "claw_local.doctor.probe" in command:
            return self.probes.pop(0) if self.probes else FINE
        return self.pip(command)


@pytest.fixture
def recorded(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    monkeypatch.delenv("CMAKE_ARGS", raising=False)
    monkeypatch.setattr(Environment, "check_space", lambda self, extras: None)
    monkeypatch.setattr("bootstrapping.flags.shutil.which", lambda name: None)
    return Recorded(tmp_path, root)


def test_the_first_run_installs_the_second_does_nothing(recorded):
    assert recorded.ensure(CHAT)
    assert recorded.builds == [False]
    recorded.commands.clear()
    assert not recorded.ensure(CHAT)
    assert recorded.commands == []


def test_test_installs_all_extras_under_the_constraints_and_chat_after_it_nothing(recorded):
    recorded.ensure(TEST, constrained=True)
    project = next(command for command in recorded.commands if "-e" in command)
    assert project[-1].endswith("[dev,tiny,train]")
    assert str(recorded.environment.constraints) in project
    assert not recorded.ensure(CHAT)


def test_a_changed_project_is_installed_again_with_the_extras_that_were_there(recorded):
    recorded.ensure(TEST)
    with (recorded.environment.root / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    assert recorded.ensure(CHAT)
    assert recorded.environment.missing(TEST) == frozenset()


def test_a_failure_leaves_no_stamp_and_names_the_log(recorded):
    recorded.pip = lambda command: Finished(1, "OSError: [Errno 28] No space left on device", 1.0)
    with pytest.raises(BootstrapError, match="disk is full") as caught:
        recorded.ensure(CHAT)
    assert "bootstrap.log" in str(caught.value)
    assert recorded.environment.missing(CHAT) is None


def test_an_engine_that_dies_of_an_illegal_instruction_is_compiled_afresh(recorded):
    recorded.probes = [ILLEGAL, FINE]
    assert recorded.ensure(CHAT)
    assert recorded.builds == [False, True]
    assert "made for another CPU" in recorded.screen.getvalue()


def test_if_it_still_dies_the_remedy_is_told_and_there_is_no_stamp(recorded):
    recorded.probes = [ILLEGAL, ILLEGAL]
    with pytest.raises(BootstrapError, match=r"-DGGML_AVX2=OFF"):
        recorded.ensure(CHAT)
    assert recorded.environment.missing(CHAT) is None


def test_another_failure_of_the_engine_is_not_answered_with_ten_minutes_of_compiling(recorded):
    recorded.probes = [Finished(1, "OSError: libgomp.so.1: cannot open shared object file", 1.0)]
    with pytest.raises(BootstrapError, match="libgomp1"):
        recorded.ensure(CHAT)
    assert recorded.builds == [False]


def test_a_cached_engine_without_the_gpu_that_is_here_is_compiled_afresh(recorded, monkeypatch):
    monkeypatch.setattr("bootstrapping.flags.shutil.which", lambda name: f"/usr/bin/{name}")
    recorded.probes = [FINE, WITH_GPU]
    recorded.ensure(CHAT)
    assert recorded.builds == [False, True]


def test_new_build_flags_compile_it_again_the_same_ones_do_not(recorded, monkeypatch):
    recorded.ensure(CHAT)
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_BLAS=on")
    assert recorded.ensure(CHAT)
    assert recorded.builds == [False, True]
    assert not recorded.ensure(CHAT)
