"""Backups: whole while others write, the way back to the same or another home, and files that are none."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from claw_local.adapters.registry import file_sha256, verify
from claw_local.backup import Backup, look, restore, restoring, tables, write_backup
from claw_local.backup.manifest import MANIFEST
from claw_local.cli.main import app
from claw_local.errors import BackupError, RestoredError, UsageError
from claw_local.paths import Paths, locate
from claw_local.store import Store, opening
from claw_local.store.database import Database
from claw_local.store.migrations import MIGRATIONS

ROOT = Path(__file__).parents[2]


def fill(paths: Paths, title: str) -> Store:
    """A store with a chat, a hint, an adapter, settings and a theme."""
    store = Store(paths)
    chat = store.chats.create(title=title)
    store.messages.add(chat.id, "user", f"{title} question", parent_id=None)
    store.hints.add(f"{title} hint")
    folder = paths.adapters / f"run-1-{title}"
    (folder / "peft").mkdir(parents=True)
    (folder / "adapter.gguf").write_bytes(title.encode() * 1000)
    (folder / "peft" / "adapter_config.json").write_text("{}")
    store.adapters.add(
        parent_id=0,
        model_sha256="m",
        architecture="llama",
        gguf_path=str(folder / "adapter.gguf"),
        peft_dir=str(folder / "peft"),
        sha256={"adapter.gguf": file_sha256(folder / "adapter.gguf")},
        state="active",
    )
    judge = paths.adapters / "judge" / "own.gguf"
    judge.parent.mkdir()
    judge.write_bytes(b"judge")
    store.flags.set("judge.own.m", json.dumps({"path": str(judge), "lineage": []}))
    paths.settings.write_text('[app]\ntheme = "mine"\n')
    paths.themes.mkdir()
    (paths.themes / "mine.toml").write_text(f"# {title}\n")
    return store


@pytest.fixture
def backed(home: Paths, tmp_path: Path) -> tuple[Store, Backup]:
    store = fill(home, "old")
    return store, write_backup(store, home, tmp_path / "my.backup")


def titles(paths: Paths) -> list[str]:
    store = Store(paths)
    try:
        return [chat.title for chat in store.chats.list()]
    finally:
        store.close()


def test_a_backup_comes_back_in_another_home_with_everything(backed: tuple[Store, Backup], tmp_path: Path) -> None:
    _, made = backed
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert made.left_out == ()
    assert look(made.path).counts == {"chats": 1, "messages": 1, "hints": 1, "adapters": 1}
    other = locate(tmp_path / "other")
    done = restore(other, made.path)
    assert done.before is None
    assert titles(other) == ["old"]
    store = Store(other)
    record = store.adapters.active("m")
    assert record is not None
    verify(record)
    assert Path(record.gguf_path).is_relative_to(other.adapters)
    assert Path(json.loads(store.flags.get("judge.own.m"))["path"]).read_bytes() == b"judge"
    assert other.settings.read_text() == '[app]\ntheme = "mine"\n'
    assert (other.themes / "mine.toml").read_text() == "# old\n"
    assert [hint.text for hint in store.hints.list()] == ["old hint"]
    store.messages.add(1, "user", "it goes on", parent_id=1)
    assert [entry.name for entry in other.data.iterdir() if entry.name.startswith(".")] == []


def test_restoring_is_seen_by_open_programs_and_what_was_there_is_kept(
    backed: tuple[Store, Backup], home: Paths
) -> None:
    store, made = backed
    store.chats.update(1, title="newer")
    store.chats.create(title="since then")
    newer = home.adapters / "run-2-newer"
    newer.mkdir()
    (newer / "adapter.gguf").write_bytes(b"newer")
    store.adapters.add(parent_id=1, model_sha256="m", architecture="llama", gguf_path=str(newer / "adapter.gguf"))
    home.settings.write_text('[app]\ntheme = "other"\n')
    done = restore(home, made.path)
    assert [chat.title for chat in store.chats.list()] == ["old"], "the store that was open all the time"
    with pytest.raises(RestoredError):
        store.messages.add(1, "user", "into a chat it took for another", parent_id=1)
    store.database.accept()
    store.messages.add(1, "user", "and then it can write", parent_id=1)
    assert done.before is not None
    kept = sqlite3.connect(done.before / "claw-local.db")
    assert {title for (title,) in kept.execute("select title from chats")} == {"newer", "since then"}
    assert (done.before / "settings.toml").read_text() == '[app]\ntheme = "other"\n'
    assert (done.before / "adapters" / "run-2-newer" / "adapter.gguf").is_file()
    assert {entry.name for entry in home.adapters.iterdir()} == {"run-1-old", "judge"}
    assert home.settings.read_text() == '[app]\ntheme = "mine"\n'
    assert store.database.db.execute("pragma integrity_check").fetchone() == ("ok",)


def test_an_adapter_of_the_same_name_with_other_content_is_kept_apart(
    backed: tuple[Store, Backup], home: Paths
) -> None:
    store, made = backed
    (home.adapters / "run-1-old" / "adapter.gguf").write_bytes(b"something else")
    done = restore(home, made.path)
    record = store.adapters.active("m")
    assert record is not None and Path(record.gguf_path).read_bytes() == b"old" * 1000
    assert done.before is not None
    assert (done.before / "adapters" / "run-1-old" / "adapter.gguf").read_bytes() == b"something else"


def test_a_backup_is_whole_while_another_program_writes(home: Paths, tmp_path: Path) -> None:
    store = fill(home, "busy")
    script = f"""
