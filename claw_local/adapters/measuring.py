"""Putting the gate's questions to a model under two adapters. It must never decide: `gate` does.

What is measured is what is served: the quantised model with the GGUF LoRA, through the engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..engine.base import AdapterSlot, Engine, Sampling
from ..signals.checks import Check, score
from .gate import Probe

Floats = npt.NDArray[np.floating]
Report = Callable[[float, str], None]

KL_TOKENS = 96
"""Longest stretch of an answer over which a KL is taken."""
ANSWERS = 2
"""Most fresh answers to each question, whose check scores are averaged. The second is asked for where the first ones
decide nothing."""


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


def shipped_prompts(kind: Literal["neutral", "safety"]) -> list[str]:
    """The prompts that come with the package: everyday ones, and harmful requests."""
    prompts: list[str] = shipped()[kind]
    return prompts


def shipped() -> dict[str, Any]:
    text = resources.files("claw_local.data").joinpath("gate_prompts.json").read_text("utf-8")
    shipped: dict[str, Any] = json.loads(text)
    return shipped


@dataclass
class Teacher:
    """What the adapter in use says when it is told the wishes, as far as it was asked.

    Attributes:
        texts: by the question's place, for those that have hints.
        responses: [R] token ids of the first `KL_TOKENS` of each.
        logprobs: [R, V] of the teacher at those tokens.
    """

    texts: dict[int, str] = field(default_factory=dict)
    responses: dict[int, tuple[int, ...]] = field(default_factory=dict)
    logprobs: dict[int, Floats] = field(default_factory=dict)


@dataclass
class Side:
    """What one adapter does with the questions, as far as it was asked.

    Attributes:
        rounds: [A] rounds of fresh answers, [N] texts each.
        divergence: KL(teacher ‖ adapter) in nats per token, by the question's place.
        liking: mean log-probability of the judged reply, by the place of the questions that have one.
    """

    rounds: list[list[str]] = field(default_factory=list)
    divergence: dict[int, float] = field(default_factory=dict)
    liking: dict[int, float] = field(default_factory=dict)


class Comparison:
    """The same questions put to the adapter in use and to candidates, as many answers as are asked for.

    What is known already is not computed again: not for a second look at a candidate, and not of the adapter in use for
    another candidate.
    """

    def __init__(
        self,
        engine: Engine,
        questions: Sequence[Question],
        *,
        current: Sequence[AdapterSlot],
        checks: Sequence[Check],
        sampling: Sampling,
    ) -> None:
        self.questions = list(questions)
        self._engine = engine
        self._current = list(current)
        self._checks = list(checks)
        self._sampling = sampling
        self._teacher = Teacher()
        self._before = Side()

    def probes(
        self,
        candidate: Sequence[AdapterSlot],
        after: Side,
        *,
        answers: int,
        divergences: int,
        questions: int | None = None,
        report: Report = lambda fraction, words: None,
    ) -> list[Probe]:
        """Both sides of the questions, as the gate reads them. Leaves the engine with `candidate` applied.

        Args:
            candidate: the adapter in question.
            after: what is known of it; what is missing is added.
            answers: fresh answers to each question.
            divergences: questions, from the first on, that are put to the teacher too, and on whose answers
                KL(teacher ‖ adapter) is taken.
            questions: of these only so many, the first ones; None: all.
        """
        count = len(self.questions) if questions is None else min(questions, len(self.questions))
        report(0.0, "answers before")
        teacher = self._taught(min(divergences, count))
        self._ask(self._before, self._current, teacher, answers, count, divergences)
        report(0.5, "answers after")
        self._ask(after, candidate, teacher, answers, count, divergences)
        return [self._probe(n, teacher, after) for n in range(count)]

    def _taught(self, count: int) -> Teacher:
        """Let the adapter in use answer the first `count` questions with the hints in the prompt, as far as it has
        not."""
        engine, teacher = self._engine, self._teacher
        hinted = {n: q.hinted_ids for n, q in enumerate(self.questions[:count]) if q.hinted_ids is not None}
        missing = [n for n in hinted if n not in teacher.texts]
        if not missing:
            return teacher
        engine.set_adapters(self._current)
        seed = self._sampling.seed
        sampling = replace(self._sampling, seed=None if seed is None else seed + len(teacher.texts))
        made = engine.generate_many([hinted[n] for n in missing], sampling)
        for n, one in zip(missing, made, strict=True):
            teacher.texts[n] = one.text
            if one.response_ids:
                teacher.responses[n] = response = tuple(one.response_ids[:KL_TOKENS])
                teacher.logprobs[n] = log_softmax(response_logits(engine, hinted[n], response))
        return teacher

    def _ask(
        self,
        side: Side,
        adapters: Sequence[AdapterSlot],
        teacher: Teacher,
        answers: int,
        count: int,
        divergences: int,
    ) -> None:
        """Add to a side what is missing of it."""
        engine = self._engine
        engine.set_adapters(adapters)
        prompts = [question.prompt_ids for question in self.questions]
        if side.rounds and len(side.rounds[0]) < count:
            side.rounds.clear()  # Only a few questions had been asked, to show.
        while len(side.rounds) < answers:
            seed = self._sampling.seed
            seed = None if seed is None else seed + len(prompts) * len(side.rounds)
            made = engine.generate_many(prompts[:count], replace(self._sampling, seed=seed))
            side.rounds.append([one.text for one in made])
        for n, logprobs in teacher.logprobs.items():
            if n < divergences and n not in side.divergence:
                mine = log_softmax(response_logits(engine, self.questions[n].prompt_ids, teacher.responses[n]))
                side.divergence[n] = _mean_kl(logprobs, mine)
        for n, question in enumerate(self.questions[:count]):
            if question.score and n not in side.liking:
                side.liking[n] = _liking(engine, question)

    def _probe(self, n: int, teacher: Teacher, after: Side) -> Probe:
        question, before = self.questions[n], self._before
        # Only as many answers of the adapter in use as the candidate gave: another candidate may have needed more.
        texts_before = [texts[n] for texts in before.rounds[: len(after.rounds)]]
        texts_after = [texts[n] for texts in after.rounds]
        judged, told = n in after.liking, teacher.texts.get(n, "") if n in after.divergence else ""
        return Probe(
            question=question.text,
            held_out=question.held_out,
            before=texts_before[0],
            after=texts_after[0],
            divergence_before=before.divergence.get(n) if n in after.divergence else None,
            divergence_after=after.divergence.get(n),
            score_before=_mean_score(texts_before, self._checks, question.text),
            score_after=_mean_score(texts_after, self._checks, question.text),
            kept_before=_kept(texts_before, self._checks, question.text),
            kept_after=_kept(texts_after, self._checks, question.text),
            margin=question.score * (after.liking[n] - before.liking[n]) if judged else None,
            hinted=told,
            kept_hinted=_kept([told], self._checks, question.text) if told else None,
            answers_after=tuple(texts_after),
        )


def measure(
    engine: Engine,
    questions: Sequence[Question],
    *,
    current: Sequence[AdapterSlot],
    candidate: Sequence[AdapterSlot],
    checks: Sequence[Check],
    sampling: Sampling,
) -> list[Probe]:
    """Everything at once: all answers, divergences, check scores and margins. Leaves the engine with `current`."""
    comparison = Comparison(engine, questions, current=current, checks=checks, sampling=sampling)
    probes = comparison.probes(candidate, Side(), answers=ANSWERS, divergences=len(questions))
    engine.set_adapters(current)
    return probes


def _mean_score(texts: Sequence[str], checks: Sequence[Check], question: str) -> float | None:
    scores = [found for text in texts if (found := score(text, checks, question)) is not None]
    return sum(scores) / len(scores) if scores else None


def _kept(texts: Sequence[str], checks: Sequence[Check], question: str) -> float | None:
    """Share of the texts that keep all checks; None where no check can tell."""
    scores = [found for text in texts if (found := score(text, checks, question)) is not None]
    return sum(found == 1.0 for found in scores) / len(scores) if scores else None


def response_logits(engine: Engine, prompt: Sequence[int], response: Sequence[int]) -> Floats:
    """[R, V] logits that predict each token of the response."""
    token_ids = [*prompt, *response]
    return engine.logits(token_ids[:-1], start=len(prompt) - 1)


def _liking(engine: Engine, question: Question) -> float:
    """Mean log-probability of the judged reply's first `KL_TOKENS` tokens, in nats."""
    response = question.response_ids[:KL_TOKENS]
    logprobs = log_softmax(response_logits(engine, question.prompt_ids, response))
    return float(logprobs[np.arange(len(response)), list(response)].mean())


def log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=1, keepdims=True)
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def kl(p: Floats, q: Floats) -> Floats:
    """[R] KL(p ‖ q) at each position, from log-probabilities [R, V]."""
    result: Floats = (np.exp(p) * (p - q)).sum(axis=1)
    return result


def _mean_kl(p: Floats, q: Floats) -> float:
    return float(kl(p, q).mean())
