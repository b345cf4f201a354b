"""One learning run as a process of its own. It must never import torch: it starts the trainer and watches the store."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import LearnError
from ..files import write_whole
from ..paths import HOME_VARIABLE, Paths
from ..settings import Settings
from ..store import Run, Store
from . import extra

POLL_S = 0.15
STOP_S = 10.0


@dataclass(frozen=True)
class Progress:
    """Where a run is: its phase, the share done from 0 to 1, and a few words."""

    phase: str
    fraction: float
    detail: str


@dataclass(frozen=True)
class LearnResult:
    """How a run ended.

    Attributes:
        adapter: id of the adapter it made; 0 if it made none.
        accepted: whether the gate let it into use.
        reason: why, in a sentence.
        samples: samples trained on, fresh answers included.
        seconds: from start to end.
        gate: the gate's report.
    """

    adapter: int
    accepted: bool
    reason: str
    samples: int
    steps: int
    seconds: float
    gate: dict[str, Any] = field(default_factory=dict)


def run_trainer(
    store: Store,
    paths: Paths,
    settings: Settings,
    model: Path,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
) -> LearnResult:
    """Start the trainer, follow it through the store, and return its result.

    Raises:
        LearnError: another run is going on, the trainer is not installed, or the run failed or was stopped. The adapter
            that was in use stays in use.
    """
    return LearnResult(**run_process(store, paths, settings, model, on_progress=on_progress, cancel=cancel).result)


def run_process(
    store: Store,
    paths: Paths,
    settings: Settings,
    model: Path,
    *,
    options: Sequence[str] = (),
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
) -> Run:
    """The same for any kind of run of the trainer; `options` say which. Returns the run, which is done. Raises as
    `run_trainer`."""
    missing = extra.missing()
    if missing:
        raise LearnError(
            f"Learning needs packages that are not installed ({', '.join(missing)}). "
            f"Install them with: {extra.as_typed(extra.install_command())} (chatting works without)."
        )
    run_id = store.runs.begin()
    log = paths.runs / f"{run_id}.log"
    request = paths.runs / f"{run_id}.json"
    try:
        write_whole(request, json.dumps({"model": str(model), "settings": settings.model_dump(mode="json")}).encode())
        process = _start(paths, run_id, request, log, options)
    except OSError as error:
        store.runs.finish(run_id, "failed", result={}, detail=str(error))
        raise LearnError(f"The trainer could not be started: {error}. Run `claw-local doctor`.") from error
    try:
        _follow(process, store, run_id, on_progress, cancel)
    except BaseException:
        _stop(process)
        if store.runs.get(run_id).state == "running":
            store.runs.finish(run_id, "stopped", result={}, detail="stopped by the person")
        raise
    return _result(store.runs.get(run_id), process.returncode, log, store)


def _start(paths: Paths, run_id: int, request: Path, log: Path, options: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    # The trainer is found where this process would find it, installed or not.
    found = [find_spec(name) for name in ("claw_local", "claw_trainer")]
    homes = [str(Path(spec.origin).parents[1]) for spec in found if spec is not None and spec.origin]
    search = os.pathsep.join([*dict.fromkeys(homes), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {
        **os.environ,
        "PYTHONPATH": search,
        HOME_VARIABLE: str(paths.data),
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
    }
    # -P: a file called json.py in the folder a person happens to be in must not run as ours.
    command = [sys.executable, "-P", "-m", "claw_trainer", "--run", str(run_id), "--request", str(request), *options]
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            # A group of its own: Ctrl-C reaches this process, which then stops the trainer in order.
            start_new_session=True,
        )


def _follow(
    process: subprocess.Popen[bytes],
    store: Store,
    run_id: int,
    on_progress: Callable[[Progress], None] | None,
    cancel: threading.Event | None,
) -> None:
    shown: Progress | None = None
    while process.poll() is None:
        if cancel is not None and cancel.is_set():
            _stop(process)
            break
        run = store.runs.get(run_id)
        progress = Progress(run.phase, run.progress, run.detail)
        if on_progress is not None and progress != shown:
            on_progress(progress)
            shown = progress
        time.sleep(POLL_S)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    with contextlib.suppress(OSError):
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _result(run: Run, status: int, log: Path, store: Store) -> Run:
    if run.state == "done":
        return run
    if run.state == "running":  # It ended without a word: killed, out of memory, or a crash.
        detail = _why_it_died(status, log)
        store.runs.finish(run.id, "failed", result={}, detail=detail)
        raise LearnError(
            f"The learning run ended early: {detail} The adapter in use has not changed. Its log is {log}."
        )
    if run.state == "stopped":
        raise LearnError("The learning run was stopped. The adapter in use has not changed.")
    raise LearnError(run.detail or f"The learning run failed. The adapter in use has not changed. Its log is {log}.")


def _why_it_died(status: int, log: Path) -> str:
    if status == -signal.SIGILL:
        return "it used a processor instruction this machine does not have; `claw-local doctor` says how to mend it."
    if status == -9:
        return "it was killed, most likely because memory ran out; close other programs and try again."
    if status < 0:
        return f"it was ended by signal {-status}."
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    return f"{lines[-1].strip()}." if lines else f"it ended with status {status}."
