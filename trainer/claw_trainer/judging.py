"""The judge of a learning run: the settings' own model, or the model that learns. It must never fail the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from claw_local.engine.base import ChatEngine, Engine
from claw_local.engine.opening import locate_model, open_engine
from claw_local.errors import ClawError
from claw_local.judge import changes, exam
from claw_local.judge.opening import make_judge
from claw_local.judge.verdict import AnyJudge
from claw_local.paths import Paths
from claw_local.settings import Settings
from claw_local.store import Store


@contextmanager
def judging(
    settings: Settings, paths: Paths, store: Store, engine: Engine, on_exam: exam.Progress | None = None
) -> Iterator[AnyJudge | None]:
    """The judge while inside; None where it cannot be had now (its server does not answer): turns go on waiting.

    A learning run is when the machine is idle, so a judge that has not taken its first exam takes it here.
    """
    with ExitStack() as stack:
        judge: AnyJudge | None = None
        try:
            judges: ChatEngine = engine
            if settings.judge.model:
                judges = open_engine(locate_model(settings, paths, settings.judge.model), settings, paths)
                stack.callback(judges.close)
            judge = make_judge(judges, settings.judge, store)
            if exam.find(store.exams, judge, "next") is None:
                store.exams.put(exam.take(judge, "next", on_progress=on_exam))
                changes.note_change(store)
                judge = make_judge(judges, settings.judge, store)
        except ClawError as error:
            print(f"The judge cannot be asked now: {error}", flush=True)
        yield judge
