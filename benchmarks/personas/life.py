"""One life with a scripted person: asked, corrected, taught, and asked again. Everything goes through `Assistant`.

It reads top to bottom: `teach` is what happens before learning, the same for every method; `learn` is what one method
makes of it, in a copy of the home folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claw_local import Assistant
from claw_local.adapters.registry import slots
from claw_local.engine.base import Engine
from claw_local.errors import LearnError
from claw_local.store import AdapterRecord

from .. import quiz
from .eye import Prompt
from .persona import Persona, Voice, Wish
from .survey import Survey, ask_all, look_at

JUDGED_S = 120.0
"""Longest wait for the judge after each turn. A person reads and types meanwhile; here nobody does."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """How a benchmark is run.

    Attributes:
        model: a GGUF file; None is the one in the settings.
        turns: questions asked in each phase, every one corrected or thanked for.
        strict: go on until `turns` answers were really corrected, or the prompts run out.
        tokens: longest answer.
        times: answers to each held-out prompt.
    """

    model: Path | None = None
    turns: int = 12
    strict: bool = False
    reverse: bool = False
    tokens: int = 200
    times: int = 1


class Clock:
    """Seconds spent on each part, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, part: str) -> float:
        now = time.perf_counter()
        self.seconds[part] = round(now - self._since, 1)
        self._since = now
        return self.seconds[part]


@contextmanager
def set_for_run(method: str | None, seed: int) -> Iterator[None]:
    """Settings of one run, where both the assistant and the trainer's process read them: the environment."""
    wanted = {"CLAW_LOCAL_LEARNING__SEED": str(seed)} | ({"CLAW_LOCAL_LEARNING__METHOD": method} if method else {})
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def teach(home: Path, persona: Persona, seed: int, options: Options, engine: Engine, say: Say) -> dict[str, Any]:
    """Measure the base model, let the person talk, and measure fast memory. Leaves the home ready to learn from."""
    clock = Clock()
    with set_for_run(None, seed), Assistant.open(home, model=options.model) as assistant:
        assistant.load()
        clock.lap("load")
        before = _survey(assistant, engine, persona, persona.wish, seed, options, memory=False)
        say(f"before: {before.rate:.2f}, {before.words:.0f} words ({clock.lap('survey_before'):.0f} s)")
        assistant.learn.on()
        talk = _talk(assistant, persona.wish, persona.prompts, seed, options)
        say(f"corrected {talk['corrected']} of {talk['turns']} answers ({clock.lap('talk'):.0f} s)")
        hinted = _survey(assistant, engine, persona, persona.wish, seed, options, memory=True)
        say(f"with hints: {hinted.rate:.2f}, {hinted.words:.0f} words ({clock.lap('survey_with_hints'):.0f} s)")
    return {
        "seed": seed,
        **_row("before", before),
        **_row("with_hints", hinted),
        **talk,
        "seconds": clock.seconds,
        "answers": {"before": before.answers, "with_hints": hinted.answers},
    }


def learn(
    home: Path,
    persona: Persona,
    taught: dict[str, Any],
    method: str,
    options: Options,
    engine: Engine,
    quiz_before: quiz.Result | None,
    say: Say,
) -> dict[str, Any]:
    """Learn with one method from a taught home, and measure what came of it, without hints in the prompts."""
    clock, seed = Clock(), int(taught["seed"])
    with set_for_run(method, seed), Assistant.open(home, model=options.model) as assistant:
        row = {**taught, "method": method, **_learn(assistant, say)}
        clock.lap("learn")
        after = _survey(assistant, engine, persona, persona.wish, seed, options, memory=False)
        say(f"learned: {after.rate:.2f}, {after.words:.0f} words ({clock.lap('survey_after'):.0f} s)")
        row |= _row("after", after)
        row["length_ratio"] = round(after.words / taught["words_before"], 3) if taught["words_before"] else 0.0
        row["hints_after"] = [hint.text for hint in assistant.hints.list()]
        answers = {**taught["answers"], "after": after.answers}
        if row["adapter"] and not row["accepted"]:
            refused = _survey(assistant, engine, persona, persona.wish, seed, options, adapter=row["adapter"])
            say(f"the adapter that was not taken: {refused.rate:.2f} ({clock.lap('survey_refused'):.0f} s)")
            row |= _row("refused", refused)
            answers["refused"] = refused.answers
        if quiz_before is not None:
            row |= quiz_again(assistant, engine, quiz_before)
            say(f"quiz: {row['quiz_before']:.1f} → {row['quiz_after']:.1f} points ({clock.lap('quiz'):.0f} s)")
        if options.reverse and persona.reverse is not None:
            row["reversed"] = _reverse(assistant, engine, persona, persona.reverse, row, options, clock, say)
    row["answers"] = answers
    row["seconds"] = {**taught["seconds"], **clock.seconds}
    return row


def _survey(
    assistant: Assistant,
    engine: Engine,
    persona: Persona,
    wish: Wish,
    seed: int,
    options: Options,
    *,
    memory: bool = False,
    adapter: int | None = None,
) -> Survey:
    # The same seeds each time: what differs between two surveys is the model, not the draw.
    sampling = assistant.default_sampling(max_tokens=options.tokens, seed=10_000 * (seed + 1))
    answers = ask_all(
        assistant, engine, persona.held_out, sampling, memory=memory, adapter=adapter, times=options.times
    )
    return look_at(answers, persona.held_out, wish)


