"""Putting the gate's questions to a model under two adapters. It must never decide: `gate` does.

What is measured is what is served: the quantised model with the GGUF LoRA, through the engine.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..engine.base import AdapterSlot, Engine, Message, Sampling
from ..signals.checks import Check, score
from .gate import Guard, Probe
from .qualities import is_refusal

Floats = npt.NDArray[np.floating]
Report = Callable[[float, str], None]

KL_TOKENS = 96
"""Longest stretch of an answer over which a KL is taken."""
GUARD_TOKENS = 48
"""Longest answer to a guard or safety prompt: what it must hold, or that it declines, shows early."""
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


@dataclass(frozen=True)
class Fact:
    """A guard prompt: what is asked, and words of which a right answer holds at least one (lowercase, no accents)."""

    ask: str
    any: tuple[str, ...]

    def known(self, answer: str) -> bool:
        bare = "".join(c for c in unicodedata.normalize("NFKD", answer.lower()) if not unicodedata.combining(c))
        return any(word in bare for word in self.any)


def shipped_prompts(kind: Literal["neutral", "safety"]) -> list[str]:
    """The prompts that come with the package: everyday ones, and harmful requests."""
    prompts: list[str] = _shipped()[kind]
    return prompts


def guard_facts() -> list[Fact]:
    """The simple facts that come with the package, on which nothing may get lost."""
    return [Fact(entry["ask"], tuple(entry["any"])) for entry in _shipped()["guard"]]


def _shipped() -> dict[str, Any]:
    text = resources.files("claw_local.data").joinpath("gate_prompts.json").read_text("utf-8")
    shipped: dict[str, Any] = json.loads(text)
    return shipped


@dataclass(frozen=True)
class Teacher:
    """What the adapter in use says when it is told the wishes.

    Attributes:
        texts: by the question's place, for those that have hints.
        responses: [R] token ids of the first `KL_TOKENS` of each.
        logprobs: [R, V] of the teacher at those tokens.
    """

    texts: dict[int, str]
    responses: dict[int, tuple[int, ...]]
    logprobs: dict[int, Floats]


@dataclass(frozen=True)
class Side:
    """What one adapter does with the questions.

    Attributes:
        answers: [N] questions, `ANSWERS` texts each.
        divergence: KL(teacher ‖ adapter) in nats per token, by the question's place.
        liking: mean log-probability of the judged reply, by the place of the questions that have one.
    """

    answers: list[list[str]]
    divergence: dict[int, float]
    liking: dict[int, float]


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
    report(0.0, "answers before")
    teacher = teach(engine, questions, current, sampling)
    before = side(engine, questions, current, teacher, sampling)
    report(0.5, "answers after")
    after = side(engine, questions, candidate, teacher, sampling)
    engine.set_adapters(current)
    return probes(questions, teacher, before, after, checks)


def teach(
    engine: Engine, questions: Sequence[Question], adapters: Sequence[AdapterSlot], sampling: Sampling
) -> Teacher:
    """Let the adapter in use answer with the hints in the prompt."""
    engine.set_adapters(adapters)
    hinted = {n: question.hinted_ids for n, question in enumerate(questions) if question.hinted_ids is not None}
    generations = dict(zip(hinted, engine.generate_many(list(hinted.values()), sampling), strict=True))
    responses = {n: tuple(made.response_ids[:KL_TOKENS]) for n, made in generations.items() if made.response_ids}
    return Teacher(
        texts={n: made.text for n, made in generations.items()},
        responses=responses,
        logprobs={n: _log_softmax(_response_logits(engine, hinted[n], responses[n])) for n in responses},
    )


def side(
    engine: Engine,
    questions: Sequence[Question],
    adapters: Sequence[AdapterSlot],
    teacher: Teacher,
    sampling: Sampling,
) -> Side:
    """Let an adapter answer, and see how far it is from the teacher."""
    engine.set_adapters(adapters)
    return Side(
        answers=_texts(engine, [question.prompt_ids for question in questions], sampling),
        divergence={
            n: _mean_kl(teacher.logprobs[n], _log_softmax(_response_logits(engine, questions[n].prompt_ids, response)))
            for n, response in teacher.responses.items()
        },
        liking={n: _liking(engine, question) for n, question in enumerate(questions) if question.score},
    )


def probes(
    questions: Sequence[Question], teacher: Teacher, before: Side, after: Side, checks: Sequence[Check]
) -> list[Probe]:
    """Two sides of the same questions, as the gate reads them."""
    return [
        Probe(
            question=question.text,
            held_out=question.held_out,
            before=before.answers[n][0],
            after=after.answers[n][0],
            divergence_before=before.divergence.get(n),
            divergence_after=after.divergence.get(n),
            score_before=_mean_score(before.answers[n], checks),
            score_after=_mean_score(after.answers[n], checks),
            margin=question.score * (after.liking[n] - before.liking[n]) if n in after.liking else None,
            hinted=teacher.texts.get(n, ""),
            answers_after=tuple(after.answers[n]),
        )
        for n, question in enumerate(questions)
    ]


@dataclass(frozen=True)
class Guarded:
    """Answers to the guard and safety prompts.

    Attributes:
        prompts: [G] token ids of the guard prompts.
        responses: [G] token ids of the answers to them.
        known, declined: shares of the guard prompts answered rightly, and of the safety prompts declined.
    """

    prompts: list[tuple[int, ...]]
    responses: list[tuple[int, ...]]
    known: float
    declined: float


def measure_guard(
    engine: Engine, *, current: Sequence[AdapterSlot], candidate: Sequence[AdapterSlot], sampling: Sampling
) -> Guard:
    """What both adapters still know and still decline, and how far the candidate is from the base.

    Leaves the engine with the base alone.
    """
    before = guarded(engine, current, sampling)
    return guard(engine, before, guarded(engine, candidate, sampling), candidate)


def guarded(engine: Engine, adapters: Sequence[AdapterSlot], sampling: Sampling) -> Guarded:
    """One adapter's likeliest answers (temperature 0), so that two equal adapters measure the same."""
    facts, harmful = guard_facts(), shipped_prompts("safety")
    prompts = [engine.render([Message("user", text)]).token_ids for text in (*(fact.ask for fact in facts), *harmful)]
    engine.set_adapters(adapters)
    greedy = replace(sampling, temperature=0.0, max_tokens=min(sampling.max_tokens, GUARD_TOKENS))
    answers = engine.generate_many(prompts, greedy)
    return Guarded(
        prompts=prompts[: len(facts)],
        responses=[tuple(answer.response_ids) for answer in answers[: len(facts)]],
        known=sum(fact.known(answer.text) for fact, answer in zip(facts, answers, strict=False)) / len(facts),
        declined=sum(is_refusal(answer.text) for answer in answers[len(facts) :]) / len(harmful),
    )


def guard(engine: Engine, before: Guarded, after: Guarded, candidate: Sequence[AdapterSlot]) -> Guard:
    """Compare, and take the candidate's KL to the base on its own answers. Leaves the engine with the base alone."""
    pairs = [(p, r) for p, r in zip(after.prompts, after.responses, strict=True) if r]
    engine.set_adapters(candidate)
    adapted = [_log_softmax(_response_logits(engine, prompt, response)) for prompt, response in pairs]
    engine.set_adapters([])
    total = tokens = 0.0
    for (prompt, response), mine in zip(pairs, adapted, strict=True):
        total += float(_kl(mine, _log_softmax(_response_logits(engine, prompt, response))).sum())
        tokens += len(response)
    return Guard(total / tokens if tokens else 0.0, before.known, after.known, before.declined, after.declined)


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
