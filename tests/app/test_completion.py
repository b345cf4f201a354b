"""Completion: files after `@`, commands after a slash, and what Enter, Tab and Esc do while the list is open."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from claw_app.app import ClawApp
from claw_app.commands import COMMANDS, WORDS, slash_commands
from claw_app.widgets.completion import Offer
from claw_app.widgets.completion_files import MOST, find, token_before, tokens_in
from tests.app.driving import in_one_go, said, say

Until = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a few files in it; `~` is a folder beside it."""
    here = tmp_path / "here"
    made = "here/src/main.py here/README.md here/réseau.txt here/.secret home/mine.txt".split()
    for path in [*made, "here/my docs/a.md"]:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("text", "utf-8")
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    return here


def paths(typed: str) -> list[str]:
    return [hit.path for hit in find(typed)]


def test_folders_come_first_and_hidden_files_only_when_asked_for(folder: Path) -> None:
    assert paths("") == ["my docs/", "src/", "README.md", "réseau.txt"]
    assert paths(".") == [".secret"]


def test_letters_in_order_are_enough_and_the_closest_comes_first(folder: Path) -> None:
    assert paths("rdm") == ["README.md"]
    assert paths("RÉS") == ["réseau.txt"]
    (folder / "x-readme").write_text("", "utf-8")
    assert paths("readme") == ["README.md", "x-readme"]


def test_only_the_typed_folder_is_looked_into(folder: Path) -> None:
    assert paths("main") == []
    assert paths("src/m") == ["src/main.py"]
    assert paths("~/") == ["~/mine.txt"]
    assert paths("~") == ["~/mine.txt"]
    assert "../home/" in paths("../h")
    assert paths(f"{folder}/READ") == [f"{folder.as_posix()}/README.md"]
    assert paths("gone/x") == []


def test_a_folder_of_20_000_files_is_looked_through_quickly(tmp_path: Path) -> None:
    for number in range(20_000):
        (tmp_path / f"photo-{number:05}.jpg").touch()
    started = time.perf_counter()
    hits = find(f"{tmp_path.as_posix()}/19999")
    assert time.perf_counter() - started < 1.0
    assert [hit.name for hit in hits] == ["photo-19999.jpg"]
    assert len(find(f"{tmp_path.as_posix()}/")) == MOST


def test_a_path_begins_after_a_space_or_a_bracket_never_inside_a_word() -> None:
    for text, typed in [("@no", "no"), ("see @", ""), ("(@a/b", "a/b"), ('x @"my docs/a', "my docs/a")]:
        token = token_before(text)
        assert token is not None and token.typed == typed
    for text in ("me@example.org", "no", "@a b", "@@a"):
        assert token_before(text) is None
    assert tokens_in('Read @a.md, (@b/c) and @"d e.md". me@x.org') == [
        ("@a.md", "a.md"),
        ("@b/c", "b/c"),
        ('@"d e.md"', "d e.md"),
    ]


async def test_tab_goes_into_folders_also_with_a_space_in_their_name(app: ClawApp, until: Until, folder: Path) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press(*"@my")
        await until(pilot, lambda: composer._completions is not None and composer._completions.is_open)
        await pilot.press("tab")
        assert composer.text == '@"my docs/'
        await until(pilot, lambda: [o.file.path for o in composer._completions.offers] == ["my docs/a.md"])
        await pilot.press("tab")
        await until(pilot, lambda: composer.text == "[my docs/a.md · 4 characters] ")
        assert app.focused is composer


