"""What a person sees while pip works: what it is doing, how far it is, how long it took. Must never start anything."""

from __future__ import annotations

import re
import shutil
import sys
import time
from typing import TextIO

PLAIN_EVERY_S = 30.0

BUILD_STEP = re.compile(r"^\[(\d+)/(\d+)\]\s")
RAW_PROGRESS = re.compile(r"^Progress (\d+) of (\d+)")
DOWNLOAD = re.compile(r"^(?:Downloading|Using cached) (?:\S*/)?([A-Za-z0-9][\w.-]*?)-\d\S* \(([\d.]+ \w+)\)")
COLLECT = re.compile(r"^(?:Collecting |Processing (?:\S*/)?)([A-Za-z0-9][\w.-]*?)(?=-\d|[^\w.-]|$)")
WHEEL = re.compile(r"^Building (?:wheel|editable) for ([\w.-]+)")


class PipProgress:
    """Reads pip's output line by line.

    Attributes:
        doing: what pip is at, in a few words; "" before the first line that means something.
        fraction: how far that is, 0 to 1; None where pip does not say.
    """

    def __init__(self) -> None:
        self.doing = ""
        self.fraction: float | None = None

    def feed(self, line: str) -> None:
        """Take one line (without its line break) into account."""
        line = line.strip()
        if match := BUILD_STEP.match(line):
            step, steps = int(match[1]), int(match[2])
            self._now(f"compiling llama.cpp, step {step} of {steps}", step / max(steps, 1))
        elif match := RAW_PROGRESS.match(line):
            self.fraction = int(match[1]) / max(int(match[2]), 1)
        elif match := DOWNLOAD.match(line):
            self._now(f"downloading {match[1]} ({match[2]})")
        elif match := COLLECT.match(line):
            self._now(f"looking for {match[1]}")
        elif line.startswith("Installing build dependencies"):
            self._now("fetching build tools")
        elif line.startswith("*** Configuring CMake"):
            self._now("configuring the build")
        elif line.startswith("*** Making wheel"):
            self._now("packing what was built")
        elif match := WHEEL.match(line):
            self._now(f"building {match[1]}")
        elif line.startswith("Installing collected packages:"):
            self._now(f"unpacking {line.count(',') + 1} packages")
        elif line.startswith("Successfully installed"):
            self._now("installed")

    def _now(self, doing: str, fraction: float | None = None) -> None:
        self.doing, self.fraction = doing, fraction


def clock(seconds: float) -> str:
    """Minutes and seconds: 0:07, 12:31."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def describe(stage: str, elapsed_s: float, progress: PipProgress) -> str:
    """One line: the stage, the time it has taken, and what it is at."""
    parts = [stage, clock(elapsed_s)]
    if progress.doing:
        share = f" {progress.fraction:.0%}" if progress.fraction is not None else ""
        parts.append(progress.doing + share)
    return "  ".join(parts)


class LiveLine:
    """One line that is rewritten in place; where the output is not a terminal, a plain line now and then."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out if out is not None else sys.stdout
        self._live = self._out.isatty()
        self._width = 0
        self._said_at = float("-inf")
        self._said = ""

    def show(self, text: str) -> None:
        """Rewrite the line, or, without a terminal, print it if half a minute has gone by."""
        if not self._live:
            if time.monotonic() - self._said_at >= PLAIN_EVERY_S and text != self._said:
                self._said_at, self._said = time.monotonic(), text
                print(text, file=self._out, flush=True)
            return
        room = shutil.get_terminal_size().columns - 1
        text = text if len(text) <= room else text[: max(room - 3, 0)] + "..."
        self._out.write("\r" + text.ljust(min(self._width, room)))
        self._out.flush()
        self._width = len(text)

    def clear(self) -> None:
        """Take the live line away."""
        if self._live:
            self._out.write("\r" + " " * self._width + "\r")
            self._out.flush()
            self._width = 0

    def settle(self, text: str) -> None:
        """Print a line that stays, in place of the live one."""
        self.clear()
        self._said_at, self._said = time.monotonic(), text
        print(text, file=self._out, flush=True)
