"""What lies in the home folder: who can read it, what killed programs left, whether adapters and the index are whole.

Read only, like all checks; `fixing` mends.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from .. import leftovers
from ..errors import AdapterError, ClawError, StoreError
from ..language import N_, _, ngettext
from ..named_text import read_text, shown
from ..paths import Paths
from ..store import opening
from .check import Check, State, first_sentence, size, tidy

FIX = N_("`claw-local doctor --fix` mends it.")
LARGEST_LOG = 256 << 20
"""Bytes of the write-ahead log; usually it has a few millions."""
LARGEST_THEME = 100_000
_SHOWN = 3
_MOST_NAMED = 5
_read_theme: list[Callable[[Path], object]] = []


def read_themes_with(read: Callable[[Path], object]) -> None:
    """From now on, themes are read so: as whoever draws with them does. Until then, whether their TOML can be read."""
    _read_theme[:] = [read]


def check_home(paths: Paths) -> Iterator[Check]:
    """All of these checks, where there is a home."""
    yield check_private(paths)
    yield check_leftovers(paths)
    for name, look in _IN_DATABASE.items():
        yield _in_database(paths, name, look)
    yield check_own_files(paths)


def check_private(paths: Paths) -> Check:
    """Files for their owner only (0600), folders too (0700), and all of them this person's."""
    if os.name != "posix":
        return Check("private", "ok", _("as the system keeps a person's own folders"))
    strangers = [path for path in _own(paths) if path.lstat().st_uid != os.geteuid() != 0]
    if strangers:
        return Check(
            "private",
            "problem",
            _("{files} belongs to another user", files=_some(strangers)),
            _("Make it yours: sudo chown -R $USER {folder}", folder=tidy(paths.data)),
        )
    open_ones = list(open_to_others(paths))
    if open_ones:
        # In a folder that is open, closed files show their names only.
        state: State = "problem" if any(path.is_file() for path in open_ones) else "warning"
        return Check(
            "private", state, _("others on this machine can look into {files}", files=_some(open_ones)), _(FIX)
        )
    return Check("private", "ok", _("only you can read what is kept"))


def open_to_others(paths: Paths) -> Iterator[Path]:
    """Files and folders of ours that others may look into. What is in the models' folder is no secret."""
    for path in _own(paths):
        if path.lstat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            yield path


def _own(paths: Paths) -> Iterator[Path]:
    """The folders, the database with what is beside it, the settings, backups, logs of runs, and caches."""
    folders = (paths.data, paths.config, paths.adapters, paths.backups, paths.runs, paths.caches)
    yield from (folder for folder in dict.fromkeys(folders) if folder.is_dir())
    beside = [paths.database.with_name(paths.database.name + ending) for ending in ("", "-wal", "-shm")]
    beside.append(paths.encryption)
    listed = [*beside, paths.settings, paths.config / "mcp.json"]
    for folder in (paths.backups, paths.runs, paths.caches):
        listed += sorted(folder.glob("*")) if folder.is_dir() else []
    yield from (path for path in dict.fromkeys(listed) if path.exists() and not path.is_symlink())


def check_leftovers(paths: Paths) -> Check:
    """Files half made by programs that were killed."""
    found = leftovers.found(paths)
    if not found:
        return Check("leftovers", "ok", _("nothing half made lies about"))
    return Check(
        "leftovers", "warning", _("half made by a program that was killed: {files}", files=_some(found)), _(FIX)
    )


def check_own_files(paths: Paths) -> Check:
    """Files that a person writes: themes, and the servers of tools."""
    from ..tools.mcp_settings import read_servers

    wrong: list[tuple[str, str]] = []
    for theme in sorted(paths.themes.glob("*.toml")) if paths.themes.is_dir() else []:
        try:
            if _read_theme:
                _read_theme[0](theme)
            else:
                tomllib.loads(read_text(theme, most=LARGEST_THEME))
        except (OSError, ValueError, RecursionError) as error:
            said = _(
                "the theme {theme} cannot be read: {error}",
                theme=shown(tidy(theme)),
                error=getattr(error, "strerror", None) or error,
            )
            wrong.append((said, _("Mend that file.")))
    try:
        read_servers(paths.config)
    except ClawError as error:
        wrong.append((tidy(error).rstrip(".") if wrong else tidy(error), _("Mend mcp.json, or take it away.")))
    if wrong:
        named = "; ".join(said for said, __ in wrong[:_MOST_NAMED])
        if len(wrong) > _MOST_NAMED:
            named = _("{files} and {count} more", files=named, count=len(wrong) - _MOST_NAMED)
        return Check("own files", "warning", named, " ".join(dict.fromkeys(remedy for __, remedy in wrong)))
    return Check("own files", "ok", _("themes and mcp.json can be read"))


