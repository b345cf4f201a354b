"""What people and attackers once stumbled over stays mended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.engine.base import Generation, Sampling
from claw_local.errors import AdapterError, StoreError, UsageError
from claw_local.paths import Paths, locate
from claw_local.store import Store
from claw_local.store.chats import Teaching

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / p) for p in (".", "app", "trainer"))}
COMMAND = [sys.executable, "-m", "claw_local"]


def environment(home: Paths) -> dict[str, str]:
    return {**ENVIRONMENT, "CLAW_LOCAL_HOME": str(home.data)}


def answered(store: Store, chat_id: int, question: str, learn: Teaching = "yes") -> int:
    _, _, reply = store.messages.go_on(chat_id, question, learn=learn)
    made = Generation(prompt_ids=(1,), sampling=Sampling())
    made.text, made.response_ids, made.logprobs = "yes", [5], [-1.0]
    store.messages.finish(reply, made, state="done", timings={})
    return reply


def test_what_must_never_teach_does_not_when_the_past_may(home: Paths) -> None:
    with Assistant.open() as assistant:
        chat = assistant.new_chat()
        off = answered(assistant.store, chat.id, "while it was off", "off")
        refused = answered(assistant.store, chat.id, "a secret", "never")
        assert assistant.learn.on(past=True) == 1
        assert assistant.store.messages.get(off).learn
        assert not assistant.store.messages.get(refused).learn


def test_a_reader_that_goes_away_is_no_error(home: Paths) -> None:
    line = f"{sys.executable} -m claw_local ask 'Tell me a story' --max-tokens 30 --seed 1 | head -c 3"
    done = subprocess.run(["bash", "-c", line], env=environment(home), capture_output=True, timeout=60, check=False)
    assert len(done.stdout) == 3
    assert done.stderr == b""
    store = Store(home)
    stored = store.messages.branch(store.chats.list()[0].head_id)[-1]
    assert stored.state == "interrupted"
    assert stored.content.startswith(done.stdout.decode())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_an_answer_that_cannot_be_written_is_said(home: Paths) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "ask", "hi", "--max-tokens", "4"],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert b"disk is full" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_what_a_full_disk_leaves_in_the_buffer_is_not_said_again_by_python(home: Paths) -> None:
    buffered = {name: value for name, value in environment(home).items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "config", "list"], env=buffered, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.returncode == 1
    assert done.stderr == b"The answer could not be written: the disk is full. Free some space.\n"


@pytest.mark.parametrize(
    "arguments",
    [("ask", "hi", "--chat"), ("ask", "hi", "--adapter"), ("adapters", "use"), ("hints", "drop"), ("history", "show")],
)
def test_a_number_larger_than_any_id_is_said(home: Paths, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [*COMMAND, *arguments, "99999999999999999999"],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert b"larger than any id" in done.stderr or b"There is no adapter called" in done.stderr
    assert b"Traceback" not in done.stderr


def test_control_c_while_the_model_loads_is_heard(home: Paths) -> None:
    for wait_s in (0.45, 0.55, 0.65):
        process = subprocess.Popen(
            [*COMMAND, "ask", "Tell me a long story", "--max-tokens", "900"],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        time.sleep(wait_s)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode in (130, -signal.SIGINT), errors.decode()
        assert b"Exception ignored" not in errors


def test_two_who_write_in_one_chat_at_once_form_one_branch(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create()
    threads = [threading.Thread(target=answered, args=(store, chat.id, f"question {n}")) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shown = [m.content for m in store.messages.branch(store.chats.get(chat.id).head_id) if m.role == "user"]
    assert sorted(shown) == [f"question {n}" for n in range(6)]


def test_editing_an_older_reply_leaves_the_rest_in_view(home: Paths) -> None:
    with Assistant.open() as assistant:
        chat = assistant.new_chat()
        first = answered(assistant.store, chat.id, "one")
        answered(assistant.store, chat.id, "two")
        assistant.feedback(first, edit="better")
        assert [m.content for m in assistant.messages(chat.id)] == ["one", "yes", "two", "yes"]


def test_a_hint_given_outright_holds_everywhere_and_has_a_bound(home: Paths) -> None:
    with Assistant.open() as assistant:
        chat = assistant.new_chat()
        reply = answered(assistant.store, chat.id, "one")
        assistant.feedback(reply, "bad", hint="Talk like a pirate")
        assert [hint.text for hint in assistant.hints.list()] == ["Talk like a pirate"]
        assistant.feedback(reply, "bad", hint="No, it's Canberra")
        assert len(assistant.hints.list()) == 1
        with pytest.raises(UsageError, match="at most"):
            assistant.hints.add("x" * 5000)


def test_a_hint_that_is_changed_stays_the_only_one_and_says_anew_where_it_holds(home: Paths) -> None:
    with Assistant.open() as assistant:
        chat = assistant.new_chat()
        reply = answered(assistant.store, chat.id, "one")
        assistant.feedback(reply, hint="no lists")
        (hint,) = assistant.hints.list()
        assistant.hints.change(hint.id, "shorter")
        assert [(one.id, one.text) for one in assistant.hints.list()] == [(hint.id, "shorter")]
        assert [signal.hint for signal in assistant.signals([reply])[reply]] == ["shorter"]
        assistant.hints.change(hint.id, "it is Canberra, not Sydney")
        assert not assistant.hints.list(), "it speaks of this reply only"
        assistant.hints.change(hint.id, "no lists")
        assert [one.text for one in assistant.hints.list()] == ["no lists"]
        with pytest.raises(UsageError, match="at most"):
            assistant.hints.change(hint.id, "x" * 5000)
        assert [one.text for one in assistant.hints.list()] == ["no lists"]


def test_what_is_put_wrongly_is_told_with_what_helps(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    from claw_local.cli.main import run as run_here

    for option in ("--not", "--again"):
        assert run_here(["learn", "likes", option, ""]) == 2
        assert "as they stand in the list" in " ".join(capsys.readouterr().err.split())
    assert run_here(["ask", "--model", "nope", "hi"]) == 1
    assert "claw-local models list" in " ".join(capsys.readouterr().err.split())
    missing = home.data / "not-there"
    assert run_here(["backup", str(missing / "b")]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "there is no folder" in told and "Make it" in told and "space" not in told


def test_a_run_whose_process_was_killed_is_not_shown_as_running(home: Paths) -> None:
    with Assistant.open() as assistant:
        run = assistant.store.runs.begin()
        assistant.store.database.db.table("runs").update(run, {"process": "999999999:1.00"})
        shown = assistant.learn.status().run
        assert shown is not None
        assert shown.state == "failed"


def test_an_adapter_in_use_whose_file_is_gone_is_named_with_the_way_back(home: Paths) -> None:
    with Assistant.open() as assistant:
        record = assistant.store.adapters.add(
            parent_id=0, model_sha256=assistant.model_sha256, architecture="llama", gguf_path=str(home.data / "no.gguf")
        )
        assistant.store.adapters.activate(record.id, assistant.model_sha256)
        with pytest.raises(AdapterError, match="adapters use base"):
            assistant.ask("hi", sampling=Sampling(max_tokens=4))
        assistant.adapters.use("base")
        assert assistant.ask("hi", sampling=Sampling(max_tokens=4)).text


def test_a_file_of_the_folder_one_is_in_does_not_run_as_part_of_the_doctor(home: Paths, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('foreign code ran')")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "claw_local", "doctor", "--json"],
        env={**environment(home), "PYTHONSAFEPATH": ""},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert b"foreign code" not in done.stdout + done.stderr
    assert json.loads(done.stdout)["ok"] is True


def test_a_home_that_nobody_has_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAW_LOCAL_HOME", "~nobody-of-that-name/x")
    with pytest.raises(StoreError, match="CLAW_LOCAL_HOME"):
        locate()


def run(home: Paths, *arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env={**environment(home), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_letters_that_the_encoding_of_the_output_lacks_end_no_command(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create(title="Drachen \N{KITE} steigen… ä")
    shown = run(home, "history", "list", PYTHONIOENCODING="latin-1")
    assert shown.returncode == 0, shown.stderr
    assert "Drachen ? steigen? ä" in shown.stdout.decode("latin-1")
    listed = run(home, "history", "list", "--json", PYTHONIOENCODING="latin-1")
    assert json.loads(listed.stdout.decode("latin-1"))["chats"][0]["title"] == chat.title


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no file can have such a name")
def test_a_path_that_is_no_text_is_shown_somehow(tmp_path: Path) -> None:
    home = locate(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    done = run(home, "config", "path", PYTHONIOENCODING="utf-8:strict")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"caf\\udce9" in done.stdout
    assert "caf\udce9" in json.loads(run(home, "config", "path", "--json").stdout)["path"]


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are closed by a POSIX shell")
def test_nothing_else_gets_the_number_of_a_closed_output(home: Paths) -> None:
    listed = ["bash", "-c", 'exec "$@" >&- 2>&-', "bash", sys.executable, "-c"]
    looked = (
        "import os, sys; from claw_local.__main__ import _mend_streams; _mend_streams(); "
        "sys.exit(7 if sorted(os.readlink(f'/proc/self/fd/{n}') for n in (1, 2)) == ['/dev/null'] * 2 else 1)"
    )
    done = subprocess.run([*listed, looked], env=environment(home), timeout=60, check=False)
    if sys.platform == "linux":
        assert done.returncode == 7


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are closed by a POSIX shell")
@pytest.mark.parametrize(
    ("words", "status"), [("config get model.path", 1), ("ask hi", 2), ("--version", 1), ("config -h", 1)]
)
def test_an_answer_that_goes_nowhere_is_no_success(home: Paths, words: str, status: int) -> None:
    closed = ["bash", "-c", 'exec "$@" >&-', "bash", *COMMAND, *words.split()]
    done = subprocess.run(closed, env=environment(home), stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == status
    assert done.stderr.decode().splitlines() == ["Standard output is closed, so there is nowhere to put the answer."]


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are closed by a POSIX shell")
@pytest.mark.parametrize("arguments", [("history", "delete", "1"), ("chat",)])
def test_a_closed_input_is_one_from_which_nothing_comes(home: Paths, arguments: tuple[str, ...]) -> None:
    Store(home).chats.create(title="kept")
    closed = ["bash", "-c", 'exec "$@" <&-', "bash", *COMMAND, *arguments]
    done = subprocess.run(closed, env=environment(home), capture_output=True, timeout=60, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr and b"unexpected" not in done.stderr
    assert Store(home).chats.list()


@pytest.mark.parametrize("arguments", [("backup",), ("history", "import"), ("history", "export", "1", "--out")])
def test_a_person_whom_nobody_knows_has_no_folder(home: Paths, arguments: tuple[str, ...]) -> None:
    Store(home).chats.create(title="kept")
    done = run(home, *arguments, "~nobody-of-that-name/x")
    assert done.returncode == 2
    assert b"a name that nobody here has" in done.stderr


def test_an_editor_that_cannot_be_read_as_a_command_is_named(home: Paths) -> None:
    done = run(home, "config", "edit", EDITOR="vi 'unclosed", VISUAL="")
    assert done.returncode == 2
    assert b"$EDITOR cannot be read as a command" in done.stderr


def test_an_editor_that_takes_the_file_away_changes_nothing(home: Paths) -> None:
    done = run(home, "config", "edit", EDITOR="rm", VISUAL="")
    assert done.returncode != 0
    assert b"Nothing was changed" in done.stderr and b"unexpected" not in done.stderr


def test_a_chat_in_which_something_is_said_is_not_deleted_any_more(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create(title="kept")
    answered(store, chat.id, "one")
    store.chats.update(chat.id, deleted_at="2026-01-01T00:00:00.000000+00:00")
    store.messages.add(chat.id, "assistant", "a title", parent_id=None, turn_type="side")
    assert not store.chats.list(), "what the assistant does by itself brings nothing back"
    answered(store, chat.id, "two, from another window")
    assert [c.id for c in store.chats.list()] == [chat.id]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_a_full_disk_is_said_in_a_sentence_by_what_is_no_command_too(home: Paths, argument: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, argument], env=environment(home), stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.returncode == 1
    assert b"could not be written" in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("models", "show"), ("backup",)])
def test_a_name_longer_than_a_file_can_have_is_said(home: Paths, arguments: tuple[str, ...]) -> None:
    done = run(home, *arguments, "x" * 300)
    assert done.returncode == 2
    assert b"Give a shorter one" in done.stderr


def test_what_cannot_be_written_is_no_wrong_use(home: Paths, tmp_path: Path) -> None:
    Store(home).chats.create(title="kept")
    assert run(home, "history", "export", "1", "--out", str(tmp_path / "none" / "x.md")).returncode == 1
    assert run(home, "learn", "log", "--limit", "9" * 20).returncode == 2


def test_a_page_is_not_served_for_what_is_not_there(home: Paths, tmp_path: Path) -> None:
    chat = run(home, "chat", "--web", "--chat", "99")
    assert chat.returncode == 1 and b"There is no chat 99" in chat.stderr
    folder = run(home, "chat", "--web", "--workspace", str(tmp_path / "none"))
    assert folder.returncode == 2 and b"There is no folder" in folder.stderr
