"""Many processes write at once: no write is lost, and nobody is told that the database is locked.

Eight processes share a hundred chats and write turns into them until the time is up, with pieces, marks and searches
between. Each keeps a list of what it was told is written, and afterwards every line of these lists must be in the
database. How many messages the chats have by then is reported.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

from claw_local.errors import ClawError
from claw_local.paths import locate
from claw_local.store import Store

from .homes import faults
from .outcome import Outcome

PROMISE = "Load: 8 processes write 100 chats of 1,000 messages; no write is lost, nobody finds the database locked"
PROCESSES = 8
CHATS = 100
SECONDS = 30.0


def run(options: argparse.Namespace) -> Outcome:
    """For `--seconds` (30 if not given; the promise is about 600)."""
    return go(options.seconds or SECONDS, seed=options.seed)


def go(seconds: float, *, processes: int = PROCESSES, chats: int = CHATS, seed: int = 1) -> Outcome:
    """So many processes, for so long."""
    outcome = Outcome("load", PROMISE)
    folder = Path(tempfile.mkdtemp(prefix="claw-stress-"))
    try:
        store = Store(locate(folder / "home"))
        identities = [store.chats.create(title=f"chat {number}").id for number in range(chats)]
        context = multiprocessing.get_context("spawn")
        writers = [
            context.Process(target=write, args=(folder, identities, number, seconds, seed))
            for number in range(processes)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
            if writer.exitcode:
                outcome.fail(f"a writer ended with status {writer.exitcode}")
        _check(outcome, store, folder)
        store.close()
        for line in faults(folder / "home" / "claw-local.db"):
            outcome.fail(line)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def write(folder: Path, chats: list[int], number: int, seconds: float, seed: int) -> None:
    """One process: turns in all chats, until the time is up."""
    store = Store(locate(folder / "home"))
    chance = random.Random(f"{seed} {number}")
    end = time.monotonic() + seconds
    longest = 0.0
    with (folder / f"written-{number}").open("w", encoding="utf-8") as written:
        turn = 0
        while time.monotonic() < end:
            turn += 1
            chat = chance.choice(chats)
            began = time.monotonic()
            said = f"Process {number} asks number {turn}."
            try:
                _, user, reply = store.messages.go_on(chat, said)
                for piece in ("It ", "answers ", f"{number} {turn}."):
                    store.messages.append_piece(reply, piece)
                store.messages.fail(reply, "done")
                if turn % 7 == 0:
                    store.signals.add(reply, "thumb", 1)
                if turn % 50 == 0:
                    store.search.find(f"number {turn}", limit=5)
                written.write(json.dumps([user, said, reply, f"It answers {number} {turn}."]) + "\n")
            except ClawError as error:
                written.write(json.dumps(["error", str(error)]) + "\n")
            longest = max(longest, time.monotonic() - began)
        written.write(json.dumps(["longest", longest]) + "\n")
    store.close()


def _check(outcome: Outcome, store: Store, folder: Path) -> None:
    longest = 0.0
    with store.database.read() as db:
        kept = dict(db.execute("select id, content from messages").fetchall())
        in_chats = Counter(row[0] for row in db.execute("select chat_id from messages").fetchall())
    for file in sorted(folder.glob("written-*")):
        for line in file.read_text("utf-8").splitlines():
            entry = json.loads(line)
            if entry[0] == "error":
                outcome.fail(f"{file.name}: {entry[1]}")
            elif entry[0] == "longest":
                longest = max(longest, entry[1])
            else:
                user, said, reply, answered = entry
                outcome.count("turns")
                if kept.get(user) != said or kept.get(reply) != answered:
                    outcome.fail(f"lost: {said!r} is {kept.get(user)!r}, {answered!r} is {kept.get(reply)!r}")
    outcome.notes["messages"] = f"{len(kept):,}, in each chat {min(in_chats.values())} to {max(in_chats.values())}"
    outcome.notes["longest turn"] = f"{longest:.2f} s"
