"""The list of chats, and everything that is done to chats and replies. The model is a script here: see conftest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from claw_app.app import ClawApp
from claw_app.commands import COMMANDS, key_names
from claw_app.screens.ask import AskLine, AskText, Confirm
from claw_app.screens.help import Help
from claw_app.widgets.bubbles import Bubble, Question
from claw_app.widgets.top_bar import TopBar
from claw_app.widgets.welcome import Welcome

Until = Callable[..., Any]


async def say(pilot: Any, app: ClawApp, words: str, until: Until) -> Bubble:
    app.main.composer.text = words
    await pilot.press("enter")
    await until(pilot, lambda: not app.main.sending and app.main.transcript.replies())
    return app.main.transcript.replies()[-1]


def headings(app: ClawApp) -> list[str]:
    return [str(option.prompt) for option in app.main.chats.options if option.disabled]


async def test_the_list_shows_from_100_columns_on_and_ctrl_o_toggles_it(app: ClawApp, until: Until) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        assert not app.main.chats.display
        await pilot.press("ctrl+o")
        assert app.main.chats.display
        assert app.main.chats.has_focus
        await pilot.press("ctrl+o")
        assert not app.main.chats.display
        assert app.main.composer.has_focus


async def test_a_wide_terminal_has_the_list_open(app: ClawApp) -> None:
    async with app.run_test(size=(120, 36)):
        assert app.main.chats.display


async def test_chats_are_listed_newest_first_and_opened_with_enter(app: ClawApp, until: Until) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        await say(pilot, app, "first question", until)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.main.query(Welcome))
        assert str(app.main.query_one(Welcome).render()).startswith("A new chat")
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


async def test_a_chat_is_deleted_only_after_a_yes(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.main)
        assert len(scripted.chats()) == 1
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: scripted.chats() == [])
        await until(pilot, lambda: app.main.query(Welcome))


async def test_a_chat_is_deleted_while_its_reply_streams(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.script, scripted.engine.pause_s = ["word "] * 1000, 0.01
    async with app.run_test() as pilot:
        app.main.composer.text = "hello"
        await pilot.press("enter")
        await until(pilot, lambda: app.main.live and app.main.live.text)
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: scripted.chats() == [] and not app.main.sending)
        assert not app._notifications


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


async def test_letters_act_on_the_focused_reply_and_only_there(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        first = await say(pilot, app, "one", until)
        second = await say(pilot, app, "two", until)
        second.focus()
        await pilot.press("k")
        assert first.has_focus
        await pilot.press("+")
        await until(pilot, lambda: first.score == 1)
        assert second.score is None
        await pilot.press("escape")
        assert app.main.composer.has_focus
        await pilot.press("-", "?", "h", "e", "y")
        assert app.main.composer.text == "-?hey"


async def test_a_hint_is_kept_and_shown_on_the_reply(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, AskLine))
        app.screen.query_one("Input").value = "Two sentences at most"
        await pilot.press("enter")
        await until(pilot, lambda: bubble.hint == "Two sentences at most")
        assert [hint.text for hint in scripted.hints.list()] == ["Two sentences at most"]
        bubble.focus()
        await pilot.pause()
        foot = str(bubble.query_one(".foot").render())
        assert "▼" in foot
        assert "Two sentences at most" in foot


async def test_an_edited_reply_takes_its_place(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        await pilot.press("f3")
        await until(pilot, lambda: isinstance(app.screen, AskText))
        app.screen.query_one("TextArea").insert("Ahoy! ")
        await pilot.press("ctrl+s")
        await until(
            pilot, lambda: [bubble.raw for bubble in app.main.transcript.replies()] == ["Ahoy! Hello **there**."]
        )


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
        assert "Learning is on" in str(app.main.query_one(Welcome).render())
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
        page = "\n".join(str(widget.render()) for widget in app.screen.query("Static"))
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


async def test_a_long_chat_draws_its_end_and_brings_the_rest_on_request(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    chat = scripted.new_chat(title="long")
    for number in range(40):
        assert scripted.ask(f"question {number}", chat=chat.id).text
    async with app.run_test() as pilot:
        await until(pilot, app.main.chats.titles)
        await app.main.open_chat(chat.id)
        assert len(app.main.transcript.replies()) == 15
        app.main.query_one("#earlier").press()
        await until(pilot, lambda: len(app.main.transcript.replies()) == 30)
        app.main.query_one("#earlier").press()
        await until(pilot, lambda: len(app.main.transcript.replies()) == 40)
        assert not app.main.query("#earlier")
        assert [str(q.render()) for q in app.main.query(Question)][:2] == ["question 0", "question 1"]
