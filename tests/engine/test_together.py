"""Many replies at once: each right, none in another's way, and nothing left behind."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from claw_local.engine import _turns
from claw_local.engine.base import AdapterSlot, Generation, Message, Prompt, Sampling, ShapedSampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.engine.together import Request, Together, asked_by
from claw_local.errors import AdapterError, EngineError
from claw_local.settings import ModelSettings

from .conftest import LINEAR, write_lora

QUESTIONS = (
    "What is the capital city of France? Answer in one word.",
    "How do I boil an egg?",
    "Name three colours.",
    "Write a poem about rain.",
    "What is two plus two?",
    "Who wrote Hamlet?",
    "Why is the sky blue?",
    "Tell me a joke.",
)
GREEDY = Sampling(max_tokens=16, temperature=0.0, repeat_penalty=1.0)
LONG = Sampling(max_tokens=600, temperature=5.0, top_k=0, top_p=1.0, repeat_penalty=1.0)
CLOSE = 0.6
"""Nats between two tokens where batches of other shapes may choose differently: they round differently."""
MANY = 200


@pytest.fixture(scope="module")
def many(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaCppEngine]:
    settings = ModelSettings(context=1024, threads=1, together=8)
    with LlamaCppEngine.open(model_path, settings, cache_dir=tmp_path_factory.mktemp("cache")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def at_rest(many: LlamaCppEngine) -> Iterator[None]:
    """Each test begins with nobody decoding, and on the base model."""
    many.set_adapters([])
    yield
    until(lambda: not together(many).active and not together(many).waiting)


def together(engine: LlamaCppEngine) -> Together:
    assert engine.together is not None
    return engine.together


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.01)


def ask(engine: LlamaCppEngine, text: str) -> tuple[int, ...]:
    return engine.render([Message("user", text)]).token_ids


def same_as_alone(engine: LlamaCppEngine, generation: Generation, alone: Generation) -> None:
    """Both are the same, up to a place where the model was in two minds."""
    pairs = zip(generation.response_ids, alone.response_ids, strict=False)
    place = next((n for n, (one, other) in enumerate(pairs) if one != other), None)
    if place is None:
        assert generation.response_ids == alone.response_ids
        return
    ids = [*alone.prompt_ids, *alone.response_ids[:place]]
    logits = engine.logits(ids, start=len(ids) - 1)[0]
    assert abs(logits[generation.response_ids[place]] - logits[alone.response_ids[place]]) < CLOSE


def test_eight_at_once_get_the_answers_they_get_alone(many: LlamaCppEngine, engine: LlamaCppEngine) -> None:
    prompts = [ask(many, question) for question in QUESTIONS]
    requests = [many.submit(prompt, GREEDY, client=n) for n, prompt in enumerate(prompts)]
    until(lambda: together(many).active > 1)
    generations = [request.wait(60) for request in requests]
    assert "Paris" in generations[0].text
    for prompt, generation in zip(prompts, generations, strict=True):
        alone, pieces = engine.generate(Prompt(prompt), GREEDY)
        list(pieces)
        same_as_alone(engine, generation, alone)
        assert generation.prompt_ids == prompt
        assert generation.finish_reason in ("stop", "length")
        assert generation.logprobs == [0.0] * len(generation.response_ids)
        assert many.detokenize([t for t in generation.response_ids if not many._model.is_eog(t)]) == generation.text
        assert 0 < generation.first_token_s <= generation.total_s
    # What they share was read once.
    assert sum(g.evaluated for g in generations) < sum(len(prompt) for prompt in prompts)


def test_each_is_drawn_by_its_own_rules_and_recorded_under_what_it_was_drawn_from(many: LlamaCppEngine) -> None:
    schema = json.dumps({"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]})
    prompt = ask(many, "Pick a number.")
    plain = Sampling(max_tokens=6, temperature=1.0, top_p=1.0, top_k=0, repeat_penalty=1.0, seed=3)
    shaped = many.submit(prompt, ShapedSampling(max_tokens=60, temperature=0.7, seed=1, schema=schema))
    free = many.submit(prompt, plain)
    stopped = many.submit(prompt, replace(GREEDY, max_tokens=60, stop=("e",)))
    short = many.submit(prompt, replace(GREEDY, max_tokens=2))
    assert json.loads(shaped.wait(60).text)["n"] in (1, 2)
    assert "e" not in stopped.wait(60).text
    assert stopped.generation.finish_reason == "stop"
    assert len(short.wait(60).response_ids) == 2
    assert short.generation.finish_reason == "length"
    drawn = free.wait(60)
    # Temperature 1 and no filter: the processed distribution is the model's own, which `logits` gives.
    ids = [*prompt, *drawn.response_ids]
    logits = many.logits(ids, start=len(prompt) - 1)[:-1].astype(np.float64)
    top = logits.max(axis=1, keepdims=True)
    logprobs = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    expected = logprobs[np.arange(len(drawn.response_ids)), drawn.response_ids]
    assert np.abs(expected - drawn.logprobs).mean() < 0.25
    assert np.abs(expected - drawn.logprobs).max() < CLOSE


def test_one_that_is_alone_is_drawn_the_same_each_time(many: LlamaCppEngine) -> None:
    prompt = ask(many, "Invent a name for a river.")
    sampling = Sampling(max_tokens=12, temperature=1.2, seed=11)
    first = many.submit(prompt, sampling).wait(60)
    again = many.submit(prompt, sampling).wait(60)
    assert again.evaluated < 4 < first.evaluated
    assert (again.response_ids, again.logprobs) == (first.response_ids, first.logprobs)
    assert many.submit(prompt, replace(sampling, seed=12)).wait(60).response_ids != first.response_ids


def test_pieces_come_while_it_is_written_and_end_once(many: LlamaCppEngine) -> None:
    heard: list[str] = []
    ended: list[Request] = []
    request = many.submit(ask(many, QUESTIONS[1]), GREEDY, on_piece=heard.append, on_end=ended.append)
    generation = request.wait(60)
    assert "".join(heard) == generation.text
    assert len(heard) > 3
    assert ended == [request]
    read = many.submit(ask(many, QUESTIONS[2]), GREEDY)
    assert "".join(read) == read.wait(1).text
    assert list(read) == []


def test_a_short_question_is_answered_while_a_long_prompt_is_read(many: LlamaCppEngine) -> None:
    prompt = ask(many, "Rain fell on the hills and the sea. " * 50)
    long = many.submit(prompt, replace(GREEDY, max_tokens=2), client="a")
    until(lambda: together(many).active == 1)
    short = many.submit(ask(many, QUESTIONS[4]), replace(GREEDY, max_tokens=4), client="b")
    short.wait(60)
    assert not long.done
    assert long.wait(60).evaluated > 400
    assert short.generation.total_s < long.generation.first_token_s


def test_a_request_that_is_given_up_is_gone_within_a_token(many: LlamaCppEngine) -> None:
    others = [many.submit(ask(many, question), replace(LONG, max_tokens=60)) for question in QUESTIONS[:7]]
    event = threading.Event()
    heard = threading.Event()
    given_up = many.submit(ask(many, QUESTIONS[7]), LONG, cancel=event, on_piece=lambda _: heard.set())
    waiting = many.submit(ask(many, QUESTIONS[0]), LONG)
    assert heard.wait(60)
    event.set()
    had = len(given_up.generation.response_ids)
    waiting.cancel()
    assert given_up.wait(60).finish_reason == "cancelled"
    assert len(given_up.generation.response_ids) <= had + 2
    assert waiting.wait(60).finish_reason == "cancelled"
    assert waiting.generation.response_ids == []
    for other in others:
        assert len(other.wait(60).response_ids) <= 60


def test_a_reader_that_stops_reading_gives_its_place_up(many: LlamaCppEngine) -> None:
    generation, pieces = many.generate(many.render([Message("user", QUESTIONS[3])]), LONG)
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    assert generation.finish_reason == "cancelled"
    until(lambda: together(many).active == 0, 5)


def test_one_that_asks_much_keeps_nobody_waiting(many: LlamaCppEngine) -> None:
    sampling = replace(LONG, max_tokens=70, seed=2)
    greedy = [many.submit(ask(many, f"Story number {n}."), sampling, client="much") for n in range(12)]
    until(lambda: all(len(request.generation.response_ids) > 3 for request in greedy[:8]))
    modest = many.submit(ask(many, QUESTIONS[4]), replace(GREEDY, max_tokens=4), client="little")
    modest.wait(60)
    assert sum(request.done for request in greedy) < 4  # Chance may end one or another early.
    # The last of the eight had to make place, and goes on where it stopped.
    had = list(greedy[7].generation.response_ids)
    for request in (*greedy[:7], *greedy[8:]):
        request.cancel()
    whole = greedy[7].wait(60)
    assert whole.response_ids[: len(had)] == had
    assert len(whole.response_ids) == 70 or whole.finish_reason == "stop"
    assert len(whole.logprobs) == len(whole.response_ids)


def test_replies_of_other_adapters_take_turns_and_one_in_flight_keeps_its_own(
    many: LlamaCppEngine, engine: LlamaCppEngine, tmp_path: Path
) -> None:
    lora = write_lora(tmp_path / "lora.gguf", modules=tuple(LINEAR), strength=0.005)
    prompt = many.render([Message("user", QUESTIONS[1])])
    expected = []
    for slots in ([], [AdapterSlot(lora)]):
        engine.set_adapters(slots)
        alone, pieces = engine.generate(prompt, GREEDY)
        list(pieces)
        expected.append(alone)
    assert expected[0].text != expected[1].text
    generation, pieces = many.generate(prompt, GREEDY)
    text = next(pieces)
    many.set_adapters([AdapterSlot(lora)])
    after, after_pieces = many.generate(prompt, GREEDY)
    named = [many.submit(prompt.token_ids, GREEDY, adapters=slots) for slots in ([], [AdapterSlot(lora)])]
    after_text = "".join(after_pieces)
    text += "".join(pieces)
    assert (text, after_text) == (generation.text, after.text)
    engine.set_adapters([])
    for found in (generation, named[0].wait(60)):
        same_as_alone(engine, found, expected[0])
    engine.set_adapters([AdapterSlot(lora)])
    for found in (after, named[1].wait(60)):
        same_as_alone(engine, found, expected[1])
    with pytest.raises(AdapterError):
        many.submit(prompt.token_ids, GREEDY, adapters=[AdapterSlot(tmp_path / "none.gguf")])


def test_a_new_adapter_is_loaded_between_two_steps(many: LlamaCppEngine, tmp_path: Path) -> None:
    running = [many.submit(ask(many, question), LONG) for question in QUESTIONS[:4]]
    until(lambda: all(len(request.generation.response_ids) > 2 for request in running))
    had = len(running[0].generation.response_ids)
    many.set_adapters([AdapterSlot(write_lora(tmp_path / "new.gguf", seed=9))])
    assert len(running[0].generation.response_ids) <= had + 10
    assert len(many.submit(ask(many, QUESTIONS[4]), replace(GREEDY, max_tokens=3)).wait(60).response_ids) == 3
    assert not all(request.done for request in running)
    for request in running:
        request.cancel()


def test_the_next_turn_computes_only_what_is_new(many: LlamaCppEngine) -> None:
    asked = Message("user", "How long do I boil an egg, please?")
    first = many.submit(many.render([asked]).token_ids, GREEDY).wait(60)
    many.submit(ask(many, "Something else entirely."), GREEDY).wait(60)
    said = Message("assistant", first.text, tuple(t for t in first.response_ids if not many._model.is_eog(t)))
    prompt = many.render([asked, said, Message("user", "Shorter.")]).token_ids
    second = many.submit(prompt, GREEDY).wait(60)
    assert second.evaluated <= len(prompt) - len(first.prompt_ids) - len(first.response_ids) + 2


def test_when_room_runs_out_the_last_one_waits_and_all_come_to_their_end(model_path: Path, tmp_path: Path) -> None:
    # Room for 1,024 tokens: eight that grow to some 200 each do not fit beside each other.
    settings = ModelSettings(context=512, threads=1, together=8)
    with LlamaCppEngine.open(model_path, settings, cache_dir=tmp_path) as engine:
        prompts = [engine.tokenize(f"{n} {'Rain fell on the hills. ' * 16}") for n in range(8)]
        sampling = replace(LONG, max_tokens=100, seed=5)
        requests = [engine.submit(prompt, sampling, client=n) for n, prompt in enumerate(prompts)]
        generations = [request.wait(120) for request in requests]
        assert any(request.needs_all_room for request in requests)
        for generation in generations:
            assert len(generation.response_ids) == 100 or generation.finish_reason == "stop"
            assert len(generation.logprobs) == len(generation.response_ids)
        seats = together(engine)._company._seats
        until(lambda: together(engine).active == 0)
        assert seats.free == 1024
        assert seats.kept <= 512


def test_what_one_gets_wrong_is_its_own_affair(many: LlamaCppEngine) -> None:
    good = many.submit(ask(many, QUESTIONS[1]), GREEDY)
    shapeless = many.submit(ask(many, "x"), ShapedSampling(max_tokens=5, schema='{"type": "nonsense"}'))

    def broken(_: str) -> None:
        raise ValueError("the listener is broken")

    deaf = many.submit(ask(many, QUESTIONS[2]), LONG, on_piece=broken)
    with pytest.raises(EngineError):
        shapeless.wait(60)
    assert deaf.wait(60).finish_reason == "cancelled"
    assert good.wait(60).finish_reason in ("stop", "length")
    strange = "does not have"
    for prompt, reason in (([], "empty"), ([1] * 1024, "fills"), ([1, 10**6], strange), ([-1], strange)):
        with pytest.raises(EngineError, match=reason):
            many.submit(prompt, GREEDY)


def test_a_batch_that_fails_costs_only_the_one_it_fails_for(
    many: LlamaCppEngine, engine: LlamaCppEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # llama.cpp does not fail on demand: a token that no prompt holds otherwise stands for what it cannot compute.
    poison = 1234
    context = together(many)._ground.context
    decode = context.decode

    def failing(tokens: list[int], *rest: object) -> None:
        if poison in tokens:
            context.clear()
            raise EngineError("The engine failed while it computed.")
        decode(tokens, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(context, "decode", failing)
    prompts = [ask(many, question) for question in QUESTIONS[1:4]]
    requests = [many.submit(prompt, GREEDY) for prompt in prompts]
    bad = many.submit([*ask(many, QUESTIONS[4]), poison], GREEDY)
    with pytest.raises(EngineError, match="failed"):
        bad.wait(60)
    for prompt, request in zip(prompts, requests, strict=True):
        alone, pieces = engine.generate(Prompt(prompt), GREEDY)
        list(pieces)
        same_as_alone(engine, request.wait(60), alone)


def test_a_judge_that_waited_long_comes_between(many: LlamaCppEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_turns, "ENOUGH_S", 0.3)
    ids = ask(many, QUESTIONS[0])
    before = many.next_logits(ids[:5], ids[5:])
    running = [many.submit(ask(many, question), LONG) for question in QUESTIONS[:4]]
    until(lambda: together(many).active == 4)
    assert many.replying
    assert np.array_equal(many.next_logits(ids[:5], ids[5:]), before)
    assert len(many.generate_many([ids], replace(GREEDY, max_tokens=2))[0].response_ids) == 2
    assert not all(request.done for request in running)
    had = [len(request.generation.response_ids) for request in running]
    until(lambda: all(r.done or len(r.generation.response_ids) > n for r, n in zip(running, had, strict=True)), 10)
    for request in running:
        request.cancel()
    until(lambda: not many.replying, 5)


def test_closing_ends_everyone_as_cancelled(model_path: Path, tmp_path: Path) -> None:
    engine = LlamaCppEngine.open(model_path, ModelSettings(context=512, threads=1, together=4), cache_dir=tmp_path)
    prompt = ask(engine, QUESTIONS[3])
    running = [engine.submit(prompt, LONG) for _ in range(3)]
    generation, pieces = engine.generate(Prompt(prompt), LONG)
    with asked_by("someone"):
        next(pieces)
    engine.close()
    assert [request.wait(10).finish_reason for request in running] == ["cancelled"] * 3
    list(pieces)
    assert generation.finish_reason == "cancelled"
    with pytest.raises(EngineError, match="closing"):
        engine.submit(prompt, GREEDY)


def test_an_engine_for_one_after_the_other_says_so(engine: LlamaCppEngine) -> None:
    assert engine.together is None
    with pytest.raises(EngineError, match=r"model\.together"):
        engine.submit(ask(engine, "x"), GREEDY)


def test_two_hundred_requests_leave_memory_where_it_was(many: LlamaCppEngine) -> None:
    process = psutil.Process()

    def burst(start: int, count: int) -> None:
        requests = [
            many.submit(many.tokenize(f"{start + n}?"), replace(GREEDY, max_tokens=1 + n % 2), client=n % 5)
            for n in range(count)
        ]
        for n, request in enumerate(requests):
            if n % 9 == 0:
                request.cancel()
            request.wait(120)

    burst(0, 40)
    before, threads = process.memory_info().rss, threading.active_count()
    burst(1000, MANY)
    grown = process.memory_info().rss - before
    assert grown < 12 * 2**20, f"{grown / 2**20:.1f} MB more after {MANY} requests"
    assert threading.active_count() <= threads
    company = together(many)._company
    assert company.members == []
    assert len(company._served) <= 1
