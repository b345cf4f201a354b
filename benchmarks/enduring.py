"""Does a server that has answered thousands of requests still hold the memory it began with?

    python -m benchmarks.enduring [--requests 10000] [--warm 1000] [--clients 4] [--learn] [--json]

`claw-local serve` runs in a process of its own, and is asked in every way it knows, one-token replies each: chats whole
and in streams, with tools, with a shape, through all three APIs, embeddings, requests that are wrong, and clients that
go away in the middle. Its memory is looked at while they come. After the warm-up, in which caches fill, it may not grow
by more than 24 MB; if it does, the exit status is 1.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import psutil

from .homework import run
from .served import started

MOST_MB = 24.0
LOOKS = 20
"""How often memory is looked at."""
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


def endure(url: str, pid: int, requests: int, warm: int, clients: int) -> dict[str, Any]:
    """Ask so many times, and look at the server's memory meanwhile."""
    process = psutil.Process(pid)
    found: Counter[str] = Counter()
    lock = threading.Lock()
    made = bodies()

    def some(count: int) -> None:
        with httpx2.Client(base_url=url, timeout=120) as client:
            for _ in range(count):
                with lock:
                    number, (path, body, status) = sum(found.values()), next(made)
                    found["under way"] += 1
                word = ask(client, number, path, body, status)
                with lock:
                    found["under way"] -= 1
                    found[word] += 1

    def all_of(count: int) -> float:
        """Megabytes after so many more."""
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(some, [count // clients + (n < count % clients) for n in range(clients)]))
        return round(process.memory_info().rss / 1e6, 1)

    began = time.perf_counter()
    memory = {warm: all_of(warm)}
    step = max(1, requests // LOOKS)
    for done in range(0, requests, step):
        count = min(step, requests - done)
        memory[warm + done + count] = all_of(count)
    found.pop("under way", None)
    first, last = memory[warm], memory[warm + requests]
    return {
        "requests": requests,
        "clients": clients,
        "answers": dict(found),
        "memory_mb": {str(count): megabytes for count, megabytes in memory.items()},
        "grown_mb": round(last - first, 1),
        "open_files": process.num_fds() if hasattr(process, "num_fds") else 0,
        "threads": process.num_threads(),
        "seconds": round(time.perf_counter() - began, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.enduring", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=10_000, help="after the warm-up")
    parser.add_argument("--warm", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--learn", action="store_true", help="keep all of it, as of programs that may teach")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    if min(options.requests, options.warm, options.clients) < 1:
        parser.error("--requests, --warm and --clients are at least 1")
    with tempfile.TemporaryDirectory(prefix="claw-enduring-") as folder:
        home = Path(folder) / "home"
        if options.learn:
            run(home, "learn", "on")
        try:
            with started(home, ["--learn"] if options.learn else []) as (url, pid):
                result = endure(url, pid, options.requests, options.warm, options.clients)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        took = f"{result['requests']} requests of {result['clients']} clients in {result['seconds']} s"
        print(f"{took}: {result['answers']}")
        print("memory in MB by requests: " + ", ".join(f"{n}: {mb}" for n, mb in result["memory_mb"].items()))
        held = f"{result['open_files']} files and {result['threads']} threads are open"
        print(f"grown by {result['grown_mb']} MB; {held}")
    return 1 if result["grown_mb"] > MOST_MB else 0


if __name__ == "__main__":
    sys.exit(main())
