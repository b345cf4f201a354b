"""Fresh answers to the person's own questions, drawn from the policy as it is served (hindsight replay, DESIGN §5).

It must never know how a step is computed: it gives samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from claw_local.adapters.lessons import Lesson
from claw_local.engine.base import AdapterSlot, Engine, Sampling
from claw_local.signals.checks import Check

from .batches import Sample
from .progress import Progress
from .rewards import Rewards


class Practice:
    """Chooses questions and samples answers to them.

    Questions whose answers still miss the wishes, and those where that is changing, come up more often; what is nearly
    learned is practised least (see `progress`).

    Answers are drawn as the person's are. Drawn from the whole distribution (temperature 1), a small model's answers
    ramble, and practising them taught it to: measured, the form was learned and the sense was lost.
    """

    def __init__(
        self, lessons: Sequence[Lesson], checks: Sequence[Check] | Rewards, sampling: Sampling, *, seed: int
    ) -> None:
        # A step of a task is no question by itself: what a fresh call would return is not known.
        self._lessons = [lesson for lesson in lessons if lesson.turn.step is None]
        self._rewards = checks if isinstance(checks, Rewards) else Rewards(checks)
        self._random = np.random.default_rng(seed)
        self._progress = Progress(len(self._lessons))
        self._sampling = sampling
        self.scores: list[float] = []
        """Mean score of each round's answers, for those that got a reward."""

    def state(self) -> dict[str, Any]:
        """All that changes from round to round, as JSON can hold it."""
        return {
            "progress": self._progress.state(),
            "scores": list(self.scores),
            "random": self._random.bit_generator.state,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state()`. Raises ValueError if it is of other lessons."""
        self._progress.restore(state["progress"])
        self.scores = list(state["scores"])
        self._random.bit_generator.state = state["random"]

    def round(self, engine: Engine, adapter: Path | None, count: int) -> list[Sample]:
        """Sample answers with this GGUF LoRA (None: the base) and make up to `count` samples of them.

        Where checks can tell, twice as many answers are drawn as are kept: those that miss the wishes, and about as
        many that keep them. With A = r and nearly all rewards alike, Binary RL would only teach the model to say again
        what it says anyway.
        """
        if not self._lessons or count == 0:
            return []
        chosen = self._choose(count * 2 if self._rewards.can_tell(self._lessons) else count)
        engine.set_adapters([AdapterSlot(adapter)] if adapter else [])
        drawn = replace(self._sampling, seed=int(self._random.integers(2**31)))
        answers = engine.generate_many([self._lessons[n].prompt_ids for n in chosen], drawn)
        samples, scores = [], []
        for n, answer in zip(chosen, answers, strict=True):
            if not answer.response_ids:
                continue
            reward = self._rewards(self._lessons[n], answer.text)
            if reward is not None:
                scores.append(reward)
                self._progress.note(n, reward)
            lesson = self._lessons[n]
            if reward is None and lesson.hinted_ids is None:
                continue  # Nothing says how it should have been.
            samples.append(
                Sample(
                    prompt_ids=lesson.prompt_ids,
                    response_ids=tuple(answer.response_ids),
                    teacher_prompt_ids=lesson.hinted_ids,
                    behaviour_logprobs=tuple(answer.logprobs),
                    score=reward,
                )
            )
        if scores:
            self.scores.append(float(np.mean(scores)))
            missing = count // 3 - sum(reward > 0 for reward in scores)
            if missing > 0:
                samples += self._demonstrations(engine, [n for n in chosen if self._lessons[n].hinted_ids], missing)
        return balanced(samples, count)

    def _demonstrations(self, engine: Engine, chosen: Sequence[int], count: int) -> list[Sample]:
        """Up to `count` answers that keep the wishes, drawn with the hints in the prompt.

        Where the model seldom meets a wish by itself there is nothing to reinforce; told the wish, it meets it more
        often. What it wrote then is learned as an answer to the prompt without the hints, so no behaviour policy of
        that prompt wrote it: it has no behaviour log-probabilities.
        """
        chosen = list(dict.fromkeys(chosen))
        if not chosen:
            return []
        prompts = [self._lessons[n].hinted_ids or () for n in chosen]
        answers = engine.generate_many(prompts, replace(self._sampling, seed=int(self._random.integers(2**31))))
        kept = [
            Sample(
                prompt_ids=self._lessons[n].prompt_ids,
                response_ids=tuple(answer.response_ids),
                teacher_prompt_ids=self._lessons[n].hinted_ids,
                behaviour_logprobs=None,
                score=1.0,
            )
            for n, answer in zip(chosen, answers, strict=True)
            if answer.response_ids and self._rewards(self._lessons[n], answer.text) == 1.0
        ]
        return kept[:count]

    def _choose(self, count: int) -> list[int]:
        weights = self._progress.weights()
        chosen: list[int] = []
        while len(chosen) < count:  # Each question once before any comes up twice.
            size = min(count - len(chosen), len(self._lessons))
            chosen += self._random.choice(len(self._lessons), size, replace=False, p=weights / weights.sum()).tolist()
        return chosen


def balanced(samples: Sequence[Sample], count: int) -> list[Sample]:
    """Up to `count` samples with about as many rewards below zero as above; those without a reward count as above."""
    missed = [sample for sample in samples if sample.score is not None and sample.score < 0][: (count + 1) // 2]
    kept = [sample for sample in samples if sample.score is None or sample.score >= 0]
    return [*missed, *kept[: min(count - len(missed), max(len(missed), count // 3, 1))]]


def stored_samples(lessons: Sequence[Lesson]) -> list[Sample]:
    """The judged replies themselves, as samples: hint and score, hint only, or score only. Steps of a task with tools
    have their advantage for a score."""
    samples = []
    for lesson in lessons:
        if lesson.variant:
            continue
        reply = lesson.turn.reply
        own_wish = bool(lesson.turn.hint or lesson.turn.demonstration)
        teacher = lesson.hinted_ids if own_wish else None
        if not lesson.turn.reward and teacher is None:
            continue
        samples.append(
            Sample(
                prompt_ids=lesson.prompt_ids,
                response_ids=reply.response_ids,
                teacher_prompt_ids=teacher,
                behaviour_logprobs=reply.logprobs if len(reply.logprobs) == len(reply.response_ids) else None,
                score=float(lesson.turn.reward) if lesson.turn.reward else None,
                message_id=reply.id,
            )
        )
    return samples
