"""Texts of a given shape, and texts written aside from the chat, on the embedded model."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

from claw_local.engine import _sampler
from claw_local.engine.base import AdapterSlot, Cancelled, FormedSampling, Message, Sampling, ShapedSampling
from claw_local.engine.grammar import ShapeError, grammar_of
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import EngineError
from claw_local.judge import asking

from .conftest import LINEAR, write_lora

MESSAGES = asking.verdict_prompt("What is fog?", "- A cloud", "No lists please.")


def shaped(shape: str, *, temperature: float = 0.9, seed: int = 1) -> ShapedSampling:
    return ShapedSampling(max_tokens=200, temperature=temperature, repeat_penalty=1.0, seed=seed, schema=shape)


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_even_a_small_model_keeps_to_the_shape(engine: LlamaCppEngine, temperature: float) -> None:
    prompt = engine.render(MESSAGES)
    for seed in range(3):
        made = engine.generate_aside(prompt, shaped(asking.VERDICT_SHAPE, temperature=temperature, seed=seed))
        if made.finish_reason == "stop":
            assert asking.read_vote(made.text) is not None, made.text
        else:
            assert made.text.startswith('{"verdict":'), "it was cut short, and is no vote"
            assert asking.read_vote(made.text) is None
        assert len(made.logprobs) == len(made.response_ids)


def test_a_text_written_aside_leaves_the_chat_as_it_was(engine: LlamaCppEngine, tmp_path: Path) -> None:
    prompt = engine.render([Message("user", "What is rain?")])
    plain = Sampling(max_tokens=8, temperature=0.0)
    first, pieces = engine.generate(prompt, plain)
    list(pieces)
    shape = asking.FOLLOWS_SHAPE
    base = engine.generate_aside(engine.render(asking.follows_prompt("No lists.", "So.")), shaped(shape, temperature=0))
    assert json.loads(base.text)["follows"] in ("yes", "no")
    again, pieces = engine.generate(prompt, plain)
    list(pieces)
    assert again.response_ids == first.response_ids
    assert again.evaluated <= 2, "the chat's KV is still there"
    engine.set_adapters([AdapterSlot(write_lora(tmp_path / "chat.gguf", modules=tuple(LINEAR), strength=0.05))])
    adapted = engine.generate_aside(
        engine.render(asking.follows_prompt("No lists.", "So.")), shaped(shape, temperature=0)
    )
    assert adapted.response_ids == base.response_ids, "the chat's adapters do not judge"


def test_writing_aside_can_be_stopped(engine: LlamaCppEngine) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        engine.generate_aside(engine.render(MESSAGES), shaped(asking.VERDICT_SHAPE), cancel=cancel)
    assert engine.generate_aside(engine.render(MESSAGES), Sampling(max_tokens=2, seed=1)).text


def test_what_is_no_shape_is_refused_in_words(engine: LlamaCppEngine) -> None:
    assert grammar_of(asking.HINT_SHAPE).startswith("array") or "root ::=" in grammar_of(asking.HINT_SHAPE)
    with pytest.raises(EngineError, match="No grammar"):
        grammar_of("{not json")
    with pytest.raises(EngineError):
        engine.generate_aside(engine.render(MESSAGES), shaped('{"type": "wonder"}'))


def test_names_and_values_may_hold_whatever_text_may(engine: LlamaCppEngine) -> None:
    name, value = 'the "ü"\n::= root', 'C:\\new "x"\t]] ü'
    shape = {"type": "object", "properties": {name: {"enum": [value]}}, "required": [name]}
    made = engine.generate_aside(engine.render(MESSAGES), shaped(json.dumps(shape)))
    assert json.loads(made.text) == {name: value}
    assert "ü" in made.text, "letters stand as a model would write them"


def test_a_shape_that_allows_nothing_is_no_damaged_model(engine: LlamaCppEngine) -> None:
    nothing = FormedSampling(max_tokens=5, grammar="root ::= [z-a]")
    with pytest.raises(ShapeError, match="allows no text"):
        engine.generate_aside(engine.render(MESSAGES), nothing)


def test_a_shape_that_keeps_others_waiting_is_given_up(engine: LlamaCppEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sampler, "SLOWEST_S", 0.0)
    with pytest.raises(ShapeError, match="too many ways open"):
        engine.generate_aside(engine.render(MESSAGES), shaped('{"type": "array"}'))
    assert engine.generate_aside(engine.render(MESSAGES), Sampling(max_tokens=2, seed=1)).text


def test_a_pattern_comes_as_json_that_fits_it(engine: LlamaCppEngine) -> None:
    for pattern in ('^"hi"$', r"^C:\\x$", r"^\d{3}[\"\\]$"):
        shape = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}, "required": ["a"]}
        made = engine.generate_aside(engine.render(MESSAGES), shaped(json.dumps(shape), temperature=1.5))
        assert re.search(pattern, json.loads(made.text)["a"]), made.text
