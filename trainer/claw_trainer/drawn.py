"""Answers that were drawn, kept as they come, so that a run that is left soon again and again still gets on.

An engine is wrapped: `generate_many` draws a few answers at a time and writes each such group down before the next.
Asked again the same of the same adapters, it reads them back. A group is drawn by itself whether or not it is read
back later, so a run that was left draws what it would have drawn. Everything else goes to the engine as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from claw_local.adapters.registry import file_sha256
from claw_local.engine.base import AdapterSlot, Engine, Generation, Sampling

TOGETHER = 8
"""Answers in a group. On one core 4, 8 and 24 at once came out equally quick; a group of 8 takes some 15 seconds."""


class Drawn:
    """What `remembering` returns.

    Args:
        file: JSON lines; it need not exist. A last line that is not whole, as a killed process leaves it, counts as not
            written.
    """

    def __init__(self, engine: Engine, file: Path) -> None:
        self._engine, self._file = engine, file
        self._used: list[list[Any]] = []
        self._known: dict[str, list[dict[str, Any]]] = {}
        self._read()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def set_adapters(self, adapters: Sequence[AdapterSlot]) -> None:
        """See `Engine.set_adapters`."""
        self._engine.set_adapters(adapters)
        self._used = [[file_sha256(slot.path), slot.scale] for slot in adapters]

    def generate_many(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, *, cancel: threading.Event | None = None
    ) -> list[Generation]:
        """See `Engine.generate_many`. Without a seed nothing is kept.

        Raises:
            OSError: they cannot be kept.
        """
        answers: list[Generation] = []
        for at in range(0, len(prompts), TOGETHER):
            group = [tuple(prompt) for prompt in prompts[at : at + TOGETHER]]
            seeded = sampling if sampling.seed is None else replace(sampling, seed=sampling.seed + at)
            answers += self._group(group, seeded, cancel)
        return answers

    def forget(self) -> None:
        """What was drawn so far is kept elsewhere now, or not needed any more."""
        self._known.clear()
        self._file.unlink(missing_ok=True)

    def _group(
        self, prompts: list[tuple[int, ...]], sampling: Sampling, cancel: threading.Event | None
    ) -> list[Generation]:
        asked = json.dumps([self._used, prompts, type(sampling).__name__, asdict(sampling)])
        key = hashlib.sha256(asked.encode()).hexdigest()
        if (known := self._known.get(key)) is not None:
            return [
                Generation(prompt_ids=prompt, sampling=sampling, **one)
                for prompt, one in zip(prompts, known, strict=True)
            ]
        answers = self._engine.generate_many(prompts, sampling, cancel=cancel)
        if sampling.seed is not None and not (cancel is not None and cancel.is_set()):
            self._keep(key, answers)
        return answers

    def _keep(self, key: str, answers: Sequence[Generation]) -> None:
        values = [
            {
                "response_ids": list(one.response_ids),
                "logprobs": list(one.logprobs),
                "text": one.text,
                "dropped": one.dropped,
                "finish_reason": one.finish_reason,
                "seed": one.seed,
            }
            for one in answers
        ]
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            # It begins on a line of its own, whatever half a line a killed process left.
            file.write(b"\n" + json.dumps({"key": key, "answers": values}).encode())
            file.flush()
            os.fsync(file.fileno())
        self._known[key] = values

    def _read(self) -> None:
        try:
            lines = self._file.read_bytes().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                entry = json.loads(line)
                self._known[entry["key"]] = [dict(one) for one in entry["answers"]]
            except (ValueError, KeyError, TypeError):
                continue


def remembering(engine: Engine, file: Path) -> tuple[Engine, Drawn]:
    """The engine that keeps what it draws in `file`, as an engine and as what can forget it."""
    drawn = Drawn(engine, file)
    drawn_as_engine = cast("Engine", drawn)
    return drawn_as_engine, drawn
