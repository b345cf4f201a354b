"""Several replies in one batch."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from claw_local.engine._batch import cells, common_prefix, waves
from claw_local.engine.base import Message, Prompt, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import EngineError

QUESTIONS = ("What is the capital city of France? Answer in one word.", "What is two plus two?", "Name a colour.")
GREEDY = Sampling(max_tokens=16, temperature=0.0, repeat_penalty=1.0)


def test_each_prompt_gets_its_own_answer(engine: LlamaCppEngine) -> None:
    prompts = [engine.render([Message("user", question)]).token_ids for question in QUESTIONS]
    together = engine.generate_many(prompts, GREEDY)
    assert "Paris" in together[0].text
    for prompt, generation in zip(prompts, together, strict=True):
        alone, pieces = engine.generate(Prompt(prompt), GREEDY)
        list(pieces)
        # Batches of other shapes round differently, so long answers may part ways; their beginning is the same.
        assert generation.response_ids[:4] == alone.response_ids[:4]
        assert generation.prompt_ids == prompt
        assert generation.finish_reason in ("stop", "length")
        assert len(generation.logprobs) == len(generation.response_ids)
        assert generation.total_s > 0


def test_what_all_prompts_share_is_computed_once(engine: LlamaCppEngine) -> None:
    prompts = [engine.render([Message("user", question)]).token_ids for question in QUESTIONS]
    shared = common_prefix(prompts)
    assert shared > 10
    evaluated = [generation.evaluated for generation in engine.generate_many(prompts, replace(GREEDY, max_tokens=2))]
    assert sum(evaluated) == sum(len(prompt) for prompt in prompts) - shared * (len(prompts) - 1)


def test_seeds_count_up_and_repeat(engine: LlamaCppEngine) -> None:
    prompt = engine.render([Message("user", "Invent a name.")]).token_ids
    sampling = Sampling(max_tokens=6, temperature=1.2, seed=100)
    first = engine.generate_many([prompt] * 3, sampling)
    assert [generation.seed for generation in first] == [100, 101, 102]
    assert len({tuple(generation.response_ids) for generation in first}) > 1
    again = engine.generate_many([prompt] * 3, sampling)
    assert [generation.response_ids for generation in again] == [generation.response_ids for generation in first]


def test_more_prompts_than_fit_together_go_in_waves(engine: LlamaCppEngine) -> None:
    prompts = [engine.render([Message("user", f"Say {n}.")]).token_ids for n in range(11)]
    generations = engine.generate_many(prompts, replace(GREEDY, max_tokens=2))
    assert [len(generation.response_ids) for generation in generations] == [2] * 11
    assert engine.generate_many([], GREEDY) == []


def test_waves_keep_to_their_count_and_their_memory() -> None:
    assert waves([[1, 2, 3]] * 17, 10, 1000) == [range(8), range(8, 16), range(16, 17)]
    long = [[n] * 900 for n in range(5)]
    assert waves(long, 100, 1000) == [range(2), range(2, 4), range(4, 5)]
    assert cells([[1, 2, 3], [1, 2, 4]], 10, 1000) == 2 + 11 + 11
    assert common_prefix([[1, 2], [1, 2]]) == 1


def test_cancel_returns_what_there_is(engine: LlamaCppEngine) -> None:
    prompts = [engine.render([Message("user", question)]).token_ids for question in QUESTIONS] * 3
    cancel = threading.Event()
    timer = threading.Timer(0.5, cancel.set)
    timer.start()
    generations = engine.generate_many(
        prompts, replace(GREEDY, max_tokens=2000, temperature=3.0, top_k=0), cancel=cancel
    )
    timer.join()
    assert len(generations) == 9
    assert "cancelled" in {generation.finish_reason for generation in generations}


def test_a_bad_prompt_is_refused(engine: LlamaCppEngine) -> None:
    with pytest.raises(EngineError, match="empty"):
        engine.generate_many([[1, 2], []], GREEDY)


def test_a_reply_goes_before_a_batch_that_is_running(engine: LlamaCppEngine) -> None:
    prompts = [engine.render([Message("user", question)]).token_ids for question in QUESTIONS]
    cancel, done = threading.Event(), threading.Event()

    def batch() -> None:
        engine.generate_many(prompts, Sampling(max_tokens=1500, temperature=5.0, top_k=0, top_p=1.0), cancel=cancel)
        done.set()

    thread = threading.Thread(target=batch)
    thread.start()
    generation, pieces = engine.generate(Prompt(prompts[0]), replace(GREEDY, max_tokens=4))
    list(pieces)
    assert not done.is_set()
    assert len(generation.response_ids) == 4
    cancel.set()
    thread.join(60)
    assert done.is_set()
