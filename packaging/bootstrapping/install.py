"""Installs the project into .venv and proves that its engine computes. Knows nothing of chats or of tests."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import tomllib
from pathlib import Path

from . import flags as build_flags
from .environment import Environment
from .progress import LiveLine, clock
from .remedies import BootstrapError, engine_failed, explain
from .running import Finished, run_logged

ENGINE = "llama-cpp-python"
AFRESH = ["--no-cache-dir", "--force-reinstall", "--no-deps", "--no-binary", ENGINE]
PROBE_TIMEOUT_S = 300.0
ILLEGAL_INSTRUCTION = (-4, 132, 0xC000001D)  # killed by signal 4; the same, seen through a shell; Windows
NO_VECTORS = " ".join(f"-DGGML_{part}=OFF" for part in ("NATIVE", *build_flags.X86_PARTS))


class Installer:
    """Brings one environment to what is wanted, from nothing or from what is there.

    Args:
        environment: where to install.
        line: where progress is shown.
    """

    def __init__(self, environment: Environment, line: LiveLine) -> None:
        self._environment = environment
        self._line = line
        self._pip_options: list[str] = []

    def ensure(self, extras: frozenset[str], *, constrained: bool = False) -> bool:
        """Make sure that these extras are installed and that the engine computes.

        Args:
            extras: names from pyproject.toml.
            constrained: whether packaging/constraints-cpu.txt holds.

        Returns:
            Whether anything had to be done.

        Raises:
            BootstrapError: a step failed; the message has the remedy. No stamp is left, so the next call goes on.
        """
        environment = self._environment
        stamp = environment.read_stamp()
        if environment.missing(extras) == frozenset() and "CMAKE_ARGS" not in os.environ:
            return False
        flags = build_flags.choose(build_flags.look())
        other_build = stamp is not None and "CMAKE_ARGS" in os.environ and stamp.flags != flags
        if environment.missing(extras) == frozenset() and not other_build:
            return False

        installed = stamp.extras if stamp is not None else frozenset()
        if extras - installed:
            environment.check_space(extras - installed)
        extras |= installed
        self._prepare(constrained=constrained)
        self._line.settle(f"Setting up {environment.folder} (llama.cpp with CMAKE_ARGS={flags})")
        try:
            self._install_engine(flags, afresh=other_build)
            self._pip("claw-local", ["-e", f"{environment.root}[{','.join(sorted(extras))}]"], flags)
            self._check_engine(flags)
        finally:
            shutil.rmtree(environment.scratch, ignore_errors=True)  # What pip leaves there when it is stopped.
        environment.write_stamp(extras, flags)
        return True

    def _prepare(self, *, constrained: bool) -> None:
        """Take the stamp away, make .venv if it is missing or does not work, and learn what its pip can do."""
        environment = self._environment
        environment.drop_stamp()
        version = environment.pip_version()
        if version is None:
            self._line.show(f"Making {environment.folder}")
            environment.make()
            version = environment.pip_version()
        if version is None:
            raise BootstrapError(
                f"pip does not start in {environment.folder}. Delete that folder, then run the same command again."
            )
        self._pip_options = ["--no-input", "--disable-pip-version-check"]
        if version >= (24, 1):
            self._pip_options += ["--progress-bar", "raw"]
        if constrained:
            self._pip_options += ["-c", str(environment.constraints)]

    def _install_engine(self, flags: str, *, afresh: bool) -> None:
        """Install llama-cpp-python; `afresh` compiles it whatever is installed or cached."""
        requirement = engine_requirement(self._environment.root / "pyproject.toml")
        self._pip("llama.cpp", ["-v", *(AFRESH if afresh else []), requirement], flags)

    def _check_engine(self, flags: str) -> None:
        """Compute a token in a child process; where it dies, or lacks the GPU it was built for, compile it afresh.

        pip caches wheels by name and version alone: what it holds may be made for another CPU, or without a GPU.
        """
        probe = self._probe()
        if probe.returncode in ILLEGAL_INSTRUCTION:
            self._line.settle(
                "The engine died of an illegal instruction: pip's cache held a build made for another CPU. "
                "Compiling it for this one; that takes some minutes."
            )
        elif probe.returncode == 0 and build_flags.wants_gpu(flags) and not uses_gpu(probe.tail):
            self._line.settle(
                "A GPU was found, but pip's cache held an engine made without it. "
                "Compiling it with the GPU; that takes some minutes."
            )
        else:
            self._require_token(probe)
            return
        self._install_engine(flags, afresh=True)
        self._require_token(self._probe())

    def _require_token(self, probe: Finished) -> None:
        if probe.returncode in ILLEGAL_INSTRUCTION:
            raise BootstrapError(
                "The engine dies of an illegal instruction: this CPU lacks something llama.cpp was compiled for. "
                f'Run the same command again with the variable CMAKE_ARGS="{NO_VECTORS}".'
            )
        if probe.returncode != 0:
            raise BootstrapError(
                f"The engine is installed but does not compute. {engine_failed(probe.tail, platform.system())}\n"
                f"The whole log: {self._environment.log}"
            )
        self._line.settle(f"The model computes  {clock(probe.seconds)}")

    def _probe(self) -> Finished:
        """Load the embedded model and compute a token, in a process that may die."""
        command = [str(self._environment.python), "-m", "claw_local.doctor.probe", "token"]
        return self._run(command, "first token", "", timeout_s=PROBE_TIMEOUT_S)

    def _pip(self, stage: str, arguments: list[str], flags: str) -> None:
        """Run pip install.

        Raises:
            BootstrapError: pip failed; the message has the remedy.
        """
        polite = ["nice", "-n", "5"] if os.name == "posix" and shutil.which("nice") else []
        command = [*polite, str(self._environment.python), "-m", "pip", "install", *self._pip_options, *arguments]
        done = self._run(command, stage, flags)
        if done.returncode != 0:
            raise BootstrapError(
                f"Installing {stage} failed. {explain(done.tail, platform.system())}\n"
                f"The whole log: {self._environment.log}"
            )
        self._line.settle(f"{stage} is installed  {clock(done.seconds)}")

    def _run(self, command: list[str], stage: str, flags: str, timeout_s: float | None = None) -> Finished:
        environment = self._environment
        environment.scratch.mkdir(exist_ok=True)
        return run_logged(
            command,
            stage=stage,
            log=environment.log,
            line=self._line,
            cwd=environment.root,
            env=child_environment(flags, environment.scratch),
            timeout_s=timeout_s,
        )


def child_environment(flags: str, scratch: Path) -> dict[str, str]:
    """The environment of pip and of the probe: what the person has set, plus CMAKE_ARGS, and a folder for what they
    need on the way (hundreds of megabytes: /tmp may be small)."""
    environment = {**os.environ, "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1", "PIP_USER": "0"}
    environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    environment.pop("PYTHONHOME", None)
    if flags:
        environment["CMAKE_ARGS"] = flags
    return environment


def engine_requirement(pyproject: Path) -> str:
    """The line of pyproject.toml that asks for llama-cpp-python: it is installed first, on its own."""
    dependencies: list[str] = tomllib.loads(pyproject.read_text("utf-8"))["project"]["dependencies"]
    return next(line for line in dependencies if re.match(rf"{ENGINE}(?![\w.-])", line))


def uses_gpu(probe_output: str) -> bool:
    """Whether the probe's last line, a JSON object, says that the engine can keep layers on a GPU."""
    for text in reversed(probe_output.splitlines()):
        try:
            return bool(json.loads(text)["gpu_offload"])
        except (ValueError, KeyError, TypeError):
            continue
    return False
