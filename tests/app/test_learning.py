"""A training run as the screen shows it. The run is a script here: what a real one does is tested with the trainer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from textual.widgets import Button

from claw_app.app import ClawApp
from claw_app.screens.ask import Choose, Confirm
from claw_app.screens.learning import LearningActions
from claw_app.widgets.learn_bar import LearnBar
from claw_app.widgets.status_line import StatusLine, bar
from claw_local.engine.models import model_sha256
from claw_local.errors import LearnError
from claw_local.idle import kept
from claw_local.idle.job import LearningPaused, LearnResult, Progress
from claw_local.idle.learning import Learning, LearnStatus
from claw_local.store import Hint
from claw_local.store import Run as StoredRun
from tests.app import drawing
from tests.app.driving import Until, said, send

RESULT = LearnResult(
    adapter=3, accepted=True, reason="It follows your hints better.", samples=12, steps=8, seconds=61.2, gate={}
)


class Run:
    """Stands in for `assistant.learn.now`: reports half of the way, then waits to be let go or cancelled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.cancel: threading.Event | None = None
        self.leave: threading.Event | None = None
        self.result: LearnResult = RESULT
        run = self

        def now(
            _: Learning,
            on_progress: Callable[[Progress], None],
            cancel: threading.Event,
            leave: threading.Event | None = None,
        ) -> LearnResult:
            run.cancel, run.leave = cancel, leave
            on_progress(Progress("training", 0.5, "step 4 of 8"))
            while not run.go.wait(0.02):
                if cancel.is_set():
                    raise LearnError("Learning was stopped. The lessons stay for the next run.")
            return run.result

        monkeypatch.setattr(Learning, "now", now)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    started = Run(monkeypatch)
    yield started
    started.go.set()


def begun(assistant: Any) -> int:
    """A run of the real kind, without its process, two steps on."""
    store = assistant.store
    run_id = int(store.runs.begin())
    sha256 = model_sha256(assistant.model_path, assistant.paths.data)
    kept.write_beginning(assistant.paths, run_id, kept.beginning(store, assistant.settings, sha256))
    store.runs.set_checkpoint(run_id, "training", 2, 8)
    return run_id


def left_when_asked(learning: Learning, *arguments: Any) -> LearnResult:
    """As `now`, of a trainer that does nothing but wait to be asked to leave."""
    assistant, leave = learning._assistant, arguments[2]
    paused = learning.paused().run
    if paused is None:
        run_id = begun(assistant)
    else:
        run_id = paused.id
        assistant.store.runs.go_on(run_id)
    while not assistant.store.runs.get(run_id).asked and not leave.is_set():
        time.sleep(0.02)
    assistant.store.runs.pause(run_id)
    raise LearningPaused("Learning is paused.")


async def test_f5_shows_progress_and_then_the_result(app: ClawApp, run: Run, until: Until) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.query(LearnBar))
        bar = app.main.query_one(LearnBar)
        assert not bar.display
        await pilot.press("f5")
        await until(pilot, lambda: "step 4 of 8" in str(bar.query_one("#phase").render()))
        assert bar.display
        assert bar.query_one("#progress").percentage == 0.5  # type: ignore[attr-defined]
        run.go.set()
        await until(pilot, lambda: "Adapter 3 is in use" in said(app))
        assert "8 steps on 12 samples in 61 s" in said(app)
        assert not bar.display


async def test_a_rejected_adapter_is_told_with_its_reason(app: ClawApp, run: Run, until: Until) -> None:
    run.result = LearnResult(
        adapter=3, accepted=False, reason="Its answers were too short.", samples=1, steps=8, seconds=5, gate={}
    )
    run.go.set()
    async with app.run_test() as pilot:
        await pilot.press("f5")
        await until(pilot, lambda: "The assistant stays as it was. Its answers were too short." in said(app))


