"""Files that are no backup, cut ones and forged ones: each is refused by name, and nothing here changes."""

from __future__ import annotations

import json
import sqlite3
import stat
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from claw_local.backup import Backup, look, restore, write_backup
from claw_local.backup.manifest import MANIFEST
from claw_local.errors import BackupError
from claw_local.paths import Paths
from claw_local.store import Store

from .homes import fill, in_database, put, rewritten, say, titles, tree

FORGED: dict[str, tuple[Callable[[dict[str, bytes], dict[str, object]], None], str]] = {
    "leads out": (put("../evil.toml"), "has no place"),
    "leads out of adapters": (put("adapters/../../evil"), "has no place"),
    "absolute": (put("/etc/evil"), "has no place"),
    "drive": (put("adapters/C:/evil"), "has no place"),
    "backslash": (put("adapters/run\\..\\..\\x/evil"), "has no place"),
    "a program": (put("evil.py"), "has no place"),
    "same name in capitals": (put("adapters/RUN-1-OLD/adapter.gguf"), "two files of the same name"),
    "no database": (lambda files, _: files.pop("claw-local.db"), "no database"),  # type: ignore[dict-item,return-value]
    "not sqlite": (put("claw-local.db", b"not a database at all" * 100), "cannot be read"),
    "empty database": (put("claw-local.db", b""), "cannot be read"),
    "trigger": (in_database("create trigger t after insert on chats begin delete from chats; end"), "'t'"),
    "view": (in_database("create view v as select * from chats"), "'v'"),
    "newer database": (in_database("insert into migrations values ('m999_future', 'x')"), "newer claw-local"),
    "path outside": (in_database("update adapters set gguf_path = '/etc/passwd'"), "outside"),
    "path up": (in_database("update adapters set peft_dir = 'adapters/../../x'"), "outside"),
    "broken row": (in_database("insert into messages (id, chat_id, role, content, state, turn_type, learn, created_at) "
                               "values (99, 999, 'user', '', 'done', 'main', 1, '')"), "not whole"),
    "newer format": (say("version", 2), "newer claw-local"),
    "other format": (say("format", "something"), "not a backup"),
    "no counts": (lambda _, manifest: manifest.pop("counts"), "not whole"),  # type: ignore[dict-item,return-value]
    "files is a list": (say("migrations", 7), "not whole"),
    "counts that steer the terminal": (say("counts", {"chats\x1b[2J": 1}), "not whole"),
    "counts of numbers": (say("counts", [[1, 1]]), "not whole"),
    "a time that steers the terminal": (say("created_at", "2026\x1b[2J"), "not whole"),
    "receipts of nothing": (in_database("insert or replace into flags values ('forgotten', '[5]')"), "receipts"),
    "a judge without a path": (in_database("insert into flags values ('judge.own.x', '{\"path\": 5}')"), "be read"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_backup_is_refused_and_changes_nothing(
    backed: tuple[Store, Backup], home: Paths, tmp_path: Path, kind: str
) -> None:
    store, made = backed
    change, words = FORGED[kind]
    forged = rewritten(made.path, tmp_path / "forged.backup", change)
    store.chats.update(1, title="as it was")
    before = tree(home)
    with pytest.raises(BackupError, match=words):
        restore(home, forged)
    assert titles(home) == ["as it was"]
    assert tree(home) == before
    assert not (tmp_path / "evil.toml").exists()


def test_a_cut_or_changed_file_is_refused_wherever_it_is_cut(
    backed: tuple[Store, Backup], home: Paths, tmp_path: Path
) -> None:
    _, made = backed
    whole, bad = made.path.read_bytes(), tmp_path / "bad.backup"
    before = tree(home)
    for end in (0, 1, 20, len(whole) // 3, len(whole) // 2, len(whole) - 30, len(whole) - 1):
        bad.write_bytes(whole[:end])
        with pytest.raises(BackupError, match=r"cut short|not a backup|damaged"):
            restore(home, bad)
    for place in range(60, len(whole) - 400, max(1, len(whole) // 12)):
        changed = bytearray(whole)
        changed[place] ^= 0x55
        bad.write_bytes(changed)
        try:
            restore(home, bad)
        except BackupError:
            assert tree(home) == before
        else:  # A byte that means nothing, such as a time in the zip's own list.
            before = tree(home)
        assert titles(home) == ["old"]


def test_what_is_no_plain_file_or_far_too_long_is_refused(
    backed: tuple[Store, Backup], home: Paths, tmp_path: Path
) -> None:
    _, made = backed
    link = zipfile.ZipInfo("adapters/run-1-old/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(made.path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for extra, words in ((link, "no plain file"), (zipfile.ZipInfo("settings.toml"), "same name")):
        bad = tmp_path / "bad.backup"
        with zipfile.ZipFile(bad, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # zipfile warns of the double name.
                archive.writestr(extra, b"/etc/passwd")
        with pytest.raises(BackupError, match=words):
            restore(home, bad)
    manifest = json.loads(files[MANIFEST])
    manifest["files"]["settings.toml"]["size"] = 1 << 60
    with zipfile.ZipFile(bad, "w") as archive:
        for name, data in {**files, MANIFEST: json.dumps(manifest).encode()}.items():
            archive.writestr(name, data)
    with pytest.raises(BackupError, match="not as long as it says"):
        restore(home, bad)


def test_receipts_that_cannot_be_read_cost_nothing_of_what_is_here(backed: tuple[Store, Backup], home: Paths) -> None:
    store, made = backed
    store.chats.update(1, title="newer")
    store.flags.set("forgotten", "no JSON")
    done = restore(home, made.path)
    assert done.before is not None
    kept = sqlite3.connect(done.before / "claw-local.db")
    assert kept.execute("select title from chats").fetchall() == [("newer",)]
    assert titles(home) == ["old"]


def test_half_a_backup_is_never_put_in_place(home: Paths, tmp_path: Path) -> None:
    store = fill(home, "old")
    theme = home.themes / "mine.toml"

    def report(words: str, _: float) -> None:
        if words == "copying the database":
            theme.write_text("# again\n")
        elif words.endswith("mine.toml"):
            theme.unlink()

    with pytest.raises(BackupError, match="again later"):
        write_backup(store, home, tmp_path / "my.backup", report=report)
    assert list(tmp_path.iterdir()) == [home.data]


def test_a_manifest_that_cannot_be_unpacked_is_said(backed: tuple[Store, Backup], tmp_path: Path) -> None:
    _, made = backed
    whole, bad = made.path.read_bytes(), tmp_path / "bad.backup"
    with zipfile.ZipFile(made.path) as archive:
        at = archive.getinfo(MANIFEST).header_offset + 30 + len(MANIFEST)
    refused = 0
    for place in range(at, at + 20):
        for value in (0x00, 0x55, 0xFF):
            bad.write_bytes(whole[:place] + bytes([whole[place] ^ value]) + whole[place + 1 :])
            try:
                look(bad)
            except BackupError:
                refused += 1
    assert refused >= 20
