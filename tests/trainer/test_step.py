"""One step: what it minimises, what it leaves alone, and that it teaches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from claw_local.errors import LearnError
from claw_trainer import step as step_module
from claw_trainer.batches import Sample
from claw_trainer.policy import Policy
from claw_trainer.references import References
from claw_trainer.step import Method, Objective, Trainer

BOTH = Sample((1, 2, 3), (4, 5, 6, 7), (1, 2, 90, 91, 3), (-2.0, -3.0, -1.0, -4.0), score=1.0)
SCORE_ONLY = Sample((10, 11), (12, 13, 14), behaviour_logprobs=(-6.0, -6.5, -7.0), score=-1.0)
HINT_ONLY = Sample((20, 21, 22, 23), (24, 25), (80, 20, 21, 22, 23))
SAMPLES = [BOTH, SCORE_ONLY, HINT_ONLY]
METHODS: list[Method] = ["combined", "opd", "opd-token", "binary-rl"]


def full_logprobs(policy: Policy, view: str, prompt: tuple[int, ...], response: tuple[int, ...]) -> torch.Tensor:
    """[T, V] log-probabilities at response positions, one turn at a time, with gradient for the policy."""
    from claw_trainer.batches import pack

    with policy.view(view), torch.set_grad_enabled(view == "policy"):
        return policy.logits(policy.hidden(pack([(prompt, response)]))).log_softmax(1)


def literal_loss(policy: Policy, samples: list[Sample], objective: Objective) -> torch.Tensor:
    """The objective as DESIGN words it, one token after another."""
    total = torch.zeros(())
    for sample in samples:
        policy_rows = full_logprobs(policy, "policy", sample.prompt_ids, sample.response_ids)
        base_rows = full_logprobs(policy, "base", sample.prompt_ids, sample.response_ids)
        teacher_rows = (
            full_logprobs(policy, "teacher", sample.teacher_prompt_ids, sample.response_ids)
            if sample.teacher_prompt_ids
            else None
        )
        of_sample = torch.zeros(())
        for t, token in enumerate(sample.response_ids):
            logprob = policy_rows[t, token]
            old = logprob.item()
            importance = 1.0
            if sample.behaviour_logprobs is not None:
                importance = min(math.exp(old - sample.behaviour_logprobs[t]), objective.importance_cap)
            loss = torch.zeros(())
            ratio = (logprob - old).exp()
            if objective.method in ("combined", "binary-rl") and sample.score is not None:
                loss = loss - objective.w_rl * importance * ratio * sample.score
            if teacher_rows is not None and objective.method == "opd-token":
                loss = loss - objective.w_opd * importance * ratio * (teacher_rows[t, token].item() - old)
            if teacher_rows is not None and objective.method in ("combined", "opd"):
                ids = teacher_rows[t].topk(objective.top_k).indices
                p, q = policy_rows[t].exp(), teacher_rows[t].exp()
                p_tail, q_tail = 1 - p[ids].sum(), 1 - q[ids].sum()
                kl = (p[ids] * (p[ids] / q[ids]).log()).sum() + p_tail * (p_tail / q_tail).log()
                loss = loss + objective.w_opd * kl
            q_over_p = (base_rows[t, token] - logprob).exp()
            loss = loss + objective.kl_base * (q_over_p - q_over_p.log() - 1)
            of_sample = of_sample + loss
        total = total + sample.weight * of_sample / len(sample.response_ids)
    return total / sum(sample.weight for sample in samples)


def gradients(trainer: Trainer, samples: list[Sample]) -> tuple[list[torch.Tensor], dict[str, float]]:
    """The gradients that one step computes, and what it reports."""
    found: list[torch.Tensor] = []

    def keep(*_: object, **__: object) -> None:
        found.extend(parameter.grad.clone() for parameter in trainer.policy.parameters() if parameter.grad is not None)

    hook = trainer.optimiser.register_step_pre_hook(keep)
    trainer.max_grad_norm = 1e9
    metrics = trainer.step(samples)
    hook.remove()
    return found, metrics


@pytest.mark.parametrize("method", METHODS)
def test_loss_and_gradient_equal_a_literal_loop(
    tiny_policy: Policy, make_random: Callable[..., None], method: Method
) -> None:
    make_random(tiny_policy, 0.08)
    objective = Objective(method=method, top_k=20, w_rl=0.7, w_opd=1.3, kl_base=0.3, importance_cap=1.5)
    samples = [replace(BOTH, weight=2.0), SCORE_ONLY, HINT_ONLY]
    expected = literal_loss(tiny_policy, samples, objective)
    expected.backward()  # type: ignore[no-untyped-call]
    by_hand = [parameter.grad.clone() for parameter in tiny_policy.parameters() if parameter.grad is not None]
    trainer = Trainer(tiny_policy, objective, learning_rate=0.0)
    found, metrics = gradients(trainer, samples)
    assert metrics["loss"] == pytest.approx(expected.item(), rel=1e-3, abs=1e-5)
    assert len(found) == len(by_hand) == len(tiny_policy.parameters())
    assert all(torch.allclose(a, b, rtol=1e-2, atol=1e-5) for a, b in zip(found, by_hand, strict=True))


def test_the_gradient_does_not_depend_on_how_the_batch_is_cut(
    tiny_policy: Policy, make_random: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_random(tiny_policy, 0.08)
    whole, _ = gradients(Trainer(tiny_policy, Objective(top_k=20), learning_rate=0.0), SAMPLES)
    monkeypatch.setattr(step_module, "CHUNK_ROWS", 2)
    cut, _ = gradients(Trainer(tiny_policy, Objective(top_k=20), learning_rate=0.0, micro_tokens=1), SAMPLES)
    assert all(torch.allclose(a, b, rtol=1e-3, atol=1e-6) for a, b in zip(whole, cut, strict=True))


def test_a_few_steps_bring_the_policy_to_its_teacher(tiny_policy: Policy) -> None:
    samples = [replace(HINT_ONLY, response_ids=(60 + n, 70 + n, 24 + n, 90 + n)) for n in range(4)]
    turns = [(sample.prompt_ids, sample.response_ids) for sample in samples]
    trainer = Trainer(tiny_policy, Objective(), learning_rate=1e-2)
    history = [trainer.step(samples)["opd_kl"] for _ in range(8)]
    assert history[-1] < 0.5 * history[0]
    teacher = torch.cat(
        [reference.teacher for reference in trainer.references.of(samples) if reference.teacher is not None]
    )
    before = torch.cat(tiny_policy.response_logprobs("base", turns))
    after = torch.cat(tiny_policy.response_logprobs("policy", turns))
    assert (after - teacher).abs().mean() < (before - teacher).abs().mean()


@pytest.mark.parametrize("score", [1.0, -1.0])
def test_one_rewarded_answer_becomes_likelier_and_one_punished_rarer(tiny_policy: Policy, score: float) -> None:
    turn = (SCORE_ONLY.prompt_ids, SCORE_ONLY.response_ids)
    before = tiny_policy.response_logprobs("policy", [turn])[0].sum()
    Trainer(tiny_policy, Objective(), learning_rate=1e-3).step([replace(SCORE_ONLY, score=score)])
    after = tiny_policy.response_logprobs("policy", [turn])[0].sum()
    assert (after - before) * score > 0


def test_equal_rewards_still_teach(tiny_policy: Policy) -> None:
    samples = [replace(SCORE_ONLY, score=1.0), replace(BOTH, teacher_prompt_ids=None)]
    metrics = Trainer(tiny_policy, Objective(), learning_rate=1e-3).step(samples)
    assert metrics["grad_norm"] > 0
    assert metrics["reward"] == 1.0


def test_the_base_is_left_as_it_was(tiny_policy: Policy) -> None:
    turn = (BOTH.prompt_ids, BOTH.response_ids)
    before = tiny_policy.response_logprobs("base", [turn])[0]
    Trainer(tiny_policy, Objective(), learning_rate=1e-2).step(SAMPLES)
    assert torch.equal(tiny_policy.response_logprobs("base", [turn])[0], before)
    assert not torch.equal(tiny_policy.response_logprobs("policy", [turn])[0], before)


def test_a_single_update_has_ratio_one_and_a_second_epoch_keeps_the_first_as_old(tiny_policy: Policy) -> None:
    trainer = Trainer(tiny_policy, Objective(), learning_rate=1e-2)
    first = trainer.step(SAMPLES)
    assert first["ratio"] == pytest.approx(1.0)
    assert first["kl_base"] == pytest.approx(0.0, abs=1e-6)
    second = trainer.step(SAMPLES, epochs=2)
    assert abs(second["ratio"] - 1.0) > 1e-3


def test_reported_importance_weights_count_only_samples_with_known_behaviour(tiny_policy: Policy) -> None:
    turn = (SCORE_ONLY.prompt_ids, SCORE_ONLY.response_ids)
    own = tuple(tiny_policy.response_logprobs("policy", [turn])[0].tolist())
    metrics = Trainer(tiny_policy, Objective()).step([replace(SCORE_ONLY, behaviour_logprobs=own), HINT_ONLY])
    assert metrics["importance_weight"] == pytest.approx(1.0, rel=1e-4)


def update_of(policy: Policy, samples: list[Sample], share: float) -> tuple[torch.Tensor, dict[str, float]]:
    """What one step changes in all matrices, which are put back; and what it reports."""
    before = [parameter.detach().clone() for parameter in policy.parameters()]
    metrics = Trainer(policy, Objective(opd_only=share), learning_rate=1e-3).step(samples)
    change = torch.cat([(a - b).flatten() for a, b in zip(policy.parameters(), before, strict=True)]).detach()
    with torch.no_grad():
        for parameter, value in zip(policy.parameters(), before, strict=True):
            parameter.copy_(value)
    return change, metrics


def test_what_nothing_can_score_is_taught_in_smaller_steps(
    tiny_policy: Policy, make_random: Callable[..., None]
) -> None:
    make_random(tiny_policy, 0.08)
    whole, metrics = update_of(tiny_policy, [HINT_ONLY], 1.0)
    small, reported = update_of(tiny_policy, [HINT_ONLY], 0.25)
    assert (metrics["rate"], reported["rate"]) == (1.0, 0.25)
    assert float(small.norm() / whole.norm()) == pytest.approx(0.25, rel=0.02)
    assert torch.nn.functional.cosine_similarity(small, whole, dim=0) > 0.999, "the same way, but less far"


def test_a_scored_sample_keeps_whole_steps_and_outweighs_what_nothing_can_score(
    tiny_policy: Policy, make_random: Callable[..., None]
) -> None:
    make_random(tiny_policy, 0.08)
    assert update_of(tiny_policy, [BOTH], 0.25)[1]["rate"] == 1.0
    assert update_of(tiny_policy, [BOTH, HINT_ONLY], 0.25)[1]["rate"] == pytest.approx((1 + 0.25) / 2)
    assert update_of(tiny_policy, [SCORE_ONLY], 0.25)[1]["rate"] == 1.0
    trainer = Trainer(tiny_policy, Objective(opd_only=0.25), learning_rate=0.0)
    quarter = [replace(HINT_ONLY, weight=0.25), BOTH]
    by_weight, _ = gradients(Trainer(tiny_policy, Objective(), learning_rate=0.0), quarter)
    by_share, _ = gradients(trainer, [HINT_ONLY, BOTH])
    assert all(torch.allclose(a, b, atol=1e-7) for a, b in zip(by_share, by_weight, strict=True))


def test_steps_without_any_score_swing_less_when_they_are_smaller(tiny_policy: Policy) -> None:
    """From step to step the answer's log-probability jumps about less."""
    turn = (HINT_ONLY.prompt_ids, HINT_ONLY.response_ids)
    swings = []
    for share in (1.0, 0.3):
        start = [parameter.detach().clone() for parameter in tiny_policy.parameters()]
        trainer = Trainer(tiny_policy, Objective(method="opd", opd_only=share), learning_rate=5e-2)
        seen = []
        for _ in range(6):
            trainer.step([HINT_ONLY])
            seen.append(float(tiny_policy.response_logprobs("policy", [turn])[0].sum()))
        swings.append(max(abs(b - a) for a, b in itertools.pairwise(seen)))
        with torch.no_grad():
            for parameter, value in zip(tiny_policy.parameters(), start, strict=True):
                parameter.copy_(value)
    assert swings[1] < swings[0]


