"""The gate is asked about an adapter that was not trained just now: an imported one, or the one in use. Real model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local.adapters import checking
from claw_local.assistant import Assistant
from claw_local.engine.base import Sampling
from claw_local.errors import AdapterError
from claw_local.settings import LearningSettings, ModelSettings, Settings
from tests.adapters.loras import ALL, lora, register

SHORT = Sampling(max_tokens=8, seed=1)


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory, model_path: Path) -> Iterator[Assistant]:
    small = Settings(model=ModelSettings(context=512, threads=1), learning=LearningSettings(rollout_tokens=16))
    with Assistant.open(tmp_path_factory.mktemp("home"), model=model_path, settings=small) as opened:
        yield opened


@pytest.fixture(autouse=True)
def few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole list takes minutes."""
    monkeypatch.setattr(checking, "PROBES", 3)
    facts = checking.guarding.guard_facts()[:3]
    monkeypatch.setattr(checking.guarding, "guard_facts", lambda: facts)
    shipped = checking.measuring.shipped_prompts
    for module in (checking.measuring, checking.guarding):
        monkeypatch.setattr(module, "shipped_prompts", lambda kind: shipped(kind)[:3])


def test_an_imported_adapter_that_spoils_the_model_is_rejected_and_the_report_is_kept(
    assistant: Assistant, tmp_path: Path
) -> None:
    source = register(assistant, lora(blocks=30, modules=ALL, size=0.1))
    folder = assistant.adapters.export(source.id, tmp_path / "theirs", "peft")
    assistant.adapters.remove(source.id)
    record = assistant.adapters.import_file(folder).record
    heard: list[float] = []
    verdict = assistant.adapters.check(record.id, lambda fraction, words: heard.append(fraction))
    assert not verdict.accepted
    assert verdict.guard.kl_base > 0.5, "noise in every layer is far from the base"
    after = assistant.adapters.get(record.id)
    assert (after.state, after.reason) == ("rejected", verdict.reason)
    assert after.metrics["gate"]["guard"]["kl_base"] == verdict.guard.kl_base
    assert after.recipe == record.recipe
    kept = Path(record.gguf_path).parent
    assert json.loads((kept / "gate.json").read_text())["accepted"] is False
    assert (kept / "gate.md").read_text().startswith("# Gate: not accepted")
    assert heard == sorted(heard) and heard[-1] == 1.0
    assert assistant.adapters.active() is None
    assert assistant.ask("Hello", sampling=SHORT, learn=False).adapter == 0, "the model answers as before"


def test_the_one_in_use_is_held_against_the_base_and_stays_in_use(assistant: Assistant) -> None:
    record = register(assistant, lora(blocks=1, size=0.0))
    hint = assistant.hints.add("Use capital letters only.")
    assistant.adapters.use(record.id)
    verdict = assistant.adapters.check(record.id)
    assert verdict.before == verdict.after, "an adapter that changes nothing says what the base says"
    assert verdict.guard.kl_base == pytest.approx(0.0, abs=1e-6)
    assert not verdict.accepted and "no better" in verdict.reason
    after = assistant.adapters.get(record.id)
    assert after.state == "active"
    assert after.metrics["learned_hints"] == [] and after.metrics["hints"][0]["hint_id"] == hint.id
    assert assistant.hints.list() == [hint]


def test_one_that_is_forgotten_while_the_gate_is_asked_stays_forgotten(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "PROBES", 1)
    facts = checking.guarding.guard_facts()[:1]
    monkeypatch.setattr(checking.guarding, "guard_facts", lambda: facts)
    record = register(assistant, lora())

    def forgotten(fraction: float, words: str) -> None:
        assistant.store.adapters.update(record.id, state="forgotten", metrics={})

    with pytest.raises(AdapterError, match="had forgotten"):
        assistant.adapters.check(record.id, forgotten)
    after = assistant.adapters.get(record.id)
    assert (after.state, after.metrics) == ("forgotten", {})
    assert not (Path(record.gguf_path).parent / "gate.md").exists()
