"""Answers are kept as they are drawn: what was drawn once is read back, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from claw_local.adapters.gguf import convert_lora
from claw_local.engine.base import AdapterSlot, Generation, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.settings import ModelSettings
from claw_trainer.drawn import TOGETHER, Drawn
from claw_trainer.policy import Policy

SAMPLING = Sampling(max_tokens=12, temperature=1.0, seed=5)
PROMPTS = [[n + 1, n + 2, n + 3] for n in range(TOGETHER + 3)]


class Counted:
    """A real engine, and what it was asked to draw; from the `ends`-th group on it is as if the process were gone."""

    def __init__(self, engine: LlamaCppEngine, ends: int = 100) -> None:
        self.engine, self.ends = engine, ends
        self.groups: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def generate_many(self, prompts: Any, sampling: Sampling, **more: Any) -> list[Generation]:
        if len(self.groups) == self.ends:
            raise KeyboardInterrupt
        self.groups.append(len(prompts))
        return self.engine.generate_many(prompts, sampling, **more)


@pytest.fixture(scope="module")
def engine(tiny_models: dict[str, Path]) -> Iterator[LlamaCppEngine]:
    engine = LlamaCppEngine.open(tiny_models["llama"], ModelSettings(context=512, threads=1), cache_dir=None)
    yield engine
    engine.close()


def drawn(answers: list[Generation]) -> list[Any]:
    return [(one.prompt_ids, one.response_ids, one.logprobs, one.text, one.finish_reason, one.seed) for one in answers]


def test_a_run_that_is_killed_in_between_draws_the_rest_only_and_gets_the_same(
    engine: LlamaCppEngine, tmp_path: Path
) -> None:
    whole = Drawn(Counted(engine), tmp_path / "whole").generate_many(PROMPTS, SAMPLING)
    killed = Counted(engine, ends=1)
    with pytest.raises(KeyboardInterrupt):
        Drawn(killed, tmp_path / "left").generate_many(PROMPTS, SAMPLING)
    again = Counted(engine)
    assert drawn(Drawn(again, tmp_path / "left").generate_many(PROMPTS, SAMPLING)) == drawn(whole)
    assert (killed.groups, again.groups) == ([TOGETHER], [3])


def test_what_is_asked_otherwise_or_of_another_adapter_is_drawn_anew(
    engine: LlamaCppEngine, tiny_policy: Policy, make_random: Callable[..., None], tmp_path: Path
) -> None:
    make_random(tiny_policy, 0.12)
    lora = convert_lora(tiny_policy.save(tmp_path / "peft"), engine.info.path, tmp_path / "lora.gguf")
    counted = Counted(engine)
    kept = Drawn(counted, tmp_path / "file")
    first = kept.generate_many(PROMPTS[:2], SAMPLING)
    kept.generate_many(PROMPTS[:2], Sampling(max_tokens=12, temperature=1.0, seed=6))
    kept.generate_many(PROMPTS[1:3], SAMPLING)
    kept.set_adapters([AdapterSlot(lora)])
    other = kept.generate_many(PROMPTS[:2], SAMPLING)
    kept.set_adapters([AdapterSlot(lora, 0.5)])
    kept.generate_many(PROMPTS[:2], SAMPLING)
    assert len(counted.groups) == 5
    assert drawn(other) != drawn(first)
    kept.set_adapters([])
    assert drawn(kept.generate_many(PROMPTS[:2], SAMPLING)) == drawn(first)
    assert len(counted.groups) == 5


def test_half_a_line_is_not_read_and_does_not_spoil_the_next(engine: LlamaCppEngine, tmp_path: Path) -> None:
    file = tmp_path / "file"
    Drawn(Counted(engine), file).generate_many(PROMPTS, SAMPLING)
    file.write_bytes(file.read_bytes()[:-20])
    second = Counted(engine)
    Drawn(second, file).generate_many(PROMPTS, SAMPLING)
    third = Counted(engine)
    Drawn(third, file).generate_many(PROMPTS, SAMPLING)
    assert (second.groups, third.groups) == ([3], [])
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_is_forgotten_or_has_no_seed_is_drawn_anew(engine: LlamaCppEngine, tmp_path: Path) -> None:
    counted = Counted(engine)
    kept = Drawn(counted, tmp_path / "file")
    kept.generate_many(PROMPTS[:1], SAMPLING)
    kept.forget()
    assert not (tmp_path / "file").exists()
    kept.generate_many(PROMPTS[:1], SAMPLING)
    for _ in range(2):
        kept.generate_many(PROMPTS[:1], Sampling(max_tokens=4, seed=None))
    assert len(counted.groups) == 4
