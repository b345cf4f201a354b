"""Starting: `claw-local --version`, and `ask` until the model begins to load, over `python -c pass`.

    python -m benchmarks startup [--rounds 10] [--json]

`version_more_s` and `ask_more_s`: seconds more than `python -c pass` takes, medians of rounds that take turns. Compiled
modules are kept, as where the program is installed; a first round, which compiles them, is not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from .sidebyside import ROOT, in_turns, medians, options_of, own_home, say


def seconds_of(compiled: str, *arguments: str) -> float:
    path = os.pathsep.join([str(ROOT), str(ROOT / "app")])
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        env={**kept, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": compiled},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - started


def main() -> None:
    options = options_of("startup", __doc__, rounds=10)
    with own_home(), tempfile.TemporaryDirectory() as compiled:
        found = in_turns(
            {
                "python": lambda: seconds_of(compiled, "-c", "pass"),
                "version": lambda: seconds_of(compiled, "-m", "claw_local", "--version"),
                "ask": lambda: seconds_of(compiled, str(ROOT / "benchmarks" / "_ask.py")),
            },
            options.rounds,
        )
    middle = medians(found)
    say(
        {
            "version_more_s": round(middle["version"] - middle["python"], 4),
            "ask_more_s": round(middle["ask"] - middle["python"], 4),
            "seconds": middle,
        },
        options,
    )


if __name__ == "__main__":
    main()
