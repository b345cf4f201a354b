"""Turns the end of a failed log into what happened and what to do next. Must never run anything."""

from __future__ import annotations

import re
from dataclasses import dataclass

COMPILER = {
    "Linux": "install one (Debian, Ubuntu: sudo apt install build-essential; Fedora: sudo dnf install gcc-c++ make)",
    "Darwin": "install one with: xcode-select --install",
    "Windows": (
        "install one with: winget install Microsoft.VisualStudio.2022.BuildTools --override "
        '"--passive --add Microsoft.VisualStudio.Workload.VCTools --includeRecommended"'
    ),
}
AGAIN = "run the same command again; it goes on from what is already there"


class BootstrapError(Exception):
    """Set-up cannot go on. The message says what happened and what to do next."""


@dataclass(frozen=True)
class Symptom:
    """A pattern in a log, what it means, and the remedy."""

    pattern: re.Pattern[str]
    happened: str
    remedy: str


def _symptom(pattern: str, happened: str, remedy: str) -> Symptom:
    return Symptom(re.compile(pattern, re.IGNORECASE), happened, remedy)


# In order: the first that matches is told. A full disk breaks everything after it; a network that stuttered and came
# back is in the log of a build that then failed for want of a compiler.
SYMPTOMS = (
    _symptom(
        r"No space left on device|Errno 28|WinError 112|not enough space on the disk",
        "The disk is full.",
        "Free some space (about 2 GB to chat, 10 GB to learn), or put the temporary folder on another disk with the "
        "variable TMPDIR; then " + AGAIN,
    ),
    _symptom(
        r"cannot allocate memory|out of memory|MemoryError|Killed signal terminated program|fatal error C1060",
        "Memory ran out.",
        "Close other programs and set the variable CMAKE_BUILD_PARALLEL_LEVEL=1 to compile one file at a time; then "
        + AGAIN,
    ),
    _symptom(
        r"No CMAKE_(C|CXX)_COMPILER could be found|CMAKE_(C|CXX)_COMPILER not set|(C|CXX) compiler identification is "
        r"unknown|Microsoft Visual C\+\+ .* is required|No such file or directory: '(gcc|g\+\+|cc|c\+\+|clang)'"
        r"|is not able to compile a simple test program|xcrun: error: invalid active developer path",
        "No working C++ compiler was found; llama.cpp is compiled on your machine.",
        "{compiler}; then " + AGAIN,
    ),
    _symptom(
        r"nvcc fatal|CMAKE_CUDA_COMPILER|Could not find CUDA|CUDA Toolkit not found|unsupported GNU version",
        "llama.cpp could not be compiled for CUDA with the toolkit that is installed.",
        "Mend the toolkit, or build for the CPU: set the variable CMAKE_ARGS=-DGGML_CUDA=off; then " + AGAIN,
    ),
    _symptom(
        r"CERTIFICATE_VERIFY_FAILED|SSLError",
        "The package index could not be trusted: its certificate did not check out.",
        "Set the computer's clock, or, behind a company proxy, point the variable PIP_CERT at its certificate; then "
        + AGAIN,
    ),
    _symptom(
        r"Temporary failure in name resolution|Name or service not known|getaddrinfo failed|nodename nor servname"
        r"|NewConnectionError|Failed to establish a new connection|Network is unreachable|ConnectTimeoutError"
        r"|ReadTimeoutError|Read timed out|ConnectionResetError|ProxyError|IncompleteRead",
        "The network did not answer.",
        "Check the connection (behind a proxy, set the variable HTTPS_PROXY); then " + AGAIN,
    ),
    _symptom(
        r"Permission denied|Errno 13|WinError 5\b",
        "A file could not be written.",
        "Make the project's folder and pip's cache yours (sudo may have made parts of them), close programs that use "
        ".venv; then " + AGAIN,
    ),
    _symptom(
        r"No matching distribution found|Could not find a version that satisfies",
        "A package has no release for this Python on this machine.",
        "Use a 64-bit Python 3.11, 3.12 or 3.13: delete the folder .venv and start bootstrap.py with that one",
    ),
)


def explain(log: str, system: str) -> str:
    """What happened and what to do, from the text of a failed step's log (its end is enough).

    Args:
        log: what pip printed.
        system: "Linux", "Darwin" or "Windows": decides how a compiler is installed.
    """
    compiler = COMPILER.get(system, COMPILER["Linux"])
    for symptom in SYMPTOMS:
        if symptom.pattern.search(log):
            remedy = symptom.remedy.format(compiler=compiler)
            return f"{symptom.happened} {remedy[0].upper()}{remedy[1:]}."
    last = next((line.strip() for line in reversed(log.splitlines()) if "error" in line.lower()), "")
    said = f" It said: {last}" if last else ""
    return f"pip stopped with an error that has no known remedy.{said}"


def engine_failed(output: str, system: str) -> str:
    """Why the engine does not compute, from what its child process printed."""
    missing = re.search(r"(lib[\w.+-]+\.so[\w.]*): cannot open shared object file", output)
    if missing:
        package = "libgomp1" if missing[1].startswith("libgomp") else f"the package that holds {missing[1]}"
        return (
            f"The system library {missing[1]} is missing. Install {package} (Debian, Ubuntu: sudo apt install ...; "
            f"Fedora: sudo dnf install ...); then {AGAIN}."
        )
    if "DLL load failed" in output or "Could not find module" in output:
        return (
            "A system library is missing. Install Microsoft's Visual C++ runtime (winget install "
            f"Microsoft.VCRedist.2015+.x64); then {AGAIN}."
        )
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "it printed nothing")
    return f"It said: {last} To compile the engine afresh, delete the folder .venv; then run the same command again."


def venv_failed(output: str, version: tuple[int, int], system: str) -> str:
    """Why a virtual environment could not be made, from what `python -m venv` printed."""
    if re.search(r"ensurepip|No module named venv|python3.*-venv", output):
        remedy = (
            f"sudo apt install python{version[0]}.{version[1]}-venv"
            if system == "Linux"
            else "reinstall Python from python.org or your package manager"
        )
        return (
            "This Python cannot make virtual environments: its venv or ensurepip part is missing. "
            f"Install it ({remedy}); then run the same command again."
        )
    return "The virtual environment .venv could not be made. " + explain(output, system)
