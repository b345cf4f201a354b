"""Homes to be put under stress: a tiny model, a few lessons, an adapter in use. Made without torch, in a second."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np

from claw_local import Assistant
from claw_local.adapters.gguf import BaseShape, write_gguf
from claw_local.adapters.peft import MODULES, PeftLora, write_peft
from claw_local.adapters.registry import file_sha256, put_into_use
from claw_local.engine.base import Sampling
from claw_local.paths import Paths, locate
from claw_local.store import AdapterRecord, opening

from .tiny import SHAPES, write_tiny

QUESTIONS = ("What is rain?", "What is snow?", "What is wind?", "What is hail?", "What is fog?", "What is dew?")
WISH = "Please write everything in lowercase letters only, in one sentence."
SETTINGS = """\
[model]
path = "{model}"
context = 512
threads = 1
[sampling]
max_tokens = 120
[learning]
steps = 2
rollouts = 2
replay = 2
rollout_tokens = 16
rank = 4
alpha = 8
threads = 1
[idle]
enabled = false
"""


def make(folder: Path, *, lessons: int = 6) -> Paths:
    """A home with a tiny model of its own, that many lessons, and an adapter in use."""
    paths = locate(folder).make()
    model = write_tiny(paths.models / "tiny.gguf")
    paths.settings.write_text(SETTINGS.format(model=model), "utf-8")
    paths.settings.chmod(0o600)
    with Assistant.open(folder) as assistant:
        assistant.learn.on()
        for number, question in enumerate(QUESTIONS[:lessons]):
            answer = assistant.ask(question, sampling=Sampling(max_tokens=12, temperature=0.7, seed=number))
            if number % 3:
                assistant.feedback(answer.message_id, "bad", hint=WISH)
            else:
                assistant.feedback(answer.message_id, "good")
        put_into_use(assistant.store, plant_adapter(assistant), assistant.model_sha256)
    return paths


def plant_adapter(assistant: Assistant, seed: int = 0) -> AdapterRecord:
    """An adapter with random matrices, registered as a learning run does."""
    folder = assistant.paths.adapters / f"run-0-{seed}"
    folder.mkdir(mode=0o700)
    lora = random_lora(seed)
    write_peft(lora, folder / "peft")
    write_gguf(lora, BaseShape.of(assistant.model_path), folder / "adapter.gguf")
    return assistant.store.adapters.add(
        parent_id=0,
        model_sha256=assistant.model_sha256,
        architecture="llama",
        peft_dir=str(folder / "peft"),
        gguf_path=str(folder / "adapter.gguf"),
        sha256={name: file_sha256(folder / name) for name in ("adapter.gguf", "peft/adapter_model.safetensors")},
        recipe={"method": "combined"},
        state="candidate",
    )


def random_lora(seed: int = 0, rank: int = 4, blocks: int = 2) -> PeftLora:
    """For the tiny llama: all linear layers of its first blocks."""
    random = np.random.default_rng(seed)
    weights = {
        (block, module): (
            (random.standard_normal((rank, SHAPES[name][1])) * 0.05).astype(np.float32),
            (random.standard_normal((SHAPES[name][0], rank)) * 0.05).astype(np.float32),
        )
        for block in range(blocks)
        for module, name in MODULES.items()
    }
    return PeftLora(2.0 * rank, weights, "tiny")


def faults(database: Path) -> list[str]:
    """What integrity_check and foreign_key_check say against a database, and whether somebody holds its write lock."""
    found = []
    with closing(opening.connect(database, timeout=20.0)) as connection:
        found += [
            f"integrity_check: {row[0]}" for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"
        ]
        found += [f"foreign_key_check: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            found.append(f"a lock stays: {error}")
    return found
