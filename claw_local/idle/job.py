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
from typing import Any, Literal

from ..engine.models import model_sha256
from ..errors import ClawError, LearnError
from ..files import write_whole
from ..language import _
from ..paths import HOME_VARIABLE, Paths
from ..settings import Settings
from ..store import Run, Store
from ..store.records import StartedBy
from ..store.runs import DIED
from ..store.unlocking import for_children
from . import extra, kept
from .ending import KILLED, LearningPaused, error_of, why_it_died
from .launching import launcher, line
from .share import ECONOMIES, MOST_ECONOMY, Seen, bound_bytes, threads

__all__ = ["Job", "LearnResult", "LearningPaused", "Progress"]

POLL_S = 0.15
LEAVE_S = 2.0
"""How long a run that is left may take; then its process is ended, which loses nothing that it had kept."""
STOP_S = 10.0


@dataclass(frozen=True)
class Progress:
    """Where a run is: its phase, the share done from 0 to 1, a few words, and an estimate of the time left."""

    phase: str
    fraction: float
    detail: str
    seconds_left: float | None = None


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


class Job:
    """A run's process. One at a time across all programs.

    Attributes:
        run_id: its id in the store.
    """

    def __init__(
        self, store: Store, paths: Paths, settings: Settings, run_id: int, options: Sequence[str] = ()
    ) -> None:
        """Use `start`."""
        self.run_id = run_id
        self._store = store
        self._paths = paths
        self._options = list(options)
        self._learning = settings.learning
        self._threads = threads(settings)
        self._seen = Seen(bound_bytes(settings))
        self._failed_before = len(store.runs.get(run_id).failures)
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(
        cls,
        store: Store,
        paths: Paths,
        settings: Settings,
        model: Path,
        *,
        options: Sequence[str] = (),
        started_by: StartedBy = "person",
    ) -> Job:
        """Start the trainer: on the paused run that fits, if there is one, else on a new one. Others are dropped.

        Args:
            options: which kind of run; with any, nothing is gone on with.

        Raises:
            LearnError: another run is going on, or the trainer is not installed or cannot be started.
        """
        missing = extra.missing()
        if missing:
            raise LearnError(
                _(
                    "Learning needs packages that are not installed ({missing}). "
                    "Install them with: {command} (chatting works without).",
                    missing=", ".join(missing),
                    command=extra.as_typed(extra.install_command()),
                )
            )
        sha256 = model_sha256(model, paths.data)
        paused = None if options else kept.find(store, paths, settings, sha256).run
        if paused is None:
            run_id = store.runs.begin(started_by)
        else:
            run_id = paused.id
            store.runs.go_on(run_id, started_by)
        job = cls(store, paths, settings, run_id, options)
        try:
            if paused is None and not options:
                began = kept.write_beginning(paths, run_id, kept.beginning(store, settings, sha256))
                store.runs.set_inputs(run_id, f"{began[:16]}.{store.samples.count_waiting()}")
                store.runs.set_checkpoint(run_id, "start", 0, settings.learning.steps)
            asked = {"model": str(model), "memory_bytes": job._seen.bound, "threads": job._threads}
            request = json.dumps({**asked, "settings": settings.model_dump(mode="json")}).encode()
            write_whole(paths.runs / f"{run_id}.json", request)
            job._spawn(anew=paused is None)
        except (OSError, ClawError) as error:  # This program lives on: a run in its name would hold up all others.
            store.runs.note_failure(run_id, type(error).__name__, str(error))
            if paused is None:
                store.runs.finish(run_id, "failed", result={}, detail=str(error))
                kept.remove(paths, run_id)
            else:
                store.runs.pause(run_id, str(error))
            if isinstance(error, ClawError):
                raise
            raise LearnError(
                _("The trainer could not be started: {error}. Run `claw-local doctor`.", error=error)
            ) from error
        return job

    @property
    def log(self) -> Path:
        return self._paths.runs / f"{self.run_id}.log"

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The trainer's process id; 0 before it was started."""
        return self._process.pid if self._process is not None else 0

    def progress(self) -> Progress:
        run = self._store.runs.get(self.run_id)
        return Progress(run.phase, run.progress, run.detail, run.seconds_left)

    def leave(self) -> Run:
        """Ask it to leave, and wait until its process, with its memory, is gone: three seconds at most.

        What it has reached is kept, and the next start goes on from there. A run that has ended meanwhile stays so.
        """
        return self._end("leave", LEAVE_S)

    def stop(self) -> Run:
        """Stop it, and throw away what it has reached; the lessons stay."""
        return self._end("stop", STOP_S)

    def follow(
        self,
        on_progress: Callable[[Progress], None] | None = None,
        cancel: threading.Event | None = None,
        leave: threading.Event | None = None,
    ) -> Run:
        """Watch it to its end, and return the run, which is done. `cancel` stops it, `leave` leaves it.

        Raises:
            LearningPaused: it was left. LearnError: it failed or was stopped. The adapter that was in use stays in use.
        """
        try:
            self._watch(on_progress, cancel, leave)
        except BaseException:
            if self._options:
                self.stop()
            else:
                self.leave()
            raise
        run = self._store.runs.get(self.run_id)
        if run.state not in ("running", "paused"):
            kept.remove(self._paths, self.run_id)
        if run.state == "done":
            return run
        raise error_of(run, self.log, failed=len(run.failures) > self._failed_before)

    def _watch(
        self,
        on_progress: Callable[[Progress], None] | None,
        cancel: threading.Event | None,
        leave: threading.Event | None,
    ) -> None:
        shown: Progress | None = None
        while True:
            while self.running:
                if cancel is not None and cancel.is_set():
                    self.stop()
                    return
                if leave is not None and leave.is_set():
                    self.leave()
                    return
                if self._process is not None:
                    self._seen.look(self._process.pid)
                progress = self.progress()
                if on_progress is not None and progress != shown:
                    on_progress(progress)
                    shown = progress
                time.sleep(POLL_S)
            if not self._begun_again():
                return

    def _begun_again(self) -> bool:
        """After its process has ended: note how, and begin again with less memory if that was what it lacked."""
        process = self._process
        assert process is not None
        run = self._store.runs.get(self.run_id)
        short = process.returncode == KILLED and self._seen.short and not run.asked
        words = why_it_died(process.returncode, self.log)
        kind = "memory" if short else "killed" if process.returncode == KILLED else "died"
        if not self._store.runs.died(self.run_id, kind, words) or not short:
            return False
        run = self._store.runs.get(self.run_id)
        if run.state != "paused" or self._options:
            return False
        if run.economy >= MOST_ECONOMY:
            self._store.runs.finish(
                self.run_id,
                "failed",
                result={},
                detail=_(
                    "It was killed because memory ran out, however much it saved. Close other programs, or learn "
                    "with a smaller model."
                ),
            )
            return False
        held = f"it was killed while it held {self._seen.most / 2**30:.1f} GiB"
        self._store.runs.save_memory(self.run_id, run.economy + 1, f"{ECONOMIES[run.economy + 1]}: {held}")
        self._store.runs.go_on(self.run_id, run.started_by)
        self._seen = Seen(self._seen.bound)
        self._spawn(anew=False)
        return True

    def _end(self, what: Literal["leave", "stop"], patience_s: float) -> Run:
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ClawError):
                self._store.runs.ask(self.run_id, what)
            if os.name == "posix":  # Elsewhere a signal would end it at once; it sees the word in the store.
                with contextlib.suppress(OSError):
                    process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=patience_s)
            except subprocess.TimeoutExpired:
                process.kill()  # What it has reached is on the disk.
                process.wait()
        self._store.runs.died(self.run_id, "", DIED)
        kept.clear_work(self._store, self._paths, self.run_id)
        run = self._store.runs.get(self.run_id)
        if run.state not in ("running", "paused"):
            kept.remove(self._paths, self.run_id)
        return run

    def _spawn(self, *, anew: bool) -> None:
        # The trainer is found where this process would find it, installed or not.
        found = [find_spec(name) for name in ("claw_local", "claw_trainer")]
        homes = [str(Path(spec.origin).parents[1]) for spec in found if spec is not None and spec.origin]
        search = os.pathsep.join([*dict.fromkeys(homes), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {
            **os.environ,
            "PYTHONPATH": search,
            HOME_VARIABLE: str(self._paths.data),
            "PYTHONUNBUFFERED": "1",
            "PYTHONSAFEPATH": "1",  # As -P, for the processes that accelerate starts.
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": str(self._threads),
            **line(self._learning),
            **for_children(self._paths.database),
            # GPUs are numbered as nvidia-smi numbers them.
            "CUDA_DEVICE_ORDER": os.environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
        }
        request = self._paths.runs / f"{self.run_id}.json"
        # -P: a file called json.py in the folder a person happens to be in must not run as ours.
        command = [sys.executable, "-P", *launcher(self._learning), "-m", "claw_trainer"]
        command += ["--run", str(self.run_id), "--request", str(request)]
        how = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if anew else os.O_APPEND)
        descriptor = os.open(self.log, how, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            self._process = subprocess.Popen(
                [*command, *self._options],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                # A group of its own: Ctrl-C reaches this process, which then leaves or stops the trainer in order.
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
