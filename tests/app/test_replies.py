"""What can be done with a message: versions, corrections in place, copies, and why. The model is a script here."""

from __future__ import annotations

from typing import Any

import pytest
from textual.selection import SELECT_ALL
from textual.widgets import Input

from claw_app.app import ClawApp
from claw_app.burst import BURST_S
from claw_app.screens.ask import AskLine, Confirm
from claw_app.screens.why import WhyScreen
from claw_app.widgets.bubbles import Bubble, Question
from claw_app.widgets.editor import Editor
from claw_local.errors import EngineError
from claw_local.signals.turns import combine
from tests.app import drawing
from tests.app.driving import Until, foot, in_one_go, said, say, shown


async def test_asking_again_begins_a_branch_and_the_arrows_walk_between_versions(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    scripted.learn.on()
    async with app.run_test() as pilot:
        first = await say(pilot, app, "hello", until)
        scripted.engine.script = ["Another ", "one."]
        first.focus()
        await pilot.press("r")
        await until(pilot, lambda: shown(app) == ["hello", "Another one."] and not app.main.sending)
        await until(pilot, lambda: "2/2" in foot(app.main.transcript.replies()[0]))
        assert [signal.score for signal in scripted.signals([first.message_id])[first.message_id]] == [-1]
        assert scripted.learn.status().lessons == 0, "it is no correction: it does not say what should be different"
        app.main.transcript.replies()[0].focus()
        await pilot.press("left")
        await until(pilot, lambda: shown(app) == ["hello", "Hello **there**."])
        await until(pilot, lambda: isinstance(app.main.focused, Bubble) and "1/2" in foot(app.main.focused))
        await pilot.press("right")
        await until(pilot, lambda: shown(app) == ["hello", "Another one."])


async def test_a_question_said_otherwise_is_answered_and_what_followed_the_old_one_stays_with_it(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "one", until)
        await say(pilot, app, "two", until)
        app.main.query(Question).first().focus()
        await pilot.press("e")
        await until(pilot, lambda: app.main.query(Editor))
        await pilot.press("!", "enter")
        await until(pilot, lambda: shown(app) == ["one!", "Hello **there**."] and not app.main.sending)
        assert scripted.engine.asked[-1].startswith("one!")
        question = app.main.query(Question).first()
        await until(pilot, lambda: "2/2" in str(question.render()))
        question.focus()
        await pilot.press("left")
        await until(pilot, lambda: shown(app) == ["one", "Hello **there**.", "two", "Hello **there**."])


async def test_a_reply_is_corrected_where_it_stands(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        await pilot.press("f3")
        await until(pilot, lambda: app.main.query(Editor) and app.main.query_one(Editor).has_focus)
        assert not bubble.display
        assert app.main.query_one(Editor).text == "Hello **there**."
        await pilot.press(*" Ahoy", "ctrl+s")
        await until(pilot, lambda: shown(app) == ["hello", "Hello **there**. Ahoy"])
        await until(pilot, lambda: "2/2" in foot(app.main.transcript.replies()[0]))
        signals = scripted.signals([bubble.message_id])[bubble.message_id]
        assert [(signal.source, signal.score) for signal in signals] == [("edit", -1)]


async def test_the_line_at_the_cursor_is_in_sight_while_a_long_reply_is_corrected(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    scripted.engine.script = [f"Line {number}.\n\n" for number in range(12)]
    async with app.run_test(size=(80, 24)) as pilot:
        await say(pilot, app, "hello", until)
        await pilot.press("f3")
        await until(pilot, lambda: app.main.query(Editor) and "Ctrl+S keeps" in drawing.text(app))
        assert "Line 11." in drawing.text(app)
        await pilot.press("pageup", "pageup")
        await until(pilot, lambda: "Line 0." in drawing.text(app) and "as you want it" in drawing.text(app))


async def test_esc_leaves_a_correction_and_changes_nothing(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        bubble.focus()
        await pilot.press("e")
        await until(pilot, lambda: app.main.query(Editor))
        await pilot.press("x", "escape")
        await until(pilot, lambda: "Esc again throws away" in str(app.main.query_one(Editor).border_subtitle))
        await pilot.press("y", "escape")
        assert app.main.query_one(Editor).text == "Hello **there**.xy", "who goes on is asked again"
        await pilot.press("escape")
        await until(pilot, lambda: not app.main.query(Editor))
        assert bubble.display and bubble.has_focus
        assert shown(app) == ["hello", "Hello **there**."]
        assert not scripted.signals([bubble.message_id])[bubble.message_id]


async def test_correcting_an_older_reply_leaves_what_was_said_after_it_in_view(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        first = await say(pilot, app, "one", until)
        await say(pilot, app, "two", until)
        first.focus()
        await pilot.press("e")
        await until(pilot, lambda: app.main.query(Editor))
        await pilot.press("x", "ctrl+s")
        await until(pilot, lambda: "1/2" in foot(first))
        assert len(shown(app)) == 4
        await pilot.press("right")
        await until(pilot, lambda: shown(app) == ["one", "Hello **there**.x"])


async def test_a_reply_that_cannot_be_written_again_comes_back(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        working = scripted.regenerate

        def broken(_: int) -> Any:
            raise EngineError("The model is gone. Put it back.")

        scripted.regenerate = broken
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "The model is gone" in said(app) and not app.main.sending)
        await until(pilot, lambda: shown(app) == ["hello", "Hello **there**."])
        scripted.regenerate = working


async def test_y_copies_the_message_and_a_number_one_block_of_its_code(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    scripted.engine.script = ["Look:\n\n```python\nx = 1\n```\n\nand\n\n```\n\ty = 2\n```\n"]
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "code", until)
        bubble.focus()
        await pilot.press("y")
        assert app.clipboard == bubble.raw
        assert "1–2" in said(app)
        await pilot.press("2")
        await until(pilot, lambda: app.clipboard == "\ty = 2")
        await pilot.press("3")
        await until(pilot, lambda: "no block of code number 3" in said(app))
        row = next(y for y, line in enumerate(str(bubble.body.render()).split("\n")) if "copy" in line)
        column = str(bubble.body.render()).split("\n")[row].index("copy")
        await pilot.click(bubble.body, offset=(column + 2, row))
        await until(pilot, lambda: app.clipboard == "x = 1")
        app.main.query(Question).first().focus()
        await pilot.press("y")
        assert app.clipboard == "code"


async def test_why_shows_what_stood_behind_the_reply_and_switches_a_hint_off(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    hint = scripted.hints.add("Two sentences at most")
    async with app.run_test(size=(80, 24)) as pilot:
        bubble = await say(pilot, app, "hello", until)
        bubble.focus()
        await pilot.press("w")
        await until(pilot, lambda: isinstance(app.screen, WhyScreen))
        await pilot.pause()
        page = "\n".join(str(widget.render()) for widget in app.screen.query("Static"))
        for words in ("1 hint of yours", "Scripted", "the base model wrote it", "temperature", "3 tokens read"):
            assert words in page
        await pilot.press("space")
        await until(pilot, lambda: not scripted.hints.list())
        await pilot.press("space")
        await until(pilot, lambda: [one.id for one in scripted.hints.list()] == [hint.id])
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)
        scripted.hints.remove(hint.id)
        await pilot.press("w")
        await until(pilot, lambda: isinstance(app.screen, WhyScreen))
        assert "1 hint of yours stood in the prompt   1 was removed since" in drawing.text(app)


async def test_the_judges_mark_says_why_and_a_thumb_overrules_it(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        await say(pilot, app, "that was far too long", until)
        first = app.main.transcript.replies()[0]
        scripted.store.signals.add(
            first.message_id, "judge", -1, hint="Shorter, please", probabilities={"bad": 0.9, "good": 0.1}
        )
        await app.main.renew()
        await until(pilot, lambda: foot(first).startswith("▼"))
        first.focus()
        await until(pilot, lambda: "says the judge, 90% sure" in foot(first))
        assert "because you went on: “that was far too long”" in foot(first)
        assert "“Shorter, please”" in foot(first)
        await pilot.press("+")
        await until(pilot, lambda: foot(first).startswith("▲"))
        assert "marked by you" in foot(first)


async def test_walking_without_other_versions_says_what_makes_one(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        bubble.focus()
        await pilot.press("]")
        await until(pilot, lambda: "one version only" in said(app))


async def test_asking_again_from_a_reply_stays_among_the_messages(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        (await say(pilot, app, "one", until)).focus()
        await pilot.press("r")
        await until(pilot, lambda: scripted.engine.asked.count("one") == 2 and not app.main.sending)
        await until(pilot, lambda: "2/2" in foot(app.main.transcript.replies()[0]))
        await until(pilot, lambda: app.main.transcript.replies()[0].has_focus)
        await pilot.press("left")
        await until(pilot, lambda: "1/2" in foot(app.main.transcript.replies()[0]))
        assert app.main.composer.text == ""


async def test_what_was_written_in_place_of_a_message_that_is_out_of_sight_is_not_lost(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        app.main.action_edit()
        await until(pilot, lambda: app.main.query(Editor))
        app.main.query_one(Editor).text = "as I want it"
        app.main.composer.text = "begun"
        await app.main.transcript.query("Question, Bubble").remove()
        app.main.query_one(Editor).focus()
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.main.composer.text == "begun\nas I want it")
        assert len(scripted.messages(app.main.chat_id)) == 2


TALL = "A line of its own.\n\n" * 12


async def test_up_and_down_reach_every_message_of_a_chat_taller_than_the_screen(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        for words in ("one", "two", "three"):
            scripted.engine.script = [TALL] if words == "two" else ["short"]
            await say(pilot, app, words, until)
        await pilot.press("tab")
        reached = [app.focused]
        for _ in range(12):
            await pilot.press("up")
            await pilot.pause()
            assert app.focused.region.overlaps(app.main.transcript.region), "what is in focus is in sight"
            if app.focused is not reached[-1]:
                reached.append(app.focused)
        drawn = app.main.transcript._messages()
        assert reached == drawn[::-1]
        for _ in range(12):
            await pilot.press("down")
            await pilot.pause()
        assert app.focused is drawn[-1]


async def test_asking_again_in_a_chat_taller_than_the_screen_stays_on_the_reply(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        for words in ("one", "two", "three"):
            scripted.engine.script = [TALL]
            await say(pilot, app, words, until)
        await pilot.press("tab", "e")
        await until(pilot, lambda: app.main.query(Editor))
        await pilot.press("x", "ctrl+s")
        await until(pilot, lambda: isinstance(app.focused, Bubble) and "2/2" in foot(app.focused))
        scripted.engine.script, scripted.engine.pause_s = ["word "] * 20, 0.08
        for number in (3, 4):
            await pilot.press("r")
            await until(pilot, lambda number=number: scripted.engine.asked.count("three") == number - 1)
            await until(pilot, lambda: app.main.live is not None and app.main.live.text)
            assert shown(app)[-2] == "three", "the reply before is out of sight while another one comes"
            await until(pilot, lambda: not app.main.sending)
            await until(pilot, lambda number=number: f"{number}/{number}" in foot(app.main.transcript.replies()[-1]))
            await until(pilot, lambda: app.main.transcript.replies()[-1].has_focus)
        await pilot.press("left")
        await until(pilot, lambda: isinstance(app.focused, Bubble) and "3/4" in foot(app.focused))


async def test_your_own_version_says_that_you_wrote_it(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        await pilot.press("f3")
        await until(pilot, lambda: app.main.query(Editor))
        await pilot.press("x", "ctrl+s")
        await until(pilot, lambda: isinstance(app.focused, Bubble) and "2/2" in foot(app.focused))
        assert "your version" in foot(app.focused) and "base model" not in foot(app.focused)
        await pilot.press("w")
        await until(pilot, lambda: isinstance(app.screen, WhyScreen) and app.screen.query(".fact"))
        page = " ".join(str(widget.render()) for widget in app.screen.query("Static"))
        assert "Written by you" in page and "base model" not in page
        await pilot.press("escape", "left")
        await until(pilot, lambda: isinstance(app.focused, Bubble) and "1/2" in foot(app.focused))
        assert "you corrected it" in foot(app.focused) and "base model" in foot(app.focused)
        await pilot.press("r")
        await until(pilot, lambda: "3/3" in foot(app.main.transcript.replies()[0]))
        await pilot.press("left", "left")
        await until(pilot, lambda: isinstance(app.focused, Bubble) and "1/3" in foot(app.focused))
        assert "you corrected it" in foot(app.focused), "a correction says more than that another reply was asked for"


async def test_keys_on_a_question_mean_the_reply_to_it_which_the_dialog_names(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        scripted.engine.script = ["The first reply."]
        first = await say(pilot, app, "one", until)
        scripted.engine.script = ["The second reply."]
        await say(pilot, app, "two", until)
        app.main.query(Question).first().focus()
        await pilot.press("h")
        await until(pilot, lambda: isinstance(app.screen, AskLine))
        assert "“The first reply.”" in str(app.screen.query("Static").first().render())
        assert "for every chat" in str(app.screen.query(".dialog-keys").first().render())
        assert "also marks the reply as bad (▼)" in str(app.screen.query("Static").first().render())
        await pilot.press(*"Two sentences at most", "enter")
        await until(pilot, lambda: first.hint == "Two sentences at most" and first.score == -1)
        await until(pilot, lambda: "holds in every chat" in said(app))
        app.main.query(Question).first().focus()
        await pilot.press("plus")
        await until(pilot, lambda: first.score == 1)
        await pilot.pause(1.1 * BURST_S)  # Quicker, they would be writing.
        await pilot.press("minus")
        await until(pilot, lambda: "Marked as bad" in said(app) and "Marked as good" not in said(app))


async def test_a_hint_leaves_the_thumb_as_it_was(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        await pilot.press("ctrl+g")
        await until(pilot, lambda: bubble.score == 1)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, AskLine) and app.screen.query(Input))
        assert "Your mark ▲ on it stays" in str(app.screen.query("Static").first().render())
        await pilot.press("escape")
        app.main.composer.text = "/hint Be brief"
        await pilot.press("enter")
        await until(pilot, lambda: bubble.hint == "Be brief")
        assert bubble.score == 1
        bubble.focus()
        await until(pilot, lambda: "▲  good, marked by you  “Be brief”" in foot(bubble))
        assert [hint.text for hint in scripted.hints.list()] == ["Be brief"]


async def test_the_same_thumb_again_takes_it_back(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        scripted.store.signals.add(bubble.message_id, "judge", 0)
        for key, score in (("ctrl+g", 1), ("ctrl+b", -1)):
            await pilot.press(key)
            await until(pilot, lambda score=score: bubble.score == score)
        await pilot.press("ctrl+b")
        await until(pilot, lambda: bubble.thumb == "" and bubble.score == 0)
        assert "Your mark is taken back." in said(app)
        assert [one.source for one in scripted.signals([bubble.message_id])[bubble.message_id]] == ["judge"]
        await pilot.press("ctrl+b")
        await until(pilot, lambda: bubble.thumb == "▼")


async def test_it_is_asked_once_whether_a_mark_with_a_hint_is_taken_back(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        app.main.composer.text = "/hint Be brief"
        await pilot.press("enter")
        await until(pilot, lambda: bubble.hint == "Be brief")
        in_one_go(app, "", "ctrl+b", "ctrl+b")
        await until(pilot, lambda: isinstance(app.screen, Confirm) and not app.gate.shut)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)


async def test_a_mark_with_a_hint_is_taken_back_after_a_question(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        app.main.composer.text = "/hint Be brief"
        await pilot.press("enter")
        await until(pilot, lambda: bubble.hint == "Be brief")
        for answer in ("escape", "y"):
            bubble.focus()
            await pilot.press("minus")
            await until(pilot, lambda: isinstance(app.screen, Confirm))
            assert "“Be brief”" in drawing.text(app)
            await pilot.press(answer)
            await until(pilot, lambda: app.screen is app.main)
            if answer == "escape":
                assert [hint.text for hint in scripted.hints.list()] == ["Be brief"]
        await until(pilot, lambda: bubble.thumb == "" and bubble.hint == "")
        await until(pilot, lambda: "and the hint with it" in said(app))
        assert scripted.hints.list() == []


async def test_asking_again_that_is_stopped_at_once_leaves_the_reply_as_it_was(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    scripted.learn.on()
    async with app.run_test() as pilot:
        first = await say(pilot, app, "hello", until)
        scripted.engine.script = []
        answered = scripted.engine.generate

        def waits(prompt: Any, sampling: Any, *, cancel: Any = None) -> Any:
            generation, __ = answered(prompt, sampling, cancel=cancel)

            def pieces() -> Any:
                cancel.wait(20)
                generation.finish_reason = "cancelled"
                yield from ()

            return generation, pieces()

        scripted.engine.generate = waits
        first.focus()
        await pilot.press("r")
        await until(pilot, lambda: app.main.live and app.main.live.reply)
        await pilot.press("escape")
        await until(pilot, lambda: not app.main.sending and shown(app) == ["hello", "Hello **there**."])
        await until(pilot, lambda: app.main.focused is app.main.transcript.replies()[0])
        assert "◂" not in foot(app.main.transcript.replies()[0])
        assert len(scripted.messages(app.main.chat_id)) == 2
        assert scripted.versions(first.message_id) == [first.message_id]
        assert scripted.signals([first.message_id])[first.message_id] == []


async def test_a_question_said_otherwise_comes_back_with_the_up_key(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "one", until)
        app.main.query(Question).first().focus()
        await pilot.press("e")
        await until(pilot, lambda: app.main.query(Editor))
        await pilot.press("!", "enter")
        await until(pilot, lambda: shown(app) == ["one!", "Hello **there**."] and not app.main.sending)
        await until(pilot, lambda: app.main.composer._sent[-1:] == ["one!"])
        app.main.composer.focus()
        await until(pilot, lambda: app.main.composer.has_focus)
        await pilot.press("up")
        assert app.main.composer.text == "one!"


async def test_the_words_below_a_reply_can_be_clicked_on(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        bubble = await say(pilot, app, "hello", until)
        bubble.focus()
        await until(pilot, lambda: "- bad" in foot(bubble))
        line = next(y for y, words in enumerate(foot(bubble).split("\n")) if "- bad" in words)
        column = foot(bubble).split("\n")[line].index("- bad")
        below = bubble.query_one(".foot")
        await until(pilot, lambda: below.region.height > 1 + line)  # Drawn with what it says now.
        await pilot.pause(0.2)
        await pilot.click(below, offset=(column + 2, line))
        await until(pilot, lambda: bubble.score == -1)


async def test_what_the_mouse_selected_is_copied_and_said(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        app.screen.selections = {bubble.body: SELECT_ALL}
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "Copied." in said(app))
        assert "Hello there." in app.clipboard


async def test_ctrl_home_and_ctrl_end_go_to_the_ends_of_a_correction(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        await pilot.press("f3")
        await until(pilot, lambda: app.main.query(Editor) and app.main.query_one(Editor).has_focus)
        editor = app.main.query_one(Editor)
        editor.text = "one\ntwo"
        await pilot.press("ctrl+end")
        assert editor.cursor_location == (1, 3)
        await pilot.press("ctrl+home")
        assert editor.cursor_location == (0, 0)


async def test_a_second_hint_on_a_reply_changes_the_first(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        bubble.focus()
        await pilot.press("h")
        await until(pilot, lambda: isinstance(app.screen, AskLine) and app.screen.query(Input))
        await pilot.press(*"no lists", "enter")
        await until(pilot, lambda: bubble.hint == "no lists" and app.screen is app.main)
        await until(pilot, lambda: "holds in every chat" in said(app))
        (first,) = scripted.hints.list()
        await pilot.press("h")
        await until(pilot, lambda: isinstance(app.screen, AskLine) and app.screen.query(Input))
        assert "Your mark ▼ on it stays" in str(app.screen.query("Static").first().render())
        await until(pilot, lambda: app.screen.query_one(Input).selected_text == "no lists")
        assert "changes the hint" in str(app.screen.query_one(".dialog-keys").render())
        await pilot.press(*"shorter", "enter")
        await until(pilot, lambda: bubble.hint == "shorter")
        assert [(one.id, one.text) for one in scripted.store.hints.every()] == [(first.id, "shorter")]


@pytest.mark.parametrize(
    ("learning", "truth"),
    [(True, "the example that learning takes for the reply it corrects"), (False, "teaches nothing yet")],
)
async def test_keeping_why_and_a_mark_say_the_same_of_ones_own_text(
    app: ClawApp, scripted: Any, until: Until, learning: bool, truth: str
) -> None:
    (scripted.learn.on if learning else scripted.learn.off)()
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        await pilot.press("f3")
        await until(pilot, lambda: app.main.query(Editor) and app.main.query_one(Editor).has_focus)
        await pilot.press("x", "ctrl+s")
        await until(pilot, lambda: "Your version is kept." in said(app) and truth in said(app))
        await until(pilot, lambda: isinstance(app.focused, Bubble) and "2/2" in foot(app.focused))
        await pilot.press("w")
        await until(pilot, lambda: isinstance(app.screen, WhyScreen) and app.screen.query(".fact"))
        assert truth in " ".join(str(widget.render()) for widget in app.screen.query("Static"))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)
        await pilot.press("ctrl+g")
        mark = "A mark on your own text teaches nothing."
        await until(pilot, lambda: any(mark in line and truth in line for line in said(app).splitlines()))


async def test_a_mark_says_what_it_teaches_and_a_correction_what_becomes_of_it(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        await pilot.press("ctrl+g")
        await until(pilot, lambda: "It teaches nothing yet: this reply was written while learning was off" in said(app))
        scripted.learn.on()
        bubble = await say(pilot, app, "and now", until)
        await pilot.press("ctrl+g")
        await until(pilot, lambda: ": Marked as good." in said(app).splitlines())
        scripted.learn.off()
        await pilot.press("ctrl+g")
        await until(pilot, lambda: "taken back" in said(app))
        await pilot.press("ctrl+g")
        await until(pilot, lambda: "Marked as good. Learning is off: it teaches once that is on" in said(app))
        assert bubble.score == 1
        await pilot.press("f3")
        await until(pilot, lambda: app.main.query(Editor))
        await pilot.press("x", "ctrl+s")
        await until(pilot, lambda: "shows ▼ now, in place of your ▲. For learning, your ▲ is still" in said(app))
        score, _ = combine(scripted.store.signals.of([bubble.message_id])[bubble.message_id])
        assert score == 1, "as it was said"
