"""An NVIDIA GPU that is not there: what `nvidia-smi` prints, and models that say they are on it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.idle import handing

MIB = 1 << 20


@dataclass
class Card:
    """What is said of the one GPU. `free` in bytes."""

    file: Path

    def set_free(self, free: int) -> None:
        aside = self.file.with_suffix(".new")
        aside.write_text(f"GPU-1, {free // MIB}, 8192, NVIDIA Pretended 8GB\n")
        os.replace(aside, self.file)


def card(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Card:
    """A program `nvidia-smi` in the PATH, with no memory free."""
    found = Card(folder / "said")
    found.set_free(0)
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat '{found.file}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return found


def answer_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models compute on the processor, as everywhere here, and say that they hold the GPU's memory."""
    monkeypatch.setattr(LlamaCppEngine, "on_gpu", property(lambda engine: not engine._machine.closed))
    monkeypatch.setattr(handing, "llama_on_gpu", lambda settings: True)
