"""A home in which something was said, answered, corrected, learned and backed up."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from claw_local.adapters.registry import file_sha256
from claw_local.assistant import Assistant
from claw_local.paths import Paths
from tests.store.test_chats import generation

SECRET = "the harbour at Zwolle-Nord"
"""Stands in the question, the answer, the correction, a hint, a title, a draft, a log, a report and a backup."""


@dataclass
class Told:
    """What is in the home.

    Attributes:
        secret, other: two chats; only the first has the secret in it.
        question, reply, correction: of the first.
        clean, stained, child: adapters; the first learned from the other chat alone.
    """

    assistant: Assistant
    secret: int
    other: int
    question: int
    reply: int
    correction: int
    kept: int
    clean: int
    stained: int
    child: int


def exchange(assistant: Assistant, chat: int, question: str, answer: str, hint: str) -> tuple[int, int, int]:
    """(question, reply, correction) at the end of a chat, judged."""
    store = assistant.store
    _, asked, reply = store.messages.go_on(chat, question)
    store.messages.append_piece(reply, answer[:10])
    store.messages.finish(reply, generation(answer), state="done", timings={})
    store.messages.describe(reply, model_sha256="m")
    correction = store.messages.add(chat, "user", hint, parent_id=reply)
    store.signals.add(reply, "judge", -1, hint=hint)
    store.hints.add(hint, message_id=reply, chat_id=chat)
    store.samples.put(reply, "train", -1, hint)
    store.samples.count_use([reply])
    return asked, reply, correction


def adapter(assistant: Assistant, name: str, parent: int, lineage: list[int], text: str = "") -> int:
    folder = assistant.paths.adapters / name
    (folder / "peft").mkdir(parents=True)
    (folder / "adapter.gguf").write_bytes(name.encode() * 100)
    (folder / "peft" / "adapter_model.safetensors").write_bytes(b"weights")
    examples = [{"question": text or "What is rain?", "before": "x", "after": "y"}]
    (folder / "gate.json").write_text(json.dumps({"examples": examples}))
    (folder / "gate.md").write_text(f"# Gate\n\n{examples[0]['question']}\n")
    return assistant.store.adapters.add(
        parent_id=parent,
        model_sha256="m",
        architecture="llama",
        gguf_path=str(folder / "adapter.gguf"),
        peft_dir=str(folder / "peft"),
        sha256={"adapter.gguf": file_sha256(folder / "adapter.gguf")},
        metrics={"gate": {"examples": examples, "length_ratio": 1.0}},
        lineage=lineage,
        state="retired",
    ).id


@pytest.fixture
def told(home: Paths) -> Told:
    assistant = Assistant.open()
    store = assistant.store
    secret, other = store.chats.create(title=f"About {SECRET}").id, store.chats.create(title="About rain").id
    _, kept, _ = exchange(assistant, other, "What is rain?", "Water that falls.", "no lists, just plain sentences")
    clean = adapter(
        assistant, "run-1-clean", 0, [kept], f"Where is {SECRET}?"
    )  # The gate asked the secret question, held out.
    question, reply, correction = exchange(
        assistant, secret, f"Where is {SECRET}?", f"I think {SECRET} is north.", f"never name {SECRET} again"
    )
    stained = adapter(assistant, "run-2-stained", clean, [kept, reply], SECRET)
    child = adapter(assistant, "run-3-child", stained, [kept, reply])
    store.adapters.activate(child, "m")
    store.chats.update(secret, draft=f"and then {SECRET}")
    store.chats.update(secret, draft="")
    assistant.history.set_draft(None, f"a new chat about {SECRET}")
    run = store.runs.begin()
    result = {"adapter": stained, "accepted": True, "gate": {"examples": [{"question": SECRET}]}}
    store.runs.finish(run, "done", result=result, adapter_id=stained)
    (home.runs / f"{run}.log").write_text(f"practising on: Where is {SECRET}?\n")
    backup = store.database._back_up("before-m999")
    assert SECRET.encode() in backup.read_bytes()
    return Told(assistant, secret, other, question, reply, correction, kept, clean, stained, child)


def files_with(paths: Paths, text: str) -> list[Path]:
    """Every file of the home in which a text stands, as UTF-8, in UTF-16, or as the search index takes it apart."""
    words = [text.encode(), text.encode("utf-16-le"), text.lower().encode(), b"zwolle"]
    return [file for file in paths.data.rglob("*") if file.is_file() and any(w in file.read_bytes() for w in words)]
