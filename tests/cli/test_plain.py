"""The chat line by line: as a process, and in a real terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from claw_local import Assistant
from claw_local.cli.plain import Talk
from claw_local.cli.plainly import wished
from claw_local.cli.working import Working
from claw_local.installed import kept_data
from claw_local.paths import Paths
from claw_local.store import Store
from claw_local.talking.working import kept
from claw_local.tools.toolbox import OWN

ROOT = Path(__file__).parents[2]


def talk(home: Paths, *lines: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join(str(ROOT / part) for part in (".", "app", "trainer"))
    return subprocess.run(
        [sys.executable, "-m", "claw_local", "chat", "--plain", *options],
        env={**os.environ, "PYTHONPATH": search, "CLAW_LOCAL_HOME": str(home.data), "PYTHONUTF8": "1"},
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_conversation_with_an_answer_marks_a_hint_and_a_correction(home: Paths) -> None:
    home.make()
    home.settings.write_text("[sampling]\nmax_tokens = 8\n[judge]\ntimeout_s = 5\n", "utf-8")
    done = talk(
        home,
        "/good",
        "What is \\",
        "rain?",
        "/good",
        "/hint Answer in plain sentences.",
        "/correct Rain is water.",
        "/why",
        "/unmark",
        "/hints",
        "//slashes",
        "/chats",
        "/nonsense",
        f"/open {'9' * 5000}",
        "/quit",
        "never said",
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout
    assert "Note: There is no answer yet. Ask something first.\n" in said
    assert said.count("Answer: ") == 2
    assert "Note: Noted: the last answer was good.\n" in said
    assert "Note: There is no command /nonsense." in said
    assert "counts no more.\nNote: Your text stays in the chat, and teaches nothing.\n" in said
    assert "\n1: Answer in plain sentences.\n" in said.replace("You: 1:", "\n1:")
    # No boxes, no colours, no animation: letters, digits and signs that any reader can say.
    assert "\x1b" not in said and "\r" not in said
    assert not any(0x2500 <= ord(sign) <= 0x28FF for sign in said)
    store = Store(home)
    (chat,) = store.chats.list()
    questions = [message.content for message in store.messages.branch(chat.head_id) if message.role == "user"]
    assert questions == ["What is \nrain?", "/slashes"]
    assert [message.content for message in store.messages.branch(chat.head_id)][1] == "Rain is water."
    assert [hint.text for hint in store.hints.list()] == ["Answer in plain sentences."]
    # `uninstall` knows all that was made for it.
    assert kept_data(home, {"CLAW_LOCAL_HOME": str(home.data)}).others == ()


def test_a_chat_is_opened_and_read_out_and_learning_is_switched(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create(title="Weather")
    asked = store.messages.add(chat.id, "user", "What is rain?", parent_id=None)
    store.messages.add(chat.id, "assistant", "Water \x1b[2J falling.", parent_id=asked)
    done = talk(
        home, "/learn on", "/learn", "/new", f"/open {chat.id}", "/open x", "/open 99", options=("--chat", str(chat.id))
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.count(
            "Note: Chat 1, Weather, 2 messages. The newest:\nYou: What is rain?\nAnswer: Water [2J falling.\n"
        )
        == 2
    )
    assert "Note: Learning is on.\n" in done.stdout
    assert "Learning is on. Say /learn on or /learn off." in done.stdout
    assert "Say which chat: /open 3." in done.stdout
    assert "99" in done.stdout.rsplit("You: ", 2)[1]
    assert store.flags.get("learning") == "on"


def test_a_workspace_gives_the_chat_its_tools(home: Paths, tmp_path: Path) -> None:
    home.make()
    home.settings.write_text("[sampling]\nmax_tokens = 8\n[tools]\nsteps = 1\n", "utf-8")
    (tmp_path / "notes").mkdir()
    done = talk(home, "What is rain?", "/again", "/new", options=("--workspace", str(tmp_path / "notes")))
    assert done.returncode == 0, done.stderr
    (chat,) = Store(home).chats.list()
    assert chat.workspace == str((tmp_path / "notes").resolve())
    assert "Answer: " in done.stdout and "ask again in words" in done.stdout
    reply = next(m for m in Store(home).messages.branch(chat.head_id) if m.role == "assistant")
    assert reply.toolset_id, "it was told of the tools"
    done = talk(home, options=("--workspace", str(tmp_path / "nowhere")))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_reply_that_is_nothing_but_a_call_is_not_read_out(
    home: Paths, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    with Assistant.open() as assistant:
        chat, store = assistant.tools.give(assistant.new_chat().id, tmp_path / "work"), assistant.store
        call = '<tool_call>{"name": "list", "arguments": {}}</tool_call>'
        asked = store.messages.add(chat.id, "user", "Go.", parent_id=None)
        reply = store.messages.add(chat.id, "assistant", call, parent_id=asked, toolset_id=kept(store, OWN))

        def stopped(self: Working, *_: object, **__: object) -> None:
            self.answer = SimpleNamespace(message_id=reply, text=call, notices=())  # type: ignore[assignment]
            raise KeyboardInterrupt

        monkeypatch.setattr(Working, "run", stopped)
        Talk(assistant, chat.id)._work("Go.")
    assert capsys.readouterr().out == "Note: Stopped.\n"


def test_wrong_use_is_said_in_a_sentence(home: Paths) -> None:
    done = talk(home, options=("--web",))
    assert (done.returncode, done.stderr) == (2, "--plain and --web contradict each other: choose one.\n")
    done = talk(home, options=("--chat", "7"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("variables", "text", "plain"),
    [
        ({}, "", False),
        ({}, "[app]\nplain = true\n", True),
        ({}, "not toml", False),
        ({"CLAW_LOCAL_APP__PLAIN": "true"}, "", True),
        ({"claw_local_app__plain": "0"}, "[app]\nplain = true\n", False),
        ({"TERM": "dumb"}, "", True),
    ],
)
def test_the_wish_comes_from_the_settings_the_environment_or_a_terminal_that_can_do_no_more(
    home: Paths, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], text: str, plain: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    home.make().settings.write_text(text, "utf-8")
    assert wished() is plain
