"""What the tests of leaving share: a home on a tiny model with a few lessons, and a run on it inside this process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from claw_local import Assistant
from claw_local.engine.base import Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.paths import locate
from claw_local.settings import GateSettings, LearningSettings, ModelSettings, Settings
from claw_local.store import Store
from claw_trainer.checkpoint import State
from claw_trainer.device import PROCESSOR, Place
from claw_trainer.economy import Economy
from claw_trainer.plan import make_plan, read_plan, write_plan
from claw_trainer.rewards import Rewards
from claw_trainer.training import Course, train

QUESTIONS = ("What is rain?", "What is snow?", "What is wind?", "What is hail?", "What is fog?", "What is dew?")
SAMPLING = Sampling(max_tokens=12, temperature=0.7, seed=3)
WISH = "Please write everything in lowercase letters only, in one sentence."


def settings_of(steps: int) -> Settings:
    return Settings(
        model=ModelSettings(threads=1, context=512),
        learning=LearningSettings(steps=steps, rollouts=3, replay=2, rollout_tokens=16, rank=4, alpha=8, threads=1),
        gate=GateSettings(max_kl_base=5.0),
    )


def teach(home: Path, model: Path, settings: Settings) -> None:
    """Six answers, each corrected or praised by hand."""
    with Assistant.open(home, model=model, settings=settings) as assistant:
        assistant.learn.on()
        for number, question in enumerate(QUESTIONS):
            answer = assistant.ask(question, sampling=SAMPLING)
            if number % 3:
                assistant.feedback(answer.message_id, "bad", hint=WISH)
            else:
                assistant.feedback(answer.message_id, "good")


@dataclass
class Trial:
    """One run's steps in this process, however often it is begun.

    Attributes:
        folder: where it keeps what it needs, and its work.
        before: called at each report of progress; what it raises leaves the run.
    """

    home: Path
    model: Path
    settings: Settings
    engine: LlamaCppEngine
    folder: Path
    before: Callable[[], None] = lambda: None
    level: int = 0
    notes: list[str] = field(default_factory=list)
    place: Place = PROCESSOR

    @property
    def kept(self) -> Path:
        return self.folder / "kept"

    @property
    def adapter(self) -> bytes:
        return (self.folder / "work" / "peft" / "adapter_model.safetensors").read_bytes()

    def go(self) -> State:
        """Begin, or go on with what is kept."""
        self.kept.mkdir(parents=True, exist_ok=True)
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)  # What a process that ended leaves there is of no use.
        work.mkdir()
        store = Store(locate(self.home))
        try:
            plan = read_plan(self.kept / "plan.json", store)
            if plan is None:
                plan = make_plan(store, self.settings, self.engine, threads=1)
                write_plan(self.kept / "plan.json", plan)
            course = Course(
                settings=self.settings,
                engine=self.engine,
                plan=plan,
                rewards=Rewards(plan.checks, plan.hints),
                parent=None,
                kept=self.kept,
                work=work,
                economy=Economy(self.level, 0, self._note),
                report=lambda phase, fraction, words: self.before(),
                place=self.place,
            )
            return train(course)
        finally:
            store.close()

    def _note(self, level: int, why: str) -> None:
        self.level = level
        self.notes.append(why)


def losses(state: State) -> list[dict[str, float]]:
    """The loss curve and all else that was reported, but for the time it took."""
    return [{name: value for name, value in step.items() if name != "seconds"} for step in state.history]
