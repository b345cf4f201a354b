"""Keys and words that act on the chat or version one sees. The model is a script here: see conftest."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len

from claw_app.app import ClawApp
from claw_app.burst import BURST_S
from claw_app.screens.export import Export
from claw_app.widgets.bubbles import Bubble, Question
from claw_app.widgets.undo_line import UndoLine
from tests.app import drawing
from tests.app.driving import Until, said, say, shown


def under_cursor(app: ClawApp) -> str:
    chat_id = app.main.chats.under_cursor()
    return app.main.chats.title_of(chat_id) if chat_id is not None else ""


async def test_after_a_copy_the_cursor_of_the_list_is_on_the_copy(app: ClawApp, scripted: Any, until: Until) -> None:
    for title in ("eggs", "bread", "milk"):
        scripted.new_chat(title=title)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, app.main.chats.titles)
        await pilot.press("ctrl+o", "down", "c")
        await until(pilot, lambda: app.main.chat_id is not None and len(scripted.chats()) == 4)
        await until(pilot, lambda: app.main.chats.under_cursor() == app.main.chat_id)
        copy = app.main.chat_id
        await pilot.pause(1.1 * BURST_S)  # Quicker, they would be writing.
        await pilot.press("d")
        await until(pilot, lambda: len(scripted.chats()) == 3)
        assert copy not in [chat.id for chat in scripted.chats()]


async def test_the_list_is_entered_at_the_open_chat(app: ClawApp, scripted: Any, until: Until) -> None:
    open_one = [scripted.new_chat(title=title) for title in ("eggs", "bread", "milk")][1]
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main.chats.titles)
        await pilot.press("ctrl+o")
        assert under_cursor(app) == "milk", "with none of them open, the first"
        await app.main.go_to(open_one.id)
        assert under_cursor(app) == "bread"
        await pilot.press("down", "ctrl+o", "ctrl+o")
        assert under_cursor(app) == "bread"
        scripted.history.archive(open_one.id)
        await app.main.refresh_chats()
        await pilot.press("ctrl+o", "ctrl+o")
        assert under_cursor(app) == "" and app.main.chats.highlighted_option.id == "archive"


async def test_from_an_incognito_chat_the_list_has_a_cursor(app: ClawApp, scripted: Any, until: Until) -> None:
    chat = scripted.new_chat(title="eggs")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main._ready.is_set)
        await app.main.go_to(chat.id)
        await pilot.press("f12")
        await until(pilot, lambda: app.main.incognito)
        await pilot.press("ctrl+o")
        await pilot.press("enter")
        await until(pilot, lambda: app.main.chat_id == chat.id and not app.main.incognito)


async def test_walking_from_a_question_stays_on_the_question(app: ClawApp, scripted: Any, until: Until) -> None:
    first = scripted.ask("one")
    scripted.ask("two", chat=first.chat_id)
    question = scripted.messages(first.chat_id)[2].id
    scripted.edit_question(question, "two!").answer  # noqa: B018
    async with app.run_test() as pilot:
        await until(pilot, app.main._ready.is_set)
        await app.main.go_to(first.chat_id)
        await until(pilot, lambda: shown(app)[2:3] == ["two!"])
        app.main.query(Question).last().focus()
        await pilot.pause()
        had: list[object] = []

        def note(widget: object) -> None:
            had.append(widget)

        app.main.watch(app.main, "focused", note, init=False)
        for key, words in (("left", "two"), ("right", "two!"), ("left", "two")):
            await pilot.press(key)
            await until(pilot, lambda words=words: shown(app)[2:3] == [words])
            await until(pilot, lambda: app.main.focused is app.main.query(Question).last())
        # Not even for a moment is it on the reply above, where the next key would go.
        assert had and not any(isinstance(widget, Bubble) for widget in had), had


async def test_a_click_on_an_arrow_walks_to_the_version_on_that_side(app: ClawApp, scripted: Any, until: Until) -> None:
    first = scripted.ask("one")
    scripted.engine.script = ["Another."]
    scripted.regenerate(first.message_id).answer  # noqa: B018
    question = scripted.messages(first.chat_id)[0].id
    scripted.engine.script = ["A third."]
    scripted.edit_question(question, "two").answer  # noqa: B018

    def place(arrow: str, nth: int) -> tuple[int, int]:
        drawn = drawing.lines(app)
        found = [(line.index(arrow), y) for y, line in enumerate(drawn) if arrow in line]
        return found[nth] if len(found) > nth else (-1, -1)

    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main._ready.is_set)
        await app.main.go_to(first.chat_id)

        async def click(arrow: str, nth: int, *, then: list[str]) -> None:
            await until(pilot, lambda: place(arrow, nth)[0] >= 0)
            await pilot.click(offset=place(arrow, nth))
            await until(pilot, lambda: shown(app) == then)

        await until(pilot, lambda: shown(app) == ["two", "A third."])
        await click("◂ 2/2", 0, then=["one", "Another."])  # of the question
        await click("◂ 2/2", 0, then=["one", "Hello **there**."])  # of the reply
        x, y = place("1/2 ▸", 1)
        await pilot.click(offset=(x + 4, y))
        await until(pilot, lambda: shown(app) == ["one", "Another."])
        await pilot.click(offset=place("◂ 1/2", 0))  # there is none before
        x, y = place("1/2 ▸", 0)
        await pilot.click(offset=(x + 4, y))
        await until(pilot, lambda: shown(app) == ["two", "A third."])
        await pilot.press("escape", *"on")
        assert app.main.composer.text == "on", "it goes on hearing the keyboard"


async def test_walking_while_a_version_is_written_says_to_wait(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        first = await say(pilot, app, "hello", until)
        scripted.engine.script, scripted.engine.pause_s = ["word "] * 1000, 0.01
        first.focus()
        await pilot.press("r")
        await until(pilot, lambda: app.main.live and app.main.live.text)
        await pilot.press("left")
        await until(pilot, lambda: "still being written" in said(app))
        assert "one version" not in said(app)
        app.main.action_stop()
        await until(pilot, lambda: not app.main.sending)


async def test_a_long_title_never_hides_how_to_undo(app: ClawApp, scripted: Any, until: Until) -> None:
    title = "卵 and a very long title " * 8
    chat = scripted.new_chat(title=title)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main._ready.is_set)
        await app.main.go_to(chat.id)
        await app.main.run_action("export_chat")
        await until(pilot, lambda: isinstance(app.screen, Export))
        await until(pilot, lambda: "“卵 and a very long title" in drawing.text(app))
        assert "“卵 and a very long title" in str(app.screen.query("RadioButton").first().label)
        await pilot.press("escape", "f8")
        line = app.main.query_one(UndoLine)
        await until(pilot, lambda: line.display and line.region.width)
        drawn = str(line.render())
        assert drawn.startswith("Deleted “卵 and") and drawn.endswith("…”   Ctrl+Z undoes")
        assert cell_len(drawn) <= line.content_size.width


async def test_the_status_of_an_incognito_chat_says_that_it_does_not_teach(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    scripted.learn.on()
    async with app.run_test() as pilot:
        await until(pilot, lambda: "learning on" in str(app.main.status.render()))
        await pilot.press("f12")
        await until(pilot, lambda: app.main.incognito)
        words = str(app.main.status.render())
        assert "this chat does not teach" in words
        assert "learning on" not in words and "corrections" not in words
        await pilot.press("ctrl+n")
        await until(pilot, lambda: "learning on" in str(app.main.status.render()))


async def test_ctrl_z_undoes_archiving_too_and_says_when_there_is_nothing_left(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    for title in ("eggs", "bread", "milk"):
        scripted.new_chat(title=title)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, app.main.chats.titles)
        await pilot.press("ctrl+o", "d")
        await until(pilot, lambda: len(app.main.chats.titles()) == 2)
        await pilot.pause(1.1 * BURST_S)  # Quicker, they would be writing.
        await pilot.press("a")
        await until(pilot, lambda: [chat.title for chat in scripted.chats(archived=True)] == ["bread"])
        line = app.main.query_one(UndoLine)
        await until(pilot, lambda: "Archived “bread”" in str(line.render()) and line.display)
        await pilot.press("ctrl+z")
        await until(pilot, lambda: [chat.title for chat in scripted.chats()] == ["bread", "eggs"])
        await until(pilot, lambda: "Deleted “milk”" in str(line.render()) and line.display)
        await pilot.press("ctrl+z")
        await until(pilot, lambda: len(scripted.chats()) == 3 and not line.display)
        await app.main.run_action("undo_delete")
        await until(pilot, lambda: "There is no deleted chat to bring back." in said(app))
