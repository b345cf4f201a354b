"""An encrypted store: nothing of what was said is plain, it is used as a plain one, and a kill in the middle of
encrypting it, or of making it plain, leaves one that is whole."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from claw_local import leftovers, prompting
from claw_local.backup import restore, write_backup
from claw_local.doctor.database import check_database
from claw_local.errors import ClawError, DiskError, StoreError, UsageError
from claw_local.paths import Paths, locate
from claw_local.store import Store, encrypting, opening, unlocking
from claw_local.store.database import Database
from claw_local.store.migrations import MIGRATIONS
from claw_local.store.unlocking import VARIABLE, Encryption, Key

SAID = "the kite flew over the harbour"
KEY = f"x'{'5a' * 32}'"
"""A key instead of a passphrase: nothing has to be derived from it."""
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_keys() -> Iterator[None]:
    unlocking.forget_keys()
    yield
    unlocking.forget_keys()
    prompting.ask_with(None)


@pytest.fixture
def key(home: Paths, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(VARIABLE, KEY)
    return KEY


def new(text: str = KEY) -> Callable[[], tuple[Encryption, Key]]:
    return lambda: unlocking.made(text, "passphrase")


def said(paths: Paths) -> list[str]:
    store = Store(paths)
    try:
        with store.database.read() as db:
            assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
            return [row[0] for row in db.execute("select content from messages order by id").fetchall()]
    finally:
        store.close()


def fill(paths: Paths) -> None:
    store = Store(paths)
    chat = store.chats.create(title="kites")
    store.messages.add(chat.id, "user", SAID, parent_id=None)
    with store.database.read() as db, closing(sqlite3.connect(paths.backups / "20260101T000000-before-x.db")) as copy:
        db.conn.backup(copy)
    store.close()


def plain_places(paths: Paths, text: str = SAID) -> list[Path]:
    """Files of the home in which it stands, word for word or as the search index keeps words."""
    parts = (text.encode(), b"harbour")
    files = [file for file in paths.data.rglob("*") if file.is_file()]
    return [file for file in files if any(part in file.read_bytes() for part in parts)]


def test_nothing_of_what_was_said_is_plain_and_the_way_back_has_it_all(home: Paths, key: str) -> None:
    fill(home)
    assert len(plain_places(home)) == 2
    copied = next(home.backups.glob("*.db"))
    os.utime(copied, (1e9, 1e9))
    home.caches.mkdir()
    (home.caches / "1.kv").write_bytes(SAID.encode())
    done = encrypting.encrypt(home, new())
    assert (done.database, done.copies, done.left) == (True, 1, ())
    assert plain_places(home) == [] and opening.is_encrypted(home.database)
    assert copied.stat().st_mtime == 1e9, "forgetting goes by when a copy was made"
    assert said(home) == [SAID]
    store = Store(home)
    assert [hit.chat_id for hit in store.search.find("harbour", limit=9)] == [1]
    store.messages.add(1, "user", "harbour again", parent_id=1)
    assert plain_places(home, "again") == [], "nor in the log beside it"
    store.close()
    with closing(opening.connect(copied, like=home.database)) as kept:
        assert kept.execute("select content from messages").fetchall() == [(SAID,)]
    for file in (home.database, home.encryption, copied):
        assert file.stat().st_mode & 0o077 == 0
    assert encrypting.encrypt(home, new()) == encrypting.Done(False, 0, ())

    assert encrypting.make_plain(home) == encrypting.Done(True, 1, ())
    unlocking.forget_keys()
    assert said(home) == [SAID, "harbour again"] and not home.encryption.exists()
    with closing(sqlite3.connect(copied)) as kept:
        assert kept.execute("select content from messages").fetchall() == [(SAID,)]
    assert encrypting.make_plain(home) == encrypting.Done(False, 0, ())
    assert leftovers.found(home) == []


def test_a_passphrase_opens_it_here_and_in_other_programs(home: Paths) -> None:
    fill(home)
    encrypting.encrypt(home, new("seven grey kites"))
    unlocking.forget_keys()
    asked: list[str] = []
    words = iter(["seven grey cats", "seven grey kites"])
    prompting.ask_with(lambda question: asked.append(question) or next(words))  # type: ignore[func-returns-value]
    assert said(home) == [SAID]
    assert len(asked) == 2 and str(home.database) in asked[0] and "Once more" in asked[1]
    from sqlcipher3 import dbapi2

    with closing(dbapi2.connect(str(home.database))) as other:
        other.execute("pragma key = 'seven grey kites'")
        assert other.execute("select content from messages").fetchall() == [(SAID,)]
    children = unlocking.for_children(home.database)
    assert list(children) == [VARIABLE] and "kites" not in children[VARIABLE], "not the words, which may open more"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from claw_local.store import Store; from claw_local.paths import locate; Store(locate())",
        ],
        env={**os.environ, **children},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_no_key_or_a_wrong_one_is_said_in_a_sentence_and_does_no_harm(
    home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)
    encrypting.encrypt(home, new())
    unlocking.forget_keys()
    before = home.database.read_bytes()
    with pytest.raises(StoreError, match=f"is encrypted.*terminal.*{VARIABLE}"):
        Store(home)
    monkeypatch.setenv(VARIABLE, "x'" + "00" * 32 + "'")
    with pytest.raises(StoreError, match=r"another passphrase. Nothing was changed") as wrong:
        Store(home)
    assert "00000000" not in str(wrong.value)
    monkeypatch.delenv(VARIABLE)
    prompting.ask_with(lambda question: "x'" + "11" * 32 + "'")
    with pytest.raises(StoreError, match=r"The passphrase is wrong.*try again"):
        Store(home)
    assert home.database.read_bytes() == before
    monkeypatch.setenv(VARIABLE, KEY)
    assert said(home) == [SAID]
    assert KEY[2:20] not in repr(opening.key_of(home.database)), "a traceback shows no key"
    with pytest.raises(UsageError, match="fewer than 8"):
        unlocking.made("short", "passphrase")


def test_without_the_package_the_command_that_installs_it_is_named(
    home: Paths, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)
    encrypting.encrypt(home, new())
    monkeypatch.setitem(sys.modules, "sqlcipher3", None)
    with pytest.raises(StoreError, match=r'pip install "claw-local\[encrypted\]"'):
        Store(home)
    monkeypatch.undo()


def test_errors_of_an_encrypted_store_are_caught_as_those_of_a_plain_one(home: Paths, key: str) -> None:
    encrypting.encrypt(home, new())
    store = Store(home)
    with store.database.read() as db, pytest.raises(sqlite3.OperationalError):
        db.conn.execute("select nothing from nowhere")
    with pytest.raises(StoreError), store.database.write() as db:
        db.conn.execute("insert into messages (chat_id, role, created_at) values (99, 'user', '')")
    assert opening.is_encrypted(home.database), "made so from its first byte"
    store.close()
    home.database.write_bytes(b"x" * 8192)
    with pytest.raises(StoreError, match="damaged"):
        Store(home)


def test_an_older_schema_is_brought_up_to_date_and_the_copy_made_before_is_encrypted(home: Paths, key: str) -> None:
    Database(home, MIGRATIONS[:3]).close()
    encrypting.encrypt(home, new())
    with closing(opening.connect(home.database)) as db:
        db.execute(
            "insert into chats (id, title, model, system, learn, archived, created_at, updated_at) "
            f"values (7, '{SAID}', '', '', 1, 0, '2026', '2026')"
        )
    store = Store(home)
    assert store.chats.get(7).title == SAID
    store.close()
    (copy,) = home.backups.glob("*.db")
    assert plain_places(home) == []
    with closing(opening.connect(copy, like=home.database)) as db:
        assert db.execute("select count(*) from migrations").fetchone() == (3,)


POINTS: dict[str, tuple[str, bool, str]] = {
    "on: written aside": ("_export", False, "plain"),
    "on: checked": ("_check", False, "plain"),
    "on: noted": ("_noted", False, "plain"),
    "on: in place": ("_overwrite", True, "encrypted"),
    "on: copies": ("_rewrite_copies", True, "encrypted"),
    "on: one copy written aside": ("_export", False, "encrypted"),
    "off: written aside": ("_export", False, "encrypted"),
    "off: checked": ("_check", False, "encrypted"),
    "off: in place": ("_rewrite_copies", True, "plain"),
    "off: copies done": ("_rewrite_copies", False, "plain"),
}
"""What is killed: at which function, before it or behind it, and what the database is then."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_it_is_whole_and_goes_on(home: Paths, key: str, point: str) -> None:
    name, before, state = POINTS[point]
    off, second = point.startswith("off"), point.startswith("on: one copy")
    fill(home)
    if off:
        encrypting.encrypt(home, new())

    def work() -> None:
        here: Any = Encryption if name == "_noted" else encrypting
        attribute = "write" if name == "_noted" else name
        real, calls = getattr(here, attribute), iter(range(9))

        def fatal(*arguments: Any) -> Any:
            now = next(calls) == int(second)
            if now and before:
                os.kill(os.getpid(), signal.SIGKILL)
            done = real(*arguments)
            if now:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        setattr(here, attribute, fatal)
        encrypting.make_plain(home) if off else encrypting.encrypt(home, new())

    child = os.fork()
    if not child:
        with suppress(BaseException):
            work()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert opening.is_encrypted(home.database) == (state == "encrypted")
    assert said(home) == [SAID]
    if point == "off: in place":
        with pytest.raises(StoreError, match="encrypt off"):
            encrypting.encrypt(home, new())  # A new key would lock the copies in.
        encrypting.make_plain(home)
    encrypting.encrypt(home, new())
    assert leftovers.found(home) == [] and plain_places(home) == [] and said(home) == [SAID]


