"""Putting the gate's questions to a model under two adapters. It must never decide: `gate` does.

What is measured is what is served: the quantised model with the GGUF LoRA, through the engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import resources

import numpy as np
import numpy.typing as npt

from ..engine.base import AdapterSlot, Engine, Message, Sampling
from ..signals.checks import Check, score
from .gate import Probe

Floats = npt.NDArray[np.floating]
Report = Callable[[float, str], None]

KL_TOKENS = 96
"""Longest stretch of an answer over which a KL is taken."""
ANSWERS = 2
"""Fresh answers to each question, whose check scores are averaged: one alone says little about a sampled reply."""


@dataclass(frozen=True)
class Question:
    """What both adapters are asked.

    Attributes:
        text: the question as a person reads it.
        prompt_ids: [T] the prompt without hints.
        hinted_ids: [T'] the same with the hints; None where there are none.
        held_out: whether it is one of the person's own turns, never trained on.
        response_ids: [R] the reply that was judged; empty for a shipped prompt.
        score: what it was worth; 0 if nothing is known.
    """

    text: str
    prompt_ids: tuple[int, ...]
    hinted_ids: tuple[int, ...] | None
    held_out: bool
    response_ids: tuple[int, ...] = ()
    score: int = 0


def shipped_prompts(kind: str) -> list[str]:
    """The prompts that come with the package: "neutral" or "guard"."""
    text = resources.files("claw_local.data").joinpath("gate_prompts.json").read_text("utf-8")
    prompts: list[str] = json.loads(text)[kind]
    return prompts


def measure(
    engine: Engine,
    questions: Sequence[Question],
    *,
    current: Sequence[AdapterSlot],
    candidate: Sequence[AdapterSlot],
    checks: Sequence[Check],
    sampling: Sampling,
    report: Report = lambda fraction, words: None,
) -> list[Probe]:
    """Answers, divergences, check scores and margins of both adapters on each question.

    Leaves the engine with `current` applied.
    """
    hinted = [n for n, question in enumerate(questions) if question.hinted_ids is not None]
    plain = [question.prompt_ids for question in questions]
    engine.set_adapters(current)
    report(0.0, "answers before")
    before = _texts(engine, plain, sampling)
    teacher_prompts = [questions[n].hinted_ids or () for n in hinted]
    teacher = engine.generate_many(teacher_prompts, sampling)
    responses = {n: tuple(generation.response_ids[:KL_TOKENS]) for n, generation in zip(hinted, teacher, strict=True)}
    report(0.3, "distance to your wishes before")
    wanted = {n: _log_softmax(_response_logits(engine, questions[n].hinted_ids or (), responses[n])) for n in hinted}
    old = {
        n: _mean_kl(wanted[n], _log_softmax(_response_logits(engine, questions[n].prompt_ids, responses[n])))
        for n in hinted
    }
    old_liking = {n: _liking(engine, question) for n, question in enumerate(questions) if question.score}
    engine.set_adapters(candidate)
    report(0.5, "answers after")
    after = _texts(engine, plain, sampling)
    report(0.8, "distance to your wishes after")
    new = {
        n: _mean_kl(wanted[n], _log_softmax(_response_logits(engine, questions[n].prompt_ids, responses[n])))
        for n in hinted
    }
    new_liking = {n: _liking(engine, questions[n]) for n in old_liking}
    engine.set_adapters(current)
    return [
        Probe(
            question=question.text,
            held_out=question.held_out,
            before=before[n][0],
            after=after[n][0],
            divergence_before=old.get(n),
            divergence_after=new.get(n),
            score_before=_mean_score(before[n], checks),
            score_after=_mean_score(after[n], checks),
            margin=question.score * (new_liking[n] - old_liking[n]) if n in old_liking else None,
        )
        for n, question in enumerate(questions)
    ]


def distance_to_base(engine: Engine, candidate: Sequence[AdapterSlot], sampling: Sampling) -> float:
    """Mean KL(candidate ‖ base) over the candidate's answers to the guard prompts, in nats per token.

    Leaves the engine with the base alone.
    """
    prompts = [engine.render([Message("user", text)]).token_ids for text in shipped_prompts("guard")]
    engine.set_adapters(candidate)
    answers = engine.generate_many(prompts, replace(sampling, max_tokens=min(sampling.max_tokens, 60)))
    pairs = [(prompt, tuple(answer.response_ids)) for prompt, answer in zip(prompts, answers, strict=True)]
    adapted = [_log_softmax(_response_logits(engine, prompt, response)) for prompt, response in pairs]
    engine.set_adapters([])
    total = tokens = 0.0
    for (prompt, response), mine in zip(pairs, adapted, strict=True):
        total += float(_kl(mine, _log_softmax(_response_logits(engine, prompt, response))).sum())
        tokens += len(response)
    return total / tokens if tokens else 0.0


def _texts(engine: Engine, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[list[str]]:
    """[N] questions, `ANSWERS` texts each."""
    generations = engine.generate_many([*prompts] * ANSWERS, sampling)
    return [[generations[k * len(prompts) + n].text for k in range(ANSWERS)] for n in range(len(prompts))]


def _mean_score(texts: Sequence[str], checks: Sequence[Check]) -> float | None:
    scores = [found for text in texts if (found := score(text, checks)) is not None]
    return sum(scores) / len(scores) if scores else None


def _response_logits(engine: Engine, prompt: Sequence[int], response: Sequence[int]) -> Floats:
    """[R, V] logits that predict each token of the response."""
    token_ids = [*prompt, *response]
    return engine.logits(token_ids[:-1], start=len(prompt) - 1)


def _liking(engine: Engine, question: Question) -> float:
    """Mean log-probability of the judged reply's tokens, in nats."""
    logprobs = _log_softmax(_response_logits(engine, question.prompt_ids, question.response_ids))
    return float(logprobs[np.arange(len(question.response_ids)), list(question.response_ids)].mean())


def _log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=1, keepdims=True)
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def _kl(p: Floats, q: Floats) -> Floats:
    """[R] KL(p ‖ q) at each position, from log-probabilities [R, V]."""
    result: Floats = (np.exp(p) * (p - q)).sum(axis=1)
    return result


def _mean_kl(p: Floats, q: Floats) -> float:
    return float(_kl(p, q).mean())
