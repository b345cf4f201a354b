"""Chooses how llama.cpp is built for this machine. Must never run anything: it is told what was found."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# What llama.cpp's portable x86-64 build uses, and the CPU flag (as Linux names it) that each part needs.
X86_PARTS = {"AVX": "avx", "AVX2": "avx2", "F16C": "f16c", "FMA": "fma", "BMI2": "bmi2"}


@dataclass(frozen=True)
class Machine:
    """What decides the build.

    Attributes:
        system: "Linux", "Darwin" or "Windows".
        architecture: "x86_64", "arm64", ... in small letters.
        nvidia_driver, cuda_compiler: whether nvidia-smi and nvcc were found.
        cpu_flags: the instruction sets the CPU has, as Linux names them; None where that is not known.
    """

    system: str
    architecture: str
    nvidia_driver: bool = False
    cuda_compiler: bool = False
    cpu_flags: frozenset[str] | None = None


def look() -> Machine:
    """Describe this machine by what is on its PATH and in /proc/cpuinfo."""
    return Machine(
        system=platform.system(),
        architecture=platform.machine().lower(),
        nvidia_driver=shutil.which("nvidia-smi") is not None,
        cuda_compiler=shutil.which("nvcc") is not None,
        cpu_flags=read_cpu_flags(Path("/proc/cpuinfo")) if sys.platform == "linux" else None,
    )


def read_cpu_flags(cpuinfo: Path) -> frozenset[str] | None:
    """Instruction sets of the first CPU; None if the file is missing or names none."""
    try:
        lines = cpuinfo.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return None
    found = next((line.partition(":")[2] for line in lines if line.startswith("flags")), "")
    return frozenset(found.split()) or None


def choose(machine: Machine, environment: Mapping[str, str] = os.environ) -> str:
    """The value of CMAKE_ARGS.

    GGML_NATIVE is off always: a wheel built for exactly this CPU may be kept in pip's cache, meet another CPU, and
    die there. What reads images, a quarter of all there is to compile, is left out: nothing here uses it. What the
    person has set in CMAKE_ARGS stands, and comes last so that it wins.
    """
    chosen = ["-DGGML_NATIVE=OFF", "-DLLAVA_BUILD=OFF"]
    if machine.architecture in ("x86_64", "amd64") and machine.cpu_flags is not None:
        chosen += [f"-DGGML_{part}=OFF" for part, flag in X86_PARTS.items() if flag not in machine.cpu_flags]
    if machine.nvidia_driver and machine.cuda_compiler:
        chosen.append("-DGGML_CUDA=on")
    if machine.system == "Darwin" and machine.architecture == "arm64":
        chosen.append("-DGGML_METAL=on")
    theirs = environment.get("CMAKE_ARGS", "").split()
    named = {flag.partition("=")[0] for flag in theirs}
    return " ".join([flag for flag in chosen if flag.partition("=")[0] not in named] + theirs)


def wants_gpu(flags: str) -> bool:
    """Whether these flags ask for a build that can use a GPU."""
    asked = {name: value.lower() for name, _, value in (flag.partition("=") for flag in flags.split())}
    return any(asked.get(f"-DGGML_{kind}") in ("on", "1", "true", "yes") for kind in ("CUDA", "METAL", "VULKAN", "HIP"))
