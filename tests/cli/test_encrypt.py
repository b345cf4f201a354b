"""`claw-local encrypt`, and all other commands on an encrypted store; and that one place alone opens the database."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from claw_local import prompting
from claw_local.cli.main import run
from claw_local.idle.job import Job
from claw_local.paths import Paths
from claw_local.store import Store, encrypting, opening, unlocking
from claw_local.store.unlocking import VARIABLE

SAID = "the kite flew over the harbour"
KEY = f"x'{'5a' * 32}'"
OTHER = f"x'{'11' * 32}'"
ROOT = Path(__file__).parents[2]
FOREIGN = {
    "claw_local/history/sqlite_files.py": "other programs' databases",
    "claw_local/store/in_memory.py": "never on a disk",
    "stress/fuzz/chats.py": "other programs' databases",
}


@pytest.fixture(autouse=True)
def _no_keys() -> Iterator[None]:
    unlocking.forget_keys()
    yield
    unlocking.forget_keys()
    prompting.ask_with(None)


@pytest.fixture
def filled(home: Paths) -> Paths:
    store = Store(home)
    chat = store.chats.create(title="kites")
    store.messages.add(chat.id, "user", SAID, parent_id=None)
    store.hints.add("Write in lowercase letters.")
    store.close()
    return home


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[tuple[str, str], str]]:
    """A keyring of this process: the system's own is nobody's to write to in a test."""
    import keyring as package
    from keyring.backend import KeyringBackend

    kept: dict[tuple[str, str], str] = {}

    class InProcess(KeyringBackend):
        priority = 1.0

        def get_password(self, service: str, username: str) -> str | None:
            return kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            kept[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del kept[service, username]

    before = package.get_keyring()
    package.set_keyring(InProcess())
    yield kept
    package.set_keyring(before)


def told(capfd: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    capfd.readouterr()
    assert run(words) == status, capfd.readouterr()
    found = capfd.readouterr()
    return found.out if status == 0 else found.err


def test_on_status_and_off(filled: Paths, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert "not encrypted" in told(capfd, "encrypt", "status")
    assert VARIABLE in told(capfd, "encrypt", "on", status=2)
    assert not filled.encryption.exists()
    monkeypatch.setenv(VARIABLE, KEY)
    assert "Write it down" in told(capfd, "encrypt", "on")
    filled.settings.write_text("[app]\n")
    monkeypatch.delenv(VARIABLE)
    unlocking.forget_keys()
    said = told(capfd, "encrypt", "status")  # Needs no key.
    assert "with a passphrase" in said and str(filled.settings) in said
    state = json.loads(told(capfd, "encrypt", "status", "--json"))
    assert state["encrypted"] and state["key"] == "passphrase" and state["plain_copies"] == []
    assert "is encrypted" in told(capfd, "history", "list", status=1)
    monkeypatch.setenv(VARIABLE, OTHER)
    assert "another passphrase" in told(capfd, "history", "list", status=1)
    assert "another passphrase" in told(capfd, "encrypt", "off", status=1)
    monkeypatch.setenv(VARIABLE, KEY)
    assert "kites" in told(capfd, "history", "list")
    assert "encrypted already" in told(capfd, "encrypt", "on")
    backup = str(filled.data / "mine.backup")
    told(capfd, "backup", backup)
    assert "plain here now" not in told(capfd, "restore", backup, "--yes")
    assert "Plain again" in told(capfd, "encrypt", "off")
    assert "plain here now" in told(capfd, "restore", backup, "--yes")
    assert json.loads(told(capfd, "restore", backup, "--yes", "--json"))["made_plain"]
    monkeypatch.delenv(VARIABLE)
    unlocking.forget_keys()
    assert "kites" in told(capfd, "history", "list") and "is plain" in told(capfd, "encrypt", "off")


def test_the_keyring_keeps_a_key_that_nobody_has_to_type(
    filled: Paths,
    keyring: dict[tuple[str, str], str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert "keyring get claw-local store" in told(capfd, "encrypt", "on", "--keyring")
    (key,) = keyring.values()
    assert list(keyring) == [("claw-local", "store")] and len(key) == 67
    unlocking.forget_keys()
    assert "kites" in told(capfd, "history", "list") and "keyring" in told(capfd, "encrypt", "status")
    keyring.clear()
    unlocking.forget_keys()
    assert "Unlock the keyring" in told(capfd, "history", "list", status=1)
    monkeypatch.setenv(VARIABLE, key)
    assert "kites" in told(capfd, "history", "list")


def test_a_keyring_that_keeps_nothing_leaves_all_as_it_was(
    filled: Paths, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    import keyring as package
    from keyring.backends import fail

    before = package.get_keyring()
    package.set_keyring(fail.Keyring())
    try:
        assert "leave --keyring out" in told(capfd, "encrypt", "on", "--keyring", status=1)
    finally:
        package.set_keyring(before)
    assert not filled.encryption.exists() and not opening.is_encrypted(filled.database)


COMMANDS = """
history list; history search harbour; history show 1; history export --all --out {out}/chats.md; hints list
adapters list; learn status; learn log; learn likes; serve keys list; serve keys add me; feedback --help
backup {out}/a.backup; restore {out}/a.backup --yes; forget --receipts; forget 1 --help; models list; tools list
config list; history delete 1 --help; uninstall --dry-run; hints off 1; learn on; learn pause; learn off
"""


def test_every_command_opens_it(
    filled: Paths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    told(capfd, "encrypt", "on")
    for line in COMMANDS.format(out=tmp_path).replace("\n", ";").split(";"):
        if line.strip():
            told(capfd, *line.split())
    assert SAID in (tmp_path / "chats.md").read_text("utf-8")
    assert opening.is_encrypted(filled.database)
    home = [file for file in filled.data.rglob("*") if file.is_file()]
    assert not any(SAID.encode() in file.read_bytes() for file in home)


def test_the_doctor_looks_into_it_with_the_key_and_says_so_without(
    filled: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    from claw_local.doctor.database import check_database
    from claw_local.doctor.fixing import FIXES
    from claw_local.doctor.home import check_home

    monkeypatch.setenv(VARIABLE, KEY)
    encrypting.encrypt(filled, lambda: unlocking.made(KEY, "passphrase"))
    assert check_database(filled).state == "ok" and "encrypted" in check_database(filled).detail
    assert {check.state for check in check_home(filled)} == {"ok"}
    with closing(opening.connect(filled.database)) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("insert into pieces (message_id, text) values (99, 'lost')")
    found = check_database(filled)
    assert found.state == "problem" and "point at nothing" in found.detail
    assert "1 row that pointed" in FIXES["database"](filled, found) and check_database(filled).state == "ok"
    assert not [copy for copy, plain in encrypting.copies(filled) if plain], "the copy made before is encrypted"
    monkeypatch.delenv(VARIABLE)
    unlocking.forget_keys()
    found = check_database(filled)
    assert found.state == "problem" and "is encrypted" in found.detail and VARIABLE in found.remedy


def test_a_learning_run_gets_the_key_in_its_environment_and_nowhere_else(
    filled: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "seven grey kites")
    encrypting.encrypt(filled, lambda: unlocking.made("seven grey kites", "passphrase"))
    monkeypatch.delenv(VARIABLE)
    given: dict[str, Any] = {}

    def popen(command: list[str], **how: Any) -> None:
        given.update(how, command=command)

    from claw_local.idle import job
    from claw_local.settings import Settings

    monkeypatch.setattr(job.subprocess, "Popen", popen)
    asked = Job.__new__(Job)
    asked._paths, asked.run_id, asked._learning, asked._options = filled, 1, Settings().learning, []
    asked._threads = 1
    asked._spawn(anew=True)
    monkeypatch.undo()
    assert VARIABLE not in os.environ
    handed = given["env"][VARIABLE]
    assert "kites" not in handed and not any(handed in word for word in given["command"])
    script = "from claw_local.paths import locate; from claw_local.store import Store\n"
    script += "print(Store(locate()).chats.get(1).title)"
    done = subprocess.run(
        [sys.executable, "-c", script], env=given["env"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.stdout, done.stderr) == ("kites\n", "")
    assert not any(handed.encode() in file.read_bytes() for file in filled.data.rglob("*") if file.is_file())


def test_pages_in_a_browser_have_no_terminal_and_get_the_key(filled: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    from claw_local.cli.chat import _let_pages_open_the_store

    monkeypatch.setenv(VARIABLE, "")
    _let_pages_open_the_store()
    assert os.environ[VARIABLE] == "", "a plain store needs none"
    encrypting.encrypt(filled, lambda: unlocking.made("seven grey kites", "passphrase"))
    _let_pages_open_the_store()
    handed = os.environ[VARIABLE]
    assert "kites" not in handed
    unlocking.forget_keys()
    Store(filled).close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_the_passphrase_is_asked_for_in_a_terminal_unseen_and_never_in_a_pipe() -> None:
    import pty

    script = "from claw_local.cli.passphrase import ask; print('said', ask('Words: '))"
    mine, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    ) as program:
        os.close(theirs)
        shown = b""
        while b"Words: " not in shown:
            shown += os.read(mine, 100)
        os.write(mine, b"seven grey kites\n")
        assert program.communicate(timeout=20)[0] == "said seven grey kites\n"
        shown += os.read(mine, 100)
        assert b"kites" not in shown
    os.close(mine)
    piped = subprocess.run(
        [sys.executable, "-c", script], input="no passphrase\n", capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert piped.stdout == "said None\n"


def test_one_place_alone_opens_the_database() -> None:
    wrong = []
    for root in ("claw_local", "trainer/claw_trainer", "app/claw_app", "stress"):
        for file in (ROOT / root).rglob("*.py"):
            name = file.relative_to(ROOT).as_posix()
            text = file.read_text("utf-8")
            if "sqlite3.connect" not in text:
                continue
            tree = ast.parse(text)
            direct = any(
                ast.unparse(node) == "sqlite3.connect" for node in ast.walk(tree) if isinstance(node, ast.Attribute)
            )
            if direct and name not in FOREIGN:
                wrong.append(name)
    assert not wrong, "open it by claw_local/store/opening.py: an encrypted one needs its key"