import sys
from claw_local.paths import locate
from claw_local.store import Store, opening
from claw_local.store.database import Database
from claw_local.store.migrations import MIGRATIONS
store = Store(locate({str(home.data)!r}))
print("ready", flush=True)
n = 0
while True:
    with store.database.write():  # Two rows that belong together.
        chat = store.chats.create(title=f"pair {{n}}")
        store.messages.add(chat.id, "user", f"pair {{n}}", parent_id=None)
    n += 1
"""
    writer = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None and writer.stdout.readline()
        sizes = []
        for n in range(4):
            made = write_backup(store, home, tmp_path / f"{n}.backup")
            other = locate(tmp_path / f"home-{n}")
            restore(other, made.path)
            again = Store(other)
            with again.database.read() as db:
                chats = {title for (title,) in db.execute("select title from chats where title like 'pair %'")}
                said = {text for (text,) in db.execute("select content from messages where content like 'pair %'")}
                assert db.execute("pragma integrity_check").fetchone() == ("ok",)
            again.close()
            assert chats == said
            sizes.append(len(chats))
    finally:
        writer.kill()
        writer.wait()
    assert sizes == sorted(sizes) and sizes[-1] > sizes[0], "it wrote all the time"


def test_an_adapter_that_is_removed_meanwhile_is_no_harm(
    home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from claw_local.backup import writing

    store = fill(home, "old")
    add, done = writing._add, []

    def removing(archive: zipfile.ZipFile, name: str, path: Path) -> object:
        if not done and name.endswith("adapter.gguf"):
            done.append(name)
            store.adapters.update(1, gguf_path="", peft_dir="", state="retired")
            path.unlink()
        return add(archive, name, path)

    monkeypatch.setattr(writing, "_add", removing)
    made = write_backup(store, home, tmp_path / "my.backup")
    assert done
    assert not any(name.endswith("run-1-old/adapter.gguf") for name in made.manifest.files)
    other = locate(tmp_path / "other")
    restore(other, made.path)
    assert Store(other).adapters.get(1).gguf_path == ""


def rewritten(source: Path, target: Path, change: Callable[[dict[str, bytes], dict[str, object]], None]) -> Path:
    """A backup with other content, its hashes as they should be for that."""
    with zipfile.ZipFile(source) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files.pop(MANIFEST))
    change(files, manifest)
    for name, data in files.items():
        manifest["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest["files"] = {name: entry for name, entry in manifest["files"].items() if name in files}
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in {**files, MANIFEST: json.dumps(manifest).encode()}.items():
            archive.writestr(name, data)
    return target


def in_database(*statements: str) -> Callable[[dict[str, bytes], dict[str, object]], None]:
    def change(files: dict[str, bytes], _: dict[str, object]) -> None:
        connection = sqlite3.connect(":memory:")
        connection.deserialize(files["claw-local.db"])
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        files["claw-local.db"] = connection.serialize()

    return change


def put(name: str, data: bytes = b"x") -> Callable[[dict[str, bytes], dict[str, object]], None]:
    return lambda files, _: files.update({name: data})


def say(key: str, value: object) -> Callable[[dict[str, bytes], dict[str, object]], None]:
    return lambda _, manifest: manifest.update({key: value})


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


def tree(paths: Paths) -> set[str]:
    return {str(file.relative_to(paths.data)) for file in paths.data.rglob("*") if "claw-local.db-" not in file.name}


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


@pytest.mark.parametrize("step", ["_place_adapters", "_fit_database", "_place_files", "_switch_database"])
def test_a_restore_that_fails_half_way_puts_everything_back(
    backed: tuple[Store, Backup], home: Paths, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    store, made = backed
    store.chats.update(1, title="as it was")
    home.settings.write_text('[app]\ntheme = "other"\n')
    (home.adapters / "run-1-old" / "adapter.gguf").write_bytes(b"something else")
    before = tree(home)
    real = getattr(restoring._Switch, step)

    def failing(self: object, *arguments: object) -> None:
        if step != "_switch_database":
            real(self, *arguments)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(restoring._Switch, step, failing)
    with pytest.raises(BackupError, match="all is as it was"):
        restore(home, made.path)
    assert tree(home) == before
    assert titles(home) == ["as it was"]
    assert home.settings.read_text() == '[app]\ntheme = "other"\n'


def test_a_damaged_database_makes_room_for_the_backup(backed: tuple[Store, Backup], home: Paths) -> None:
    store, made = backed
    store.close()
    for file in home.data.glob("claw-local.db*"):
        file.write_bytes(b"this is no database any more, and long enough to be looked at" * 50)
    done = restore(home, made.path)
    assert titles(home) == ["old"]
    assert done.before is not None
    assert (done.before / "claw-local.db").read_bytes().startswith(b"this is no database")


def test_receipts_of_what_was_forgotten_since_stay(backed: tuple[Store, Backup], home: Paths) -> None:
    from claw_local.forgetting import Forgetting, Request

    store, made = backed
    Forgetting(store, home).forget(Request(containing="old question"))
    said = CliRunner().invoke(app, ["restore", str(made.path), "--yes", "--json"])
    assert json.loads(said.stdout)["forgotten_since"] == 1
    assert len(Forgetting(store, home).receipts()) == 1


def test_keys_that_were_removed_since_let_nobody_in_again(home: Paths, tmp_path: Path) -> None:
    store = fill(home, "old")
    for name in ("laptop", "phone"):
        store.keys.add(name, f"secret of the {name}", learn=False)
    made = write_backup(store, home, tmp_path / "keys.backup")
    store.keys.remove("phone")
    restore(home, made.path)
    assert store.keys.find("secret of the laptop") is not None and store.keys.find("secret of the phone") is None
    store.database.accept()
    store.keys.add("phone again", "secret of the phone", learn=False)
    again = write_backup(store, home, tmp_path / "again.backup")
    restore(home, again.path)
    assert store.keys.find("secret of the phone") is not None, "the person took it once more"
    other = locate(tmp_path / "elsewhere")
    restore(other, made.path)
    with contextlib.closing(Store(other)) as there:
        assert [key.name for key in there.keys.list()] == ["laptop", "phone"], "nothing was removed there"
    store.close()


def test_nothing_is_restored_while_something_is_learned(backed: tuple[Store, Backup], home: Paths) -> None:
    store, made = backed
    store.runs.begin()
    with pytest.raises(BackupError, match="learning run"):
        restore(home, made.path)


def test_a_run_of_the_home_the_backup_is_of_does_not_go_on_here(
    backed: tuple[Store, Backup], home: Paths, tmp_path: Path
) -> None:
    store, _ = backed
    store.runs.begin()
    made = write_backup(store, home, tmp_path / "while.backup")
    other = locate(tmp_path / "other")
    restore(other, made.path)
    there = Store(other)
    assert there.runs.running() is None
    assert [run.state for run in there.runs.list()] == ["failed"]
    assert store.runs.running() is not None
    there.close()


def test_threads_may_go_on_reading_while_it_restores(backed: tuple[Store, Backup], home: Paths) -> None:
    store, made = backed
    stop, errors = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            try:
                assert [chat.title for chat in store.chats.list()] in (["old"], ["newer"])
            except Exception as error:
                errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(5):
        store.chats.update(1, title="newer")
        restore(home, made.path)
        store.database.accept()
    stop.set()
    reader.join()
    assert errors == []


def test_where_there_is_no_room_for_the_backup_its_own_disk_is_named(
    backed: tuple[Store, Backup], home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = opening.connect

    def small(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.execute("pragma max_page_count = 1")
        return connection

    monkeypatch.setattr(tables, "opening", SimpleNamespace(connect=small))
    with pytest.raises(BackupError, match=r"written to .*another\.backup"):
        write_backup(backed[0], home, tmp_path / "another.backup")
    assert not (tmp_path / "another.backup").exists()


def test_commands_ask_refuse_and_print_json(backed: tuple[Store, Backup], home: Paths, tmp_path: Path) -> None:
    run = CliRunner().invoke
    target = tmp_path / "another.backup"
    made = run(app, ["backup", str(target), "--json"])
    assert json.loads(made.stdout)["counts"]["chats"] == 1
    again = run(app, ["backup", str(target)])
    assert again.exit_code == 2 and "--force" in again.output
    assert run(app, ["backup", str(target), "--force"]).exit_code == 0
    assert run(app, ["backup", str(tmp_path)]).exit_code == 2
    nowhere = run(app, ["backup", str(tmp_path / "none" / "x")])
    assert nowhere.exit_code == 1 and "cannot be written" in nowhere.output
    asked = run(app, ["restore", str(target)])
    assert asked.exit_code == 2 and "add --yes" in asked.output
    assert run(app, ["restore", str(tmp_path / "none")]).exit_code == 1
    assert "Restored: 1 chat, 1 message, 1 hint, 1 adapter." in run(app, ["restore", str(target), "--yes"]).output
    with pytest.raises(UsageError):
        write_backup(backed[0], home, target)


def test_what_is_here_is_never_given_up_because_it_could_not_be_kept(
    backed: tuple[Store, Backup], home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, made = backed
    store.chats.update(1, title="as it was")
    before = tree(home)
    monkeypatch.setattr(restoring, "BUSY_S", 0.1)
    store.database.db.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    store.close()
    holder = sqlite3.connect(home.database, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("update chats set title = title")
    try:
        with pytest.raises(BackupError, match="cannot be copied"):
            restore(home, made.path)
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert tree(home) == before
    assert titles(home) == ["as it was"]


def test_receipts_that_cannot_be_read_cost_nothing_of_what_is_here(backed: tuple[Store, Backup], home: Paths) -> None:
    store, made = backed
    store.chats.update(1, title="newer")
    store.flags.set("forgotten", "no JSON")
    done = restore(home, made.path)
    assert done.before is not None
    kept = sqlite3.connect(done.before / "claw-local.db")
    assert kept.execute("select title from chats").fetchall() == [("newer",)]
    assert titles(home) == ["old"]


def test_a_damaged_database_comes_back_when_the_backup_cannot_take_its_place(
    backed: tuple[Store, Backup], home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, made = backed
    store.close()
    damaged = b"this is no database any more, and long enough to be looked at" * 50
    for file in home.data.glob("claw-local.db*"):
        file.write_bytes(damaged)
    replace = os.replace

    def failing(source: Path, target: Path) -> None:
        if Path(target) == home.database and ".restore-" in str(source):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(restoring.os, "replace", failing)
    with pytest.raises(BackupError, match="all is as it was"):
        restore(home, made.path)
    assert home.database.read_bytes() == damaged


def test_once_the_backup_is_in_place_no_failure_says_that_it_is_not(
    backed: tuple[Store, Backup], home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = backed
    (home.adapters / "run-2-newer").mkdir()
    rename = os.rename

    def failing(source: Path, target: Path) -> None:
        if Path(source).name == "run-2-newer":
            raise PermissionError(13, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(restoring.os, "rename", failing)
    restore(home, made.path)
    assert titles(home) == ["old"]
    assert (home.adapters / "run-2-newer").is_dir()


def test_what_a_killed_restore_unpacked_goes_at_the_next(backed: tuple[Store, Backup], home: Paths) -> None:
    _, made = backed
    (home.data / ".restore-1-1.00-abc").mkdir()
    (home.data / ".restore-xyz").mkdir()
    restore(home, made.path)
    assert not list(home.data.glob(".restore-*"))


def test_a_backup_is_never_written_over_what_is_in_use(backed: tuple[Store, Backup], home: Paths) -> None:
    store, made = backed
    for target in (home.database, home.settings):
        before = target.read_bytes()
        with pytest.raises(UsageError, match="in use"):
            write_backup(store, home, target, force=True)
        assert target.read_bytes() == before
    link = made.path.with_name("link")
    link.symlink_to(home.database)
    with pytest.raises(UsageError, match="in use"):
        write_backup(store, home, link, force=True)
    link.unlink()
    link.symlink_to(made.path)
    write_backup(store, home, link, force=True)
    assert link.is_symlink() and look(made.path).counts["chats"] == 1
    pipe = made.path.with_name("pipe")
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="no regular file"):
        write_backup(store, home, pipe, force=True)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


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


def test_an_older_backup_is_brought_up_to_date_before_open_programs_see_it(
    backed: tuple[Store, Backup], home: Paths, tmp_path: Path
) -> None:
    older = Database(locate(tmp_path / "older"), MIGRATIONS[:6])
    store = Store.__new__(Store)
    store.database = older  # An older claw-local: its tables, and nothing that came later.
    made = write_backup(store, locate(tmp_path / "older"), tmp_path / "older.backup")
    older.close()
    assert len(made.manifest.migrations) == 6 < len(MIGRATIONS)
    open_all_the_time, _ = backed
    restore(home, made.path)
    assert open_all_the_time.chats.list() == []
    open_all_the_time.database.accept()
    chat = open_all_the_time.chats.create(title="and it can write")
    open_all_the_time.chats.update(chat.id, adapter_id=0)
    assert open_all_the_time.chats.get(chat.id).adapter_id == 0


def test_another_program_that_never_stops_writing_is_said_and_not_waited_for_without_an_end(
    backed: tuple[Store, Backup], home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, made = backed
    store.chats.update(1, title="as it was")
    before = tree(home)
    monkeypatch.setattr(restoring, "BUSY_S", 0.1)
    writer = sqlite3.connect(home.database, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with pytest.raises(BackupError, match="held by another program"):
        restore(home, made.path)
    writer.close()
    assert tree(home) == before
    assert titles(home) == ["as it was"]


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
