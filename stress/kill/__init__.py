"""Kill it anywhere: SIGKILL at random moments of every kind of work, with app, server and commands open at once.

After each kill the home is opened as the next start does, and looked at: everything that was shown is there, the
database is whole, the adapter in use loads, no lock and no half-made file stays, and what was written elsewhere is
whole or not there. The model is a tiny one with random weights, so that loading does not take up most of the time; all
else is real.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from claw_local import Assistant
from claw_local.engine.opening import Source  # noqa: F401  (loads the engine's modules before the clock runs)
from claw_local.paths import Paths

from ..homes import make
from ..outcome import Outcome
from .apart import KINDS as APART
from .apart import Apart
from .looking import export_faults, home_faults, leavings
from .nursery import Nursery
from .programs import environment
from .together import KINDS as TOGETHER
from .together import Together

STEPS = 8
"""Of a learning run: so many that some of its kills fall between its steps."""
PROMISE = "Killed anywhere: nothing shown is lost, nothing is damaged, locked or left lying"


def run(options: argparse.Namespace) -> Outcome:
    """As many kills as `--tries` says (300 if not), of each kind in turn.

    Raises:
        ValueError: an unknown kind.
    """
    kinds = options.only or [*TOGETHER, *APART]
    for kind in kinds:
        if kind not in (*TOGETHER, *APART):
            raise ValueError(f"There is no kind {kind}. Kinds: {', '.join([*TOGETHER, *APART])}.")
    outcome = Outcome("kill", PROMISE)
    chance = random.Random(options.seed)
    end = time.monotonic() + options.seconds if options.seconds else None
    folder = Path(tempfile.mkdtemp(prefix="claw-stress-"))
    together = apart = nursery = None
    try:
        outside = folder / "outside"
        outside.mkdir()
        paths = make(folder / "home")
        more = paths.settings.read_text("utf-8").replace("\nsteps = 2\n", f"\nsteps = {STEPS}\n")
        paths.settings.write_text(more, "utf-8")
        if sys.platform == "linux":
            nursery = Nursery(environment(paths.data))
        together = Together(paths, outside, chance, nursery)
        apart = Apart(paths, folder, chance, nursery)
        for number in range(options.tries or 300):
            if end is not None and time.monotonic() > end:
                break
            kind = kinds[number % len(kinds)]
            began = time.monotonic()
            try:
                found = together.kill(kind) if kind in TOGETHER else apart.kill(kind)
            except Exception as error:  # One broken try must not end the others; it counts as a failure.
                found = [f"the try itself failed: {type(error).__name__}: {error}"]
            outcome.count(kind)
            for line in found:
                outcome.fail(f"{number} {kind}: {line}")
            seconds = time.monotonic() - began
            print(f"{number + 1} {kind} {seconds:.1f} s {'; '.join(found) or 'ok'}"[:300], file=sys.stderr, flush=True)
        together.end()
        for line in [*_at_the_end(paths, together, outside), *export_faults(paths, outside)]:
            outcome.fail(f"at the end: {line}")
        outcome.notes["shown replies looked for"] = len(together.shown)
        caught = together.caught + apart.caught
        at_work = sum(caught[kind] for kind in set(kinds))
        by_kind = ", ".join(f"{kind} {number}" for kind, number in sorted(caught.items()))
        outcome.notes["still at work when killed"] = f"{at_work} of {outcome.tries} ({by_kind})"
        outcome.notes["kills of others with a learning run at work beside"] = together.beside
    finally:
        for one in (together, apart, nursery):
            if one is not None:
                one.end()
        if outcome.failures:
            outcome.notes["kept for a look"] = str(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _at_the_end(paths: Paths, together: Together, outside: Path) -> list[str]:
    """Nothing is at work any more: the strictest look, and the adapter in use answers in the engine."""
    found = home_faults(paths, together.shown, outside, working=False)
    with Assistant.open(paths.data) as assistant:
        answer = assistant.ask("Are you well?", sampling={"max_tokens": 4})
        active = assistant.adapters.active()
        if active is None or answer.adapter != active.id:
            found.append("the adapter in use does not answer")
    return [*found, *(f"left lying: {path}" for path in leavings(paths.data, outside))]
