"""Each way in which set-up fails is told with its remedy. The lines are what pip, CMake and venv really print."""

from __future__ import annotations

import pytest
from bootstrapping.remedies import engine_failed, explain, venv_failed

NO_COMPILER = """
  CMake Error at CMakeLists.txt:3 (project):
    No CMAKE_CXX_COMPILER could be found.
  *** CMake configuration failed
  ERROR: Failed building wheel for llama-cpp-python
"""
NO_NETWORK = """
WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(<pip._vendor.urllib3>: Failed to
establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/numpy/
ERROR: Could not find a version that satisfies the requirement numpy>=2.0 (from versions: none)
ERROR: No matching distribution found for numpy>=2.0
"""


@pytest.mark.parametrize(
    ("log", "happened", "remedy"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk", "TMPDIR"),
        ("c++: fatal error: Killed signal terminated program cc1plus", "Memory", "CMAKE_BUILD_PARALLEL_LEVEL=1"),
        (NO_COMPILER, "C++ compiler", "apt install build-essential"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120a'", "CUDA", "CMAKE_ARGS=-DGGML_CUDA=off"),
        (NO_NETWORK, "network", "HTTPS_PROXY"),
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]", "certificate", "PIP_CERT"),
        ("ERROR: Could not install: [Errno 13] Permission denied: '/x'", "written", "sudo"),
        ("ERROR: No matching distribution found for torch>=2.9", "no release", "3.12"),
    ],
)
def test_a_failure_is_told_with_its_remedy(log, happened, remedy):
    told = explain(log, "Linux")
    assert happened in told.split(". ")[0]
    assert remedy in told
    assert told.endswith(".")


@pytest.mark.parametrize(("system", "command"), [("Darwin", "xcode-select"), ("Windows", "winget")])
def test_the_compiler_is_installed_as_the_system_does_it(system, command):
    assert command in explain(NO_COMPILER, system)


def test_a_network_that_stuttered_does_not_hide_the_missing_compiler():
    assert "compiler" in explain(NO_NETWORK + NO_COMPILER, "Linux")


def test_an_unknown_failure_shows_what_was_said():
    assert "error: the moon is full" in explain("fine\nerror: the moon is full\nbye\n", "Linux")


def test_a_missing_venv_names_the_package_of_this_python():
    told = venv_failed(
        "The virtual environment was not created successfully because ensurepip is not available.", (3, 12), "Linux"
    )
    assert "python3.12-venv" in told


def test_a_missing_system_library_is_named():
    said = "OSError: libgomp.so.1: cannot open shared object file: No such file or directory"
    assert "libgomp1" in engine_failed(said, "Linux")
