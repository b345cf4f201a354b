"""Who has a GPU's memory: the models that answer, or a learning run. They hand it to each other.

Before a run that would find too little of it, every program lets go of the models that nobody is using; they come back
at the person's next key or question, whichever is first, and the run leaves before. Where llama.cpp computes on the
processor nothing of this happens. It must never know what is asked or learned.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ..engine.gguf_file import read_header
from ..errors import ClawError
from ..settings import Settings
from ..store import Store
from ..store.processes import process_identity, process_lives
from . import vram
from .probes import gpu

FLAG = "gpu.wanted"
"""Name of the process that waits for a GPU's memory, for a run; "" while none does."""
WATCH_S = 1.0
"""Between two looks of a program that holds a GPU's memory at whether another one wants it."""
GIVE_S = 6.0
"""How long is waited for all programs to let go. What they keep the run does without."""
LEAVE_S = 5.0
"""Longest wait for a run to leave; it takes 3 seconds at most, unless something is badly wrong."""
LOOK_S = 0.05


class Holders(Protocol):
    """The open models; see `engine.pool.Engines`."""

    def on_gpu(self) -> bool: ...
    def let_go(self) -> bool: ...


def llama_on_gpu(settings: Settings) -> bool:
    """Whether models answer on a GPU here."""
    from ..engine._native import can_use_gpu

    return settings.model.gpu_layers != 0 and can_use_gpu()


class Handing:
    """Hands a GPU's memory over, for one program. Any thread may use it.

    Args:
        holders: the models that are open here.
        on_gpu: whether models answer on a GPU here.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        holders: Holders,
        *,
        on_gpu: Callable[[Settings], bool] | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._holders = holders
        self._on_gpu = on_gpu or llama_on_gpu
        self._closed = threading.Event()
        self._guard = threading.Lock()
        self._watcher: threading.Thread | None = None
        self._coming: threading.Thread | None = None

    # Before a run

    def before_run(self, model: Path) -> bool:
        """Let this and all other programs let go of the models that nobody uses, if a run would find too little of a
        GPU's memory beside them. Returns whether they were asked to."""
        need = self._needed(model)
        if not need or self._free() >= need:
            return False
        self._store.flags.set(FLAG, process_identity())
        try:
            self._holders.let_go()
            end = time.monotonic() + GIVE_S
            while self._free() < need and time.monotonic() < end and not self._holders.on_gpu():
                if self._closed.wait(WATCH_S / 2):
                    break
        finally:
            self._store.flags.set(FLAG, "")
        return True

    def _needed(self, model: Path) -> int:
        """Bytes of a GPU's memory that a run would like to have; 0 if it takes none."""
        if not gpu.present():
            return 0
        try:
            return vram.run_bytes(read_header(model), self._settings, engine_on_gpu=self._on_gpu(self._settings))
        except (ClawError, KeyError, OSError, ValueError):
            return 0  # Whoever opens it says what is wrong with it.

    def _free(self) -> int:
        """Bytes that are free on the card in question; where nobody tells, as many as anyone could want."""
        try:
            card = vram.card_of(self._settings.learning.device, gpu.cards())
        except ClawError:
            card = None
        return card.free if card is not None else 1 << 62

    # Before a model is loaded

    def before_opening(self, model: Path) -> None:
        """Let a run leave that holds the memory this model needs, and wait until it has."""
        run = self._store.runs.running()
        if run is None or not self._on_gpu(self._settings) or not gpu.present():
            return
        try:
            need = vram.engine_bytes(read_header(model), self._settings.model)
        except (ClawError, KeyError, OSError, ValueError):
            return
        if self._free() >= need:
            return
        self._store.runs.ask(run.id, "leave")
        end = time.monotonic() + LEAVE_S
        while time.monotonic() < end:
            now = self._store.runs.get(run.id)
            # Its process gives the memory back by ending. Until it has begun, the run is in the name of its starter.
            processes = {run.process, now.process} - {process_identity()}
            if now.state != "running" and not any(process_lives(one) for one in processes):
                return
            time.sleep(LOOK_S)

    def watch(self) -> None:
        """A model here holds a GPU's memory: from now on notice when another program wants it."""
        with self._guard:
            if self._watcher is None and not self._closed.is_set():
                self._watcher = threading.Thread(target=self._watch, name="gpu-watch", daemon=True)
                self._watcher.start()

    def _watch(self) -> None:
        while not self._closed.wait(WATCH_S):
            try:
                who = self._store.flags.get(FLAG)
                if who and who != process_identity() and process_lives(who):
                    self._holders.let_go()
            except ClawError:
                continue  # A busy disk passes.

    # When the person is back

    def come_back(self, load: Callable[[], None]) -> None:
        """Begin to load in a thread what was let go of, unless that is being done, or a run that the person began goes
        on. Returns at once."""
        with self._guard:
            if self._coming is not None and self._coming.is_alive():
                return
            self._coming = threading.Thread(target=self._come_back, args=[load], name="gpu-back", daemon=True)
            self._coming.start()

    def _come_back(self, load: Callable[[], None]) -> None:
        try:
            run = self._store.runs.running()
            if run is None or run.started_by == "idle":
                load()
            else:
                self._closed.wait(WATCH_S)  # Keys that follow ask no oftener.
        except ClawError:
            return  # Whoever asks next is told.

    def close(self) -> None:
        """Watch no longer."""
        self._closed.set()