async def test_esc_closes_the_list_and_arrows_walk_in_it(app: ClawApp, until: Until, folder: Path) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press("@")
        await until(pilot, lambda: composer._completions is not None and composer._completions.is_open)
        completions = composer._completions
        await pilot.press("down", "down", "up")
        assert completions.chosen.file.path == "src/"
        await pilot.press("escape")
        assert not completions.is_open and composer.text == "@"
        await pilot.press("up")
        assert composer.text == "@"


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_list_stands_above_the_field_inside_the_screen(
    app: ClawApp, until: Until, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        composer = app.main.composer
        await pilot.press("/")
        await until(pilot, lambda: composer._completions is not None and composer._completions.region.height > 2)
        await pilot.pause()
        region = composer._completions.region
        assert region.bottom == composer.region.y
        assert region.y >= 0
        assert region.right <= size[0]


def test_every_command_has_a_slash_name_of_its_own() -> None:
    names = [command.slash for command in COMMANDS]
    assert len(names) == len(set(names))
    assert all(name.replace("-", "").isalpha() and name.islower() for name in names)
    assert {"new", "rename", "learn", "help", "theme", "quit"} <= set(names)
    assert set(WORDS) <= {command.action for command in COMMANDS}


def test_slash_commands_are_found_by_beginnings_best_first() -> None:
    assert slash_commands("ren")[0].slash == "rename"
    assert slash_commands("learn")[0].slash == "learn"
    assert [command.slash for command in slash_commands("")] == [command.slash for command in COMMANDS]
    assert slash_commands("zzz") == []


async def test_a_slash_command_runs_and_leaves_nothing_in_the_field(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        await pilot.press(*"/hel", "enter")
        await until(pilot, lambda: type(app.screen).__name__ == "Help")
        assert app.main.composer.text == ""


async def test_enter_takes_the_command_that_was_walked_to(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press(*"/th")
        await until(pilot, lambda: composer._completions is not None and composer._completions.is_open)
        assert [offer.command.slash for offer in composer._completions.offers][:2] == ["theme", "themes"]
        await pilot.press("down", "enter")
        await until(pilot, lambda: type(app.screen).__name__ == "CommandPalette")


async def test_words_after_a_command_are_carried_out(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: not app.main.sending and app.main.chat_id is not None)
        await pilot.press(*"/rename Trees and rivers", "enter")
        await until(pilot, lambda: scripted.chat(app.main.chat_id).title == "Trees and rivers")
        await pilot.press(*"/learn on", "enter")
        await until(pilot, lambda: scripted.learn.enabled)
        await pilot.press(*"/learn off", "enter")
        await until(pilot, lambda: not scripted.learn.enabled)
        await pilot.press(*"/hint at most two sentences", "enter")
        await until(pilot, lambda: [hint.text for hint in scripted.hints.list()] == ["at most two sentences"])


async def test_unknown_commands_and_words_too_many_are_explained_and_kept(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        await pilot.press(*"/qqq", "enter")
        await until(pilot, lambda: any("There is no command /qqq" in n.message for n in app._notifications))
        assert app.main.composer.text == "/qqq"
        app.main.composer.text = ""
        await pilot.press(*"/new york", "enter")
        await until(pilot, lambda: any("/new stands alone" in n.message for n in app._notifications))
        assert app.main.composer.text == "/new york"
        assert not scripted.engine.asked


async def test_enter_carries_out_what_stands_there_while_the_list_is_still_an_older_one(
    app: ClawApp, scripted: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = asyncio.Event()

    async def offers(action: str, words: str) -> list[Offer]:
        await late.wait()
        return []

    async with app.run_test() as pilot:
        reply = await say(pilot, app, "hello", until)
        monkeypatch.setattr(app.main, "_offers", offers)
        composer = app.main.composer
        for text, keys in (("/hint use no lists", ("enter",)), ("/rename Tea", ("tab", "enter"))):
            reply.focus()
            await until(pilot, lambda: app.focused is reply)
            in_one_go(app, text[:1])
            await until(pilot, lambda: composer._completions is not None and composer._completions.is_open)
            in_one_go(app, text[1:])
            await until(pilot, lambda text=text: text in composer._looked_up)
            assert composer._completions.is_open, "the commands are shown until the words are there"
            in_one_go(app, "", *keys)
            await until(pilot, lambda: composer.text == "")
        await until(pilot, lambda: [hint.text for hint in scripted.hints.list()] == ["use no lists"])
        await until(pilot, lambda: [chat.title for chat in scripted.chats()] == ["Tea"])
        assert "stands alone" not in said(app)
        late.set()


async def test_a_command_in_one_go_from_a_reply_is_the_one_that_was_typed(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        reply = await say(pilot, app, "hello", until)
        reply.focus()
        await until(pilot, lambda: app.focused is reply)
        in_one_go(app, "/hint Always answer in capitals", "enter")
        await until(pilot, lambda: [hint.text for hint in scripted.hints.list()] == ["Always answer in capitals"])
        reply.focus()
        await until(pilot, lambda: app.focused is reply)
        in_one_go(app, "/new york", "enter")
        await until(pilot, lambda: "/new stands alone" in said(app))
        assert app.main.composer.text == "/new york"
        app.main.composer.text = ""
        in_one_go(app, "/lea", "enter")
        await until(pilot, lambda: scripted.learn.enabled)


async def test_tab_and_enter_take_no_file_of_a_list_for_an_older_path(
    app: ClawApp, until: Until, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press("@")
        await until(pilot, lambda: composer._completions is not None and composer._completions.is_open)
        monkeypatch.setattr("claw_app.widgets.completing_area.find", lambda *_: time.sleep(0.3) or [])
        in_one_go(app, "READ", "tab")
        await pilot.pause(0.1)
        assert composer.text == "@READ" and composer.has_focus


async def test_two_slashes_and_paths_are_sent_as_text(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await pilot.press(*"//new is a command", "enter")
        await until(pilot, lambda: scripted.engine.asked)
        assert scripted.engine.asked[0] == "/new is a command"
        await until(pilot, lambda: not app.main.sending)
        await pilot.press(*"/etc/hosts?", "enter")
        await until(pilot, lambda: "/etc/hosts?" in scripted.engine.asked)


async def test_a_draft_that_comes_back_opens_no_list(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        composer.restore("/re")
        await pilot.pause(0.2)
        assert composer._completions is None
        await pilot.press("n")
        await until(pilot, lambda: composer._completions is not None and composer._completions.is_open)


def words(app: ClawApp) -> list[str]:
    """The words that the open list offers."""
    completions = app.main.composer._completions
    return [offer.word for offer in completions.offers] if completions is not None else []


async def test_the_palette_has_nothing_that_no_slash_command_does(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.new_chat(title="about eggs")
    titles = {command.title for command in COMMANDS}
    async with app.run_test() as pilot:
        await until(pilot, app.main.chats.titles)
        others = {command.title for command in app.get_system_commands(app.screen)} - titles
        assert others == {"Open: about eggs"}, "which /open does"
        await pilot.press("/")
        await until(pilot, lambda: app.main.composer._completions is not None)
        offered = [offer.command for offer in app.main.composer._completions.offers]
        assert offered == list(COMMANDS)


async def test_the_commands_that_take_words_are_those_that_say_so(app: ClawApp) -> None:
    async with app.run_test():
        assert set(app.main.with_words()) == set(WORDS)


async def test_words_behind_a_command_are_offered_and_taken(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        composer = app.main.composer
        await pilot.press(*"/learn ")
        await until(pilot, lambda: words(app) == ["on", "off", "now", "status", "pause", "resume"])
        await pilot.press("down", "tab")
        assert composer.text == "/learn off"
        await pilot.press("enter")
        await until(pilot, lambda: "Learning is off" in said(app))
        await pilot.press(*"/theme cont")
        await until(pilot, lambda: words(app) == ["claw-contrast"])
        await pilot.press("enter")
        await until(pilot, lambda: app.theme == "claw-contrast" and composer.text == "")
        await pilot.press(*"/theme ", "down", "down")
        await until(pilot, lambda: composer._completions.walked)
        walked_to = composer._completions.chosen.word
        await pilot.press("enter")
        await until(pilot, lambda: app.theme == walked_to)
        assert not scripted.engine.asked


async def test_enter_right_behind_a_command_runs_it_alone(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await pilot.press(*"/learn ")
        await until(pilot, lambda: words(app))
        await pilot.press("enter")
        await until(pilot, lambda: scripted.learn.enabled)


async def test_slash_open_goes_to_the_chat_whose_title_fits_best(
    app: ClawApp, scripted: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    eggs = scripted.new_chat(title="Boiling eggs")
    trees = scripted.new_chat(title="Trees")
    async with app.run_test() as pilot:
        await until(pilot, app.main.chats.titles)
        await pilot.press(*"/open egg")
        await until(pilot, lambda: words(app) == ["Boiling eggs"])
        await pilot.press("enter")
        await until(pilot, lambda: app.main.chat_id == eggs.id)
        monkeypatch.setattr("claw_app.screens.slash_words.TITLES_KNOWN_S", 0.0)
        twin = scripted.new_chat(title="Trees")  # As another program does.
        await pilot.press(*"/open tre")
        await until(pilot, lambda: words(app) == ["Trees", "Trees"])
        assert app.main.composer._completions is not None
        assert all(re.search(r"\d\d:\d\d", offer.about) for offer in app.main.composer._completions.offers)
        await pilot.press("up", "enter")
        await until(pilot, lambda: app.main.chat_id == trees.id)
        assert twin.id != trees.id, "what was walked to is opened, whatever else has its name"
        await pilot.press(*"/open bge", "enter")
        await until(pilot, lambda: "No chat is called anything like “bge”" in said(app))
        app.main.composer.text = ""
        await pilot.press(*"/open zzz", "enter")
        await until(pilot, lambda: "No chat is called anything like “zzz”" in said(app))


async def test_slash_model_names_what_answers_in_this_chat(
    app: ClawApp, scripted: Any, model_path: Path, until: Until
) -> None:
    chat = scripted.new_chat(title="eggs")
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await pilot.press(*"/model ollama:qwen3", "enter")
        await until(pilot, lambda: app.main.pending is not None and app.main.pending.model == "ollama:qwen3")
        await app.main.go_to(chat.id)
        await pilot.press(*"/model ")
        await until(pilot, lambda: "SmolLM2-135M-Instruct" in " ".join(words(app)) and words(app)[-1] == "default")
        smol = next(one for one in app.main.composer._completions.offers if "SmolLM2-135M" in one.word)  # type: ignore[union-attr]
        assert (smol.word not in smol.about and "MB" in smol.about) or "GB" in smol.about
        await pilot.press(*"smollm2", "enter")
        await until(pilot, lambda: scripted.chat(chat.id).model == str(model_path))
        await pilot.press(*"/model default", "enter")
        await until(pilot, lambda: scripted.chat(chat.id).model == "")
        await pilot.press(*"/model no-such-model", "enter")
        await until(pilot, lambda: "There is no model file no-such-model" in said(app))
        assert scripted.chat(chat.id).model == ""


async def test_slash_workspace_and_attach_complete_paths(app: ClawApp, folder: Path, until: Until) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await pilot.press(*"/workspace s")
        await until(pilot, lambda: "src/" in words(app))
        assert all(word.endswith("/") for word in words(app)), "folders only"
        app.main.composer.text = ""
        await pilot.press(*"/attach read")
        await until(pilot, lambda: any(word.lower().startswith("read") for word in words(app)))
        name = words(app)[0]
        await pilot.press("tab", "enter")
        await until(pilot, lambda: name in app.main.composer.text and not app.main.composer.text.startswith("/"))


async def test_what_other_programs_call_a_command_is_taken_too(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await pilot.press(*"/bye", "enter")
        await until(pilot, lambda: app.leaving)


async def test_slash_screenshot_saves_a_picture(
    app: ClawApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    monkeypatch.setattr("textual.app.user_downloads_path", lambda: tmp_path)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await pilot.press(*"/screenshot", "enter")
        await until(pilot, lambda: list(tmp_path.glob("claw-local*.svg")))
        await until(pilot, lambda: "Saved screenshot" in said(app))
        assert "New&#160;chat" in next(tmp_path.glob("claw-local*.svg")).read_text("utf-8")


@pytest.mark.parametrize("size", [(44, 12), (80, 24), (20, 5)])
async def test_the_list_leaves_the_field_in_sight(app: ClawApp, until: Until, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.loaded)
        await pilot.press("/")
        await until(pilot, lambda: app.main.query("Completions") and app.main.query_one("#completions").size)
        listed, field = app.main.query_one("#completions").region, app.main.composer.region
        assert listed.height and not listed.overlaps(field) and field.height
        assert len(app.main.query_one("#completions").offers) > 8  # type: ignore[attr-defined]
