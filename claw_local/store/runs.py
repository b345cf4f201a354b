"""The table of training runs. Only one runs at a time, across all processes. It must never know what is computed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Literal

from ..errors import LearnError, NotFoundError
from ..language import _
from .database import Database, now
from .processes import process_identity, process_lives, switched_off_since
from .records import Run, RunFailure, RunState, StartedBy

DIED = "its process ended before it was done"


class Runs:
    """Runs begin, are left, go on, and end."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, started_by: StartedBy = "person") -> int:
        """Start a run, owned by this process.

        Raises:
            LearnError: another one is running.
        """
        self.bury()
        with self._database.write() as db:
            self._only_one()
            row = {
                "state": "running",
                "phase": "starting",
                "progress": 0.0,
                "detail": "",
                "process": process_identity(),
                "result": "{}",
                "started_at": now(),
                "finished_at": "",
                "started_by": started_by,
                "seen_at": now(),
            }
            return int(str(db.table("runs").insert(row).last_pk))

    def go_on(self, run_id: int, started_by: StartedBy = "person") -> None:
        """Start a paused run again, owned by this process.

        Raises:
            LearnError: another one is running, or this one is not paused (any more).
        """
        self.bury()
        with self._database.write() as db:
            self._only_one()
            if self.get(run_id).state != "paused":
                raise LearnError(
                    _(
                        "Run {run_id} is not paused, so it cannot go on. Start again: claw-local learn now",
                        run_id=run_id,
                    )
                )
            changes = {"state": "running", "process": process_identity(), "asked": "", "finished_at": "", "detail": ""}
            db.table("runs").update(run_id, {**changes, "started_by": started_by, "seen_at": now()})

    def _only_one(self) -> None:
        with self._database.read() as db:
            if db.table("runs").count_where("state = 'running'"):
                raise LearnError(
                    _("A learning run is already going on. Wait for it to end: `claw-local learn status` shows it.")
                )

    def bury(self) -> None:
        """Runs whose process has ended without a word are paused where they can go on, else failed."""
        with self._database.read() as db:
            rows = list(db.table("runs").rows_where("state = 'running'", select="id, process, seen_at"))
        for row in rows:
            if not process_lives(row["process"]):
                # Not its fault if the machine was switched off under it.
                kind = "" if switched_off_since(row["process"], row["seen_at"]) else "died"
                self.died(row["id"], kind, DIED, owner=row["process"])

    def died(self, run_id: int, kind: str, words: str, *, owner: str | None = None) -> bool:
        """Its process is gone without a word: paused where it can go on, else failed; stopped if it was asked to.
        `kind` "": this was no failure, nor is it one if the run was asked to leave.

        Args:
            owner: only while the run belongs to this process.

        Returns:
            Whether this call marked it: no other process had done it before.
        """
        with self._database.write():
            run = self.get(run_id)
            if run.state != "running" or (owner is not None and run.process != owner):
                return False
            if run.asked == "stop" or (run.asked and not run.checkpoint):
                self.finish(run_id, "stopped", result={}, detail="The learning run was stopped.")
                return True
            if run.asked:
                goes_on = "begins anew at the next run" if run.begins_anew else f"goes on from {run.where}"
                self.pause(run_id, f"It was left, and {goes_on}.")
                return True
            if kind:
                self.note_failure(run_id, kind, words)
            sentence = f"{words[:1].upper()}{words[1:]}."
            if run.checkpoint:
                goes_on = "begins anew at the next run" if run.begins_anew else f"goes on from {run.where}"
                self.pause(run_id, f"{sentence} It {goes_on}.")
            else:
                self.finish(run_id, "failed", result={}, detail=sentence)
        return True

    def note_failure(self, run_id: int, kind: str, words: str) -> None:
        """Remember how a run went wrong."""
        with self._database.write() as db:
            run = self.get(run_id)
            step = int(run.checkpoint.get("step", 0))
            failure = RunFailure(kind, run.phase, step, run.inputs, words, now())
            listed = [asdict(one) for one in (*run.failures, failure)]
            db.table("runs").update(run_id, {"failures": json.dumps(listed)})

    def take_over(self, run_id: int) -> None:
        """Make this process the run's owner."""
        with self._database.write() as db:
            db.table("runs").update(run_id, {"process": process_identity(), "seen_at": now()})

    def progress(
        self, run_id: int, phase: str, fraction: float, detail: str = "", seconds_left: float | None = None
    ) -> None:
        with self._database.write() as db:
            changes = {"phase": phase, "progress": fraction, "detail": detail, "seconds_left": seconds_left}
            db.table("runs").update(run_id, {**changes, "seen_at": now()})

    def set_inputs(self, run_id: int, inputs: str, lineage: tuple[int, ...] = ()) -> None:
        """What the run works on: a fingerprint, and the replies it learns from."""
        with self._database.write() as db:
            db.table("runs").update(run_id, {"inputs": inputs, "lineage": json.dumps(lineage)})

    def set_checkpoint(self, run_id: int, phase: str, step: int, steps: int) -> None:
        """From now on the run can go on from there: all that it needs is on the disk."""
        with self._database.write() as db:
            where = json.dumps({"phase": phase, "step": step, "steps": steps})
            db.table("runs").update(run_id, {"checkpoint": where, "seen_at": now()})

    def save_memory(self, run_id: int, economy: int, why: str) -> None:
        """The run saves more memory from now on."""
        with self._database.write() as db:
            listed = json.dumps([*self.get(run_id).fallbacks, why])
            db.table("runs").update(run_id, {"economy": economy, "fallbacks": listed})

    def ask(self, run_id: int, what: Literal["leave", "stop"]) -> None:
        """Ask a running run to leave (keep what it has and go on later) or to stop (throw it away)."""
        with self._database.write() as db:
            db.execute("update runs set asked = ? where id = ? and state = 'running'", [what, run_id])

    def pause(self, run_id: int, detail: str = "") -> None:
        """The run was left: it goes on later. One that has ended stays as it is."""
        with self._database.write() as db:
            if self.get(run_id).state == "running":
                changes = {"state": "paused", "detail": detail, "asked": "", "seconds_left": None}
                db.table("runs").update(run_id, {**changes, "seen_at": now()})

    def finish(
        self, run_id: int, state: RunState, *, result: dict[str, Any], detail: str = "", adapter_id: int | None = None
    ) -> None:
        with self._database.write() as db:
            db.table("runs").update(
                run_id,
                {
                    "state": state,
                    "result": json.dumps(result),
                    "detail": detail,
                    "adapter_id": adapter_id,
                    "progress": 1.0,
                    "finished_at": now(),
                    "checkpoint": "",
                    "asked": "",
                    "seconds_left": None,
                },
            )

    def get(self, run_id: int) -> Run:
        """Raises NotFoundError."""
        with self._database.read() as db:
            for row in db.table("runs").rows_where("id = ?", [run_id]):
                return _run(row)
        raise NotFoundError(_("There is no run {run_id}.", run_id=run_id))

    def running(self) -> Run | None:
        """The run that is going on in a live process, if any."""
        with self._database.read() as db:
            rows = list(db.table("runs").rows_where("state = 'running'", order_by="id desc"))
        return next((_run(row) for row in rows if process_lives(row["process"])), None)

    def paused(self) -> list[Run]:
        """Runs that were left and may go on, newest first."""
        self.bury()
        with self._database.read() as db:
            return [_run(row) for row in db.table("runs").rows_where("state = 'paused'", order_by="id desc")]

    def list(self, *, limit: int = 50) -> list[Run]:
        """Newest first."""
        with self._database.read() as db:
            return [_run(row) for row in db.table("runs").rows_where(order_by="id desc", limit=limit)]


def _run(row: dict[str, Any]) -> Run:
    lists = {name: tuple(json.loads(row[name] or "[]")) for name in ("lineage", "fallbacks")}
    failures = tuple(RunFailure(**one) for one in json.loads(row["failures"] or "[]"))
    whole = {name: json.loads(row[name] or "{}") for name in ("result", "checkpoint")}
    return Run(**{**row, **lists, **whole, "failures": failures})
