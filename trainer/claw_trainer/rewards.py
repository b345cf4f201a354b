"""What a fresh answer is worth: by checks, and where no check can tell, by the judge's second question (DESIGN §5).

It must never know how answers are drawn or trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from claw_local.adapters.lessons import Lesson
from claw_local.errors import ClawError
from claw_local.judge import exam
from claw_local.judge.verdict import AnyJudge
from claw_local.signals.checks import Check, infer_checks, score
from claw_local.store import Store

MOST_FAILURES = 3
"""Failures of the judge in a row after which it is asked no more in this run."""

Follows = Callable[[str, str], bool | None]
"""(hint, reply) -> whether the reply follows it; None where the judge is not sure."""


class Rewards:
    """Rewards of fresh answers.

    Args:
        checks: what can be verified of an answer.
        hints: wishes that hold for every question. Those that no check can verify, or only roughly, are put to the
            judge, as are those of a question's own turn.
        follows: the judge's second question; None: its word does not count, and only the checks do.
    """

    def __init__(self, checks: Sequence[Check], hints: Sequence[str] = (), follows: Follows | None = None) -> None:
        self._checks = [check for check in checks if follows is None or not check.rough]
        self._hints = [hint for hint in hints if not _verifiable(hint)]
        self._follows = follows

    def can_tell(self, lessons: Sequence[Lesson]) -> bool:
        """Whether an answer to any of these questions may get a reward at all."""
        return bool(self._checks) or self.asks(lessons)

    def asks(self, lessons: Sequence[Lesson]) -> bool:
        """Whether there is a wish that only the judge can tell about."""
        return any(self._wishes(lesson) for lesson in lessons)

    def __call__(self, lesson: Lesson, text: str) -> float | None:
        """-1 to +1 for an answer to the lesson's question; None where nothing tells.

        Checks come first: an answer that breaks one is not as wished, whatever else it is. One that keeps them all but
        not a wish put to the judge scores -0.5, as one that breaks a check of several does.
        """
        by_checks = score(text, self._checks, lesson.turn.question)
        if by_checks is not None and by_checks < 1.0:
            return by_checks
        wishes = self._wishes(lesson)
        if not wishes or not text.strip():
            return by_checks
        answers = [self._follows(wish, text) for wish in wishes] if self._follows is not None else []
        if any(answer is False for answer in answers):
            return -1.0 if by_checks is None else -0.5
        if any(answer is None for answer in answers):
            return by_checks  # No lesson is better than a wrong one.
        return 1.0

    def _wishes(self, lesson: Lesson) -> list[str]:
        if self._follows is None:
            return []
        own = lesson.turn.hint
        return [*self._hints, *([own] if own and own not in self._hints and not _verifiable(own) else [])]


def _verifiable(hint: str) -> bool:
    """Whether checks tell all that can be told of it without sense for tone."""
    checks = infer_checks([hint])
    return bool(checks) and not any(check.rough for check in checks)


def judged(
    store: Store,
    judge: AnyJudge | None,
    lessons: Sequence[Lesson],
    checks: Sequence[Check],
    hints: Sequence[str],
    on_exam: Callable[[int, int], None] = lambda done, of: None,
) -> Rewards:
    """Rewards with the judge's word where it passed the exam in the second question. It takes the exam here, once, if
    there is a wish it would be asked about. Without a judge, the checks alone."""
    if judge is None or not Rewards(checks, hints, lambda hint, reply: None).asks(lessons):
        return Rewards(checks, hints)
    record = exam.find(store.exams, judge, "follows")
    if record is None:
        try:
            record = store.exams.put(exam.take(judge, "follows", on_progress=on_exam))
        except ClawError:
            return Rewards(checks, hints)  # It could not be asked now; it takes its exam another time.
    if not record.passed:
        return Rewards(checks, hints)
    failures = 0
    threshold = record.threshold

    def follows(hint: str, reply: str) -> bool | None:
        nonlocal failures
        if failures >= MOST_FAILURES:
            return None
        try:
            probability = judge.follows(hint, reply)
        except ClawError:
            failures += 1
            return None
        failures = 0
        return exam.answer(probability, threshold)

    return Rewards(checks, hints, follows)
