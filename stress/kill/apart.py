"""Kills while a home is brought up to date, put back from a backup, encrypted or made plain: each on a copy, which
afterwards holds all of the old or all of the new."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from claw_local.paths import Paths, locate
from claw_local.store import encrypting, opening, unlocking
from claw_local.store.database import Database, now
from claw_local.store.migrations import MIGRATIONS
from claw_local.store.unlocking import VARIABLE

from ..homes import faults
from .looking import home_faults, leavings
from .nursery import Nursery
from .programs import COMMAND, Program, environment

KINDS = ("migrate", "restore", "encrypt")
OLD_MESSAGES = 4000
OLD_MIGRATIONS = 6
KEY = f"x'{'5a' * 32}'"


class Apart:
    """Kills on copies.

    Args:
        paths: a home to make a backup of.
        folder: where copies are made.
    """

    def __init__(self, paths: Paths, folder: Path, chance: random.Random, nursery: Nursery | None = None) -> None:
        self.paths, self.folder, self.chance, self.nursery = paths, folder, chance, nursery
        self.caught: Counter[str] = Counter()
        self._lasts = {"migrate": 3.0, "restore": 3.0, "encrypt": 0.4}
        self._old: Path | None = None
        # Made now, while nothing is at work in the home.
        self._backup = folder / "home.backup"
        command = [*COMMAND, "backup", str(self._backup), "--force"]
        subprocess.run(command, env=environment(paths.data), check=True, capture_output=True)

    def end(self) -> None:
        """Nothing stands open."""

    def kill(self, kind: str) -> list[str]:
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        try:
            kill = {"restore": self._kill_restore, "encrypt": self._kill_encrypt, "migrate": self._kill_migrate}[kind]
            return kill(copy)
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _kill_migrate(self, copy: Path) -> list[str]:
        if self._old is None:
            self._old = old_home(self.folder / "old")
        shutil.copytree(self._old, copy)
        self._begin_and_kill("migrate", copy, ["history", "list"])
        paths = locate(copy)
        with Database(paths).read() as db:
            texts = [row["content"] for row in db.table("messages").rows_where(order_by="id", select="content")]
        found = [] if texts == [_text(number) for number in range(OLD_MESSAGES)] else ["messages were lost or changed"]
        whole = [file for file in paths.backups.glob("*.db") if not file.name.startswith(".")]
        for file in whole:
            with closing(opening.connect(file, like=paths.database)) as connection:
                if connection.execute("select count(*) from messages").fetchone() != (OLD_MESSAGES,):
                    found.append(f"the copy {file.name} is not whole")
        if not whole:
            found.append("no copy was made before")
        from claw_local import Assistant

        Assistant.open(copy).close()
        return [*found, *(f"left lying: {path}" for path in leavings(copy))]

    def _kill_restore(self, copy: Path) -> list[str]:
        shutil.copytree(self.paths.data, copy, ignore=shutil.ignore_patterns("*-wal", "*-shm", "models"))
        shutil.copytree(self.paths.models, copy / "models")
        with (
            closing(opening.connect(self.paths.database)) as live,
            closing(opening.connect(copy / "claw-local.db", like=self.paths.database)) as to,
        ):
            live.backup(to)
        paths = locate(copy)
        with closing(opening.connect(paths.database)) as connection:
            connection.execute(
                "insert into chats (title, model, system, learn, archived, created_at, updated_at) "
                "values ('since', '', '', 1, 0, ?, ?)",
                (now(), now()),
            )
            connection.execute("update runs set process = ''")  # Theirs are at work in the other home.
            connection.execute(f"update adapters set gguf_path = replace(gguf_path, '{self.paths.data}', '{copy}')")
            connection.execute(f"update adapters set peft_dir = replace(peft_dir, '{self.paths.data}', '{copy}')")
        before = _chats(paths)
        self._begin_and_kill("restore", copy, ["restore", str(self._backup), "--yes"])
        found = home_faults(paths, [], copy, working=False)
        after = _chats(paths)
        if after != before and "since" in after:
            found.append("neither what was there before nor what the backup holds")
        return found

    def _kill_encrypt(self, copy: Path) -> list[str]:
        """In the middle of encrypting or of making it plain; done again, nothing of it is plain."""
        if self._old is None:
            self._old = old_home(self.folder / "old")
        shutil.copytree(self._old, copy)
        paths = locate(copy)
        shutil.copy(paths.database, paths.backups / "20260101T000000-before-x.db")
        os.environ[VARIABLE] = KEY
        try:
            unlocking.forget_keys()
            off = self.chance.random() < 0.5
            if off:
                encrypting.encrypt(paths, lambda: unlocking.made(KEY, "passphrase"))
            program = Program(copy, ["encrypt", "off" if off else "on"], nursery=self.nursery)
            while program.lives and not any(paths.data.glob(".claw-local.db.*")):
                time.sleep(0.001)  # Most of its time it starts.
            self._kill_within("encrypt", program)
            if off:
                encrypting.make_plain(paths)
            with Database(paths).read() as db:
                texts = [row["content"] for row in db.table("messages").rows_where(order_by="id", select="content")]
            found = (
                [] if texts == [_text(number) for number in range(OLD_MESSAGES)] else ["messages were lost or changed"]
            )
            encrypting.encrypt(paths, lambda: unlocking.made(KEY, "passphrase"))
            found += faults(paths.database)
            files = [file for file in copy.rglob("*") if file.is_file()]
            found += [f"plain: {file}" for file in files if b"about rain and snow" in file.read_bytes()]
            return [*found, *(f"left lying: {path}" for path in leavings(copy))]
        finally:
            del os.environ[VARIABLE]
            opening.let_go(paths.database)

    def _begin_and_kill(self, kind: str, copy: Path, arguments: list[str]) -> None:
        self._kill_within(kind, Program(copy, arguments, nursery=self.nursery))

    def _kill_within(self, kind: str, program: Program) -> None:
        began = time.monotonic()
        ended = program.wait(self.chance.random() * self._lasts[kind])
        if ended:
            self._lasts[kind] = max(0.1, time.monotonic() - began)
        else:
            self.caught[kind] += 1
            self._lasts[kind] *= 1.03
        program.kill(all_of_it=True)


def old_home(folder: Path) -> Path:
    """A home as an older version left it, with enough in it that bringing it up to date takes a while."""
    paths = locate(folder).make()
    Database(paths, MIGRATIONS[:OLD_MIGRATIONS]).close()
    with closing(opening.connect(paths.database)) as connection:
        connection.execute("BEGIN")
        connection.execute(
            "insert into chats (id, title, model, system, learn, archived, created_at, updated_at) "
            "values (1, 'old', '', '', 1, 0, ?, ?)",
            (now(), now()),
        )
        connection.executemany(
            "insert into messages (chat_id, role, content, state, turn_type, learn, created_at) "
            "values (1, 'user', ?, 'done', 'main', 1, ?)",
            [(_text(number), now()) for number in range(OLD_MESSAGES)],
        )
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return folder


def _text(number: int) -> str:
    return f"message {number} about rain and snow"


def _chats(paths: Paths) -> list[str]:
    with closing(opening.connect(paths.database)) as connection:
        return [row[0] for row in connection.execute("select title from chats order by id")]
