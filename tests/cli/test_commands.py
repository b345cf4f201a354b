"""The commands, as processes, the way a person runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from claw_local.paths import Paths
from claw_local.signals.attached import Attachment, split
from claw_local.store import Store

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / p) for p in (".", "app", "trainer"))}


def claw(home: Paths, *arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "claw_local", *arguments],
        env={**ENVIRONMENT, "CLAW_LOCAL_HOME": str(home.data)},
        capture_output=True,
        timeout=120,
        check=False,
        **({"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}),  # type: ignore[arg-type]
    )


def as_json(done: subprocess.CompletedProcess[bytes]) -> Any:
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_ask_prints_the_answer_and_nothing_else(home: Paths) -> None:
    done = claw(home, "ask", "How do I boil an egg?", "--max-tokens", "8", "--seed", "1")
    assert done.returncode == 0
    assert done.stderr == b""
    (chat,) = Store(home).chats.list()
    answer = Store(home).messages.branch(chat.head_id)[-1]
    assert done.stdout.decode() == answer.content + "\n"
    assert chat.title == "How do I boil an egg?"


def test_ask_json_holds_the_answer_and_its_figures_and_a_chat_goes_on(home: Paths) -> None:
    options = ("--max-tokens", "8", "--seed", "1", "--json")
    first = as_json(claw(home, "ask", "What is rain?", *options))
    assert {"answer", "message_id", "chat_id", "model", "adapter", "hints", "tokens", "timings_s"} <= set(first)
    assert set(first["tokens"]) == {"prompt", "evaluated", "completion"}
    assert set(first["timings_s"]) == {"load", "first_token", "total"}
    assert first["tokens"]["completion"] == 8
    assert first["adapter"] == 0
    again = as_json(claw(home, "ask", "What is rain?", *options))
    assert again["answer"] == first["answer"], "the same seed gives the same answer in another process"
    assert again["chat_id"] != first["chat_id"]
    going_on = as_json(claw(home, "ask", "And snow?", "--chat", str(first["chat_id"]), *options))
    assert going_on["chat_id"] == first["chat_id"]
    assert going_on["tokens"]["prompt"] > first["tokens"]["prompt"]


def test_piped_text_is_added_to_the_question(home: Paths) -> None:
    as_json(claw(home, "ask", "Summarise this:", "--max-tokens", "4", "--json", stdin="Käse is cheese.\n".encode()))
    store = Store(home)
    question = store.messages.branch(store.chats.list()[0].head_id)[0]
    assert split(question.content) == ["Summarise this:\n\n", Attachment("piped text", "Käse is cheese.\n")]


def test_with_learning_on_the_next_question_judges_the_answer_before(home: Paths) -> None:
    assert as_json(claw(home, "learn", "on", "--json")) == {"enabled": True, "past": 0, "lessons": 0, "waiting": 0}
    first = as_json(claw(home, "ask", "What is hail?", "--max-tokens", "8", "--json"))
    wish = "Please don't use lists, just plain sentences."
    as_json(claw(home, "ask", wish, "--chat", str(first["chat_id"]), "--max-tokens", "8", "--json"))
    status = as_json(claw(home, "learn", "status", "--json"))
    assert (status["enabled"], status["lessons"], status["waiting"]) == (True, 1, 0)
    (hint,) = as_json(claw(home, "hints", "list", "--json"))["hints"]
    told = as_json(claw(home, "ask", "What is fog?", "--max-tokens", "8", "--json"))
    assert told["hints"] == [hint["text"]]
    untold = as_json(claw(home, "ask", "What is fog?", "--max-tokens", "8", "--no-memory", "--json"))
    assert untold["hints"] == []
    shown = claw(home, "history", "show", str(first["chat_id"])).stdout.decode()
    assert "[judge -1]" in shown and wish in shown


def test_feedback_is_noted(home: Paths) -> None:
    asked = as_json(claw(home, "ask", "What is ice?", "--max-tokens", "4", "--json"))
    noted = as_json(claw(home, "feedback", str(asked["message_id"]), "bad", "--hint", "Use one sentence.", "--json"))
    assert (noted["source"], noted["score"], noted["hint"]) == ("thumb", -1, "Use one sentence.")


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (("ask", "hi", "--model", "no-such.gguf"), 1, "no-such.gguf"),
        (("ask", "hi", "--chat", "77"), 1, "no chat 77"),
        (("ask", "hi", "--adapter", "77"), 1, "no adapter 77"),
        (("ask", "hi", "--adapter", "green"), 1, "green"),
        (("ask", "hi", "--chat", "1", "--new"), 2, "contradict"),
        (("ask",), 2, "no question"),
        (("ask", "hi", "--temperature", "hot"), 2, "temperature"),
        (("ask", "hi", "--max-tokens", "0"), 2, "max-tokens"),
        (("fly",), 2, "fly"),
        (("learn", "now"), 1, "learn on"),
        (("chat",), 2, "terminal"),
        (("feedback", "5", "good"), 1, "no message 5"),
        (("feedback", "5", "fine"), 2, "good, bad or none"),
        (("adapters", "rollback"), 1, "nothing to roll back"),
        (("adapters", "use", "9"), 1, "no adapter 9"),
        (("hints", "drop", "4"), 1, "no hint 4"),
        (("history", "show", "4"), 1, "no chat 4"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    home: Paths, arguments: tuple[str, ...], status: int, word: str
) -> None:
    done = claw(home, *arguments)
    errors = done.stderr.decode()
    assert done.returncode == status, errors
    assert word in errors
    assert "Traceback" not in errors
    assert done.stdout == b""


def test_learn_now_with_nothing_to_learn_says_so(home: Paths) -> None:
    claw(home, "learn", "on")
    done = claw(home, "learn", "now")
    assert done.returncode == 1
    assert "nothing new to learn" in done.stderr.decode()


def test_learn_now_without_the_trainer_names_what_to_install(home: Paths) -> None:
    claw(home, "learn", "on")
    asked = as_json(claw(home, "ask", "What is ice?", "--max-tokens", "4", "--json"))
    claw(home, "feedback", str(asked["message_id"]), "bad", "--hint", "Use one sentence.")
    hidden = """
