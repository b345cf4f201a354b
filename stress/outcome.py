"""What a stress run found, and how it is shown. It must never know what was tried."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Outcome:
    """One promise under stress.

    Attributes:
        name: of the run, as `python -m stress NAME` takes it.
        promise: what must hold.
        tries: how often it was tried; kinds: the same by kind.
        failures: each a line: what was tried, and what did not hold.
        notes: figures worth knowing.
    """

    name: str
    promise: str
    tries: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def count(self, kind: str, number: int = 1) -> None:
        self.tries += number
        self.kinds[kind] += number

    def fail(self, line: str) -> None:
        self.failures.append(" ".join(line.split())[:600])

    def as_json(self) -> dict[str, Any]:
        found = asdict(self)
        del found["began"]
        return {**found, "kinds": dict(self.kinds), "seconds": round(time.monotonic() - self.began, 1)}

    def render(self) -> str:
        """A row of the table in docs/security.md, and a line for each failure."""
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(self.kinds.items()))
        notes = "".join(f"\n  {name}: {value}" for name, value in self.notes.items())
        failures = "".join(f"\n  FAILED {line}" for line in self.failures)
        seconds = time.monotonic() - self.began
        return (
            f"{self.promise}\n  tries {self.tries:,} ({kinds}), failures {len(self.failures)}, {seconds:.0f} s"
            f"{notes}{failures}"
        )


def show(outcomes: list[Outcome], *, as_json: bool) -> int:
    """Print what was found; returns the exit status: 1 if a promise was broken."""
    if as_json:
        print(json.dumps([outcome.as_json() for outcome in outcomes], indent=2, ensure_ascii=False))
    else:
        for outcome in outcomes:
            print(outcome.render())
    return int(any(outcome.failures for outcome in outcomes))
