"""Searching everything that was said. The model is a script here: see conftest."""

from __future__ import annotations

from typing import Any

from textual.widgets import OptionList

from claw_app.app import ClawApp
from claw_app.screens.search import Search, unmarked
from claw_app.widgets.bubbles import Bubble, Question
from tests.app.driving import Until, said, shown


def results(app: ClawApp) -> list[str]:
    if not isinstance(app.screen, Search):
        return []
    return [str(option.prompt) for option in app.screen.query_one(OptionList).options]


def state(app: ClawApp) -> str:
    return str(app.screen.query_one("#search-state").render())


async def open_search(pilot: Any, app: ClawApp, until: Until) -> None:
    await until(pilot, app.main._ready.is_set)
    await pilot.press("f7")
    await until(pilot, lambda: isinstance(app.screen, Search))


async def test_results_come_while_typing_and_say_where_who_and_when(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.store.chats.update(scripted.ask("how do I boil an egg").chat_id, title="Kitchen [b]")
    async with app.run_test(size=(120, 36)) as pilot:
        await open_search(pilot, app, until)
        await pilot.press(*"boi")
        await until(pilot, lambda: len(results(app)) == 1)
        head, line, *_ = results(app)[0].splitlines()
        assert head.startswith("Kitchen [b]")
        assert "Today" in head
        assert line.startswith("You: ")
        assert "boil an egg" in line
        assert state(app) == "1 message"
        await pilot.press(*"xyz")
        await until(pilot, lambda: "Nothing was said" in state(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)


async def test_enter_goes_to_the_message_also_far_up_in_a_long_chat(app: ClawApp, scripted: Any, until: Until) -> None:
    chat = scripted.new_chat(title="long")
    parent = None
    for number in range(300):
        role = "assistant" if number % 2 else "user"
        text = "the needle is here" if number == 40 else f"straw {number}"
        parent = scripted.store.messages.add(chat.id, role, text, parent_id=parent)
    async with app.run_test(size=(80, 24)) as pilot:
        await open_search(pilot, app, until)
        await pilot.press(*"needle")
        await until(pilot, lambda: len(results(app)) == 1)
        await pilot.press("enter")
        await until(pilot, lambda: app.main.chat_id == chat.id and app.main.query(".-found"))
        await until(pilot, lambda: in_view(app, app.main.query_one(".-found")))
        assert str(app.main.query_one(".-found", Question).render()) == "the needle is here"


def in_view(app: ClawApp, widget: Any) -> bool:
    return bool(widget.region) and app.main.transcript.region.contains_region(widget.region)


async def test_a_message_on_another_branch_is_shown_too(app: ClawApp, scripted: Any, until: Until) -> None:
    first = scripted.ask("tell me")
    scripted.engine.script = ["something else"]
    assert scripted.regenerate(first.message_id).answer.text == "something else"
    async with app.run_test() as pilot:
        await open_search(pilot, app, until)
        await pilot.press(*"Hello")
        await until(pilot, lambda: len(results(app)) == 1)
        await pilot.press("enter")
        await until(pilot, lambda: app.main.query(".-found"))
        assert app.main.query_one(".-found", Bubble).message_id == first.message_id


async def test_an_archived_chat_is_found_and_a_deleted_one_is_not(app: ClawApp, scripted: Any, until: Until) -> None:
    archived, deleted = scripted.ask("umbrella one").chat_id, scripted.ask("umbrella two").chat_id
    scripted.history.archive(archived)
    scripted.history.delete(deleted)
    async with app.run_test() as pilot:
        await open_search(pilot, app, until)
        await pilot.press(*"umbrella")
        await until(pilot, lambda: len(results(app)) == 1)
        assert "umbrella one" in results(app)[0]
        await pilot.press("enter")
        await until(pilot, lambda: app.main.chat_id == archived)


async def test_the_filter_hands_its_words_on_when_no_title_will_do(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.store.chats.update(scripted.ask("where is my umbrella").chat_id, title="Lost things")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, app.main.chats.titles)
        await pilot.press("ctrl+o", "slash", *"umbrella", "enter")
        await until(pilot, lambda: len(results(app)) == 1)


async def test_escape_sequences_in_what_was_found_are_taken_out(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.ask("needle \x1b[31mred\x1b[0m \x07")
    async with app.run_test() as pilot:
        await open_search(pilot, app, until)
        await pilot.press(*"needle")
        await until(pilot, lambda: len(results(app)) == 1)
        assert not any(ord(letter) < 32 for letter in results(app)[0].replace("\n", ""))


async def test_slash_search_takes_its_words_along(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.store.chats.update(scripted.ask("where is my umbrella").chat_id, title="Lost things")
    async with app.run_test() as pilot:
        await until(pilot, app.main._ready.is_set)
        app.main.composer.text = "/search umbrella"
        await pilot.press("enter")
        await until(pilot, lambda: len(results(app)) == 1)


async def test_a_hit_on_another_version_is_shown_and_said(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.script = ["An umbrella."]
    first = scripted.ask("What keeps rain off?")
    scripted.engine.script = ["A roof."]
    _ = scripted.regenerate(first.message_id).answer
    async with app.run_test() as pilot:
        await until(pilot, app.main._ready.is_set)
        await app.main.go_to(first.chat_id)
        await until(pilot, lambda: shown(app) == ["What keeps rain off?", "A roof."])
        await app.main.go_to(first.chat_id, app.main.transcript.replies()[0].message_id)
        assert "another version" not in said(app), "it is on the branch that is shown"
        await open_search(pilot, app, until)
        await pilot.press(*"umbrella")
        await until(pilot, lambda: len(results(app)) == 1)
        await pilot.press("enter")
        await until(pilot, lambda: shown(app) == ["What keeps rain off?", "An umbrella."])
        assert "another version of the chat" in said(app)


def test_the_signs_of_markdown_are_left_out_of_what_was_found() -> None:
    text, marks = unmarked("# Fruit\nEat a **ripe mango** or `x = 2**3`.", [(21, 26)])
    assert text == "Fruit\nEat a ripe mango or x = 2**3."
    assert [text[start:end] for start, end in marks] == ["mango"]


async def test_a_reply_is_found_without_its_signs(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.ask("hello")
    async with app.run_test(size=(120, 36)) as pilot:
        await open_search(pilot, app, until)
        await pilot.press(*"there")
        await until(pilot, lambda: results(app) and "Assistant: Hello there." in results(app)[0])
