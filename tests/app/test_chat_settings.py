"""Settings of one chat. The model is a script here: see conftest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.geometry import Region
from textual.screen import Screen
from textual.widgets import Input, Select, Switch, TextArea
from textual.widgets._select import SelectCurrent

from claw_app.app import ClawApp
from claw_app.screens.chat_settings import FIELDS, ChatSettings, allowed, number
from claw_local.settings import SamplingSettings

Until = Callable[..., Any]


async def open_settings(pilot: Any, app: ClawApp, until: Until) -> None:
    await until(pilot, app.main._ready.is_set)
    await pilot.press("f6")
    await until(pilot, lambda: isinstance(app.screen, ChatSettings) and app.screen.query(Select))


def field(app: ClawApp, name: str) -> Input:
    return next(entry for entry in app.screen.query("Input.number").results(Input) if entry.name == name)


def help_line(app: ClawApp) -> str:
    return str(app.screen.query_one("#settings-help").render())


def test_every_sampling_setting_has_a_field_with_its_range() -> None:
    assert set(FIELDS) == set(SamplingSettings.model_fields)
    assert {name: allowed(name) for name in FIELDS} == {
        "temperature": "0 to 5",
        "max_tokens": "1 or more",
        "top_p": "over 0 to 1",
        "top_k": "0 or more",
        "min_p": "0 to 1",
        "repeat_penalty": "1 to 3",
    }


def test_numbers_are_read_as_people_write_them() -> None:
    assert number("temperature", " 0,5 ") == 0.5
    assert number("top_k", "20") == 20
    assert number("top_k", "") is None
    for name, text in (("temperature", "6"), ("top_k", "1.5"), ("min_p", "nan"), ("max_tokens", "many")):
        with pytest.raises(ValueError, match=name):
            number(name, text)


async def test_what_is_chosen_is_kept_with_the_chat_and_used_for_its_replies(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    chat = scripted.new_chat(title="eggs")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main._ready.is_set)
        await app.main.go_to(chat.id)
        await open_settings(pilot, app, until)
        field(app, "temperature").value = "0.2"
        app.screen.query_one(TextArea).text = "Answer like a cook."
        app.screen.query_one(Switch).value = False
        await pilot.press("ctrl+s")
        await until(pilot, lambda: scripted.chat(chat.id).sampling == {"temperature": 0.2})
        kept = scripted.chat(chat.id)
        assert (kept.system, kept.learn, kept.model) == ("Answer like a cook.", False, "")
        await until(pilot, lambda: "never teaches" in str(app.main.top.query_one("#special").render()))
        app.main.composer.text = "how long?"
        await pilot.press("enter")
        await until(pilot, lambda: not app.main.sending and app.main.transcript.replies())
        assert scripted.messages(chat.id)[1].sampling["temperature"] == 0.2


async def test_a_value_out_of_range_is_said_at_once_and_not_taken(app: ClawApp, scripted: Any, until: Until) -> None:
    chat = scripted.new_chat(title="eggs")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main._ready.is_set)
        await app.main.go_to(chat.id)
        await open_settings(pilot, app, until)
        field(app, "temperature").focus()
        await pilot.press("9")
        await until(pilot, lambda: help_line(app).startswith("Temperature is 0 to 5"))
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert isinstance(app.screen, ChatSettings)
        assert scripted.chat(chat.id).sampling == {}
        await pilot.press("backspace", "1", "ctrl+s")
        await until(pilot, lambda: scripted.chat(chat.id).sampling == {"temperature": 1.0})


async def test_letters_are_no_number_and_the_switch_says_in_a_word_where_it_stands(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main._ready.is_set)
        await open_settings(pilot, app, until)
        assert str(app.screen.query_one("#teaches").render()).startswith("on: ")
        app.screen.query_one(Switch).toggle()
        await until(pilot, lambda: str(app.screen.query_one("#teaches").render()).startswith("off: "))
        field(app, "temperature").focus()
        await pilot.press(*"abc", "ctrl+s")
        await until(pilot, lambda: help_line(app).startswith("Temperature is 0 to 5"))
        assert isinstance(app.screen, ChatSettings) and app.main.pending is None


async def test_a_model_may_call_itself_what_it_likes(app: ClawApp, scripted: Any, until: Until) -> None:
    chat = scripted.new_chat(title="eggs")
    scripted.store.chats.update(chat.id, model="openai:[/b] [red]m")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main._ready.is_set)
        await app.main.go_to(chat.id)
        await open_settings(pilot, app, until)
        shown = app.screen.query_one(SelectCurrent).query_one("#label")
        await until(pilot, lambda: str(shown.render()) == "openai:[/b] [red]m")


async def test_it_is_laid_out_once_before_it_is_seen(app: ClawApp, until: Until) -> None:
    seen: list[list[Region]] = []
    display = app._display

    def displayed(screen: Screen[Any], update: Any) -> None:
        if update is not None and isinstance(screen, ChatSettings) and screen.query(".dialog-keys"):
            seen.append([widget.region for widget in screen.query("#chat-settings, Static, Select, Switch")])
        display(screen, update)

    async with app.run_test(size=(80, 24)) as pilot:
        app._display = displayed  # type: ignore[method-assign]
        await open_settings(pilot, app, until)
        await until(pilot, lambda: seen and app.screen.query_one("#chat-settings").region.width > 72)
        await pilot.pause(0.2)
        assert all(regions == seen[-1] for regions in seen)


async def test_esc_without_a_change_closes_at_once(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await open_settings(pilot, app, until)
        await pilot.press("tab", "escape")
        await until(pilot, lambda: app.screen is app.main)


async def test_esc_asks_once_where_something_was_changed_and_keeps_nothing(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    chat = scripted.new_chat(title="eggs", system="Be brief.")
    async with app.run_test() as pilot:
        await until(pilot, app.main._ready.is_set)
        await app.main.go_to(chat.id)
        await open_settings(pilot, app, until)
        assert app.screen.query_one(TextArea).text == "Be brief."
        app.screen.query_one(TextArea).text = "Be long."
        await pilot.press("escape")
        await until(pilot, lambda: help_line(app).startswith("Not kept yet"))
        app.screen.query_one(TextArea).text = "Be longer."
        await pilot.press("escape")
        assert isinstance(app.screen, ChatSettings), "what was changed since is asked about too"
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)
        assert scripted.chat(chat.id).system == "Be brief."


async def test_a_new_chat_begins_with_what_was_chosen_for_it(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await open_settings(pilot, app, until)
        field(app, "top_k").value = "5"
        app.screen.query_one(TextArea).text = "Rhyme."
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen is app.main)
        assert scripted.chats() == []
        app.main.composer.text = "hello"
        await pilot.press("enter")
        await until(pilot, lambda: not app.main.sending and app.main.chat_id)
        chat = scripted.chat(app.main.chat_id)
        assert (chat.system, chat.sampling, chat.title) == ("Rhyme.", {"top_k": 5}, "hello")
        await app.main.go_to(None)
        app.main.composer.text = "plain again"
        await pilot.press("enter")
        await until(pilot, lambda: not app.main.sending and app.main.chat_id != chat.id)
        assert scripted.chat(app.main.chat_id).sampling == {}


async def test_the_models_of_this_machine_can_be_chosen_and_any_other_typed(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    chat = scripted.new_chat(title="eggs")
    async with app.run_test() as pilot:
        await until(pilot, app.main._ready.is_set)
        await app.main.go_to(chat.id)
        await open_settings(pilot, app, until)
        app.screen.query_one("#other-model", Input).value = "ollama:qwen3"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: scripted.chat(chat.id).model == "ollama:qwen3")
        await open_settings(pilot, app, until)
        assert app.screen.query_one("#model", Select).value == "ollama:qwen3"


@pytest.fixture
def adapters(scripted: Any, tmp_path: Path) -> tuple[int, int]:
    """Two adapters of the model in use, whose files exist: a named one that is not in use, and the one in use."""
    ids = []
    for name, state in (("work", "retired"), ("", "active")):
        file = tmp_path / f"{state}.gguf"
        file.write_bytes(b"GGUF")
        record = scripted.store.adapters.add(
            parent_id=0, model_sha256="0" * 64, architecture="llama", gguf_path=str(file), state=state
        )
        ids.append(int(record.id))
        if name:
            scripted.adapters.rename(record.id, name)
    return ids[0], ids[1]


def special(app: ClawApp) -> str:
    return str(app.main.top.query_one("#special").render())


async def choose_adapter(pilot: Any, app: ClawApp, until: Until, value: str) -> list[str]:
    """What there is to choose from, after one of it was chosen."""
    await open_settings(pilot, app, until)
    select = app.screen.query_one("#adapter", Select)
    await until(pilot, lambda: value in [option for _, option in select._options])
    offered = [str(words) for words, _ in select._options]
    select.value = value
    await pilot.press("ctrl+s")
    await until(pilot, lambda: app.screen is app.main)
    return offered


async def test_a_chat_keeps_to_the_adapter_that_is_chosen_for_it(
    app: ClawApp, scripted: Any, adapters: tuple[int, int], until: Until
) -> None:
    work, in_use = adapters
    chat = scripted.new_chat(title="eggs")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main._ready.is_set)
        await app.main.go_to(chat.id)
        offered = await choose_adapter(pilot, app, until, str(work))
        assert offered == [
            "The one in use",
            "None: the base model",
            f"adapter {in_use}, in use",
            f"adapter {work} “work”",
        ]
        await until(pilot, lambda: scripted.chat(chat.id).adapter_id == work)
        await until(pilot, lambda: f"adapter {work}" in special(app))
        await choose_adapter(pilot, app, until, "base")
        await until(pilot, lambda: scripted.chat(chat.id).adapter_id == 0)
        await until(pilot, lambda: "base model" in special(app))
        app.main.composer.text = "how long?"
        await pilot.press("enter")
        await until(pilot, lambda: not app.main.sending and app.main.transcript.replies())
        assert scripted.messages(chat.id)[1].adapter_id == 0, "the base wrote it, though an adapter is in use"
        await choose_adapter(pilot, app, until, "")
        await until(pilot, lambda: scripted.chat(chat.id).adapter_id is None)


async def test_a_new_chat_begins_with_the_adapter_that_was_chosen_and_one_that_is_gone_harms_nothing(
    app: ClawApp, scripted: Any, adapters: tuple[int, int], until: Until
) -> None:
    work, _ = adapters
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main._ready.is_set)
        await choose_adapter(pilot, app, until, "base")
        await until(pilot, lambda: "base model" in special(app))
        app.main.composer.text = "hello"
        await pilot.press("enter")
        await until(pilot, lambda: not app.main.sending and app.main.chat_id)
        chat_id = app.main.chat_id
        assert scripted.chat(chat_id).adapter_id == 0
        await choose_adapter(pilot, app, until, str(work))
        await until(pilot, lambda: scripted.chat(chat_id).adapter_id == work)
        scripted.adapters.remove(work)
        scripted.store.chats.update(chat_id, adapter_id=work)
        await open_settings(pilot, app, until)
        field(app, "top_k").value = "7"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: scripted.chat(chat_id).sampling == {"top_k": 7})
