"""A large store: full-text search, the list of chats, and writing one turn, beside SQLite called directly.

    python -m benchmarks store [--messages 1000000] [--rounds 200] [--json]

The messages are random words in chats of twenty, put in as an import does. Milliseconds: 95th percentiles of searching
and listing, the 99th of writing; `raw` is the same statement on a connection of its own (of a turn: two rows, one
transaction). `--from FILE.db` uses a store that was made before and is kept with `--keep FILE.db`.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from claw_local.engine.base import Generation, Sampling
from claw_local.history.history import History
from claw_local.paths import locate
from claw_local.store import Store
from claw_local.store.records import GivenChat, GivenMessage

from .sidebyside import options_of, own_home, percentile, say

EACH = 20
"""Messages of a chat."""
WORDS = 40
COMMON, RARE = 2_000, 50_000
"""Words there are: half of what is said are of the common ones."""


def word(number: int) -> str:
    """A word for each number, of letters only."""
    letters = "etaoinshrdlucmfw"
    return "".join(letters[number >> 4 * place & 15] for place in range(4))


def chats(messages: int) -> Iterator[GivenChat]:
    random = np.random.default_rng(1)
    for number in range(messages // EACH):
        drawn = np.where(
            random.random((EACH, WORDS)) < 0.5,
            random.integers(0, COMMON, (EACH, WORDS)),
            random.integers(0, RARE, (EACH, WORDS)),
        )
        moment = f"2025-{number % 12 + 1:02d}-{number % 28 + 1:02d}T{number % 24:02d}:{number % 60:02d}:00+00:00"
        said = tuple(
            GivenMessage(
                key=str(place),
                parent=str(place - 1) if place else None,
                role="assistant" if place % 2 else "user",
                content=" ".join(map(word, row)),
                created_at=moment,
            )
            for place, row in enumerate(drawn.tolist())
        )
        yield GivenChat("benchmark", str(number), f"Chat {number}", said, created_at=moment, updated_at=moment)


def fill(store: Store, messages: int) -> None:
    batch: list[GivenChat] = []

    def write() -> None:
        store.trees.put(batch, learn=False)
        batch.clear()

    for chat in chats(messages):
        batch.append(chat)
        if len(batch) == 100:
            write()
    write()


def milliseconds(work: Callable[[int], object], rounds: int, at: float) -> float:
    took = []
    for number in range(rounds):
        started = time.perf_counter()
        work(number)
        took.append(1000 * (time.perf_counter() - started))
    return round(percentile(took, at), 3)


def measure(store: Store, path: Path, rounds: int) -> dict[str, Any]:
    history = History(store)
    random = np.random.default_rng(2)
    common, rare = random.integers(0, COMMON, rounds), random.integers(COMMON, RARE, rounds)
    raw = sqlite3.connect(path, isolation_level=None)
    find = "select rowid from search where search match ? order by rowid desc limit 50"
    turn_chat = store.chats.create(title="turns").id
    raw.execute("create table if not exists benchmark_rows (id integer primary key, content text)")

    def turn(number: int) -> None:
        _, reply = store.messages.begin_turn(turn_chat, f"Question {number}?", parent_id=None)
        made = Generation((1, 2, 3), Sampling(), response_ids=[4] * 100, logprobs=[-1.0] * 100, text="An answer. " * 20)
        store.messages.finish(reply, made, state="done", timings={"total_s": 1.0})

    def rows(number: int) -> None:
        raw.execute("begin immediate")
        raw.executemany("insert into benchmark_rows (content) values (?)", [(f"Q {number}",), ("An answer. " * 20,)])
        raw.execute("commit")

    raw.execute(f"pragma synchronous = {store.database.db.execute('pragma synchronous').fetchone()[0]}")
    return {
        "search_p95_ms": {
            "common words": milliseconds(lambda n: history.search(f"{word(common[n])} {word(common[-n])}"), rounds, 95),
            "rare words": milliseconds(lambda n: history.search(word(rare[n])), rounds, 95),
            "being typed": milliseconds(lambda n: history.search(word(rare[n])[:3]), rounds, 95),
            "raw, rare words": milliseconds(
                lambda n: raw.execute(find, (f'"{word(rare[n])}"',)).fetchall(), rounds, 95
            ),
        },
        "chat_list_p95_ms": {
            "store": milliseconds(lambda n: store.chats.list(), rounds, 95),
            "raw": milliseconds(
                lambda n: raw.execute(
                    "select * from chats where archived = 0 and deleted_at = '' order by updated_at desc limit 200"
                ).fetchall(),
                rounds,
                95,
            ),
        },
        "turn_written_p99_ms": {"store": milliseconds(turn, rounds, 99), "raw": milliseconds(rows, rounds, 99)},
    }


def main() -> None:
    def more(parser: Any) -> None:
        parser.add_argument("--messages", type=int, default=1_000_000)
        parser.add_argument("--from", dest="made", type=Path, help="a store that was kept")
        parser.add_argument("--keep", type=Path, help="keep the store that is made here")

    options = options_of("store", __doc__, rounds=200, more=more)
    with own_home() as home:
        paths = locate(home)
        if options.made is not None:
            paths.data.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(options.made, paths.database)
        store = Store(paths)
        started = time.perf_counter()
        if options.made is None:
            fill(store, options.messages)
        seconds = time.perf_counter() - started
        (count,) = store.database.db.execute("select count(*) from messages").fetchone()
        if options.keep is not None:
            store.database.db.execute("vacuum into ?", [str(options.keep)])
        result = measure(store, paths.database, options.rounds)
        store.close()
        say({**result, "messages": count, "filled_s": round(seconds, 1)}, options)


if __name__ == "__main__":
    main()
