"""The learning screen over a real store; no model is asked anything here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claw_app.app import ClawApp
from claw_app.report import sentences
from claw_app.screens.ask import AskLine, Confirm
from claw_app.screens.learning_view import LearningView
from claw_app.screens.report import Report
from claw_app.widgets.learned import RowList, ScorePanel, by_day, changes, in_words, rolling
from claw_local.idle import kept
from claw_local.signals.scores import Scored
from tests.app import drawing
from tests.app.driving import Until, said, say
from tests.app.test_learning import begun

GATE = {
    "probes": 18,
    "held_out": 4,
    "gains": {
        "checks": {"mean": 0.42, "low": 0.2, "high": 0.63, "count": 18},
        "margin": {"mean": 0.1, "low": float("-inf"), "high": float("inf"), "count": 1},
    },
    "before": {"words": 112.0, "repetition": 0.02},
    "after": {"words": 48.0, "repetition": 0.01},
    "guard": {"known_before": 1.0, "known_after": 0.95},
    "examples": [
        {"question": "Why is the sky blue?", "before": "- many\n- points", "after": "Because of \x1b[31mlight."}
    ],
}


@pytest.fixture
def taught(scripted: Any) -> Any:
    """Two judged replies of the base and two of an adapter, two hints, one run that was taken and one that failed."""
    store = scripted.store
    adapter = store.adapters.add(parent_id=0, model_sha256="0" * 64, architecture="llama", lineage=[1, 2, 3])
    for number, (score, wrote) in enumerate([(-1, 0), (0, 0), (1, adapter.id), (1, adapter.id)]):
        message_id = scripted.ask(f"question {number}").message_id
        store.messages.describe(message_id, adapter_id=wrote)
        store.signals.add(message_id, "judge", -score)
        store.signals.add(message_id, "thumb", score)
    scripted.hints.add("Two sentences at most")
    scripted.hints.off(scripted.hints.add("Always rhyme").id)
    result = {"adapter": adapter.id, "accepted": True, "reason": "Taken: it keeps your wishes.", "samples": 12}
    store.runs.finish(
        store.runs.begin(), "done", result={**result, "steps": 8, "seconds": 61.0, "gate": GATE}, adapter_id=adapter.id
    )
    store.runs.finish(store.runs.begin(), "failed", result={}, detail="Memory ran out.")
    return scripted


async def opened(pilot: Any, app: ClawApp, until: Until) -> LearningView:
    await until(pilot, lambda: app.main.status.state)
    await pilot.press("ctrl+t")
    await until(pilot, lambda: isinstance(app.screen, LearningView) and app.screen.query("#learned-head"))
    view = app.screen
    assert isinstance(view, LearningView)
    await until(pilot, lambda: "waiting" in str(view.query_one("#learned-head").render()))
    return view


def rows(view: LearningView, name: str) -> list[str]:
    return [str(option.prompt) for option in view.query_one(f"#{name}", RowList).options]


async def test_one_key_shows_score_hints_runs_and_adapters(app: ClawApp, taught: Any, until: Until) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        view = await opened(pilot, app, until)
        words = str(view.query_one(ScorePanel).query_one("#score-words").render())
        assert "Of the last 4 replies" in words and "▲ 2" in words and "▼ 1" in words
        assert "Fewer than ten say little" in words and not view.query_one("#curve").display
        assert [row[:23] for row in rows(view, "hints")] == ["● Two sentences at most", "○ Always rhyme  off"]
        assert "failed  Memory ran out." in rows(view, "runs")[0]
        assert "taken  8 steps on 12 samples in 61 s" in rows(view, "runs")[1]
        assert "adapter 1" in rows(view, "adapters")[0] and "learned from 3 replies" in rows(view, "adapters")[0]
        assert rows(view, "adapters")[1].startswith("● base model")
        assert all(view.query_one(f"#{name}").display for name in ("score", "hints", "runs", "adapters"))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)


async def test_a_curve_is_drawn_from_ten_replies_on(app: ClawApp, taught: Any, until: Until) -> None:
    for number in range(6):
        taught.store.signals.add(taught.ask(f"more {number}").message_id, "thumb", 1)
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot, app, until)
        await until(pilot, lambda: view.query_one("#curve").display)
        words = str(view.query_one("#score-words").render())
        assert "Of the last 10 replies" in words and "say little" not in words
        await until(pilot, lambda: "replies you reacted to; a line" in drawing.text(app))
        assert not view.query_one("#score-table").display


async def test_at_80_columns_one_panel_is_shown_and_numbers_go_to_the_others(
    app: ClawApp, taught: Any, until: Until
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot, app, until)
        for key, name in zip("1234", ("score", "hints", "runs", "adapters"), strict=True):
            await pilot.press(key)
            await pilot.pause()
            assert [panel.id for panel in view.query("#learned > *") if panel.display] == [name]
            assert view.focused is view.query_one(f"#{name}")


async def test_hints_are_switched_edited_and_added_by_keys(app: ClawApp, taught: Any, until: Until) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot, app, until)
        await pilot.press("2", "space")
        await until(pilot, lambda: not taught.hints.list())
        await until(pilot, lambda: all(row.startswith("○") for row in rows(view, "hints")))
        await pilot.press("space")
        await until(pilot, lambda: len(taught.hints.list()) == 1)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, AskLine))
        await pilot.press("end", "!", "enter")
        await until(pilot, lambda: taught.hints.list()[0].text.endswith("!"))
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AskLine))
        await pilot.press(*"No lists", "enter")
        await until(pilot, lambda: taught.hints.list()[0].text == "No lists")
        await until(pilot, lambda: "No lists" in rows(view, "hints")[0])
        await pilot.press("home", "x")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: "No lists" not in [hint.text for hint in taught.hints.list(active_only=False)])


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_keys_are_in_sight(app: ClawApp, taught: Any, until: Until, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await opened(pilot, app, until)
        await pilot.pause()
        last = drawing.lines(app)[-1]
        assert "Esc Back" in last and "f5 Learn now" in last


async def test_a_runs_report_says_its_numbers_in_words_with_answers_before_and_after(
    app: ClawApp, taught: Any, until: Until
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, app, until)
        await pilot.press("3", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, Report) and app.screen.query(".answer"))
        page = "\n".join(str(widget.render()) for widget in app.screen.query("Static"))
        assert "Taken: it keeps your wishes." in page
        assert "Why is the sky blue?" in page and "- many" in page and "Because of light." in page
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LearningView))


async def test_base_and_adapter_are_put_into_use_and_an_error_is_said(app: ClawApp, taught: Any, until: Until) -> None:
    taught.store.adapters.activate(1, "0" * 64)
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot, app, until)
        await until(pilot, lambda: rows(view, "adapters")[0].startswith("● adapter 1"))
        await pilot.press("4", "b")
        await until(pilot, lambda: "The base model is in use" in said(app))
        assert taught.adapters.active() is None
        view._in_use = 1
        view._say_in_use()  # as when another is taken at once
        await until(pilot, lambda: "Adapter 1 is in use" in said(app) and "The base model is in use" not in said(app))
        await pilot.press("u")
        await until(pilot, lambda: "The file of adapter 1 is gone" in said(app))


async def test_what_another_program_changes_appears(app: ClawApp, taught: Any, until: Until) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot, app, until)
        taught.hints.add("From elsewhere: no emoji")
        await until(pilot, lambda: any("From elsewhere" in row for row in rows(view, "hints")), 6)


async def test_without_the_plotting_library_a_table_stands_in_its_place(
    app: ClawApp, taught: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claw_app.widgets.learned.find_spec", lambda _: None)
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot, app, until)
        assert not view.query("#curve")
        table = str(view.query_one("#score-table").render()).splitlines()
        assert table[0].split() == ["day", "good", "so-so", "bad", "mean"]
        assert table[1].split()[1:] == ["2", "1", "1", "+0.25"]


def test_numbers_of_a_gate_report_in_plain_words() -> None:
    lines = [str(line) for line in sentences(GATE)]
    assert lines[0] == "Tried on 18 questions, 4 of them yours that it never trained on."
    assert lines[1].startswith("Keeping your wishes by itself: better (+0.42, very likely between +0.20 and +0.63")
    assert "no clear difference (+0.10, on 1 question)" in lines[2]
    assert "Answers have 48 words on average; 112 before." in lines
    assert "Simple facts still known: 95%; 100% before." in lines
    shares = {**GATE, "kept_before": 0.31, "kept_after": 0.94}
    assert str(sentences(shares)[1]) == (
        "Keeping your wishes by itself: better, 94% of the answers do; 31% before (on 18 questions)."
    )
    gains = {"divergence": {"mean": 0.1, "low": 0.05, "high": 0.2, "count": 9}}
    assert str(sentences({"gains": gains, "closer": 0.4})[0]) == (
        "Answering as if told your wishes: better, 40% closer (on 9 questions)."
    )
    assert sentences({}) == []


def test_the_curve_is_a_rolling_mean_that_notes_where_the_adapter_changed() -> None:
    scored = [
        Scored(n, score, adapter, "2026-11-01T10:00:00+00:00")
        for n, (score, adapter) in enumerate([(-1, 0), (1, 0), (1, 4)])
    ]
    assert rolling(scored) == pytest.approx([-1.0, 0.0, 1 / 3])
    assert changes(scored) == [3]
    assert "Of the last 3 replies" in str(in_words(scored))
    assert "No reply has a mark yet" in str(in_words([]))
    assert str(by_day([])) == ""


async def test_what_becomes_of_a_paused_run_is_said_when_a_hint_it_learns_from_changes(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    hint = scripted.hints.add("Talk like a pirate")
    run_id = begun(scripted)
    plan = json.dumps({"lasting": [{"id": hint.id, "text": hint.text}], "lessons": []})
    (kept.folder_of(scripted.paths, run_id) / kept.PLAN).write_text(plan, "utf-8")
    scripted.store.runs.pause(run_id)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, app, until)
        await pilot.press("2", "space")
        await until(
            pilot, lambda: f"The paused run {run_id} was begun with it, and teaches it all the same" in said(app)
        )
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: f"The paused learning run {run_id} does not go on" in said(app))
        assert scripted.store.runs.get(run_id).state == "dropped"


async def test_a_hint_that_makes_room_for_another_is_named(app: ClawApp, scripted: Any, until: Until) -> None:
    mine = scripted.hints.add("At most two sentences, please.")
    scripted.hints.off(mine.id)
    scripted.hints.add("At most four sentences, please.")
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot, app, until)
        await pilot.press("2", "down")
        assert "At most two" in str(view.query_one("#hints", RowList).highlighted_option.prompt)
        await pilot.press("space")
        await until(pilot, lambda: "“At most four sentences, please.”, which you had added yourself," in said(app))
        assert "“At most two sentences, please.” took its place" in said(app)
        await pilot.press("space")
        await pilot.pause(0.1)
        assert said(app).count("took its place") == 1, "what the person switches off outright needs no word"


async def test_a_hint_the_person_added_is_never_dropped_for_a_new_one_without_a_word(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    scripted.hints.add("At most two sentences, please.")
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.state)
        await say(pilot, app, "hello", until)
        app.main.composer.text = "/hint At most four sentences, please."
        await pilot.press("enter")
        await until(pilot, lambda: "“At most two sentences, please.”, which you had added yourself," in said(app))
