"""`assistant.forgetting`: what would go, forgetting it, and the receipts. It must never ask anything."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from ..errors import DiskError, LearnError, NothingError, StoreError, UsageError
from ..idle import kept as runs_left
from ..language import _
from ..store import Store
from ..store import forgetting as tables
from ..store.database import now
from ..store.forgetting import Going, Request
from ..store.processes import process_lives
from . import lineage, reports, sweeping, waiting
from .receipts import Receipt, asked_for, keep, kept, without
from .texts import Texts

if TYPE_CHECKING:
    from ..paths import Paths

TRAINER = "claw_trainer"
STOP_S = 15.0
"""How long a learning run is given to stop."""
UNSWEPT = "files and free space of the database still have it: say `claw-local forget --sweep`"
"""What a receipt says from when it is written until the disk is clean."""
FORGOTTEN = "It was paused, and had learned from what you had forgotten: it does not go on. Its other lessons stay."
SHOWN = 20
"""Most messages of a plan that are shown."""


@dataclass(frozen=True)
class Plan:
    """What would go.

    Attributes:
        counts: chats, messages, signals, hints, samples, drafts, titles, settings.
        chats: (id, title, messages that go, whether the whole chat goes).
        messages: (id, chat, role, text) of some of them.
        hints: texts of hints that go.
        adapters: ids of the adapters that learned from it, and go.
        in_use: ids of what takes the place of those in use; 0 is the base.
        judges: how many of the person's own judge's adapters go.
        backups, logs: files of this home that go.
        learning: whether a learning run is going on, which would be stopped.
    """

    request: Request
    counts: dict[str, int]
    chats: tuple[tuple[int, str, int, bool], ...]
    messages: tuple[tuple[int, int, str, str], ...]
    hints: tuple[str, ...]
    adapters: tuple[int, ...]
    in_use: tuple[int, ...]
    judges: int
    backups: tuple[Path, ...]
    logs: tuple[Path, ...]
    learning: bool

    @property
    def nothing(self) -> bool:
        return not any(self.counts.values())


class Forgetting:
    """Forgets for good: nothing of it can be brought back from this home."""

    def __init__(self, store: Store, paths: Paths) -> None:
        self._store = store
        self._paths = paths

    def plan(self, request: Request) -> Plan:
        """What would go; nothing is changed.

        Raises:
            UsageError: nothing was named. NotFoundError: a chat or a message is not there.
        """
        _check(request)
        with self._store.database.read() as db:
            going = tables.find(db, request)
            counts, texts = tables.counts(db, going), Texts.of(tables.texts(db, going), request.containing)
            chats, messages, hints = _shown(self._store, going)
        gone = lineage.stained(self._store.adapters.list(), going, hints)
        ids = {record.id for record in gone}
        instead = [lineage.clean_ancestor(self._store, r, ids) for r in gone if r.state == "active"]
        return Plan(
            request=request,
            counts=counts,
            chats=chats,
            messages=messages,
            hints=hints,
            adapters=tuple(sorted(ids)),
            in_use=tuple(record.id if record else 0 for record in instead),
            judges=len(lineage.judges(self._store, going)),
            backups=tuple(sweeping.backups_since(self._paths, going.oldest)),
            logs=tuple(sweeping.logs_with(self._paths, texts)),
            learning=self._store.runs.running() is not None,
        )

    def forget(self, request: Request, report: Callable[[str], None] = lambda words: None) -> Receipt:
        """Forget it. What was said meanwhile and fits the request goes too.

        Raises:
            UsageError: nothing was named, or nothing of that kind is there. NotFoundError: as for `plan`.
            LearnError: a learning run does not stop.
        """
        _check(request)
        report("stopping what is being learned")
        self._stop_learning()
        report("taking it out of chats, hints and adapters")
        with self._store.database.erasing(), self._store.database.write() as db:
            if self._store.database.adrift:
                raise DiskError(
                    _(
                        "Nothing can be taken off a disk that is full, fails or is read-only. Free some space, or make "
                        "it writable, and forget then."
                    )
                )
            if self._store.runs.running() is not None:
                raise LearnError(_("A learning run has just begun. Wait for it to end, and forget then."))
            going = tables.find(db, request)
            if going.nothing:
                raise NothingError(_("Nothing of that kind is there, so nothing was forgotten."))
            counts, texts = tables.counts(db, going), Texts.of(tables.texts(db, going), request.containing)
            hints = _hints(self._store, going)
            gone = lineage.stained(self._store.adapters.list(), going, hints)
            own = lineage.judges(self._store, going)
            tables.erase(db, going)
            in_use, again = lineage.take_out(self._store, gone, own, going)
            files = reports.clean(self._store, self._paths, gone, texts)
            for judge in own:
                files += sweeping.adapter_files(self._paths, str(judge.path), "")
            for record in gone:
                files += sweeping.adapter_files(self._paths, record.gguf_path, record.peft_dir)
            for run in runs_left.using(
                self._store, self._paths, going.taught, lambda file: sweeping.holds(file, texts)
            ):
                # Its tensors learned from it too.
                self._store.runs.finish(run.id, "dropped", result={}, detail=FORGOTTEN)
                files.append(runs_left.folder_of(self._paths, run.id))
            files += sweeping.backups_since(self._paths, going.oldest)
            files += sweeping.logs_with(self._paths, texts)
            used = {Path(record.gguf_path).parent.name for record in self._store.adapters.list() if record.gguf_path}
            files += sweeping.orphans(self._paths, used, texts)
            receipt = Receipt(
                at=now(),
                asked=asked_for(request),
                counts=counts,
                adapters=tuple(record.id for record in gone),
                in_use=tuple(in_use),
                judges=len(own),
                again=again,
                files=len(set(files)),
                left=(UNSWEPT,),
            )
            keep(self._store, [*self.receipts(), receipt])
            waiting.add(self._store, self._paths, files)
        return self.sweep(sorted(set(files)), request.containing, report)

    def sweep(
        self, files: Sequence[Path] = (), text: str = "", report: Callable[[str], None] = lambda words: None
    ) -> Receipt:
        """Clean the disk after the newest receipt, again if it could not be done then. Returns that receipt."""
        receipts = self.receipts()
        if not receipts:
            raise NothingError(_("Nothing was forgotten yet, so there is nothing to clean up."))
        left = [] if text else waiting.still_named(receipts[-1])
        report("deleting files")
        files = sorted({*files, *waiting.files(self._store, self._paths), *sweeping.left_behind(self._paths)})
        # The caches of chats are no use to keep, and whoever forgets anything may have been in one.
        stuck = [*sweeping.remove(files), *sweeping.remove([self._paths.caches])]
        waiting.keep(self._store, self._paths, [entry for entry in stuck if entry != self._paths.caches])
        left += [f"{entry} cannot be deleted" for entry in stuck]
        report("writing the database anew")
        try:
            if not sweeping.compact(self._store):
                left.append("another program was reading the database; close it, and say `claw-local forget --sweep`")
        except StoreError as error:
            left.append(f"the database could not be written anew ({error}); then say `claw-local forget --sweep`")
        if text and not left:
            with self._store.database.read() as db:
                places = tables.where_found(db, text.casefold())
            left += [f"the database still has it in {place}" for place in places]
            left += [f"{file} holds it" for file in sweeping.files_with(self._paths, text)]
        receipts[-1] = Receipt(**{**asdict(receipts[-1]), "left": tuple(without(text, words) for words in left)})
        if not left:
            receipts = [replace(r, left=tuple(words for words in r.left if words != UNSWEPT)) for r in receipts]
        keep(self._store, receipts)
        return receipts[-1]

    def receipts(self) -> list[Receipt]:
        """Oldest first."""
        return kept(self._store)

    def count(self) -> int:
        """How often something was forgotten: open programs look whether it grew."""
        return len(kept(self._store))

    def _stop_learning(self) -> None:
        """What is being learned now may have learned from it already: it must not become an adapter."""
        run = self._store.runs.running()
        if run is None:
            return
        pid = int(run.process.partition(":")[0])
        self._store.runs.ask(run.id, "leave")  # Whether it may go on is seen when it is known what is forgotten.
        try:
            # Until the trainer has taken the run over, it is in the name of the program that starts it.
            if os.name == "posix" and process_lives(run.process) and TRAINER in psutil.Process(pid).cmdline():
                psutil.Process(pid).terminate()
        except psutil.Error:
            pass
        end = time.monotonic() + STOP_S
        while self._store.runs.running() is not None:
            if time.monotonic() > end:
                raise LearnError(
                    _(
                        "Learning run {id} does not stop, and it may have learned from this. "
                        "Nothing was forgotten: wait for it to end, and forget then.",
                        id=run.id,
                    )
                )
            time.sleep(0.1)
        self._store.runs.bury()


def _check(request: Request) -> None:
    if not (request.chats or request.messages or request.since or request.containing.strip()):
        raise UsageError(_("Say what to forget: a chat's id, --message ID, --since WHEN, or --containing TEXT."))
    if request.containing and not request.containing.strip():
        raise UsageError(_("A blank stands in nearly everything. Give --containing a word, or leave it out."))


def _hints(store: Store, going: Going) -> list[str]:
    return [
        hint.text
        for hint in store.hints.every()
        if hint.id in going.hints or hint.message_id in going.messages or hint.chat_id in going.chats
    ]


def _shown(
    store: Store, going: Going
) -> tuple[tuple[tuple[int, str, int, bool], ...], tuple[tuple[int, int, str, str], ...], tuple[str, ...]]:
    with store.database.read() as db:
        per_chat: dict[int, int] = {}
        shown: list[tuple[int, int, str, str]] = []
        query = "select id, chat_id, role, content from messages where turn_type = 'main' order by id"
        for identity, chat, role, content in db.conn.execute(query):
            if identity in going.messages:
                per_chat[chat] = per_chat.get(chat, 0) + 1
                if len(shown) < SHOWN:
                    shown.append((identity, chat, role, content))
        titles = dict(db.conn.execute("select id, title from chats").fetchall())
    chats = sorted(going.chats | per_chat.keys() | going.titles | going.systems | going.samplings)
    rows = tuple((chat, titles.get(chat, ""), per_chat.get(chat, 0), chat in going.chats) for chat in chats)
    return rows, tuple(shown), tuple(_hints(store, going))