async def test_f5_again_asks_whether_to_pause_or_throw_away(app: ClawApp, run: Run, until: Until) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f5")
        await until(pilot, lambda: run.cancel)
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, Choose))
        buttons = [str(button.label) for button in app.screen.query(Button)]
        assert buttons == ["Go on (Esc)", "Pause (p)", "Throw away (t)"]
        assert all(button.region.right < 80 and button.region.width for button in app.screen.query(Button))
        await pilot.press("escape", "f5")
        await until(pilot, lambda: isinstance(app.screen, Choose))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.main)
        assert not run.cancel.is_set() and not run.leave.is_set()  # type: ignore[union-attr]
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, Choose))
        await pilot.press("t")
        await until(pilot, lambda: "Learning was stopped" in said(app))
        assert not run.leave.is_set()  # type: ignore[union-attr]
        assert "did not work" not in said(app)
        assert not app.main.query_one(LearnBar).display


async def test_a_run_is_paused_by_f5_or_by_a_command_and_goes_on_from_there(
    app: ClawApp, scripted: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.learn.on()
    monkeypatch.setattr(Learning, "now", left_when_asked)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.state)
        await pilot.press("f5")
        await until(pilot, scripted.store.runs.running)
        run_id = scripted.store.runs.running().id
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, Choose))
        await pilot.press("p")
        await until(pilot, lambda: f"Run {run_id} was left. F5 goes on from step 3 of 8." in said(app))
        assert scripted.store.runs.get(run_id).state == "paused"
        app.clear_notifications()
        await pilot.press("f5")
        await until(pilot, lambda: f"Run {run_id} goes on from step 3 of 8." in said(app))
        await until(pilot, scripted.store.runs.running)
        await send(pilot, app, "/pause")
        await until(pilot, lambda: f"Run {run_id} was left. F5 goes on from step 3 of 8." in said(app))
        assert "Nothing is learned by itself until /learn resume." in said(app)
        assert scripted.learn.status().held and not app.main.stop_learning


async def test_f5_says_of_a_run_that_has_hardly_begun_that_it_begins_anew_and_what_the_exam_is(
    app: ClawApp, scripted: Any, run: Run, until: Until
) -> None:
    run_id = int(scripted.store.runs.begin())
    scripted.store.runs.progress(run_id, "exam", 0.01, "9 of 60", None)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f5")
        await until(pilot, lambda: run.cancel)
        app.main.post_message(LearningActions.Advanced(Progress("exam", 0.01, "9 of 60")))
        await until(pilot, lambda: "does the judge read right what you say about replies?" in said(app))
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, Choose))
        asked = " ".join(str(app.screen.query("Static").first().render()).split())
        assert "gives the judge an exam first" in asked
        assert "begins it anew" in asked and "goes on from there" not in asked
        await pilot.press("escape")
        scripted.store.runs.set_checkpoint(run_id, "training", 2, 8)
        await until(pilot, lambda: app.screen is app.main)
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, Choose))
        asked = " ".join(str(app.screen.query("Static").first().render()).split())
        assert "goes on from there" in asked and "anew" not in asked


async def test_leaving_during_a_run_asks_first_and_then_leaves_it_to_go_on_later(
    app: ClawApp, run: Run, until: Until
) -> None:
    async with app.run_test() as pilot:
        await pilot.press("f5")
        await until(pilot, lambda: run.cancel)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert not app.leaving
        await pilot.press("y")
        await pilot.pause(0.1)
        assert app.leaving
        assert run.leave is not None and run.leave.is_set()
        assert not run.cancel.is_set(), "that would throw away what it has reached"  # type: ignore[union-attr]


async def test_turning_learning_off_during_a_run_says_that_it_was_left_and_how_it_goes_on(
    app: ClawApp, scripted: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.learn.on()
    monkeypatch.setattr(Learning, "now", left_when_asked)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.state)
        await pilot.press("f5")
        await until(pilot, scripted.store.runs.running)
        await pilot.press("ctrl+l")
        await until(pilot, lambda: "Learning paused" in said(app))
        run_id = scripted.learn.runs()[0].id
        assert f"Learning was turned off, so run {run_id} was left; what it has reached is kept." in said(app)
        assert "Ctrl+L, then F5, goes on from step 3 of 8." in said(app)
        assert "did not work" not in said(app)
        assert not app.main.query_one(LearnBar).display
        await pilot.press("ctrl+l", "ctrl+l")
        await until(pilot, lambda: f"Run {run_id} stays paused: Ctrl+L, then F5, goes on from step 3 of 8" in said(app))
        await pilot.press("ctrl+l", "f5")
        await until(pilot, lambda: f"Run {run_id} goes on from step 3 of 8." in said(app))
        scripted.store.runs.ask(run_id, "leave")
        await until(pilot, lambda: f"Run {run_id} was left. F5 goes on from step 3 of 8." in said(app))


