"""What the benchmarks of speed share: rounds that take turns, medians of ratios, and one way to say what came out."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from claw_local.engine._threads import usable_cores
from claw_local.engine.models import embedded_model

ROOT = Path(__file__).parent.parent


def options_of(name: str, doc: str | None, *, rounds: int, more: Callable[[Any], None] | None = None) -> Any:
    """What was said on the command line: --model, --threads, --rounds, --json, and a benchmark's own."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=embedded_model(), help="a GGUF file; else the embedded one")
    parser.add_argument("--threads", type=int, default=0, help="0: as many as the machine leaves free")
    parser.add_argument("--rounds", type=int, default=rounds, help="how often everything is measured, in turns")
    parser.add_argument("--json", action="store_true", help="the figures as one JSON object")
    if more is not None:
        more(parser)
    options = parser.parse_args()
    options.threads = options.threads or usable_cores()
    return options


def in_turns(measures: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Each measured `rounds` times, one after another in each round, so that all see the same machine. The first round
    warms up and does not count."""
    found: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(rounds + 1):
        for name, measure in measures.items():
            value = measure()
            if number:
                found[name].append(value)
    return found


def ratio(mine: list[float], other: list[float]) -> float:
    """The median of the rounds' ratios."""
    return round(statistics.median(a / b for a, b in zip(mine, other, strict=True)), 3)


def medians(found: Mapping[str, list[float]], digits: int = 4) -> dict[str, float]:
    return {name: round(statistics.median(values), digits) for name, values in found.items()}


def percentile(values: list[float], at: float) -> float:
    return float(np.percentile(np.array(values), at))


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def say(result: Mapping[str, Any], options: Any) -> None:
    """Print it: ratios first, then the figures that they came from."""
    machine = {"machine": platform.processor() or platform.machine(), "cores": usable_cores()}
    whole = {**result, **machine, "threads": options.threads}
    if options.json:
        print(json.dumps(whole, indent=2))
        return
    for name, value in whole.items():
        print(f"{name}: {json.dumps(value) if isinstance(value, dict) else value}")


@contextmanager
def own_home() -> Iterator[Path]:
    """An empty home folder."""
    with tempfile.TemporaryDirectory(prefix="claw-benchmark-") as folder:
        before = os.environ.get("CLAW_LOCAL_HOME")
        os.environ["CLAW_LOCAL_HOME"] = folder
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["CLAW_LOCAL_HOME"]
            else:
                os.environ["CLAW_LOCAL_HOME"] = before


def child(module: str, *arguments: str, **variables: str) -> dict[str, Any]:
    """Run a module of this house in a process of its own, and read the JSON object it prints last."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "app"), str(ROOT / "trainer"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def peak_bytes() -> int:
    """The most memory this process ever held, mapped files included."""
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
