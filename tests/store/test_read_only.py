"""A home that may not be written: what is in it can be read, and it is said that nothing is kept."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claw_local.paths import HOME_VARIABLE, Paths
from claw_local.store import Store
from claw_local.store.database import Database
from claw_local.store.migrations import MIGRATIONS

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes of folders are POSIX")

SETPRIV = shutil.which("setpriv")
"""Root may write anywhere, unless it starts a program without that right."""
COMMANDS = """
from typer.testing import CliRunner
from claw_local.cli.main import app

for name, words in {"list": ["list"], "show": ["show", "1"], "export": ["export", "--all", "--format", "json"]}.items():
    result = CliRunner().invoke(app, ["history", *words])
    found[name] = [result.exit_code, result.stdout, result.stderr]
found["pause"] = CliRunner().invoke(app, ["learn", "pause"]).exit_code
"""
READER = """
import json
from claw_local.errors import ClawError
from claw_local.paths import locate
from claw_local.store import Store

found = {}
try:
    store = Store(locate())
    found["before"] = store.database.adrift
    chat, _, reply = store.database.keeping(lambda: store.messages.go_on(1, "and now?"))
    found["title"] = store.chats.get(1).title
    found["in memory"] = [m.content for m in store.messages.branch(store.chats.get(1).head_id)]
    found["during"] = store.database.adrift
    try:
        store.keys.add("laptop", "secret", learn=False)
    except ClawError as error:
        found["key"] = str(error)
    store.close()
except ClawError as error:
    found["error"] = str(error)
"""


@pytest.fixture
def home(home: Paths) -> Iterator[Paths]:
    if os.geteuid() == 0 and SETPRIV is None:
        pytest.skip("root may write anywhere, and there is no setpriv")
    store = Store(home)
    chat = store.chats.create(title="kites")
    _, _, reply = store.messages.go_on(chat.id, "hello wind")
    store.messages.append_piece(reply, "It blows.")
    store.messages.fail(reply, "done")
    store.close()
    yield home
    home.data.chmod(0o700)


def read(home: Paths, more: str = "") -> dict[str, Any]:
    """What a program finds in it that has no right to write there."""
    for entry in home.data.iterdir():
        entry.chmod(0o500 if entry.is_dir() else 0o400)
    home.data.chmod(0o500)
    without = [SETPRIV, "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*filter(None, without), sys.executable, "-c", f"{READER}{more}\nprint(json.dumps(found))"],
        check=False,
        env={**os.environ, HOME_VARIABLE: str(home.data), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_is_read_and_said_that_nothing_is_kept(home: Paths) -> None:
    (home.data / "runs").rmdir()  # A folder that would be made.
    before = home.database.read_bytes()
    found = read(home, COMMANDS)
    for name, part in {"list": "kites", "show": "It blows.", "export": "hello wind"}.items():
        status, said, beside = found[name]
        assert status == 0 and part in said and "is not kept" in beside and "writable" in beside
    assert "is not kept" in found["before"] and found["before"] == found["during"]
    assert found["pause"] == 1
    assert found["in memory"][0:3] == ["hello wind", "It blows.", "and now?"]
    assert "cannot be written" in found["key"]
    assert "what was said or changed is not kept" in found["error"]
    assert home.database.read_bytes() == before


def test_one_that_was_not_closed_is_read_with_its_log_or_not_at_all(home: Paths) -> None:
    """Without its newest part it would look as if that had never been said."""
    connection = sqlite3.connect(home.database, isolation_level=None)
    connection.execute("update chats set title = 'newest'")
    kept = {end: home.database.with_name(f"{home.database.name}-{end}").read_bytes() for end in ("wal", "shm")}
    rest = home.database.read_bytes()
    connection.close()
    home.database.write_bytes(rest)
    for end, data in kept.items():
        home.database.with_name(f"{home.database.name}-{end}").write_bytes(data)
    assert read(home)["title"] == "newest"
    home.data.chmod(0o700)
    home.database.with_name(f"{home.database.name}-shm").unlink()
    found = read(home)
    assert "claw-local.db-wal" in found["error"] and "title" not in found


def test_one_of_an_older_version_says_what_it_needs(home: Paths) -> None:
    home.database.unlink()
    Database(home, MIGRATIONS[:8]).close()
    found = read(home)
    assert "older claw-local" in found["error"] and "title" not in found