def test_progress_goes_from_nothing_to_one(tiny_policy: Policy) -> None:
    seen: list[float] = []
    Trainer(tiny_policy, Objective(), micro_tokens=8).step(SAMPLES, epochs=2, on_progress=seen.append)
    assert seen == sorted(set(seen))
    assert seen[-1] == pytest.approx(1.0)


def test_an_empty_batch_is_refused(tiny_policy: Policy) -> None:
    with pytest.raises(LearnError, match="nothing to learn from"):
        Trainer(tiny_policy, Objective()).step([])


def test_what_is_not_finite_is_named_and_the_weights_stay(tiny_policy: Policy) -> None:
    trainer = Trainer(tiny_policy, Objective())
    trainer.step(SAMPLES)
    before = [parameter.detach().clone() for parameter in tiny_policy.parameters()]
    trainer.objective = Objective(w_opd=math.inf)
    with pytest.raises(LearnError, match="the OPD loss is not finite"):
        trainer.step(SAMPLES)
    assert all(torch.equal(a, b) for a, b in zip(before, tiny_policy.parameters(), strict=True))


def test_the_frozen_views_are_asked_once_for_each_sample(tiny_policy: Policy) -> None:
    references = References(tiny_policy, top_k=5, most=2)
    first = references.of([BOTH, HINT_ONLY])
    again = references.of([HINT_ONLY, BOTH])
    assert again[0] is first[1]
    assert again[1] is first[0]
    references.of([SCORE_ONLY])
    assert references.of([BOTH])[0] is first[0]
    assert references.of([HINT_ONLY])[0] is not first[1]


def test_a_reference_holds_the_teachers_likeliest_tokens(tiny_policy: Policy) -> None:
    reference = References(tiny_policy, top_k=5).of([HINT_ONLY])[0]
    rows = full_logprobs(tiny_policy, "teacher", HINT_ONLY.teacher_prompt_ids or (), HINT_ONLY.response_ids)
    assert reference.topk_ids is not None
    assert torch.equal(reference.topk_ids, rows.topk(5).indices)
    assert reference.topk is not None
    assert torch.allclose(reference.topk, rows.topk(5).values, atol=1e-5)
    assert References(tiny_policy, top_k=5).of([SCORE_ONLY])[0].teacher is None
