"""Training a judge adapter: the padded forward pass computes what the policy does, and the loop learns."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from claw_local.engine.models import embedded_model
from claw_local.judge.examples import scored, shipped
from claw_trainer.batches import pack
from claw_trainer.judge_adapter import Case, Reader, Recipe, accuracy, losses_of, train
from claw_trainer.padded import BUCKETS, PaddedLlama, bucket_of
from claw_trainer.policy import Policy
from claw_trainer.weights import load_base


def sequences(count: int, longest: int, vocabulary: int) -> list[list[int]]:
    dice = random.Random(5)
    return [[dice.randrange(vocabulary) for _ in range(dice.randint(2, longest))] for _ in range(count)]


def of_policy(policy: Policy, prompts: list[list[int]], choices: tuple[int, ...]) -> torch.Tensor:
    packed = pack([(prompt, choices[:1]) for prompt in prompts], policy.device)
    return policy.logits(policy.hidden(packed))[:, list(choices)]


@pytest.mark.parametrize("stretched", [False, True])
def test_the_padded_pass_is_the_policy(
    tiny_models: dict[str, Path], make_random: Callable[..., None], stretched: bool
) -> None:
    path = tiny_models["llama-stretched" if stretched else "llama"]
    policy = Policy(load_base(path, exact=True), rank=4, alpha=8)
    make_random(policy, 0.2)
    padded = PaddedLlama(policy)
    prompts = sequences(7, 40, 250)
    found = padded.logits(padded.last_hidden(prompts), (3, 9, 20))
    torch.testing.assert_close(found, of_policy(policy, prompts, (3, 9, 20)), atol=1e-4, rtol=1e-4)


def test_its_gradients_are_the_policys(tiny_policy: Policy, make_random: Callable[..., None]) -> None:
    make_random(tiny_policy, 0.2)
    padded, prompts = PaddedLlama(tiny_policy), sequences(4, 30, 250)
    padded.logits(padded.last_hidden(prompts), (3, 9)).log_softmax(1)[:, 0].sum().backward()
    here = [parameter.grad.clone() for parameter in tiny_policy.parameters() if parameter.grad is not None]
    for parameter in tiny_policy.parameters():
        parameter.grad = None
    of_policy(tiny_policy, prompts, (3, 9)).log_softmax(1)[:, 0].sum().backward()
    there = [parameter.grad for parameter in tiny_policy.parameters() if parameter.grad is not None]
    assert len(here) == len(there) > 0
    for one, other in zip(here, there, strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)


def test_on_the_embedded_model_both_say_the_same() -> None:
    model = embedded_model()
    assert model is not None
    policy = Policy(load_base(model, exact=True), rank=4, alpha=8)
    padded, prompts = PaddedLlama(policy), sequences(3, 30, 40_000)
    with torch.no_grad():
        found = padded.logits(padded.last_hidden(prompts), (30, 900))
        torch.testing.assert_close(found, of_policy(policy, prompts, (30, 900)), atol=2e-3, rtol=2e-3)


def test_another_architecture_is_read_through_the_policy(tiny_models: dict[str, Path]) -> None:
    policy = Policy(load_base(tiny_models["qwen2"], exact=True), rank=4, alpha=8)
    with pytest.raises(ValueError, match="qwen2"):
        PaddedLlama(policy)
    prompts = sequences(3, 20, 250)
    cases = [Case(tuple(prompt), (3, 9), 0) for prompt in prompts]
    expected = of_policy(policy, prompts, (3, 9)).log_softmax(1)
    torch.testing.assert_close(Reader(policy).logprobs(cases), expected)


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "gemma3"])
def test_it_learns_a_rule_and_holds_it_on_cases_it_never_saw(tiny_models: dict[str, Path], architecture: str) -> None:
    """The rule: the last token but one tells the answer."""
    dice = random.Random(1)

    def case() -> Case:
        right = dice.randrange(3)
        return Case((*(dice.randrange(100) for _ in range(dice.randint(3, 40))), 200 + right, 7), (30, 31, 32), right)

    reader = Reader(Policy(load_base(tiny_models[architecture], exact=True), rank=4, alpha=8))
    held, kept = [case() for _ in range(60)], []
    before, _ = accuracy(reader, held, 512)
    history = train(
        reader,
        lambda epoch: [case() for _ in range(400)],
        Recipe(rank=4, alpha=8, learning_rate=2e-2, epochs=4, batch=16, micro_tokens=512, evaluations=2),
        evaluate=lambda: accuracy(reader, held, 512)[0],
        keep=lambda: kept.append(accuracy(reader, held, 512)[0]),
    )
    assert before < 0.7
    assert kept[-1] >= 0.95 and kept == sorted(kept)
    assert [round(entry["epoch"]) for entry in history[1::2]] == [1, 2, 3, 4] and len(history) == 8
    assert history[-1]["loss"] < history[0]["loss"]


def test_the_loss_is_the_smoothed_cross_entropy() -> None:
    logprobs = torch.tensor([[0.7, 0.2, 0.1]]).log()
    by_hand = -(0.9 * torch.tensor(0.7).log() + 0.1 * logprobs.mean())
    torch.testing.assert_close(losses_of(logprobs, torch.tensor([0]), 0.1), by_hand[None])


def test_micro_batches_hold_every_case_once_and_one_length(tiny_policy: Policy) -> None:
    dice = random.Random(2)
    cases = [Case(tuple(range(dice.randint(1, 90))), (1, 2), 0) for _ in range(50)]
    groups = Reader(tiny_policy).groups(cases, 512)
    assert sorted(len(case.prompt_ids) for group in groups for case in group) == sorted(
        len(case.prompt_ids) for case in cases
    )
    for group in groups:
        assert len({bucket_of(len(case.prompt_ids)) for case in group}) == 1
    assert bucket_of(BUCKETS[-1] + 1) == BUCKETS[-1] + 1


def test_scored_examples_are_their_own_and_none_is_a_test_question() -> None:
    train_part, dev = scored("train"), scored("dev")
    assert len(train_part) > 14_000 and len(dev) > 600
    messages = [example.next for example in [*train_part, *dev]]
    assert len(set(messages)) == len(messages)
    assert {example.question for example in train_part}.isdisjoint(example.question for example in dev)
    held = {example.next for split in ("dev", "test") for example in shipped(split)}
    assert held.isdisjoint(messages)
    assert {example.lang for example in dev} == {"en", "zh", "ja", "de", "fr", "es"}