async def test_f5_says_why_a_run_that_was_left_does_not_go_on(
    app: ClawApp, scripted: Any, run: Run, until: Until
) -> None:
    scripted.learn.on()
    paused = begun(scripted)
    scripted.store.runs.pause(paused)
    scripted.settings.learning.steps += 1
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.state)
        await pilot.press("f5")
        await until(pilot, lambda: f"run {paused} does not go on: the setting learning.steps has changed" in said(app))
        run.go.set()


async def test_a_run_of_another_program_is_shown_and_f5_says_that_it_cannot_stop_it(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    run_id = scripted.store.runs.begin()
    scripted.store.runs.progress(run_id, "training", 0.25, "step 2 of 8")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.query(LearnBar))
        bar_line = app.main.query_one(LearnBar)
        await until(pilot, lambda: bar_line.display)
        assert "step 2 of 8" in str(bar_line.query_one("#phase").render())
        assert "begun elsewhere" in str(bar_line.query_one("#learn-stop").render())
        assert "25%" in str(app.main.status.render())
        await pilot.press("f5")
        await until(pilot, lambda: "F5 stops only runs that were started here" in said(app))
        assert app.main.stop_learning is None
        scripted.store.runs.finish(run_id, "done", result={})
        await until(pilot, lambda: not bar_line.display, 5)


async def test_the_header_says_nothing_of_learning_before_it_is_known(scripted: Any, until: Until) -> None:
    scripted.learn.on()
    opening = threading.Event()

    def open_late() -> Any:
        opening.wait(10)
        return scripted

    app = ClawApp(open_late)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.is_mounted)
        await pilot.pause(0.1)
        assert "learning" not in drawing.text(app).splitlines()[0]
        assert not app.main.query_one("#learning").visible
        opening.set()
        await until(pilot, lambda: "learning on" in drawing.text(app).splitlines()[0])
        assert app.main.query_one("#learning").visible


async def test_a_chat_that_never_teaches_says_so_in_the_status_line(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.learn.on()
    teaches, never = scripted.new_chat(title="a"), scripted.new_chat(title="b", learn=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.state and app.main._ready.is_set())
        await app.main.go_to(never.id)
        assert "this chat does not teach" in str(app.main.status.render())
        assert "learning on" not in str(app.main.status.render())
        await app.main.go_to(teaches.id)
        assert "learning on" in str(app.main.status.render())
        await app.main.go_to(None)
        assert "learning on" in str(app.main.status.render())


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (
            120,
            "Llama-3.2-1B-Instruct.Q4_K_M · training ▰▰▰▰▱▱▱▱ 50% · learning on · "
            "3 lessons waiting · adapter 12 · 2 hints",
        ),
        (
            100,
            "Llama-3.2-1B-Instruct.Q4_K_M · training ▰▰▰▰▱▱▱▱ 50% · learning on · 3 lessons waiting · adapter 12",
        ),
        (78, "Llama-3.2-1B-… · ▰▰▰▰▱▱▱▱ 50% · learning on · 3 waiting · adapter 12"),
        (66, "Llama-3.2-1B-… · ▰▰▰▰▱▱▱▱ 50% · learn on · 3 waiting · adapter 12"),
    ],
)
async def test_a_narrow_status_line_uses_shorter_words_and_loses_nothing_that_matters(
    app: ClawApp, width: int, expected: str, until: Until
) -> None:
    hint = Hint(1, "x", None, None, "everywhere", "active", 0, "")
    run = StoredRun(1, None, "running", "training", 0.5, "", "", {}, "", "")
    state = LearnStatus(True, 3, 0, 0, (hint, hint), 12, run)
    async with app.run_test(size=(width + 2, 24)) as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        line = app.main.query_one(StatusLine)
        line.model, line.state = "Llama-3.2-1B-Instruct.Q4_K_M", state
        assert str(line.render()) == expected


def test_a_bar_never_leaves_its_cells() -> None:
    assert [bar(-1, 4), bar(0.5, 4), bar(7, 4)] == ["▱▱▱▱", "▰▰▱▱", "▰▰▰▰"]
