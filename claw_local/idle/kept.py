"""What a run that was left keeps on the disk, and whether it may still go on. It must never know about tensors.

All of a run's own files lie in one folder beside its log: `began.json` (what it was begun with), `plan.json` (what it
learns from), `variants.json` (tasks made from that), `drawn.jsonl` (answers drawn since the last checkpoint) and the
trainer's checkpoint. The folder is deleted when the run ends.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files import write_whole
from ..language import N_, _
from ..paths import Paths
from ..settings import Settings
from ..signals.turns import combine
from ..store import Run, Store
from .failures import times_alike

BEGAN, PLAN, VARIANTS, DRAWN = "began.json", "plan.json", "variants.json", "drawn.jsonl"
FREE = {"learning": {"min_lessons", "threads", "device", "memory_gib"}}
"""Settings that may change while a run is paused: they do not change what it learns."""
COUNTED = ("learning", "gate", "memory", "sampling", "judge")
OFTEN = 3
"""After so many failures in the same way a run is begun anew: its own files may be what is wrong."""
HINT_GONE = N_("a hint it learns from was removed or changed")
FROM_OUTSIDE = ("killed", "memory", "DiskFull")
"""Failures that no file of the run can be the cause of."""


@dataclass(frozen=True)
class Paused:
    """What was found of runs that were left.

    Attributes:
        run: the one that can go on; None if there is none.
        dropped: why others no longer can, a sentence each.
    """

    run: Run | None
    dropped: tuple[str, ...] = ()


def folder_of(paths: Paths, run_id: int) -> Path:
    """The folder of a run's own files; it need not exist."""
    return paths.runs / str(run_id)


def remove(paths: Paths, run_id: int) -> None:
    """Delete what a run keeps: it has ended."""
    shutil.rmtree(folder_of(paths, run_id), ignore_errors=True)


def clear_work(store: Store, paths: Paths, run_id: int) -> None:
    """Delete what a process that was ended had begun to write among the adapters."""
    used = {Path(record.gguf_path).parent.name for record in store.adapters.list() if record.gguf_path}
    for folder in paths.adapters.glob(f"run-{run_id}-*"):
        if folder.name not in used:
            shutil.rmtree(folder, ignore_errors=True)


def beginning(store: Store, settings: Settings, model_sha256: str) -> dict[str, Any]:
    """What a run that began now would begin with: model, adapter in use, and the settings that count."""
    active = store.adapters.active(model_sha256)
    counted: dict[str, Any] = {}
    for name in COUNTED:
        section = getattr(settings, name).model_dump(mode="json", exclude=FREE.get(name, set()))
        counted |= {f"{name}.{key}": value for key, value in section.items()}
    counted["model.context"] = settings.model.context
    return {"model": model_sha256, "adapter": active.id if active else 0, "settings": counted}


def write_beginning(paths: Paths, run_id: int, began: dict[str, Any]) -> str:
    """Keep it in the run's folder. Returns its fingerprint. Raises OSError."""
    folder = folder_of(paths, run_id)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    data = json.dumps(began, indent=2, sort_keys=True).encode()
    write_whole(folder / BEGAN, data)
    return hashlib.sha256(data).hexdigest()


def find(store: Store, paths: Paths, settings: Settings, model_sha256: str) -> Paused:
    """The paused run that goes on at the next start. Others are dropped, and files that belong to no run deleted."""
    found, dropped = None, []
    now = beginning(store, settings, model_sha256)
    for run in store.runs.paused():
        reason = why_not(store, paths, run, now)
        if found is not None:
            reason = _("run {id} was begun after it", id=found.id)
        if not reason:
            found = run
            continue
        words = _("The paused learning run {id} does not go on: {reason}. Its lessons stay.", id=run.id, reason=reason)
        drop(store, paths, run.id, words)
        dropped.append(words)
    _sweep(store, paths)
    return Paused(found, tuple(dropped))


def drop(store: Store, paths: Paths, run_id: int, words: str) -> None:
    """Give a paused run up."""
    with store.database.write():
        if store.runs.get(run_id).state != "paused":
            return
        store.runs.finish(run_id, "dropped", result={}, detail=words)
    remove(paths, run_id)


