"""The steps of a run: fresh answers, then an update, again and again; from the start, or from where it was left.

What is needed to go on is on the disk after each round of fresh answers and after each step, so the process may end at
any moment. Reads top to bottom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from claw_local.adapters import gguf
from claw_local.adapters.checking import fresh_sampling
from claw_local.adapters.lessons import Lesson
from claw_local.engine.base import Engine
from claw_local.errors import LearnError
from claw_local.language import _, ngettext
from claw_local.settings import Settings
from claw_local.store import AdapterRecord

from . import checkpoint
from .checkpoint import DamagedCheckpoint, State
from .device import PROCESSOR, Place
from .economy import Economy, give_back, in_words, is_out_of_memory
from .following import Begin, begin, build, read_parent
from .plan import Plan
from .ranks import ranks
from .rewards import Rewards
from .rollouts import Practice, balanced, stored_samples

Report = Callable[[str, float, str], None]

LEAST_STEPS = 4
"""Steps that are taken however good the first fresh answers were."""
BEGIN, END = 0.08, 0.85
"""The share of the whole run's bar at which the steps begin and end."""


@dataclass(frozen=True)
class Course:
    """All that the steps of one run need.

    Attributes:
        parent: the adapter that is trained further; None for the base.
        kept: the folder of what the run needs to go on.
        work: where `peft/` and `adapter.gguf` are left.
        economy: how hard memory is saved.
        passed: called after each checkpoint with what comes next and the steps that are done.
        variants: easier and harder tasks, and everyday ones, practised beside the plan's.
        place: where the steps are computed.
    """

    settings: Settings
    engine: Engine
    plan: Plan
    rewards: Rewards
    parent: AdapterRecord | None
    kept: Path
    work: Path
    economy: Economy
    report: Report
    passed: Callable[[str, int], None] = lambda phase, step: None
    variants: Sequence[Lesson] = ()
    place: Place = PROCESSOR


def train(course: Course) -> State:
    """Take the steps that are left. Leaves the adapter in `course.work`.

    Raises:
        LearnError: nothing to learn from, not enough memory even at the last level, or a number stopped being finite.
        OSError: what is needed to go on cannot be written.
    """
    torch.set_num_threads(course.plan.threads)
    course.place.prepare()
    course.place.economise(course.economy).fit(course.place.sizes(course.engine.info.path, course.settings.learning))
    while True:
        why = ""
        try:
            return _steps(course, checkpoint.read(course.kept, course.place) or State())
        except DamagedCheckpoint as damage:
            print(f"What was kept of this run is damaged: {damage}. It begins anew.", flush=True)
            (course.kept / checkpoint.STATE).unlink(missing_ok=True)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            why = in_words(error)
            error.__traceback__ = None  # It holds the tensors that were too much.
        give_back()
        if why:
            course.economy.harder(why)


def _steps(course: Course, state: State) -> State:
    """From `state` to the end. What runs out of memory here can be begun again from what is on the disk."""
    learning, report = course.settings.learning, course.report
    if state.phase == "gate" and not state.step:
        raise DamagedCheckpoint("it is at the gate without a step")
    report("loading", 0.05, _("the trainer"))
    group, info = ranks(), course.engine.info
    parent = Path(course.parent.peft_dir) if course.parent else None
    trainer = build(info.path, learning, course.economy, parent, group, course.place)
    checkpoint.restore(course.kept, state, trainer)
    begin(
        group,
        trainer,
        Begin(info.path, info.sha256, learning, course.plan.threads, read_parent(parent), course.economy.level),
    )
    tasks = [*course.plan.train, *course.variants]
    practice = Practice(tasks, course.rewards, fresh_sampling(course.settings), seed=learning.seed)
    replay = np.random.default_rng(learning.seed + 1)
    try:
        if state.practice:
            practice.restore(state.practice)
            replay.bit_generator.state = state.replay
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedCheckpoint(str(error)) from error
    stored = stored_samples(course.plan.train)
    current = Path(course.parent.gguf_path) if course.parent else None
    if state.step:
        current = _export(trainer.policy, course)

    def keep(whole: bool) -> None:
        state.practice, state.replay = practice.state(), dict(replay.bit_generator.state)
        state.device = str(course.place.device)
        checkpoint.write(course.kept, state, trainer if whole else None, course.place)
        course.passed(state.phase, state.step)

    while state.phase != "gate":
        where = _("step {step} of {steps}", step=state.step + 1, steps=learning.steps)
        share = (END - BEGIN) / learning.steps
        fraction = BEGIN + share * state.step
        if state.phase == "practising":
            report("practising", fraction, where + ": " + _("fresh answers"))
            state.samples = practice.round(course.engine, current, learning.rollouts)
            state.samples += balanced([stored[n] for n in replay.permutation(len(stored))], learning.replay)
            if not state.samples:
                raise LearnError(
                    "Nothing of what was said tells how an answer should have been. Say what you would like different."
                )
            state.phase = "training"
            keep(whole=False)
        words = where + ": " + ngettext("{number} sample", "{number} samples", len(state.samples))

        begun, of = fraction + 0.4 * share, 0.6 * share

        def done(part: float, begun: float = begun, of: float = of, said: str = words) -> None:
            course.economy.watch()
            report("training", begun + of * part, said)

        report("training", begun, words)
        group.tell(state.samples)
        metrics = trainer.step(state.samples, on_progress=done)
        state.seen += len(state.samples)
        state.history.append({**metrics, **({"score": practice.scores[-1]} if practice.scores else {})})
        state.samples, state.step = [], state.step + 1
        good = len(practice.scores) >= LEAST_STEPS and min(practice.scores[-2:]) >= learning.enough
        state.phase = "gate" if good or state.step >= learning.steps else "practising"
        current = _export(trainer.policy, course)
        keep(whole=True)
    return state


def _export(policy: Any, course: Course) -> Path:
    """The policy of now as PEFT files and as a GGUF LoRA."""
    peft_dir = policy.save(course.work / "peft")
    return gguf.convert_lora(peft_dir, course.engine.info.path, course.work / "adapter.gguf")
