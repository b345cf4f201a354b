"""The list of chats, and everything that is done to chats and replies. The model is a script here: see conftest."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from textual.command import CommandList, CommandPalette
from textual.widgets import Static

from claw_app.app import ClawApp
from claw_app.commands import COMMANDS, key_names
from claw_app.screens.ask import AskLine
from claw_app.screens.export import Export
from claw_app.screens.help import Help
from claw_app.screens.replies import _no_effect
from claw_app.widgets.bubbles import Question
from claw_app.widgets.top_bar import TopBar
from claw_app.widgets.welcome import Welcome
from claw_local.errors import EngineError
from claw_local.store.records import GivenChat, GivenMessage
from tests.app import drawing
from tests.app.driving import Until, foot, said, say, send


def listed(app: ClawApp) -> list[str]:
    return [str(option.prompt) for option in app.main.chats.options if not option.disabled]


def headings(app: ClawApp) -> list[str]:
    return [str(option.prompt) for option in app.main.chats.options if option.disabled]


async def test_the_list_shows_from_100_columns_on_and_ctrl_o_toggles_it(app: ClawApp, until: Until) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        assert not app.main.sidebar.display
        await pilot.press("ctrl+o")
        assert app.main.sidebar.display
        assert app.main.chats.has_focus
        await pilot.press("ctrl+o")
        assert not app.main.sidebar.display
        assert app.main.composer.has_focus


async def test_a_wide_terminal_has_the_list_open_and_the_last_line_says_what_ctrl_o_does_next(
    app: ClawApp, until: Until
) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        assert app.main.sidebar.display
        await until(pilot, lambda: "^o To chats" in drawing.text(app))
        await pilot.press("ctrl+o")
        await until(pilot, lambda: app.main.chats.has_focus and "^o Hide chats" in drawing.text(app))
        await pilot.press("ctrl+o")
        await until(pilot, lambda: app.main.composer.has_focus and "^o Chats" in drawing.text(app))
        await pilot.press("ctrl+o")
        await until(pilot, lambda: app.main.chats.has_focus and app.main.sidebar.display)


async def test_the_title_under_the_cursor_can_be_read_to_its_end(app: ClawApp, scripted: Any, until: Until) -> None:
    long = "How do I keep the tomatoes from rotting on the balcony in July"
    scripted.new_chat(title=long)
    scripted.new_chat(title="Thirty letters are no trouble.")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main.chats.titles)
        await pilot.press("ctrl+o")
        whole = app.main.query_one("#whole-title")
        await until(pilot, lambda: "Thirty letters are no trouble." in drawing.text(app))
        assert not whole.display
        await pilot.press("down")
        await until(pilot, lambda: whole.display and "July" in drawing.text(app))
        assert str(whole.render()) == long
        await pilot.press("escape")
        await until(pilot, lambda: not whole.display)


async def test_chats_are_listed_newest_first_and_opened_with_enter(app: ClawApp, until: Until) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        await say(pilot, app, "first question", until)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.main.query(Welcome))
        assert app.main.query_one(Welcome).text.startswith("A new chat")
        await say(pilot, app, "second question", until)
        assert [title for _, title in app.main.chats.titles()] == ["second question", "first question"]
        assert headings(app) == ["Today"]
        await pilot.press("ctrl+o", "down", "enter")
        await until(pilot, lambda: [str(q.render()) for q in app.main.query(Question)] == ["first question"])
        assert app.main.composer.has_focus


async def test_a_title_with_markup_or_escapes_is_shown_as_text(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.new_chat(title="[red]a[/] \x1b[2Jb")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, app.main.chats.titles)
        assert app.main.chats.titles()[0][1] == "[red]a[/] b"


async def test_a_chat_is_renamed(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, AskLine))
        await pilot.press("end", "!", "enter")
        await until(pilot, lambda: scripted.chats()[0].title == "hello!")
        await until(pilot, lambda: app.main.chats.titles()[0][1] == "hello!")


async def test_the_filter_finds_titles_with_letters_left_out_and_enter_opens_the_best(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    for title in ("Boiling eggs", "[red]Paris[/] in spring", "Bread for beginners"):
        scripted.new_chat(title=title)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, app.main.chats.titles)
        await pilot.press("ctrl+o", "slash", *"begn")
        await until(pilot, lambda: listed(app) == ["Bread for beginners", "Search the messages …"])
        await pilot.press(*["backspace"] * 4, *"prs")
        await until(pilot, lambda: listed(app) == ["[red]Paris[/] in spring", "Search the messages …"])
        await pilot.press("enter")
        await until(pilot, lambda: str(app.main.top.query_one("#title").render()) == "[red]Paris[/] in spring")
        assert app.main.composer.has_focus
        assert len(app.main.chats.titles()) == 3
        await until(pilot, lambda: len(listed(app)) == 3)


async def test_esc_in_the_filter_shows_every_chat_again(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.new_chat(title="eggs")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main.chats.titles)
        await pilot.press("ctrl+o", "slash", *"zzz")
        await until(pilot, lambda: listed(app) == ["Search the messages …"])
        await pilot.press("escape")
        await until(pilot, lambda: listed(app) == ["eggs"])
        assert app.main.chats.has_focus


async def test_a_filter_that_could_take_forever_is_answered_at_once(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.new_chat(title="ab" * 40)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, app.main.chats.titles)
        started = time.perf_counter()
        app.main.chats.narrow("a" * 20)
        assert time.perf_counter() - started < 0.2
        assert listed(app) == ["Search the messages …"]


async def test_an_archived_chat_leaves_the_list_and_is_there_on_demand(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        await say(pilot, app, "keep", until)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.main.chat_id is None)
        await say(pilot, app, "put away", until)
        await until(pilot, lambda: listed(app) == ["put away", "keep"])
        await app.main.run_action("archive_chat")
        await until(pilot, lambda: listed(app) == ["keep", "▸ Archived  1"])
        assert [chat.title for chat in scripted.chats(archived=True)] == ["put away"]
        await until(pilot, lambda: "archived" in str(app.main.top.query_one("#special").render()))
        app.main.chats.focus()
        await pilot.press("end", "enter")
        await until(pilot, lambda: listed(app) == ["keep", "▾ Archived  1", "put away"])
        await pilot.press("home", "a")
        await until(pilot, lambda: "All chats are archived" in headings(app))
        await pilot.press("end", "a")
        await until(pilot, lambda: "▾ Archived  1" in listed(app) and len(scripted.chats()) == 1)
        await pilot.press("end", "a")
        await until(pilot, lambda: listed(app) == ["put away", "keep"])


async def test_a_copy_goes_on_by_itself(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        reply = await say(pilot, app, "hello", until)
        first = app.main.chat_id
        scripted.store.signals.add(reply.message_id, "thumb", -1, hint="shorter")
        await app.main.run_action("duplicate_chat")
        await until(pilot, lambda: app.main.chat_id != first and app.main.query(Question))
        await until(pilot, lambda: app.main.transcript.replies() and "▼" in foot(app.main.transcript.replies()[0]))
        await pilot.press("ctrl+g")
        await until(pilot, lambda: "Marked as good. It teaches nothing: this reply is a copy" in said(app))
        assert "▲" in foot(app.main.transcript.replies()[0])
        assert scripted.store.signals.of([reply.message_id])[reply.message_id][0].score == -1
        await say(pilot, app, "only here", until)
        assert len(scripted.messages(first)) == 2
        assert [message.content for message in scripted.messages(app.main.chat_id)][::2] == ["hello", "only here"]


async def test_chats_are_written_to_a_file_which_is_never_replaced_unasked(
    app: ClawApp, scripted: Any, until: Until, tmp_path: Path
) -> None:
    scripted.new_chat(title="another")
    async with app.run_test(size=(120, 36)) as pilot:
        await say(pilot, app, "How are you?", until)
        await app.main.run_action("export_chat")
        await until(pilot, lambda: isinstance(app.screen, Export))
        field = app.screen.query_one("#export-path")
        assert field.value.endswith("how-are-you.md")
        target = tmp_path / "kept.md"
        target.write_text("mine")
        field.value = str(target)
        await pilot.press("enter")
        await until(pilot, lambda: "is there already" in str(app.screen.query_one("#export-problem").render()))
        assert target.read_text() == "mine"
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.main)
        assert "Hello **there**." in target.read_text()
        assert target.stat().st_mode & 0o077 == 0
        await app.main.run_action("export_chat")
        await until(pilot, lambda: isinstance(app.screen, Export))
        field = app.screen.query_one("#export-path")
        field.value = str(tmp_path / "nowhere" / "x.md")
        await pilot.press("enter")
        await until(pilot, lambda: "There is no folder" in str(app.screen.query_one("#export-problem").render()))
        for nowhere in ("x" * 300, "~nobody-has-this-name/x.md"):
            app.screen.query_one("#export-problem", Static).update("")
            field.value = nowhere
            await pilot.press("enter")
            await until(pilot, lambda: "could not be written" in str(app.screen.query_one("#export-problem").render()))
        app.screen.query_one("RadioSet").query("RadioButton").last().value = True
        await pilot.pause()
        field.value = str(tmp_path)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.main)
        written = json.loads((tmp_path / "claw-local-chats.json").read_text())
        assert len(written["chats"]) == 2


async def test_a_new_chat_gets_its_title_after_the_first_exchange_only(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    asked = []

    def write_title(chat_id: int, *, cancel: threading.Event) -> str:
        asked.append(chat_id)
        scripted.rename_chat(chat_id, "Greetings")
        return "Greetings"

    scripted.write_title = write_title
    async with app.run_test(size=(120, 36)) as pilot:
        await say(pilot, app, "hello", until)
        await until(pilot, lambda: str(app.main.top.query_one("#title").render()) == "Greetings")
        await say(pilot, app, "again", until)
        await pilot.pause(0.05)
        assert asked == [app.main.chat_id]


async def test_the_next_message_stops_the_title(app: ClawApp, scripted: Any, until: Until) -> None:
    stopped = threading.Event()

    def write_title(chat_id: int, *, cancel: threading.Event) -> None:
        if cancel.wait(10):
            stopped.set()

    scripted.write_title = write_title
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        assert not stopped.is_set()
        await say(pilot, app, "again", until)
        await until(pilot, stopped.is_set)


async def test_a_first_message_that_fails_leaves_no_chat_behind(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.render = lambda *_, **__: (_ for _ in ()).throw(EngineError("It does not fit. Shorten it."))
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        app.main.composer.text = "too long"
        await pilot.press("enter")
        await until(pilot, lambda: app.main.composer.text == "too long" and not app.main.sending)
        assert scripted.chats() == []
        assert app.main.chat_id is None
        assert "It does not fit. Shorten it." in said(app)


async def test_no_key_means_two_things() -> None:
    keys = [key for command in COMMANDS for key in f"{command.keys},{command.letters}".split(",") if key]
    assert sorted(keys) == sorted(set(keys))


async def test_thumbs_work_while_typing_and_show_a_mark(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        await pilot.press("ctrl+g")
        await until(pilot, lambda: bubble.score == 1)
        await pilot.press("ctrl+b")
        await until(pilot, lambda: bubble.score == -1)
        active = [
            signal for signal in scripted.signals([bubble.message_id])[bubble.message_id] if signal.state == "active"
        ]
        assert [(signal.source, signal.score) for signal in active] == [("thumb", -1)]
        assert app.main.composer.text == ""


async def test_a_hint_is_kept_and_shown_on_the_reply(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, AskLine) and app.screen.query("Input"))
        app.screen.query_one("Input").value = "Two sentences at most"
        await pilot.press("enter")
        await until(pilot, lambda: bubble.hint == "Two sentences at most")
        assert [hint.text for hint in scripted.hints.list()] == ["Two sentences at most"]
        bubble.focus()
        await pilot.pause()
        foot = str(bubble.query_one(".foot").render())
        assert "▼" in foot
        assert "Two sentences at most" in foot


async def test_a_verdict_of_the_judge_appears_on_its_reply(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        signal = scripted.store.signals.add(bubble.message_id, "judge", 1, judge_version="test")
        app.main._hear(signal)
        await until(pilot, lambda: bubble.score == 1)
        assert str(bubble.query_one(".foot").render()).startswith("▲")


async def test_without_a_reply_a_thumb_says_so(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        await pilot.press("ctrl+g")
        await until(pilot, lambda: app._notifications)
        assert "no reply" in next(iter(app._notifications)).message


async def test_the_switch_and_the_key_turn_learning_on_and_off(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.state)
        await pilot.press("ctrl+l")
        await until(pilot, lambda: app.main.query_one("#learning").value)
        assert scripted.learn.enabled
        assert "learning on" in str(app.main.status.render())
        assert "Learning is on" in app.main.query_one(Welcome).text
        await pilot.click("#learning")
        await until(pilot, lambda: not scripted.learn.enabled)
        await until(pilot, lambda: "learning off" in str(app.main.status.render()))


async def test_another_program_turning_learning_on_is_noticed(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.state)
        scripted.learn.on()
        await until(pilot, lambda: app.main.query_one(TopBar).query_one("#learning").value, 5)


async def test_learn_now_with_nothing_to_learn_says_so(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.state)
        await pilot.press("f5")
        await until(pilot, lambda: app._notifications)
        assert "Learning is off" in next(iter(app._notifications)).message
        assert app.main.stop_learning is None


async def test_help_lists_every_command(app: ClawApp, until: Until) -> None:
    async with app.run_test(size=(100, 60)) as pilot:
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, Help))
        await pilot.pause()
        page = " ".join(" ".join(str(widget.render()) for widget in app.screen.query("Static")).split())
        for command in COMMANDS:
            assert command.help in page
            assert key_names(command) in page
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)
        app.main.set_focus(None)
        await pilot.press("?")
        await until(pilot, lambda: isinstance(app.screen, Help))


async def test_the_palette_offers_every_command_and_every_chat(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.new_chat(title="about eggs")
    async with app.run_test() as pilot:
        await until(pilot, app.main.chats.titles)
        offered = [command.title for command in app.get_system_commands(app.screen)]
        assert {command.title for command in COMMANDS} <= set(offered)
        assert "Open: about eggs" in offered
        helps = {command.title: command.help for command in app.get_system_commands(app.screen)}
        assert helps["New chat"] == "Begin a new chat (Ctrl+N)"


async def test_the_palette_takes_a_title_as_it_was_said(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.new_chat(title="what is [/b] in [bold]BBCode[/bold]")
    async with app.run_test() as pilot:
        await until(pilot, app.main.chats.titles)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))
        await pilot.press(*"open")
        listed = app.screen.query_one(CommandList)
        await until(pilot, lambda: any("what is" in str(option.prompt) for option in listed.options))
        assert any("what is [/b] in [bold]BBCode[/bold]" in str(option.prompt) for option in listed.options)


async def test_a_palette_that_is_closed_while_it_looks_for_commands_ends_nothing(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))
        palette = app.screen
        assert isinstance(palette, CommandPalette)
        listed = palette.query_one(CommandList)
        await pilot.press("escape")
        await until(pilot, lambda: not palette.is_attached and not palette.query(CommandList))
        # What its worker does with what it found in the same moment.
        palette._refresh_command_list(listed, [], False)
        palette._list_visible = not palette._list_visible
        await pilot.pause()
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))


async def test_every_command_has_its_action(app: ClawApp) -> None:
    async with app.run_test():
        for command in COMMANDS:
            owner, _, name = command.action.rpartition(".")
            assert hasattr(app if owner else app.main, f"action_{name}"), command.action


async def test_both_themes_are_there_and_f9_changes_between_them(app: ClawApp) -> None:
    async with app.run_test() as pilot:
        assert app.theme == "claw-dark"
        await pilot.press("f9")
        assert app.theme == "claw-light"
        await pilot.press("f9")
        assert app.theme == "claw-dark"


async def test_a_chat_of_ten_thousand_messages_opens_within_a_second(app: ClawApp, scripted: Any, until: Until) -> None:
    chat = scripted.new_chat(title="long")
    moment = "2026-01-01T00:00:00.000000+00:00"
    row = {"chat_id": chat.id, "state": "done", "turn_type": "main", "learn": 1, "created_at": moment}
    prompt = bytes(4 * 2000)  # Each reply keeps its prompt's tokens: none of them is needed to show it.
    rows = [
        {
            **row,
            "id": number,
            "parent_id": number - 1 or None,
            "role": "user" if number % 2 else "assistant",
            "content": f"message {number} " + "with **words** " * 20,
            "prompt_ids": None if number % 2 else prompt,
        }
        for number in range(1, 10_001)
    ]
    with scripted.store.database.write() as db:
        db.table("messages").insert_all(rows)
        db.table("chats").update(chat.id, {"head_id": 10_000})
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, app.main._ready.is_set)
        times = []
        for _ in range(3):
            await app.main.go_to(None)
            started = time.perf_counter()
            await app.main.go_to(chat.id)
            times.append(time.perf_counter() - started)
        assert min(times) < 1.0
        assert app.main.transcript.replies()[-1].message_id == 10_000
        await app.main.go_to(chat.id, 5_001)
        await until(pilot, lambda: app.main.query(".-found"))
        assert app.main.query_one(".-found", Question).message_id == 5_001


async def test_export_takes_a_path_and_asks_before_it_replaces(
    app: ClawApp, scripted: Any, until: Until, tmp_path: Path
) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        await say(pilot, app, "How are you?", until)
        read, again = tmp_path / "x.md", tmp_path / "x.json"
        for target in (read, again):
            await send(pilot, app, f"/export {target}")
            await until(pilot, lambda target=target: target.exists() and app.screen is app.main)
            await until(pilot, lambda target=target: f"1 chat to {target}" in said(app))
        assert "Hello **there**." in read.read_text()
        assert len(json.loads(again.read_text())["chats"]) == 1
        read.write_text("mine")
        await send(pilot, app, f"/export {read}")
        await until(pilot, lambda: isinstance(app.screen, Export) and app.screen.query("#export-problem"))
        await until(pilot, lambda: "is there already" in str(app.screen.query_one("#export-problem").render()))
        await pilot.pause(0.1)
        assert read.read_text() == "mine" and app.screen.query_one("#export-problem").display
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.main)
        assert "Hello **there**." in read.read_text()


async def test_undo_with_nothing_to_undo_is_no_error(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        await send(pilot, app, "/undo")
        await until(pilot, lambda: ": There is nothing to undo in this chat." in said(app).splitlines())


async def test_of_an_imported_reply_it_is_said_why_it_teaches_nothing(scripted: Any) -> None:
    given = GivenMessage("b", "a", "assistant", "There.")
    asked = GivenMessage("a", None, "user", "Where?")
    chat = GivenChat("elsewhere", "1", "t", (asked, given))
    scripted.store.trees.put([chat], learn=True)
    (reply,) = [one for one in scripted.messages(scripted.chats()[0].id) if one.role == "assistant"]
    assert _no_effect(scripted, reply.id) == "It teaches nothing: this reply was imported."