def test_it_is_not_done_while_another_program_has_it_open(
    home: Paths, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encrypting, "BUSY_S", 0.1)
    fill(home)
    script = (
        "import sys; from claw_local.store import Store; from claw_local.paths import locate; s = Store(locate())\n"
    )
    script += "print('open', flush=True); sys.stdin.read()"
    for turn in (lambda: encrypting.encrypt(home, new()), lambda: encrypting.make_plain(home)):
        with subprocess.Popen(
            [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout is not None and other.stdin is not None
            assert other.stdout.readline() == "open\n"
            encrypted = opening.is_encrypted(home.database)
            with pytest.raises(StoreError, match=r"open in another program.*nothing was changed"):
                turn()
            assert opening.is_encrypted(home.database) == encrypted and said(home) == [SAID]
            other.stdin.close()
        assert turn().database


def test_who_waits_while_it_is_encrypted_writes_into_the_new_file(
    home: Paths, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that begins in the middle: it must not write into the old file, which has no name any more."""
    fill(home)
    script = "from claw_local.store import Store; from claw_local.paths import locate; s = Store(locate())\n"
    script += "s.chats.create(title='late'); s.close()"
    others: list[subprocess.Popen[bytes]] = []
    real = encrypting._check

    def slow(*arguments: Any) -> None:
        real(*arguments)
        if not others:
            others.append(subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stderr=subprocess.PIPE))
            time.sleep(1.5)

    monkeypatch.setattr(encrypting, "_check", slow)
    encrypting.encrypt(home, new())
    assert others[0].communicate()[1] == b"" and others[0].returncode == 0
    store = Store(home)
    assert [chat.title for chat in store.chats.list()] == ["late", "kites"]
    store.close()


def test_a_backup_stays_encrypted_and_comes_back_into_any_home(home: Paths, key: str, tmp_path: Path) -> None:
    fill(home)
    encrypting.encrypt(home, new())
    store = Store(home)
    made = write_backup(store, home, tmp_path / "mine.backup")
    store.chats.update(1, title="newer")
    store.close()
    assert made.encrypted and SAID.encode() not in made.path.read_bytes()
    assert not restore(home, made.path).made_plain
    assert said(home) == [SAID] and plain_places(home) == []

    empty = locate(tmp_path / "empty")
    restore(empty, made.path)
    assert said(empty) == [SAID] and opening.is_encrypted(empty.database) and plain_places(empty) == []

    plain = locate(tmp_path / "plain")
    fill(plain)
    assert restore(plain, made.path).made_plain
    assert said(plain) == [SAID] and not plain.encryption.exists() and not opening.is_encrypted(plain.database)

    open_store = Store(plain)
    unsealed = write_backup(open_store, plain, tmp_path / "plain.backup")
    open_store.close()
    assert not unsealed.encrypted
    restore(home, unsealed.path)
    assert said(home) == [SAID] and opening.is_encrypted(home.database) and plain_places(home) == []


def test_a_lost_note_makes_no_plain_store_of_an_encrypted_backup(home: Paths, key: str, tmp_path: Path) -> None:
    fill(home)
    encrypting.encrypt(home, new())
    store = Store(home)
    made = write_backup(store, home, tmp_path / "mine.backup")
    store.close()
    home.encryption.unlink()
    done = restore(home, made.path)
    assert not done.made_plain and opening.is_encrypted(home.database)
    assert said(home) == [SAID] and plain_places(home) == []
    assert done.before is not None and (done.before / home.database.name).is_file(), "what was there is kept"


@pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX")
def test_on_a_full_disk_it_goes_on_in_memory_and_comes_back_encrypted(home: Paths, key: str) -> None:
    import resource

    fill(home)
    encrypting.encrypt(home, new())
    store = Store(home)
    with store.database.read() as db:
        db.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        with pytest.raises(DiskError):
            store.chats.create(title="harbour")
        store.database.keeping(lambda: store.chats.create(title="harbour lights"))
        assert store.database.adrift
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with suppress(ClawError):
        store.close()
    again = Store(home)
    assert [chat.title for chat in again.chats.list()] == ["harbour lights", "kites"]
    again.close()
    assert plain_places(home, "lights") == []


def test_a_note_that_is_gone_is_made_anew_from_the_passphrase(home: Paths, key: str) -> None:
    fill(home)
    encrypting.encrypt(home, new())
    home.encryption.unlink()
    with pytest.raises(StoreError, match="encrypt on") as refused:
        Store(home)
    assert "away" not in str(refused.value), "it may be whole"
    check = check_database(home)
    assert check.state == "problem" and check.remedy.startswith("Run `claw-local encrypt on`")
    with pytest.raises(StoreError, match="encrypt on"):
        encrypting.make_plain(home)
    assert not encrypting.encrypt(home, new()).database
    assert said(home) == [SAID]
    for damaged in (b"{}", b"[1]", b"\xff\xfe\x00", b"nul\0"):
        home.encryption.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"cannot be read\. .*encrypt on"):
            Store(home)
    home.encryption.unlink()
    home.encryption.mkdir()
    with pytest.raises(StoreError, match=r"cannot be read\. .*encrypt on"):
        Store(home)
