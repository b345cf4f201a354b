"""One reply: what it records, when it stops, and what is not computed twice."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from claw_local.engine._sampler import PENALTY_WINDOW
from claw_local.engine.base import Generation, Message, Prompt, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import EngineError
from claw_local.settings import ModelSettings

EGG = Message("user", "How do I boil an egg?")
FRANCE = Message("user", "What is the capital city of France? Answer in one word.")
SHORT = Sampling(max_tokens=8, seed=7)
PLAIN = Sampling(max_tokens=8, temperature=1.0, top_p=1.0, top_k=0, repeat_penalty=1.0, seed=3)


def whole(engine: LlamaCppEngine, prompt: Prompt, sampling: Sampling) -> Generation:
    generation, pieces = engine.generate(prompt, sampling)
    assert "".join(pieces) == generation.text
    return generation


def log_softmax(logits: np.ndarray) -> np.ndarray:
    logits = logits.astype(np.float64)
    top = logits.max(axis=-1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))


def test_the_model_answers_and_everything_is_recorded(engine: LlamaCppEngine) -> None:
    prompt = engine.render([FRANCE])
    generation = whole(engine, prompt, Sampling(max_tokens=40, temperature=0.0, repeat_penalty=1.0))
    assert "Paris" in generation.text
    assert generation.finish_reason == "stop"
    assert generation.prompt_ids == prompt.token_ids
    assert engine._model.is_eog(generation.response_ids[-1])
    assert engine.detokenize(generation.response_ids) == generation.text
    assert generation.logprobs == [0.0] * len(generation.response_ids)
    assert 0 < generation.first_token_s <= generation.total_s


def test_the_second_turn_computes_only_what_is_new(engine: LlamaCppEngine) -> None:
    first = engine.render([EGG])
    one = whole(engine, first, SHORT)
    second = engine.render([EGG, Message("assistant", one.text, tuple(one.response_ids)), Message("user", "Shorter.")])
    two = whole(engine, second, SHORT)
    # The last sampled token was never computed, so it is new as well.
    assert two.evaluated == len(second.token_ids) - len(first.token_ids) - len(one.response_ids) + 1


def test_the_same_seed_gives_the_same_answer_whatever_was_kept(engine: LlamaCppEngine) -> None:
    prompt = engine.render([EGG])
    first = whole(engine, prompt, SHORT)
    again = whole(engine, prompt, SHORT)
    assert again.evaluated < 4
    whole(engine, engine.render([Message("user", "Something else")]), SHORT)
    third = whole(engine, prompt, SHORT)
    assert third.evaluated > 4
    assert first.response_ids == again.response_ids == third.response_ids
    assert first.logprobs == again.logprobs == third.logprobs
    assert whole(engine, prompt, replace(SHORT, seed=8)).response_ids != first.response_ids


def test_a_prompt_gives_the_same_logits_in_batches_of_any_size(engine: LlamaCppEngine) -> None:
    ids = engine.render([Message("user", "Tell me about rivers and lakes. " * 12)]).token_ids
    expected = engine.logits(ids, start=len(ids) - 1)[0]
    for cut in (2, 65, len(ids) - 1):
        assert np.array_equal(engine.next_logits(ids[:cut], ids[cut:]), expected)


def test_a_fresh_process_repeats_the_answer(engine: LlamaCppEngine, model_path: Path) -> None:
    code = (
        "from claw_local.engine.llama_cpp import LlamaCppEngine\n"
        "from claw_local.engine.base import Message, Sampling\n"
        "from claw_local.settings import ModelSettings\n"
        "from pathlib import Path\n"
        f"e = LlamaCppEngine.open(Path({str(model_path)!r}), ModelSettings(context=2048, threads=1), cache_dir=None)\n"
        "prompt = e.render([Message('user', 'How do I boil an egg?')])\n"
        "g, pieces = e.generate(prompt, Sampling(max_tokens=8, seed=7))\n"
        "list(pieces)\n"
        "print(g.response_ids)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip() == str(whole(engine, engine.render([EGG]), SHORT).response_ids)
    assert done.stderr == ""  # llama.cpp prints nothing, and ending without close() is quiet too


def test_without_a_seed_each_reply_has_its_own_and_it_is_recorded(engine: LlamaCppEngine) -> None:
    prompt = engine.render([EGG])
    one, two = (whole(engine, prompt, replace(SHORT, seed=None, temperature=1.5)) for _ in range(2))
    assert one.seed != two.seed
    assert whole(engine, prompt, replace(one.sampling, seed=one.seed)).response_ids == one.response_ids


def test_logprobs_are_those_of_the_plain_distribution_when_nothing_processes_it(engine: LlamaCppEngine) -> None:
    prompt = engine.render([EGG])
    generation = whole(engine, prompt, PLAIN)
    ids = [*prompt.token_ids, *generation.response_ids]
    logits = engine.logits(ids[:-1], start=len(prompt.token_ids) - 1)
    rows = log_softmax(logits)
    expected = [rows[n, token] for n, token in enumerate(generation.response_ids)]
    # The first comes from the same bits; later ones were computed one at a time, and round a little differently.
    assert generation.logprobs[0] == pytest.approx(expected[0], abs=1e-5)
    assert np.abs(np.array(generation.logprobs) - expected).mean() < 0.15


def test_logprobs_are_those_of_the_processed_distribution(engine: LlamaCppEngine) -> None:
    prompt = engine.render([EGG])
    sampling = Sampling(max_tokens=1, temperature=0.6, top_p=0.8, top_k=20, min_p=0.05, repeat_penalty=1.3, seed=5)
    row = engine.logits(prompt.token_ids, start=len(prompt.token_ids) - 1)[0].astype(np.float64)
    order = np.argsort(-row)[:20]
    share = np.exp(log_softmax(row[order]))
    order = order[: int(np.searchsorted(np.cumsum(share), 0.8)) + 1]
    share = np.exp(log_softmax(row[order]))
    order = order[share >= 0.05 * share[0]]
    processed = dict(zip(order.tolist(), log_softmax(row[order] / 0.6).tolist(), strict=True))
    for seed in range(5):
        generation = whole(engine, prompt, replace(sampling, seed=seed))
        assert generation.logprobs[0] == pytest.approx(processed[generation.response_ids[0]], abs=1e-4)


def test_the_repeat_penalty_looks_at_the_reply_and_not_at_the_prompt(engine: LlamaCppEngine) -> None:
    prompt = Prompt(tuple(engine.tokenize("one two one two one two one two one two one two one")))
    free = Sampling(max_tokens=6, temperature=0.0, repeat_penalty=1.0)
    loop = whole(engine, prompt, free)
    assert len(set(loop.response_ids)) <= 3
    held = whole(engine, prompt, replace(free, repeat_penalty=3.0))
    assert held.response_ids[0] == loop.response_ids[0]
    assert len(set(held.response_ids)) > len(set(loop.response_ids))
    assert len(held.response_ids) <= PENALTY_WINDOW


def test_cancel_stops_within_one_token_and_the_engine_stays_usable(engine: LlamaCppEngine) -> None:
    cancel = threading.Event()
    prompt = engine.render([EGG])
    generation, pieces = engine.generate(prompt, replace(SHORT, max_tokens=200), cancel=cancel)
    next(pieces)
    next(pieces)
    before = len(generation.response_ids)
    cancel.set()
    list(pieces)
    assert len(generation.response_ids) == before
    assert generation.finish_reason == "cancelled"
    assert whole(engine, prompt, SHORT).finish_reason in ("length", "stop")


def test_cancel_before_the_first_token_computes_nothing_more(engine: LlamaCppEngine) -> None:
    cancel = threading.Event()
    cancel.set()
    generation, pieces = engine.generate(engine.render([EGG]), SHORT, cancel=cancel)
    assert list(pieces) == []
    assert generation.finish_reason == "cancelled"
    assert generation.response_ids == []
    assert generation.evaluated == 0


def test_a_reply_that_is_given_up_lets_the_next_one_in(engine: LlamaCppEngine) -> None:
    prompt = engine.render([EGG])
    generation, pieces = engine.generate(prompt, replace(SHORT, max_tokens=100))
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    assert generation.finish_reason == "cancelled"
    dropped, pieces = engine.generate(prompt, replace(SHORT, max_tokens=100))
    next(pieces)
    del pieces
    assert dropped.finish_reason == "cancelled"
    results: list[Generation] = []
    thread = threading.Thread(target=lambda: results.append(whole(engine, prompt, SHORT)))
    thread.start()
    thread.join(60)
    assert results
    assert results[0].finish_reason in ("length", "stop")


def test_two_half_read_replies_of_one_thread_do_not_disturb_each_other(engine: LlamaCppEngine) -> None:
    prompts = [engine.render([EGG]), engine.render([Message("user", "Why is the sky blue?")])]
    alone = [whole(engine, prompt, SHORT) for prompt in prompts]
    begun = [engine.generate(prompt, SHORT) for prompt in prompts]
    texts = ["", ""]
    open_ones = [0, 1]
    while open_ones:
        for n in list(open_ones):
            piece = next(begun[n][1], None)
            if piece is None:
                open_ones.remove(n)
            else:
                texts[n] += piece
    for n in (0, 1):
        assert len(begun[n][0].response_ids) == len(alone[n].response_ids)
        assert begun[n][0].response_ids[0] == alone[n].response_ids[0]
        # What had to be computed again because the other reply came between does not count as prompt.
        assert begun[n][0].evaluated <= len(prompts[n].token_ids)
        assert texts[n] == begun[n][0].text


def test_replies_of_several_threads_queue(engine: LlamaCppEngine) -> None:
    prompts = [engine.render([Message("user", f"Count from {n}.")]) for n in range(3)]
    alone = [whole(engine, prompt, SHORT).response_ids for prompt in prompts]
    together: dict[int, list[int]] = {}

    def run(n: int) -> None:
        together[n] = whole(engine, prompts[n], SHORT).response_ids

    threads = [threading.Thread(target=run, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [together[n] for n in range(3)] == alone


def test_a_stop_string_ends_the_reply_and_is_left_out(engine: LlamaCppEngine) -> None:
    prompt = engine.render([FRANCE])
    greedy = Sampling(max_tokens=40, temperature=0.0, repeat_penalty=1.0)
    full = whole(engine, prompt, greedy)
    stop = full.text[8:14]
    cut = whole(engine, prompt, replace(greedy, stop=(stop,)))
    assert cut.text == full.text[: full.text.index(stop)]
    assert cut.finish_reason == "stop"


def test_emoji_come_out_whole(engine: LlamaCppEngine) -> None:
    prompt = engine.render([Message("user", "Repeat exactly: 🥚🍳🎉🥚🍳🎉")])
    generation, pieces = engine.generate(prompt, Sampling(max_tokens=40, temperature=0.0, repeat_penalty=1.0))
    found = list(pieces)
    assert "🥚" in generation.text
    assert "�" not in "".join(found)
    assert any(piece for piece in found if not piece.isascii())


def test_max_tokens_ends_with_length(engine: LlamaCppEngine) -> None:
    generation = whole(engine, engine.render([EGG]), replace(SHORT, max_tokens=3))
    assert (generation.finish_reason, len(generation.response_ids)) == ("length", 3)


def test_a_full_context_ends_with_length(model_path: Path) -> None:
    with LlamaCppEngine.open(model_path, ModelSettings(context=512, threads=1), cache_dir=None) as small:
        assert small.info.context == 512
        ids = small.tokenize("word " * 600)[:508]
        generation = whole(small, Prompt(tuple(ids)), Sampling(max_tokens=50, temperature=0.0))
        assert generation.finish_reason == "length"
        assert len(ids) + len(generation.response_ids) == 512
        with pytest.raises(EngineError, match="fills the context"):
            small.generate(Prompt(tuple(small.tokenize("word " * 600)[:512])), SHORT)
        with pytest.raises(EngineError, match="empty"):
            small.generate(Prompt(()), SHORT)


def test_after_close_replies_end_and_calls_say_so(model_path: Path) -> None:
    engine = LlamaCppEngine.open(model_path, ModelSettings(context=512, threads=1), cache_dir=None)
    generation, pieces = engine.generate(engine.render([EGG]), SHORT)
    next(pieces)
    engine.close()
    engine.close()
    assert list(pieces) == []
    assert generation.finish_reason == "cancelled"
    for call in (
        lambda: engine.tokenize("x"),
        lambda: engine.next_logits([1], [2]),
        lambda: engine.generate_many([[1]], SHORT),
        lambda: engine.generate(Prompt((1, 2)), SHORT),
    ):
        with pytest.raises(EngineError, match="no longer loaded"):
            call()
    assert engine.info.architecture == "llama"


def test_info_says_what_is_loaded(engine: LlamaCppEngine, model_path: Path) -> None:
    info = engine.info
    assert (info.name, info.path, info.architecture) == (model_path.stem, model_path, "llama")
    assert 130e6 < info.parameters < 140e6
    assert len(info.sha256) == 64


def test_text_and_tokens_turn_into_each_other(engine: LlamaCppEngine) -> None:
    for text in ("", "Hello, world! ", "é 🥚\n\tx", "nul\0inside"):
        assert engine.detokenize(engine.tokenize(text)) == text
    assert len(engine.tokenize("<|im_end|>")) > 1
    assert len(engine.tokenize("<|im_end|>", special=True)) == 1
    assert engine.detokenize(engine.tokenize("\ud800")) == "?"
