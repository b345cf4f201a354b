"""Does a server that has answered thousands of requests still hold the memory it began with?

    python -m benchmarks.enduring [--requests 10000] [--warm 1000] [--clients 4] [--tiny] [--learn] [--json]

`claw-local serve` runs in a process of its own, and is asked in every way it knows, one-token replies each: chats whole
and in streams, with tools, with a shape, through all three APIs, embeddings, requests that are wrong, and clients that
go away in the middle. What it holds is looked at while they come, whenever nobody is being answered: memory (of the
processes that it started, too), open files, threads, and chats in its store. After the warm-up, in which caches fill,
memory may not grow by more than 24 MB and files and threads not by more than a few; nor may a request be answered
otherwise than expected. Else the exit status is 1. With --tiny the model takes hardly any time, so that what is looked
at is all else.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil

from claw_local.paths import locate
from claw_local.server.service import QUIET_S
from claw_local.store import Store
from stress.tiny import write_tiny

from .homework import run
from .served import started

MOST_MB = 24.0
MOST_MORE = 4
"""Files or threads that there may be more of than after the warm-up: one may just be closing."""
LOOKS = 20
"""How often the server is looked at."""
SETTLE_S = 10.0
"""Longest wait for connections to be closed before it is looked at."""
FINE = frozenset(["as expected", "left"])
TOOL = {"name": "look", "parameters": {"type": "object", "properties": {"what": {"type": "string"}}}}
SHAPE = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}


def bodies() -> Iterator[tuple[str, dict[str, Any], int]]:
    """Requests without end: path, body, and the status that is expected (0: the client goes away)."""
    for number in itertools.count():
        said = [{"role": "user", "content": f"Say {number % 400}."}]
        more = [*said, {"role": "assistant", "content": "1"}, {"role": "user", "content": "And then?"}]
        shape = {"type": "json_schema", "json_schema": {"schema": SHAPE}}
        kinds: list[tuple[str, dict[str, Any], int]] = [
            ("/v1/chat/completions", {"messages": said, "max_tokens": 1}, 200),
            ("/v1/chat/completions", {"messages": more, "max_tokens": 1, "stream": True}, 200),
            ("/v1/chat/completions", {"messages": said, "max_tokens": 2, "logprobs": True, "user": f"u{number}"}, 200),
            (
                "/v1/chat/completions",
                {"messages": said, "max_tokens": 1, "tools": [{"type": "function", "function": TOOL}]},
                200,
            ),
            ("/v1/chat/completions", {"messages": said, "max_tokens": 2, "response_format": shape}, 200),
            ("/v1/completions", {"prompt": f"{number} and", "max_tokens": 1}, 200),
            ("/v1/messages", {"model": "claw-local", "max_tokens": 1, "messages": said}, 200),
            ("/api/chat", {"model": "claw-local", "messages": said, "options": {"num_predict": 1}}, 200),
            ("/v1/embeddings", {"input": f"Text {number}"}, 200),
            ("/v1/chat/completions", {"messages": []}, 400),
            ("/v1/chat/completions", {"messages": said, "model": "no such one"}, 404),
            ("/v1/chat/completions", {"messages": more, "max_tokens": 200, "stream": True}, 0),
        ]
        yield kinds[number % len(kinds)]


def ask(client: httpx2.Client, number: int, path: str, body: dict[str, Any], status: int) -> str:
    """What became of one request, in a word."""
    headers = {"X-Session-Id": f"session {number % 50}"} if number % 2 else {}
    try:
        if status == 0:
            with client.stream("POST", path, json=body, headers=headers) as answer:
                next(answer.iter_bytes(), b"")
            return "left"
        answered = client.post(path, json=body, headers=headers)
    except httpx2.HTTPError as error:
        return type(error).__name__
    return "as expected" if answered.status_code == status else f"{answered.status_code} in the place of {status}"


@dataclass(frozen=True)
class Look:
    """What the server holds at one moment: itself, and the processes it started.

    Attributes:
        memory_mb: resident memory in megabytes.
        files: open files, connections among them.
        chats: in its store; a session is one of them.
    """

    memory_mb: float
    files: int
    threads: int
    processes: int
    chats: int


def look(process: psutil.Process, store: Store, url: str) -> Look:
    """Look at it once the connections of those who have gone are closed, or have had their time for it, and the server
    has had time to give memory back."""
    port, until = int(url.rpartition(":")[2]), time.monotonic() + SETTLE_S
    while time.monotonic() < until and any(
        one.laddr and one.laddr.port == port and one.raddr for one in process.net_connections("tcp")
    ):
        time.sleep(0.1)
    time.sleep(2 * QUIET_S)
    family = [process, *process.children(recursive=True)]
    memory = sum(one.memory_info().rss for one in family)
    files = sum(one.num_fds() for one in family) if hasattr(process, "num_fds") else 0
    with store.database.read() as db:
        chats = db.execute("select count(*) from chats").fetchone()[0]
    return Look(round(memory / 1e6, 1), files, sum(one.num_threads() for one in family), len(family), chats)


def endure(
    url: str, pid: int, home: Path, requests: int, warm: int, clients: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Ask so many times, and look at the server meanwhile; `say` is told what is seen."""
    process = psutil.Process(pid)
    found: Counter[str] = Counter()
    lock = threading.Lock()
    made = enumerate(bodies())

    def some(count: int) -> None:
        with httpx2.Client(base_url=url, timeout=120) as client:
            for _ in range(count):
                with lock:
                    number, request = next(made)
                word = ask(client, number, *request)
                with lock:
                    found[word] += 1

    def all_of(count: int) -> None:
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(some, [count // clients + (n < count % clients) for n in range(clients)]))

    began = time.perf_counter()
    store = Store(locate(home))
    looks: dict[int, Look] = {}

    def see(count: int) -> None:
        looks[count] = look(process, store, url)
        say(f"after {count}: " + ", ".join(f"{name} {value}" for name, value in asdict(looks[count]).items()))

    try:
        see(0)
        all_of(warm)
        see(warm)
        step = max(1, requests // LOOKS)
        for done in range(0, requests, step):
            count = min(step, requests - done)
            all_of(count)
            see(warm + done + count)
    finally:
        store.close()
    first, last = looks[warm], looks[warm + requests]
    after = [(count, one.memory_mb) for count, one in looks.items() if count >= warm]
    slope = statistics.linear_regression(*zip(*after, strict=True)).slope if len(after) > 1 else 0.0
    return {
        "requests": requests,
        "clients": clients,
        "answers": dict(found),
        "looks": {str(count): asdict(one) for count, one in looks.items()},
        "grown_mb": round(last.memory_mb - first.memory_mb, 1),
        "mb_per_1000_requests": round(1000 * slope, 2),
        "more_files": last.files - first.files,
        "more_threads": last.threads - first.threads,
        "seconds": round(time.perf_counter() - began, 1),
    }


def faults(result: dict[str, Any]) -> list[str]:
    """What should not have come out, in words."""
    said = []
    if result["grown_mb"] > MOST_MB:
        said.append(f"memory grew by {result['grown_mb']} MB, and {MOST_MB} are allowed")
    for name in ("files", "threads"):
        if result[f"more_{name}"] > MOST_MORE:
            said.append(f"there are {result[f'more_{name}']} more {name} than after the warm-up")
    if odd := {word: count for word, count in result["answers"].items() if word not in FINE}:
        said.append(f"not every request was answered as expected: {odd}")
    return said


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.enduring", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=10_000, help="after the warm-up")
    parser.add_argument("--warm", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--tiny", action="store_true", help="a tiny model of random weights answers, ten times as fast")
    parser.add_argument("--learn", action="store_true", help="keep all of it, as of programs that may teach")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    if min(options.requests, options.warm, options.clients) < 1:
        parser.error("--requests, --warm and --clients are at least 1")
    with tempfile.TemporaryDirectory(prefix="claw-enduring-") as folder:
        home = Path(folder) / "home"
        if options.learn:
            run(home, "learn", "on")

        def say(line: str) -> None:
            print(line, file=sys.stderr if options.json else sys.stdout, flush=True)

        serve = ["--learn"] if options.learn else []
        if options.tiny:
            serve += ["--model", str(write_tiny(Path(folder) / "tiny.gguf", context=4096))]
        try:
            with started(home, serve) as (url, pid):
                result = endure(url, pid, home, options.requests, options.warm, options.clients, say)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    wrong = faults(result)
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        took = f"{result['requests']} requests of {result['clients']} clients in {result['seconds']} s"
        print(f"{took}: {result['answers']}")
        print(f"grown by {result['grown_mb']} MB, by {result['mb_per_1000_requests']} MB in 1,000 requests")
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