def _work(paths: Paths, db: sqlite3.Connection) -> Check:
    """Replies and runs whose program has ended without a word."""
    from ..store.processes import process_lives

    replies = [row[0] for row in db.execute("select writer from messages where state = 'streaming'")]
    runs = [row[0] for row in db.execute("select process from runs where state = 'running'")]
    dead_replies, dead_runs = (sum(not process_lives(one) for one in listed) for listed in (replies, runs))
    if dead_replies or dead_runs:
        return Check(
            "work",
            "warning",
            _("cut off by a kill: {replies} replies, {runs} runs", replies=dead_replies, runs=dead_runs),
            _(FIX),
        )
    return Check("work", "ok", _("nothing was cut off"))


def _search(paths: Paths, db: sqlite3.Connection) -> Check:
    """Can everything that was said be found?"""
    (missing,) = db.execute(
        "select count(*) from messages where turn_type = 'main' and state != 'streaming' and content glob '*[a-zA-Z]*' "
        "and not exists (select 1 from search_docs where message_id = messages.id)"
    ).fetchone()
    if missing:
        return Check(
            "search",
            "warning",
            ngettext(
                "{count} message cannot be found by a search",
                "{count} messages cannot be found by a search",
                missing,
                count=missing,
            ),
            _(FIX),
        )
    return Check("search", "ok", _("all that was said can be found"))


def _adapters(paths: Paths, db: sqlite3.Connection) -> Check:
    """Are the files of adapters in use there, and the ones that were written?"""
    found = db.execute("select * from adapters where state = 'active'")
    names = [column[0] for column in found.description]
    for row in found:
        record = _record(dict(zip(names, row, strict=True)))
        try:
            _verified(record)
        except AdapterError as error:
            return Check(
                "adapters", "problem", first_sentence(tidy(error))[0], _(FIX) + " " + _("Then the base model answers.")
            )
    return Check("adapters", "ok", _("those in use are whole"))


def _record(row: dict[str, object]) -> dict[str, object]:
    hashes = json.loads(str(row["sha256"] or "{}"))
    return {**row, "sha256": hashes if isinstance(hashes, dict) else {}}


def _verified(record: dict[str, object]) -> None:
    """As the registry does it. Raises AdapterError."""
    from ..adapters.registry import file_sha256

    folder = Path(str(record["gguf_path"])).parent
    hashes = record["sha256"]
    for name, expected in (hashes if isinstance(hashes, dict) else {}).items():
        file = folder / name
        if not file.is_file():
            raise AdapterError(
                _("A file of adapter {id}, which is in use, is gone ({file})", id=record["id"], file=file)
            )
        if file_sha256(file) != expected:
            raise AdapterError(
                _("A file of adapter {id}, which is in use, was changed ({file})", id=record["id"], file=file)
            )


def _log(paths: Paths, db: sqlite3.Connection) -> Check:
    """The write-ahead log, which is emptied when nobody reads."""
    log = paths.database.with_name(f"{paths.database.name}-wal")
    bytes_ = log.stat().st_size if log.exists() else 0
    if bytes_ > LARGEST_LOG:
        return Check("log", "warning", _("the write-ahead log has grown to {size}", size=size(bytes_)), _(FIX))
    return Check("log", "ok", _("the write-ahead log has {size}", size=size(bytes_)))


_IN_DATABASE: dict[str, Callable[[Paths, sqlite3.Connection], Check]] = {
    "work": _work,
    "search": _search,
    "adapters": _adapters,
    "log": _log,
}


def _in_database(paths: Paths, name: str, look: Callable[[Paths, sqlite3.Connection], Check]) -> Check:
    if not paths.database.exists():
        return Check(name, "ok", _("nothing is kept yet"))
    try:
        with closing(opening.connect(paths.database, query="mode=ro", timeout=10.0)) as connection:
            return look(paths, connection)
    except (sqlite3.Error, StoreError, ValueError, OSError) as error:
        return Check(
            name,
            "warning",
            _("was not looked at: {error}", error=tidy(error)),
            _("Mend what is said of the database first."),
        )


def _some(paths: list[Path]) -> str:
    shown = ", ".join(tidy(path) for path in paths[:_SHOWN])
    if len(paths) <= _SHOWN:
        return shown
    return _("{files} and {count} more", files=shown, count=len(paths) - _SHOWN)
