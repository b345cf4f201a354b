"""A whole learning run on the embedded model, as small as it can be: from corrections to an adapter in use and back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.engine.base import Sampling
from claw_local.errors import LearnError
from claw_local.idle.job import LearnResult, Progress
from claw_local.paths import Paths, locate
from claw_local.settings import GateSettings, LearningSettings, ModelSettings, Settings
from claw_local.store import Store

SHORT = Sampling(max_tokens=16, temperature=0.7, seed=3)
SMALL = Settings(
    model=ModelSettings(threads=1, context=1024),
    learning=LearningSettings(steps=2, rollouts=2, replay=2, rollout_tokens=16),
    gate=GateSettings(max_kl_base=5.0),
)


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory, model_path: Path) -> Iterator[Assistant]:
    """Four corrected questions, judged by the embedded judge."""
    with Assistant.open(tmp_path_factory.mktemp("home"), model=model_path, settings=SMALL) as assistant:
        assistant.learn.on()
        for question in ("What is rain?", "What is snow?", "What is wind?", "What is hail?"):
            answer = assistant.ask(question, sampling=SHORT)
            assistant.ask("Please don't use lists, just plain sentences.", chat=answer.chat_id, sampling=SHORT)
        assert assistant.wait_judged()
        yield assistant


@pytest.fixture(scope="module")
def learned(taught: Assistant) -> tuple[LearnResult, list[Progress], tuple[int, ...]]:
    before = taught.ask("What is fog?", sampling=SHORT, learn=False, memory=False)
    heard: list[Progress] = []
    result = taught.learn.now(heard.append)
    return result, heard, taught.store.messages.get(before.message_id).response_ids


def test_a_run_ends_with_an_adapter_that_the_gate_has_looked_at(
    taught: Assistant, learned: tuple[LearnResult, list[Progress], tuple[int, ...]]
) -> None:
    result, heard, _ = learned
    record = taught.adapters.get(result.adapter)
    assert record.state == ("active" if result.accepted else "rejected")
    assert record.reason == result.reason == result.gate["reason"]
    assert result.steps == 2
    assert result.samples >= 2
    assert result.seconds > 0
    assert record.lineage, "it knows which turns made it"
    assert set(record.lineage) <= {message.id for message in taught.store.messages.teaching_replies()}
    folder = Path(record.gguf_path).parent
    assert {path.name for path in folder.iterdir()} == {"adapter.gguf", "peft", "gate.json", "gate.md"}
    assert json.loads((folder / "gate.json").read_text())["accepted"] is result.accepted
    assert [progress.fraction for progress in heard] == sorted(progress.fraction for progress in heard)
    assert {"practising", "training", "gate"} & {progress.phase for progress in heard}
    run = taught.learn.status().run
    assert run is not None
    assert (run.state, run.adapter_id) == ("done", result.adapter)


def test_it_is_used_in_the_open_chat_from_the_next_turn_and_can_be_taken_back(
    taught: Assistant, learned: tuple[LearnResult, list[Progress], tuple[int, ...]]
) -> None:
    result, _, base_ids = learned
    chat = taught.ask("What is ice?", sampling=SHORT, learn=False).chat_id
    taught.adapters.use(result.adapter)
    assert taught.ask("And steam?", chat=chat, sampling=SHORT).adapter == result.adapter
    adapted = taught.ask("What is fog?", sampling=SHORT, learn=False, memory=False)
    by_base = taught.ask("What is fog?", sampling=SHORT, learn=False, memory=False, adapter="base")
    assert taught.store.messages.get(by_base.message_id).response_ids == base_ids
    assert (
        taught.store.messages.get(adapted.message_id).logprobs != taught.store.messages.get(by_base.message_id).logprobs
    )
    assert taught.adapters.rollback() is None
    again = taught.ask("What is fog?", sampling=SHORT, learn=False, memory=False)
    assert again.adapter == 0
    assert taught.store.messages.get(again.message_id).response_ids == base_ids


def test_what_it_learned_by_heart_leaves_the_prompt_only_while_it_is_in_use(
    taught: Assistant, learned: tuple[LearnResult, list[Progress], tuple[int, ...]]
) -> None:
    result, _, _ = learned
    record = taught.adapters.get(result.adapter)
    (hint,) = taught.hints.list()
    (kept,) = record.metrics["hints"]
    assert kept["hint_id"] == hint.id
    assert kept["learned"] is (kept["untold"] >= max(0.9, kept["told"] - 0.05))
    taught.store.adapters.update(result.adapter, metrics={**record.metrics, "learned_hints": [hint.id]})
    taught.adapters.use(result.adapter)
    assert taught.hints.list() == []
    assert taught.ask("What is sleet?", sampling=SHORT, learn=False).hints == ()
    taught.adapters.rollback()
    assert taught.ask("What is sleet?", sampling=SHORT, learn=False).hints == (hint.text,)
    taught.store.adapters.update(result.adapter, metrics=record.metrics)


def test_the_next_run_continues_from_the_adapter_in_use(
    taught: Assistant, learned: tuple[LearnResult, list[Progress], tuple[int, ...]]
) -> None:
    result, _, _ = learned
    taught.adapters.use(result.adapter)
    answer = taught.ask("What is dew?", sampling=SHORT)
    taught.feedback(answer.message_id, "bad", hint="Please answer in one sentence.")
    second = taught.learn.now()
    assert taught.adapters.get(second.adapter).parent_id == result.adapter
    assert second.adapter != result.adapter


def test_a_run_that_is_stopped_leaves_nothing_and_the_next_can_start(taught: Assistant) -> None:
    answer = taught.ask("What is frost?", sampling=SHORT)
    taught.feedback(answer.message_id, "bad", hint="Please answer in two sentences.")
    before = taught.adapters.active()
    folders = set(taught.paths.adapters.iterdir())
    cancel = threading.Event()

    def stop_at_training(progress: Progress) -> None:
        if progress.phase == "training":
            cancel.set()

    with pytest.raises(LearnError, match="stopped"):
        taught.learn.now(stop_at_training, cancel)
    assert taught.adapters.active() == before
    assert set(taught.paths.adapters.iterdir()) == folders
    run = taught.learn.status().run
    assert run is not None
    assert run.state == "stopped"
    assert taught.store.runs.running() is None


def test_a_file_that_was_changed_is_not_put_into_use(
    taught: Assistant, learned: tuple[LearnResult, list[Progress], tuple[int, ...]]
) -> None:
    from claw_local.errors import AdapterError

    result, _, _ = learned
    path = Path(taught.adapters.get(result.adapter).gguf_path)
    whole = path.read_bytes()
    taught.adapters.use("base")
    path.write_bytes(whole[:-1] + b"x")
    try:
        with pytest.raises(AdapterError, match="changed"):
            taught.adapters.use(result.adapter)
    finally:
        path.write_bytes(whole)
    assert taught.adapters.active() is None


def test_a_home_that_was_moved_keeps_its_adapters_when_it_learns(home: Paths, tmp_path: Path) -> None:
    from claw_trainer.run import _sweep

    store = Store(home)
    folder = home.adapters / "run-1-abc"
    for made in (folder, home.adapters / "run-2-killed"):
        made.mkdir()
    store.adapters.add(parent_id=0, model_sha256="m", architecture="llama", gguf_path=str(folder / "adapter.gguf"))
    store.close()
    moved = locate(home.data.rename(tmp_path / "moved"))
    _sweep(Store(moved), moved)
    assert [entry.name for entry in moved.adapters.iterdir()] == ["run-1-abc"]
