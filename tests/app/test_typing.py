"""The field to type in: what Enter, new lines, pastes and the arrows do."""

from __future__ import annotations

import contextlib
import gc
import os
import pty
import re
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual._cells import cell_len

from claw_app.app import ClawApp
from claw_app.screens import typing
from claw_app.screens.typing import editor_command, run_editor
from claw_local.errors import UsageError
from claw_local.history import History
from claw_local.paths import locate
from claw_local.signals.attached import own_words
from claw_local.store import Store

Until = Callable[..., Any]

_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


async def test_enter_sends_and_empties_the_field(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await pilot.press("h", "i", "enter")
        await until(pilot, lambda: scripted.engine.asked)
        assert scripted.engine.asked[0] == "hi"
        assert app.main.composer.text == ""


async def test_what_is_typed_before_the_field_is_there_is_not_lost(app: ClawApp, scripted: Any, until: Until) -> None:
    first_screen = app.get_default_screen

    def typing_begins() -> Any:
        for key in ("h", "i", "enter"):
            app.post_message(events.Key(key, key if len(key) == 1 else "\r"))
        return first_screen()

    app.get_default_screen = typing_begins  # type: ignore[method-assign]
    async with app.run_test() as pilot:
        await until(pilot, lambda: scripted.engine.asked)
        assert scripted.engine.asked[0] == "hi"


async def test_ctrl_j_and_shift_enter_begin_a_new_line_and_the_field_grows(app: ClawApp) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press("a", "ctrl+j", "b", "shift+enter", "c")
        await pilot.pause()
        assert composer.text == "a\nb\nc"
        assert composer.size.height == 3
        composer.text = "\n".join(map(str, range(40)))
        await pilot.pause()
        assert composer.outer_size.height <= 24 * 0.4


async def test_an_empty_field_sends_nothing(app: ClawApp, scripted: Any) -> None:
    async with app.run_test() as pilot:
        await pilot.press("space", "enter")
        await pilot.pause(0.1)
        assert scripted.chats() == []


async def test_a_paste_of_a_megabyte_costs_nothing_and_is_sent_whole(app: ClawApp, scripted: Any, until: Until) -> None:
    paste = "0123456789abcde\n" * 65_536
    async with app.run_test() as pilot:
        composer = app.main.composer
        await until(pilot, app.main._ready.is_set)
        gc.collect()
        gc.freeze()  # What hundreds of tests before this one left behind is none of its work.
        started = time.thread_time()  # What the person waits for; the rest of the app's start is not of the paste.
        composer.post_message(events.Paste(paste))
        await pilot.pause()
        await pilot.press("!")
        await until(pilot, lambda: composer.text.endswith("!"))
        taken_s = time.thread_time() - started
        gc.unfreeze()
        assert taken_s < 1.0
        await pilot.press("enter")
        await until(pilot, lambda: scripted.engine.asked)
        # It is somebody else's text: it goes out fenced, so that nothing in it is taken for a wish.
        assert scripted.engine.asked[0] == f"````attached pasted text\n{paste}````\n\n!"
        assert own_words(scripted.engine.asked[0]) == "!"


async def test_a_short_paste_is_cleaned_and_put_in_as_it_is(app: ClawApp) -> None:
    async with app.run_test() as pilot:
        app.main.composer.post_message(events.Paste("two\r\nlines\x1b[2J"))
        await pilot.pause()
        assert app.main.composer.text == "two\nlines"


async def test_up_brings_back_what_was_sent(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        for word in ("one", "two"):
            await pilot.press(*word, "enter")
            await until(pilot, lambda: not app.main.sending)
        await pilot.press("up")
        assert composer.text == "two"
        await pilot.press("up")
        assert composer.text == "one"
        await pilot.press("down", "down")
        assert composer.text == ""
        await pilot.press(*"draft", "up")
        assert composer.text == "draft"
        composer.text = ""
        await pilot.press("up", "up", "ctrl+u")
        assert composer.text == ""
        await pilot.press("down")
        assert composer.text == "", "who has emptied the field is done with the old text"
        await pilot.press("up")
        assert composer.text == "two"


async def test_ctrl_d_leaves_only_from_an_empty_field(app: ClawApp) -> None:
    async with app.run_test() as pilot:
        await pilot.press("a", "ctrl+d")
        await pilot.pause(0.1)
        assert app.is_running
        await pilot.press("backspace", "ctrl+d")
        await pilot.pause(0.2)
        assert app.leaving


async def test_enter_never_overtakes_letters_typed_just_before_it(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        for letter in "fast":
            app.post_message(events.Key(letter, letter))
        app.post_message(events.Key("enter", "\r"))
        await until(pilot, lambda: scripted.engine.asked)
        assert scripted.engine.asked[0] == "fast"


async def test_up_brings_back_what_was_sent_in_other_chats_and_before_a_restart(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    for text in ("in March", "in April", "in April"):
        assert scripted.ask(text).text
    hidden = scripted.ask("in a deleted chat").chat_id
    scripted.history.delete(hidden)
    async with app.run_test() as pilot:
        composer = app.main.composer
        await until(pilot, lambda: composer._sent)
        await pilot.press("up")
        assert composer.text == "in April"
        await pilot.press("up")
        assert composer.text == "in March"
        await pilot.press("up", "down", "down")
        assert composer.text == ""


async def test_the_keys_of_a_shell_cut_and_put_back(app: ClawApp) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press(*"one two three", "ctrl+w")
        assert composer.text == "one two "
        await pilot.press("ctrl+a", "ctrl+k")
        assert composer.text == ""
        await pilot.press("ctrl+y", "alt+b", "alt+d")
        assert composer.text == "one  "
        await pilot.press("ctrl+y")
        assert composer.text == "one two "
        await pilot.press("ctrl+u", "ctrl+z")
        assert composer.text == "one two "
        await pilot.press("ctrl+y")
        assert composer.text == " "


async def test_editing_keys_never_overtake_letters_typed_around_them(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        for key in ("a", "b", "ctrl+w", "c", "d", "ctrl+a", "x"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: "x" in app.main.composer.text)
        assert app.main.composer.text == "xcd"


async def test_wide_characters_and_emoji_take_the_room_they_need(app: ClawApp) -> None:
    async with app.run_test(size=(40, 24)) as pilot:
        composer = app.main.composer
        width = composer.wrap_width
        composer.text = "日" * (width // 2)
        await pilot.pause()
        assert composer.wrapped_document.height == 1
        composer.text = "日" * (width // 2 + 1)
        await pilot.pause()
        assert composer.wrapped_document.height == 2
        composer.text = "👍🏽é한"
        composer.move_cursor(composer.document.end)
        await pilot.pause()
        assert composer.cursor_screen_offset.x - composer.content_region.x == cell_len("👍🏽é한")
        assert cell_len("👍🏽é한") == 5


async def test_a_draft_of_own_long_text_comes_back_as_a_label_and_is_sent_as_it_was(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    text = "word " * 2000
    async with app.run_test() as pilot:
        app.main.composer.restore(text)
        assert app.main.composer.text == "[text 1 · 10,000 characters]"
        await pilot.press("enter")
        await until(pilot, lambda: scripted.engine.asked)
        assert scripted.engine.asked[0] == text


def test_the_editor_is_the_persons_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", f"'{sys.executable}' -i")
    monkeypatch.delenv("VISUAL", raising=False)
    assert editor_command() == [sys.executable, "-i"]
    monkeypatch.setenv("VISUAL", "no-such-editor")
    with pytest.raises(UsageError, match=r"\$VISUAL names no-such-editor"):
        editor_command()


async def test_without_a_terminal_the_editor_is_refused_and_the_text_stays(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        await pilot.press(*"kept", "ctrl+x")
        await until(pilot, lambda: any("only be opened in a terminal" in n.message for n in app._notifications))
        assert app.main.composer.text == "kept"


@pytest.mark.parametrize(
    ("saved", "stands"),
    [
        ("open(file, 'wb').write(bytes([160, 161]))", "no text in UTF-8"),
        ("os.remove(file)", "left no file"),
        ("sys.exit(3)", "status 3"),
        ("open(file, 'w').write('a\\x1b[31mb\\0c\\x9b31md' + chr(0x202e))", "abcd"),
        ("open(file, 'w').write('x' * 200000)", "[text 1 · 200,000 characters]"),
    ],
)
async def test_what_an_editor_leaves_is_taken_or_said_in_a_sentence(
    app: ClawApp, until: Until, monkeypatch: pytest.MonkeyPatch, saved: str, stands: str
) -> None:
    code = f"import os, sys; file = sys.argv[1]; {saved}"
    monkeypatch.setattr(typing, "editor_command", lambda: [sys.executable, "-I", "-S", "-c", code])
    monkeypatch.setattr(app, "suspend", contextlib.nullcontext)
    async with app.run_test() as pilot:
        await pilot.press(*"kept", "ctrl+x")
        if stands == "abcd" or stands.startswith("["):
            await until(pilot, lambda: app.main.composer.text == stands)
            return
        await until(pilot, lambda: any(stands in said.message for said in app._notifications))
        assert app.main.composer.text == "kept"


def test_ctrl_c_while_the_editor_is_open_ends_the_editor_alone() -> None:
    both = "import os, signal; [os.kill(one, signal.SIGINT) for one in (os.getppid(), os.getpid())]"
    assert run_editor([sys.executable, "-c", both]) != 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_editor_gets_the_text_and_gives_it_back_in_a_real_terminal(tmp_path: Path) -> None:
    editor, seen = tmp_path / "editor.py", tmp_path / "seen"
    editor.write_text(
        "import pathlib, sys\n"
        "file = pathlib.Path(sys.argv[1])\n"
        f"pathlib.Path({str(seen)!r}).write_text(file.read_text())\n"
        "file.write_text('/rename edited\\n')\n",
        "utf-8",
    )
    environment = {
        **os.environ,
        "CLAW_LOCAL_HOME": str(tmp_path / "home"),
        "VISUAL": f"{sys.executable} {editor}",
        "TMPDIR": str(tmp_path),
        "TERM": "xterm-256color",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "claw_local", "chat"], environment)
    screen = b""

    def wait_for(true: Callable[[], bool], keys: bytes) -> None:
        nonlocal screen
        os.write(terminal, keys)
        end = time.monotonic() + 60
        while not true():
            assert time.monotonic() < end, screen[-2000:]
            if select.select([terminal], [], [], 0.05)[0]:
                screen += os.read(terminal, 65536)

    try:
        wait_for(lambda: b"Ask anything" in screen, b"")
        wait_for(lambda: seen.exists() and seen.read_text() != "", b"draft\x18")
        assert seen.read_text() == "draft"
        # What the editor saved is in the field: Enter carries the command out, which says what is missing.
        wait_for(lambda: b"/rename edited" in screen, b"")
        wait_for(lambda: b"still empty" in _ESCAPES.sub(b"", screen), b"\r")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    assert not list(tmp_path.glob("claw-local-*/message.md"))


@pytest.mark.parametrize("end", ["SIGTERM", "SIGHUP", "terminal closed"])
def test_ended_from_outside_it_keeps_the_draft_and_gives_the_terminal_back(tmp_path: Path, end: str) -> None:
    home = tmp_path / "home"
    environment = {**os.environ, "CLAW_LOCAL_HOME": str(home), "TERM": "xterm-256color"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "claw_local", "chat"], environment)
    screen = b""

    def read_until(words: bytes) -> None:
        nonlocal screen
        limit = time.monotonic() + 60
        while words not in screen and words not in _ESCAPES.sub(b"", screen):
            assert time.monotonic() < limit, screen[-2000:]
            if select.select([terminal], [], [], 0.05)[0]:
                screen += os.read(terminal, 65536)

    try:
        read_until(b"no lessons waiting")
        os.write(terminal, b"half a thought")
        read_until(b"thought")
        if end == "terminal closed":
            os.close(terminal)
        else:
            os.kill(pid, getattr(signal, end))
            read_until(b"\x1b[?1049l")
        limit = time.monotonic() + 20
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            assert time.monotonic() < limit, "it does not end"
            time.sleep(0.05)
        pid = 0
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        if end != "terminal closed":
            os.close(terminal)
    store = Store(locate(home))
    assert History(store).draft(None) == "half a thought"
    store.close()


async def test_ctrl_k_on_nothing_cuts_nothing(app: ClawApp) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press("ctrl+k", "a", "b", "ctrl+u", "ctrl+k", "c", "ctrl+j", "ctrl+k", "ctrl+k", "d")
        await pilot.pause()
        assert composer.text in ("c\nd", "cd", "d")


async def test_tab_goes_to_the_last_reply(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await pilot.press("h", "i", "enter")
        await until(pilot, lambda: scripted.engine.asked and not app.main.sending)
        await pilot.press("tab")
        await until(pilot, lambda: app.main.transcript.replies() and app.main.transcript.replies()[-1].has_focus)
