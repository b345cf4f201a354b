"""Reading chats of other programs into the store, whole chat by whole chat. It must never know their formats."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from ..errors import ClawError, HistoryError
from ..language import _, ngettext
from ..store import Store
from ..store.records import GivenChat
from .formats import chatgpt, claude, elia, llm, oterm, own
from .json_files import JsonExport
from .report import DELETED, EMPTY, UNKNOWN, ImportReport, Progress, Skips
from .sqlite_files import MAGIC, reading, tables

BATCH_MESSAGES = 400
BATCH_CHATS = 100
BATCH_CHARACTERS = 4 << 20

_DATABASES = (oterm, elia, llm)


class Reading(Protocol):
    """Chats that are being read."""

    source: str

    @property
    def fraction(self) -> float: ...

    @property
    def stopped(self) -> bool: ...

    def chats(self) -> Iterator[GivenChat]: ...


class _Counts:
    def __init__(self) -> None:
        self.chats = self.messages = self.already = self.grown = 0


def import_file(
    store: Store,
    path: Path,
    *,
    store_name: str,
    learn: bool,
    on_progress: Callable[[Progress], None] | None,
    cancel: threading.Event | None,
) -> ImportReport:
    """See `History.import_file`."""
    skips, counts = Skips(), _Counts()
    stopped = False
    with _open(path, skips, store_name, cancel) as source, store.trees.putting_many():
        chats = source.chats()
        ended = False
        while not ended:
            batch, trouble, ended = _take(chats)
            _write(store, batch, learn, skips, counts)
            if trouble is not None:
                raise HistoryError(f"{trouble}{_what_is_there(counts)}") from trouble
            stopped = source.stopped
            if on_progress is not None:
                on_progress(Progress(1.0 if ended and not stopped else source.fraction, counts.chats, counts.messages))
            if not ended and cancel is not None and cancel.is_set():
                stopped = ended = True
        understood = counts.chats or counts.already or counts.grown or skips.count(EMPTY)
        if skips.count(UNKNOWN) and not (understood or stopped):
            raise HistoryError(
                _(
                    "There are no chats in {path} that can be read. These can: ChatGPT's and "
                    "Claude's data exports, the databases of oterm, elia and llm, and what "
                    "`claw-local history export --format json` writes.",
                    path=path,
                )
            )
    return ImportReport(
        chats=counts.chats,
        messages=counts.messages,
        already=counts.already,
        grown=counts.grown,
        skipped=skips.report(),
        source=source.source,
        stopped=stopped,
    )


def _take(chats: Iterator[GivenChat]) -> tuple[list[GivenChat], ClawError | None, bool]:
    """As many chats as are written at once, what went wrong, and whether they were the last."""
    batch: list[GivenChat] = []
    messages = characters = 0
    try:
        for chat in chats:
            batch.append(chat)
            messages += len(chat.messages)
            characters += sum(len(message.content) for message in chat.messages)
            if messages >= BATCH_MESSAGES or len(batch) >= BATCH_CHATS or characters >= BATCH_CHARACTERS:
                return batch, None, False
    except ClawError as error:
        return batch, error, True
    return batch, None, True


def _write(store: Store, batch: list[GivenChat], learn: bool, skips: Skips, counts: _Counts) -> None:
    full = [chat for chat in batch if chat.messages]
    skips.add(EMPTY, len(batch) - len(full))
    # Read before, written at once: other programs wait for the lock only briefly.
    for outcome in store.trees.put(full, learn=learn):
        if outcome.deleted:
            skips.add(DELETED)
        elif outcome.created:
            counts.chats += 1
        elif outcome.messages:
            counts.grown += 1
        else:
            counts.already += 1
        counts.messages += outcome.messages


def _what_is_there(counts: _Counts) -> str:
    if not (counts.chats or counts.grown):
        return ""
    return " " + ngettext(
        "The {number} chat before that is imported and whole; to import again doubles nothing.",
        "The {number} chats before that are imported and whole; to import again doubles nothing.",
        counts.chats + counts.grown,
    )


@contextmanager
def _open(path: Path, skips: Skips, store_name: str, cancel: threading.Event | None) -> Iterator[Reading]:
    try:
        is_database = path.is_file() and path.open("rb").read(len(MAGIC)) == MAGIC
        if not path.exists():
            raise HistoryError(_("There is no file {path}.", path=path))
        if not (path.is_file() or path.is_dir()):
            raise HistoryError(_("{path} is neither a file nor a folder.", path=path))
        if is_database:
            with reading(path) as connection:
                yield _Database(path, connection, skips)
            return
        export = JsonExport(path, cancel)
    except OSError as error:
        raise HistoryError(_("{path} cannot be read ({error}).", path=path, error=error.strerror or error)) from error
    try:
        yield _Json(export, skips, store_name)
    finally:
        export.close()


class _Json:
    def __init__(self, export: JsonExport, skips: Skips, store_name: str) -> None:
        self._export = export
        self._skips = skips
        self._store_name = store_name
        self.source = ""

    @property
    def fraction(self) -> float:
        return self._export.fraction

    @property
    def stopped(self) -> bool:
        return self._export.stopped

    def chats(self) -> Iterator[GivenChat]:
        for item in self._export.chats():
            chat = self._chat(item) if isinstance(item, dict) else None
            if chat is None:
                self._skips.add(UNKNOWN)
            else:
                self.source = self.source or chat.origin
                yield chat

    def _chat(self, item: dict[str, Any]) -> GivenChat | None:
        if chatgpt.is_chat(item):
            return chatgpt.chat(item, self._skips)
        if claude.is_chat(item):
            return claude.chat(item, self._skips)
        if own.is_chat(item):
            return own.chat(item, self._skips, self._store_name)
        return None


class _Database:
    stopped = False

    def __init__(self, path: Path, connection: Any, skips: Skips) -> None:
        self._path = path
        self._connection = connection
        self._skips = skips
        self._tables = tables(connection)
        self._done = 0
        self._written_at = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="microseconds")
        known = [kind for kind in _DATABASES if kind.is_mine(self._tables)]
        if not known:
            hint = (
                _(
                    "It is a store of claw-local: `claw-local history export --all --format "
                    "json` there, and import that."
                )
                if {"migrations", "chats", "messages"} <= set(self._tables)
                else _("Those of oterm, elia and llm can be imported.")
            )
            raise HistoryError(_("{path} is a database without chats that are known.", path=path) + " " + hint)
        self._kind = known[0]
        self.source = self._kind.ORIGIN
        names = (n for n in ("chat", "threads", "conversations", "logs", "log") if n in self._tables)
        table = next(names, "sqlite_master")
        self._total = connection.execute(f"select count(*) from {table}").fetchone()[0] or 1

    @property
    def fraction(self) -> float:
        return min(1.0, self._done / self._total)

    def chats(self) -> Iterator[GivenChat]:
        try:
            for chat in self._kind.chats(self._connection, self._tables, self._skips, self._written_at):
                self._done += 1
                yield chat
        except LookupError as error:  # A column that every version has had is not there.
            raise HistoryError(
                _(
                    "{path} is a damaged database (no {error}). Use a copy of it that is whole.",
                    path=self._path,
                    error=error,
                )
            ) from error