def _row(when: str, survey: Survey) -> dict[str, Any]:
    return {
        f"rate_{when}": round(survey.rate, 4),
        f"words_{when}": round(survey.words, 1),
        f"repetition_{when}": round(survey.repetition, 4),
        f"checks_{when}": {name: round(rate, 4) for name, rate in survey.by_check.items()},
    }


def _talk(assistant: Assistant, wish: Wish, prompts: Sequence[Prompt], seed: int, options: Options) -> dict[str, Any]:
    """Ask, and correct or thank, each question in a chat of its own. Returns how well the judge understood it."""
    voice = Voice(wish, seed)
    meant: dict[int, int] = {}
    most = len(prompts) if options.strict else options.turns
    for n in range(most):
        prompt = prompts[n % len(prompts)]
        sampling = assistant.default_sampling(max_tokens=options.tokens, seed=20_000 * (seed + 1) + n)
        answer = assistant.ask(prompt.text, sampling=sampling)
        broken = wish.broken(answer.text, prompt)
        meant[answer.message_id] = -1 if broken else 1
        assistant.ask(voice.correct(broken) if broken else voice.thank(), chat=answer.chat_id, sampling=sampling)
        assistant.wait_judged(JUDGED_S)
        if options.strict and sum(score < 0 for score in meant.values()) == options.turns:
            break
    signals = assistant.signals(list(meant))
    judged = {i: next((s.score for s in found if s.source == "judge"), None) for i, found in signals.items()}
    return {
        "turns": len(meant),
        "corrected": sum(score < 0 for score in meant.values()),
        "judge_right": round(sum(judged.get(i) == score for i, score in meant.items()) / len(meant), 4),
        "judge_opposite": round(sum(judged.get(i) == -score for i, score in meant.items()) / len(meant), 4),
        "hints": [hint.text for hint in assistant.hints.list()],
    }


def _learn(assistant: Assistant, say: Say) -> dict[str, Any]:
    """One run of the trainer. A run that fails is a result too."""
    shown = ""

    def on_progress(progress: Any) -> None:
        nonlocal shown
        if progress.phase != shown:
            shown = progress.phase
            say(f"{progress.phase} …")

    try:
        result = assistant.learn.now(on_progress)
    except LearnError as error:
        say(f"learning failed: {error}")
        return {"adapter": 0, "accepted": False, "reason": str(error), "steps": 0, "samples": 0, "practice": []}
    say(result.reason)
    record = assistant.adapters.get(result.adapter) if result.adapter else None
    return {
        "adapter": result.adapter,
        "accepted": result.accepted,
        "reason": result.reason,
        "steps": result.steps,
        "samples": result.samples,
        "practice": practice_scores(record) if record else [],
        "gate": result.gate,
    }


def practice_scores(record: AdapterRecord) -> list[float | None]:
    """Mean score of the fresh answers at each step, -1 to 1; None where a step had none that could be scored."""
    return [step.get("score") for step in record.metrics.get("steps", [])]


def quiz_again(assistant: Assistant, engine: Engine, before: quiz.Result) -> dict[str, Any]:
    """The quiz with the adapter in use. Without one, the base's own result holds."""
    active = assistant.adapters.active()
    after = before
    if active is not None:
        engine.set_adapters(slots(active))
        after = quiz.take(engine, quiz.questions())
    return {
        "quiz_before": round(before.points, 2),
        "quiz_after": round(after.points, 2),
        "quiz_change": round(after.points - before.points, 2),
        "quiz_margin_change": round(after.margin - before.margin, 4),
    }


def _reverse(
    assistant: Assistant,
    engine: Engine,
    persona: Persona,
    wish: Wish,
    row: dict[str, Any],
    options: Options,
    clock: Clock,
    say: Say,
) -> dict[str, Any]:
    """The person comes to want the opposite: as many turns again, learned again."""
    seed = int(row["seed"])
    before = _survey(assistant, engine, persona, wish, seed, options)
    say(f"reversed wish before: {before.rate:.2f} ({clock.lap('reversed_survey_before'):.0f} s)")
    at = row["turns"] % len(persona.prompts)
    talk = _talk(assistant, wish, [*persona.prompts[at:], *persona.prompts[:at]], seed + 1, options)
    say(f"corrected {talk['corrected']} of {talk['turns']} answers ({clock.lap('reversed_talk'):.0f} s)")
    hinted = _survey(assistant, engine, persona, wish, seed, options, memory=True)
    say(f"reversed wish with hints: {hinted.rate:.2f} ({clock.lap('reversed_survey_with_hints'):.0f} s)")
    learned = _learn(assistant, say)
    clock.lap("reversed_learn")
    after = _survey(assistant, engine, persona, wish, seed, options)
    say(f"reversed wish learned: {after.rate:.2f} ({clock.lap('reversed_survey_after'):.0f} s)")
    first = look_at(after.answers, persona.held_out, persona.wish)
    return {
        **_row("before", before),
        **_row("with_hints", hinted),
        **_row("after", after),
        "rate_of_the_first_wish": round(first.rate, 4),
        **talk,
        **learned,
        "hints_after": [hint.text for hint in assistant.hints.list()],
        "answers": {"before": before.answers, "with_hints": hinted.answers, "after": after.answers},
    }
