"""Damaged input for every reader: it is refused in a sentence, never with a traceback, a hang or a full memory.

Seeds are damaged byte by byte and, where the format has parts, part by part. A failure prints its input, which
`python -m stress fuzz --only KIND` with the same seed and number of tries comes to again.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..outcome import Outcome
from .target import Target

PROMISE = "Bad input: every reader refuses it in a sentence, in bounded time and memory"
MOST_MEMORY = 6 << 30
MOST_FAILURES = 40
"""Of one kind; then the others go on."""
SLICE = 200


def run(options: argparse.Namespace) -> Outcome:
    """As many tries as `--tries` says (10,000 if not) over all kinds. Raises ValueError: an unknown kind."""
    fast = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="claw-stress-", dir=fast if fast.is_dir() else None))
    try:
        with _bounded_memory():
            return go(targets(folder, options.only), options.tries or 10_000, options.seed, options.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def targets(folder: Path, only: list[str]) -> list[Target]:
    """All kinds, or these. Raises ValueError: one is unknown."""
    from . import adapters, chats, model, requests, texts

    made = [target for part in (adapters, chats, model, requests, texts) for target in part.targets(folder)]
    known = {target.name: target for target in made}
    for name in only:
        if name not in known:
            raise ValueError(f"There is no kind {name}. Kinds: {', '.join(known)}.")
    return [known[name] for name in only or known]


def go(chosen: list[Target], tries: int, seed: int, seconds: float | None = None) -> Outcome:
    """Try them, a slice of each in turn, so that whenever it ends each had its share."""
    outcome = Outcome("fuzz", PROMISE)
    chances = {target.name: random.Random(f"{seed} {target.name}") for target in chosen}
    whole = sum(target.weight for target in chosen)
    left = {target.name: max(1, round(tries * target.weight / whole)) for target in chosen}
    spent = dict.fromkeys(left, 0.0)
    failed = dict.fromkeys(left, 0)
    seen: Counter[str] = Counter()
    end = time.monotonic() + seconds if seconds else None
    while any(left.values()) and (end is None or time.monotonic() < end):
        for target in chosen:
            number = min(left[target.name], max(1, round(SLICE * target.weight)))
            began = time.monotonic()
            # Where even Python hangs, the place it hangs at is printed.
            faulthandler.dump_traceback_later(300, exit=False)
            for _ in range(number):
                line = attempt(target, target.input(chances[target.name]))
                if line:
                    failed[target.name] += 1
                    wrong = line.split("; input ")[0]
                    if wrong not in seen:  # Of a failure that comes again, the first input is enough.
                        outcome.fail(line)
                    seen[wrong] += 1
            faulthandler.cancel_dump_traceback_later()
            spent[target.name] += time.monotonic() - began
            outcome.count(target.name, number)
            left[target.name] = 0 if failed[target.name] >= MOST_FAILURES else left[target.name] - number
    speeds = {name: round(outcome.kinds[name] / max(spent[name], 1e-9)) for name in left}
    outcome.notes["tries a second"] = ", ".join(f"{name} {speed:,}" for name, speed in sorted(speeds.items()))
    if seen:
        outcome.notes["inputs that fail"] = sum(seen.values())
    return outcome


def attempt(target: Target, data: bytes) -> str:
    """One try; what went wrong, or ""."""
    began = time.perf_counter()
    wrong = ""
    try:
        target.read(data)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        at = traceback.extract_tb(sys.exc_info()[2])[-1]
        wrong = f"{type(error).__name__}: {str(error)[:150]} at {Path(at.filename).name}:{at.lineno}"
    taken = time.perf_counter() - began
    if not wrong and taken > target.slowest_s:
        wrong = f"took {taken:.1f} s"
    return f"{target.name}: {wrong}; input {data[:200]!r} ({len(data)} bytes)" if wrong else ""


@contextmanager
def _bounded_memory() -> Iterator[None]:
    """What would fill the memory meanwhile ends in a MemoryError, which counts as a failure."""
    try:
        import resource
    except ImportError:  # Windows
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