def begun_with(store: Store, paths: Paths, hint_id: int) -> Run | None:
    """The paused run that teaches with a lasting hint, if there is one."""
    for run in store.runs.paused():
        plan = _read(folder_of(paths, run.id) / PLAN)
        if any(hint["id"] == hint_id for hint in plan.get("lasting", ())):
            return run
    return None


def why_not(store: Store, paths: Paths, run: Run, now: dict[str, Any]) -> str:
    """Why a paused run cannot go on, after a "does not go on:"; "" if it can.

    Args:
        now: `beginning` of today.
    """
    began = _read(folder_of(paths, run.id) / BEGAN)
    if not began:
        return _("its files are gone")
    if began.get("model") != now["model"]:
        return _("the model has changed")
    if began.get("adapter") != now["adapter"]:
        return _("another adapter is in use")
    then = began.get("settings", {})
    changed = [name for name, value in now["settings"].items() if then.get(name) != value]
    if changed:
        return _("the setting {key} has changed", key=changed[0])
    if run.failures and run.failures[-1].kind not in FROM_OUTSIDE and times_alike(run) >= OFTEN:
        return _("it went wrong {number} times at the same place ({words})", number=OFTEN, words=run.failures[-1].words)
    if run.lineage:
        teaching = {reply.id for reply in store.messages.teaching_replies(run.lineage, with_tokens=False)}
        if not teaching.issuperset(run.lineage):
            return _("something it learns from was deleted, or may no longer teach")
    plan = _read(folder_of(paths, run.id) / PLAN)
    if _taken_back(store, plan):
        return _("you took back what you said of a reply that it learns from")
    return "" if _hints_stand(store, plan) else _(HINT_GONE)


def _taken_back(store: Store, plan: dict[str, Any]) -> bool:
    """Whether a lesson is another one now, because the person took back what they had said."""
    lessons = {lesson["reply"]: lesson for lesson in plan.get("lessons", ())}
    replies = sorted(store.signals.withdrawn(list(lessons)))
    now = {reply: combine(signals) for reply, signals in store.signals.of(replies).items()}
    return any(now[reply] != (lessons[reply]["score"], lessons[reply]["hint"]) for reply in replies)


def _hints_stand(store: Store, plan: dict[str, Any]) -> bool:
    """Whether the hints that a run's lessons are taught with are there, in these words: the lasting ones and their own.
    What was said of a reply since takes nothing away."""
    lasting = {hint.id: hint.text for hint in store.hints.list(state=None)}
    if any(lasting.get(hint["id"]) != hint["text"] for hint in plan.get("lasting", ())):
        return False
    own = {(lesson["reply"], lesson["hint"]) for lesson in plan.get("lessons", ()) if lesson["hint"]}
    return own <= store.signals.said([reply for reply, _ in own])


def using(store: Store, paths: Paths, replies: Collection[int], holds: Callable[[Path], bool]) -> list[Run]:
    """Paused runs that learn from one of these replies, or in whose files something stands that `holds` finds."""
    found = []
    for run in store.runs.paused():
        files = folder_of(paths, run.id).glob("*.json")
        # The plan is written before the store knows of it: a run may have been left in between.
        planned = [lesson["reply"] for lesson in _read(folder_of(paths, run.id) / PLAN).get("lessons", ())]
        if not set(replies).isdisjoint([*run.lineage, *planned]) or any(holds(file) for file in files):
            found.append(run)
    return found


def _read(file: Path) -> dict[str, Any]:
    """Empty: it is not there, or not whole."""
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _sweep(store: Store, paths: Paths) -> None:
    """Delete the folders of runs that have ended: left by a program that was killed, or by a restored backup."""
    folders = list(paths.runs.glob("*"))  # First: a run that another program begins meanwhile has none of these.
    alive = {str(run.id) for run in store.runs.list(limit=1000) if run.state in ("running", "paused")}
    for folder in folders:
        if folder.is_dir() and folder.name.isdigit() and folder.name not in alive:
            shutil.rmtree(folder, ignore_errors=True)
