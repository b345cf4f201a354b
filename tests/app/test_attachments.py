"""Attached files: which can be attached, how they stand in the field, and that they are not the person's words."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual import events

from claw_app.app import ClawApp
from claw_app.attachments import LARGEST_BYTES, folded, read
from claw_app.widgets.bubbles import Question
from claw_app.widgets.chips import Chips
from claw_app.widgets.completion_files import find, is_file
from claw_local.errors import UsageError
from claw_local.signals.attached import Attachment, compose, own_words

Until = Callable[..., Any]


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a text file, which is the current one."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.md").write_text("Never use lists.\n````\nmilk\n", "utf-8")
    monkeypatch.chdir(folder)
    return folder


def test_a_text_file_is_read_and_cleaned(notes: Path) -> None:
    (notes / "b.txt").write_bytes(b"\xef\xbb\xbfred\x1b[31m\r\nline\x00"[:-1])
    assert read("b.txt") == Attachment("b.txt", "red\nline")
    (notes / "wide.txt").write_text("日本語", "utf-16")
    assert read("wide.txt").text == "日本語"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("big.log", b"x" * (LARGEST_BYTES + 1), "larger than 1 MB"),
        ("photo.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF", "not a text file"),
        ("zeros.txt", b"a\0b", "not a text file"),
        ("empty.txt", b" \n", "is empty"),
    ],
)
def test_what_is_no_readable_text_is_refused_in_a_sentence(notes: Path, name: str, content: bytes, says: str) -> None:
    (notes / name).write_bytes(content)
    with pytest.raises(UsageError, match=says) as refused:
        read(name)
    assert name in str(refused.value)


def test_folders_missing_files_and_pipes_are_refused_without_waiting(notes: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        read(str(notes))
    with pytest.raises(UsageError, match=r"There is no file gone\.txt"):
        read("gone.txt")
    if hasattr(os, "mkfifo"):
        os.mkfifo(notes / "pipe")
        with pytest.raises(UsageError, match="pipe"):
            read("pipe")
    with pytest.raises(UsageError, match="cannot be read"):
        read("a\0b")


async def test_a_completed_path_becomes_a_label_and_goes_out_fenced(
    app: ClawApp, scripted: Any, until: Until, notes: Path
) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press(*"Sum up @no")
        await until(pilot, lambda: composer._completions is not None and composer._completions.is_open)
        await pilot.press("enter")
        await until(pilot, lambda: "characters]" in composer.text)
        assert composer.text == "Sum up [notes.md · 27 characters] "
        await pilot.press("enter")
        await until(pilot, lambda: scripted.engine.asked)
        sent = scripted.engine.asked[0]
        assert sent == "Sum up @notes.md\n\n`````attached notes.md\nNever use lists.\n````\nmilk\n`````"
        assert own_words(sent) == "Sum up @notes.md"
        shown = str(app.main.query_one(Question).render())
        assert "▤ notes.md · 27 characters" in shown and "milk" not in shown


async def test_a_space_behind_the_whole_name_attaches_it_and_typing_goes_on(
    app: ClawApp, until: Until, notes: Path
) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press(*"@notes.md")
        await until(pilot, lambda: composer._completions is not None and composer._completions.is_open)
        await pilot.press("space", *"now")
        await until(pilot, lambda: composer.text == "[notes.md · 27 characters] now")


async def test_a_path_typed_in_one_go_is_shown_as_attached_before_it_is_sent(
    app: ClawApp, scripted: Any, until: Until, notes: Path
) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        composer.post_message(events.Paste("Read @notes.md, please"))
        composer.post_message(events.Key("escape", None))
        composer.post_message(events.Key("enter", "\r"))
        await until(pilot, lambda: composer.text == "Read [notes.md · 27 characters], please")
        assert not scripted.engine.asked
        await pilot.press("enter")
        await until(pilot, lambda: scripted.engine.asked)
        assert scripted.engine.asked[0].startswith("Read @notes.md, please\n\n`````attached notes.md\n")


async def test_what_looks_like_a_path_but_is_none_is_sent_as_typed(
    app: ClawApp, scripted: Any, until: Until, notes: Path
) -> None:
    async with app.run_test() as pilot:
        await pilot.press(*"ask @ann or me@example.org", "enter")
        await until(pilot, lambda: scripted.engine.asked)
        assert scripted.engine.asked[0] == "ask @ann or me@example.org"


async def test_a_file_that_is_not_there_is_said_before_anything_is_sent(
    app: ClawApp, scripted: Any, until: Until, notes: Path
) -> None:
    async with app.run_test() as pilot:
        await pilot.press(*"see @nope.txt", "enter")
        await until(pilot, lambda: any("There is no file nope.txt" in n.message for n in app._notifications))
        assert app.main.composer.text == "see @nope.txt" and not scripted.engine.asked
        await pilot.press("enter")
        await until(pilot, lambda: scripted.engine.asked[:1] == ["see @nope.txt"])
        for path, what in ((str(notes) + "/", "is a folder"), ("/dev/zero", "is a device or a pipe")):
            if os.path.exists(path):
                app.main.composer.text = f"see @{path}"
                await pilot.press("enter")
                await until(pilot, lambda what=what: any(what in n.message for n in app._notifications))
        assert not any("zero" in asked or str(notes) in asked for asked in scripted.engine.asked)


async def test_one_backspace_takes_a_label_away_and_undo_brings_it_back(
    app: ClawApp, scripted: Any, until: Until, notes: Path
) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press(*"a ")
        composer.attach("", "notes.md", "milk")
        await pilot.press("backspace", "backspace")
        assert composer.text == "a "
        await pilot.press("ctrl+z")
        assert "[notes.md · 4 characters]" in composer.text
        await pilot.press("ctrl+w")
        assert composer.text == "a "
        await pilot.press(*"b", "enter")
        await until(pilot, lambda: scripted.engine.asked)
        assert scripted.engine.asked[0] == "a b"


async def test_the_cursor_never_stands_inside_a_label(app: ClawApp) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press("a")
        composer.attach("", "n.md", "milk")
        label = len("[n.md · 4 characters]")
        await pilot.press("left", "left")
        assert composer.cursor_location == (0, 1)
        await pilot.press("right")
        assert composer.cursor_location == (0, 1 + label)
        composer.move_cursor((0, 6))
        await pilot.pause()
        assert composer.cursor_location in ((0, 1), (0, 1 + label))


async def test_a_file_that_cannot_be_attached_is_said_and_the_text_stays(
    app: ClawApp, until: Until, notes: Path
) -> None:
    (notes / "a.bin").write_bytes(b"\0\1")
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press(*"/attach a.bin", "enter")
        await until(pilot, lambda: any("not a text file" in n.message for n in app._notifications))
        app.clear_notifications()
        await pilot.press(*"@a.bin")
        await until(pilot, lambda: composer._completions is not None and composer._completions.is_open)
        await pilot.press("tab")
        await until(pilot, lambda: any("not a text file" in n.message for n in app._notifications))
        assert composer.text == "@a.bin"


def test_a_message_and_its_labels_turn_into_each_other() -> None:
    chips = Chips()
    file, paste = chips.add("a b.md", "milk\n"), chips.add("pasted text", "long\n" * 100)
    text = f"Compare {file} with\n{paste}\nplease"
    message = chips.message(text)
    assert message.startswith("Compare @a b.md with\n\n````attached pasted text\nlong\n")
    assert own_words(message) == "Compare @a b.md with\n\nplease"
    assert Chips().fold(message).split() == text.split()
    assert folded(message).splitlines() == [
        "Compare @a b.md with",
        "▤ pasted text · 500 characters",
        "please",
        "▤ a b.md · 5 characters",
    ]


def test_two_files_of_one_name_keep_their_own_text() -> None:
    chips = Chips()
    first, second, again = chips.add("n.md", "aa"), chips.add("n.md", "bb"), chips.add("n.md", "aa")
    assert first == again != second
    assert "aa" in chips.message(first) and "bb" in chips.message(second)


def test_a_draft_with_a_file_comes_back_with_its_label() -> None:
    message = compose(["look at @n.md", Attachment("n.md", "milk\n")])
    assert Chips().fold(message) == "look at [n.md · 5 characters]"
    assert Chips().fold(compose([Attachment("x.md", "milk\n")])) == "[x.md · 5 characters]"


@pytest.fixture
def work(tmp_path: Path, notes: Path) -> Path:
    """A workspace beside the current folder: `plan.md` is in both, `src` too, `inner.md` only in it."""
    folder = tmp_path / "project"
    for path, text in (("plan.md", "of the project"), ("inner.md", "inner"), ("src/a.py", "a")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    (notes / "src").mkdir()
    (notes / "src" / "b.py").write_text("b", "utf-8")
    (notes / "plan.md").write_text("of here", "utf-8")
    return folder


def test_a_path_is_looked_for_in_the_workspace_first(work: Path, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(work)
    monkeypatch.setenv("HOME", str(notes))
    monkeypatch.setenv("USERPROFILE", str(notes))
    assert [hit.path for hit in find("", folder)] == ["src/", "inner.md", "plan.md"]
    assert [hit.path for hit in find("src/", folder)] == ["src/a.py"]
    assert [hit.path for hit in find("src/b", folder)] == ["src/b.py"], "which is there in the current folder only"
    assert [hit.path for hit in find("no", folder)] == ["notes.md"]
    assert [hit.path for hit in find("~/pl", folder)] == ["~/plan.md"]
    assert read("plan.md", folder).text == "of the project"
    for typed in (f"{notes}/plan.md", "~/plan.md"):
        assert read(typed, folder).text == "of here"
    assert read("src/b.py", folder) == Attachment("src/b.py", "b")
    assert is_file("inner.md", folder) and not is_file("inner.md") and not is_file("gone.md", folder)
    with pytest.raises(UsageError, match=r"There is no file gone\.md"):
        read("gone.md", folder)


async def test_a_chat_with_a_workspace_attaches_from_it(scripted: Any, until: Until, work: Path) -> None:
    app = ClawApp(lambda: scripted, workspace=str(work))
    async with app.run_test() as pilot:
        composer = app.main.composer
        await until(pilot, lambda: composer.workspace == str(work))
        await pilot.press(*"@in")
        await until(pilot, lambda: composer._completions is not None and composer._completions.is_open)
        await pilot.press("tab")
        await until(pilot, lambda: composer.text == "[inner.md · 5 characters] ")
        composer.text = "and @plan.md too"
        await pilot.press("enter")
        await until(pilot, lambda: composer.text == "and [plan.md · 14 characters] too")
        composer.text = ""
        await app.main.work_in("none")
        await until(pilot, lambda: composer.workspace == "")
        composer.text = "and @plan.md too"
        await pilot.press("enter")
        await until(pilot, lambda: composer.text == "and [plan.md · 7 characters] too")