import sys
sys.modules["torch"] = None
sys.argv[1:] = ["learn", "now"]
from claw_local.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", hidden],
        env={**ENVIRONMENT, "CLAW_LOCAL_HOME": str(home.data)},
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1
    assert "Install them with" in done.stderr.decode()
    assert "torch" in done.stderr.decode()


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("text.gguf", b"not a model at all, just a few words of text", "GGUF"),
        ("empty.gguf", b"", "GGUF"),
        ("folder.gguf", None, "folder"),
    ],
)
def test_a_file_that_is_no_model_is_named_and_the_question_is_kept(
    home: Paths, tmp_path: Path, name: str, content: bytes | None, word: str
) -> None:
    path = tmp_path / name
    path.mkdir() if content is None else path.write_bytes(content)
    done = claw(home, "ask", "Precious words", "--model", str(path))
    assert done.returncode == 1
    assert word in done.stderr.decode() and "Traceback" not in done.stderr.decode()
    store = Store(home)
    assert store.messages.branch(store.chats.list()[0].head_id)[0].content == "Precious words"


def test_a_model_that_was_cut_short_is_named(home: Paths, tmp_path: Path, model_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    with model_path.open("rb") as whole:
        cut.write_bytes(whole.read(5_000_000))
    done = claw(home, "ask", "hi", "--model", str(cut))
    assert done.returncode == 1
    assert "cut.gguf" in done.stderr.decode() and "Traceback" not in done.stderr.decode()


def test_control_c_keeps_what_was_shown(home: Paths) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "claw_local", "ask", "Tell me a very long story.", "--max-tokens", "900", "--seed", "1"],
        env={**ENVIRONMENT, "CLAW_LOCAL_HOME": str(home.data)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    shown = os.read(process.stdout.fileno(), 100)
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    store = Store(home)
    stored = store.messages.branch(store.chats.list()[0].head_id)[-1]
    assert stored.state == "interrupted"
    assert stored.content == (shown + rest).decode().removesuffix("\n")


def test_a_killed_ask_loses_nothing_that_was_shown(home: Paths) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "claw_local", "ask", "Tell me a very long story.", "--max-tokens", "900", "--seed", "1"],
        env={**ENVIRONMENT, "CLAW_LOCAL_HOME": str(home.data)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    shown = os.read(process.stdout.fileno(), 100)
    time.sleep(0.3)
    process.kill()
    shown += process.stdout.read()
    process.wait()
    store = Store(home)
    stored = store.messages.branch(store.chats.list()[0].head_id)[-1]
    assert stored.state == "interrupted"
    assert stored.content.startswith(shown.decode())


def test_a_full_disk_is_said_and_leaves_the_database_whole(home: Paths) -> None:
    # RLIMIT_FSIZE makes the kernel refuse to let the file grow, as a full disk does.
    Store(home).close()
    script = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from claw_local.store import Store
from claw_local.paths import locate
limit = 300_000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.argv[1:] = ["ask", "x" * 400_000, "--max-tokens", "4"]
from claw_local.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**ENVIRONMENT, "CLAW_LOCAL_HOME": str(home.data)},
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr.decode()
    assert "disk" in done.stderr.decode()
    store = Store(home)
    assert store.database.db.conn.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_version_and_help(home: Paths) -> None:
    assert claw(home, "--version").stdout.startswith(b"claw-local ")
    help_text = claw(home, "--help").stdout.decode()
    for command in ("ask", "chat", "learn", "hints", "adapters", "feedback", "history", "doctor"):
        assert command in help_text
