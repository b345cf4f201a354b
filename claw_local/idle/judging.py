"""Improving the judge from the person's thumbs and edits, as a run of the trainer. It must never hold maths."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.opening import local_model, locate_model
from ..errors import LearnError
from ..judge import personal
from ..judge.feedback import explicit_feedback
from ..language import _
from .job import Job, Progress

if TYPE_CHECKING:
    from ..assistant import Assistant


@dataclass(frozen=True)
class JudgeTraining:
    """How a run that trained the judge ended.

    Attributes:
        accepted: whether the new judge is in use.
        reason: why, in a sentence.
        samples: cases of the person's feedback it learned from.
        before, after: accuracy and AUC on the shipped dev examples.
    """

    accepted: bool
    reason: str
    samples: int
    steps: int
    seconds: float
    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)


def train_judge(
    assistant: Assistant,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
) -> JudgeTraining:
    """Train the judge on all thumbs and edits, and use it from the next turn on unless it got worse.

    Raises:
        LearnError: learning is off, there is nothing to learn from, the judge is behind a server, the trainer is not
            installed, another run goes on, or the run failed. The judge stays as it was.
    """
    if not assistant.learn.enabled:
        raise LearnError(_("Learning is off, so no feedback may teach. Turn it on with: claw-local learn on"))
    if not explicit_feedback(assistant.store):
        raise LearnError(
            _(
                "The judge has nothing to learn from yet. Mark replies with `claw-local "
                "feedback ID good` or `bad` (in the app: Ctrl+G, Ctrl+B), or correct them, and "
                "chat on: it learns how you say what you think of a reply."
            )
        )
    model = judge_model(assistant)
    assistant.handing.before_run(model)
    job = Job.start(assistant.store, assistant.paths, assistant.settings, model, options=["--judge"])
    run = job.follow(on_progress, cancel)
    return JudgeTraining(**run.result)


def forget_judge(assistant: Assistant) -> bool:
    """Take the person's own judge's adapter out of use and delete it; whether there was one. Raises as
    `judge_model`."""
    from ..engine.models import model_sha256

    sha256 = model_sha256(judge_model(assistant), assistant.paths.data)
    own = personal.personal(assistant.store, sha256)
    if own is None:
        return False
    personal.keep(assistant.store, sha256, None)
    personal.remove(own, assistant.paths.adapters)
    return True


def judge_model(assistant: Assistant) -> Path:
    """The model file that judges.

    Raises:
        LearnError: a model behind a server judges, which nothing can be trained for. ModelError: there is no such file.
    """
    settings, paths = assistant.settings, assistant.paths
    named = settings.judge.model
    source = locate_model(settings, paths, named) if named else local_model(settings, paths, assistant.model_name)
    if source.path is None:
        raise LearnError(
            _(
                "{source} judges, a model behind a server: only a model file on this machine "
                "can learn to judge. Set judge.model to a GGUF file, or leave it empty.",
                source=source,
            )
        )
    return source.path
