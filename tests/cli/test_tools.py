"""The commands of tools: asking in a workspace, what was done, and taking it back."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claw_local import Assistant
from claw_local.cli.main import app
from claw_local.cli.working import Working, ask_person
from claw_local.paths import Paths
from claw_local.talking.working import kept
from claw_local.tools.base import Call, Prepared, Result
from claw_local.tools.toolbox import OWN

run = CliRunner()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("milk\n", "utf-8")
    return folder


@pytest.fixture
def chat_id(home: Paths, work: Path) -> int:
    """A chat in which a tool wrote a file."""
    with Assistant.open() as assistant:
        chat = assistant.tools.give(assistant.new_chat(title="Work").id, work)
        store = assistant.store
        user = store.messages.add(chat.id, "user", "Write.", parent_id=None)
        text = '<tool_call>{"name": "write", "arguments": {"path": "notes.txt", "content": "eggs\\n"}}</tool_call>'
        reply = store.messages.add(chat.id, "assistant", text, parent_id=user, toolset_id=kept(store, OWN))
        (call,) = assistant.tools.calls(reply)
        assistant.tools.use(reply, assistant.tools.prepare(chat.id, call), "once")
        return chat.id


def test_what_was_done_is_listed_and_undone_once(home: Paths, work: Path, chat_id: int) -> None:
    listed = run.invoke(app, ["tools", "log"])
    assert "write notes.txt" in listed.output and "allowed once" in listed.output
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d  ", listed.output), "times as in the other lists"
    (call,) = json.loads(run.invoke(app, ["tools", "log", "--json"]).output)["calls"]
    assert (call["name"], call["state"], call["path"]) == ("write", "done", "notes.txt") and "before" not in call
    undone = run.invoke(app, ["tools", "undo", str(chat_id), "--json"])
    assert undone.exit_code == 0 and json.loads(undone.output) == {"undone": "notes.txt is as it was."}
    assert (work / "notes.txt").read_text() == "milk\n"
    again = run.invoke(app, ["tools", "undo", str(chat_id)])
    assert again.exit_code == 1 and "nothing to undo" in again.output


def test_the_log_says_what_allowed_a_call_and_what_could_not_be_done(home: Paths, work: Path, chat_id: int) -> None:
    with Assistant.open() as assistant:
        store = assistant.store
        for text, allow in (
            ('<tool_call>{"name": "write", "arguments": {"path": "../x", "content": ""}}</tool_call>', frozenset()),
            ("<tool_call>{nonsense</tool_call>", frozenset()),
            (
                '<tool_call>{"name": "append", "arguments": {"path": "a.txt", "content": "x"}}</tool_call>',
                frozenset({"append"}),
            ),
            ('<tool_call>{"name": "list", "arguments": {"path": 7}}</tool_call>', frozenset()),
        ):
            user = store.messages.add(chat_id, "user", "Go on.", parent_id=None)
            reply = store.messages.add(chat_id, "assistant", text, parent_id=user, toolset_id=kept(store, OWN))
            (call,) = assistant.tools.calls(reply)
            prepared = assistant.tools.prepare(chat_id, call)
            decision, _ = Working(assistant, allow)._approve(prepared) if prepared.asks else (None, "")
            assistant.tools.use(reply, prepared, decision)
    listed = run.invoke(app, ["tools", "log"]).output.splitlines()
    assert "failed" in listed[0] and "needs no leave  a call of list that cannot be done: list: path:" in listed[0]
    assert "by --allow" in listed[1] and "append" in listed[1]
    assert "a call that cannot be done: The call was not understood" in listed[2]
    assert "a call of write that cannot be done: ../x is not in the workspace" in listed[3]


def test_taking_away_or_giving_what_is_so_already_changes_nothing(home: Paths, work: Path, chat_id: int) -> None:
    with Assistant.open() as assistant:
        without = assistant.new_chat(title="none").id
        before = [assistant.chat(one).updated_at for one in (chat_id, without)]
    assert run.invoke(app, ["tools", "workspace", str(without), "--none"]).exit_code == 0
    assert run.invoke(app, ["tools", "workspace", str(chat_id), str(work)]).exit_code == 0
    with Assistant.open() as assistant:
        assert [assistant.chat(one).updated_at for one in (chat_id, without)] == before


def test_a_file_changed_since_is_left_alone(home: Paths, work: Path, chat_id: int) -> None:
    (work / "notes.txt").write_text("mine\n")
    refused = run.invoke(app, ["tools", "undo", str(chat_id)])
    assert refused.exit_code == 1 and "changed since" in refused.output
    assert (work / "notes.txt").read_text() == "mine\n"


def test_a_workspace_is_said_given_and_taken(home: Paths, work: Path, chat_id: int, tmp_path: Path) -> None:
    assert str(work) in run.invoke(app, ["tools", "workspace", str(chat_id)]).output
    other = tmp_path / "other"
    other.mkdir()
    given = run.invoke(app, ["tools", "workspace", str(chat_id), str(other), "--json"])
    assert json.loads(given.output) == {"chat_id": chat_id, "workspace": str(other), "always": []}
    assert "no tools" in run.invoke(app, ["tools", "workspace", str(chat_id), "--none"]).output
    assert run.invoke(app, ["tools", "workspace", str(chat_id), str(other), "--none"]).exit_code == 2
    gone = run.invoke(app, ["tools", "workspace", str(chat_id), str(tmp_path / "none")])
    assert gone.exit_code == 2 and "There is no folder" in gone.output
    assert run.invoke(app, ["tools", "workspace", "99"]).exit_code == 1
    assert run.invoke(app, ["tools", "log", "--chat", "99"]).exit_code == 1


def test_the_tools_there_are(home: Paths, work: Path) -> None:
    told = json.loads(run.invoke(app, ["tools", "list", "--workspace", str(work), "--json"]).output)
    assert [tool["name"] for tool in told["tools"]] == ["list", "read", "search", "write", "append", "run"]
    assert run.invoke(app, ["tools", "list", "--workspace", "/"]).exit_code == 2


def test_the_tools_are_listed_in_any_folder_where_none_was_named(home: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    home.make()
    monkeypatch.chdir(home.data.parent)  # As ~ is: it could be no workspace.
    told = json.loads(run.invoke(app, ["tools", "list", "--json"]).output)
    assert [tool["name"] for tool in told["tools"]][:2] == ["list", "read"] and told["workspace"] == ""
    assert run.invoke(app, ["tools", "list", "--workspace", "."]).exit_code == 2


def test_asking_in_a_workspace_refuses_what_was_not_allowed_and_says_how(home: Paths, work: Path) -> None:
    asked = [
        "ask",
        "--workspace",
        str(work),
        "--must-call",
        "--max-tokens",
        "60",
        "--temperature",
        "0",
        "Write the word eggs into notes.txt",
        "--json",
    ]
    done = run.invoke(app, asked)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["tools"] and all(call["decision"] in ("free", "no") for call in told["tools"])
    assert (work / "notes.txt").read_text() == "milk\n"
    for call in told["tools"]:
        if call["decision"] == "no":
            assert f"--allow {call['name']}" in done.stderr


@pytest.mark.parametrize(
    ("lines", "decided"),
    [
        ("y\n", ("once", "")),
        ("Yes.\n", ("once", "")),
        ("a\n", ("always", "")),
        ("n\n", ("no", "")),
        ("no, not this file\n", ("no", "not this file")),
        ("w\nno milk, please\n", ("no", "no milk, please")),
        ("w: not now\n", ("no", "not now")),
        ("q: enough\n", ("stop", "enough")),
        ("also look at the other one\nyou may not\nyes but later\n\nn\n", ("no", "")),
        ("", ("stop", "")),
    ],
)
def test_only_a_plain_yes_is_a_yes(monkeypatch: pytest.MonkeyPatch, lines: str, decided: tuple[str, str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    prepared = Prepared(Call("write"), "write notes.txt", "+eggs", True, "write", lambda _: Result(""))
    assert ask_person(prepared) == decided


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--allow", "fly", "x"], "--allow takes"),
        (["--allow", "write", "x"], "go with a workspace"),
        (["--must-call", "x"], "go with a workspace"),
        (["--workspace", "/", "x"], "whole disk"),
        (["--workspace", "", "x"], "--workspace was given with nothing in it"),
    ],
)
def test_wrong_use_is_one_sentence(home: Paths, options: list[str], said: str) -> None:
    wrong = run.invoke(app, ["ask", *options])
    assert wrong.exit_code == 2 and said in wrong.output and "Traceback" not in wrong.output


@pytest.mark.parametrize("how", ["--web", "--plain", "--full"])
def test_an_empty_workspace_is_no_folder(home: Paths, how: str) -> None:
    wrong = run.invoke(app, ["chat", how, "--workspace", ""])
    assert wrong.exit_code == 2 and "--workspace was given with nothing in it" in wrong.output
