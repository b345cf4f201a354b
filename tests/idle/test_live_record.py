"""An adapter that the person takes clearly worse than what was before is rolled back, and it is said."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from claw_local.adapters.registry import file_sha256
from claw_local.assistant import Assistant
from claw_local.cli.main import app
from claw_local.paths import Paths


@pytest.fixture
def assistant(home: Paths) -> Assistant:
    return Assistant.open()


def adapter(assistant: Assistant, parent: int = 0) -> int:
    path = assistant.paths.adapters / f"after-{parent}.gguf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"weights")
    record = assistant.store.adapters.add(
        parent_id=parent,
        model_sha256=assistant.model_sha256,
        architecture="llama",
        gguf_path=str(path),
        sha256={path.name: file_sha256(path)},
    )
    assistant.adapters.use(record.id)
    return record.id


def replies(assistant: Assistant, adapter_id: int, scores: list[int]) -> None:
    store = assistant.store
    for score in scores:
        user = store.messages.add(store.chats.create().id, "user", "Why?", parent_id=None)
        message = store.messages.add(
            store.messages.get(user).chat_id,
            "assistant",
            "Because.",
            parent_id=user,
            response_ids=[1],
            logprobs=[-1.0],
            adapter_id=adapter_id,
            model_sha256=assistant.model_sha256,
        )
        store.signals.add(message, "judge", score)


def test_a_worse_live_record_rolls_back_to_the_parent_and_says_so(assistant: Assistant) -> None:
    first = adapter(assistant)
    replies(assistant, first, [1] * 8)
    second = adapter(assistant, first)
    replies(assistant, second, [-1] * 6)
    words = assistant.learn.watch()
    active = assistant.adapters.active()
    assert active is not None and active.id == first
    assert f"Adapter {second} was rolled back" in words
    assert assistant.learn.status().notice == words == assistant.adapters.get(second).reason
    assert assistant.learn.watch() == "", "the parent is judged by its own replies"
    shown = CliRunner().invoke(app, ["learn", "status"])
    assert words in shown.output
    assert json.loads(CliRunner().invoke(app, ["learn", "status", "--json"]).output)["notice"] == "", "said once"


def test_a_good_or_unknown_record_changes_nothing(assistant: Assistant) -> None:
    assert assistant.learn.watch() == "", "the base cannot be rolled back"
    replies(assistant, 0, [1, -1] * 6)
    chosen = adapter(assistant)
    replies(assistant, chosen, [1, -1] * 6)
    assert assistant.learn.watch() == ""
    active = assistant.adapters.active()
    assert active is not None and active.id == chosen
