"""What the shell offers when Tab is pressed, as the shell asks for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.cli import complete
from claw_local.paths import Paths
from claw_local.store import Store

ROOT = Path(__file__).parents[2]


def offered(home: Paths, *words: str) -> list[str]:
    """What bash is told for this command line, the last word being typed."""
    done = subprocess.run(
        [sys.executable, "-m", "claw_local"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "app", "trainer")),
            "CLAW_LOCAL_HOME": str(home.data),
            "_CLAW_LOCAL_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(["claw-local", *words]),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == b""
    return done.stdout.decode().split()


def test_commands_settings_and_ids_complete(home: Paths) -> None:
    with Assistant.open() as assistant:
        chat = assistant.new_chat(title="About rain")
        assistant.hints.add("Talk like a pirate")
    assert {"models", "config", "history", "bench"} <= set(offered(home, ""))
    assert offered(home, "config", "set", "sampling.top") == ["sampling.top_p", "sampling.top_k"]
    assert offered(home, "hints", "off", "") == ["1"]
    assert complete.chat_ids("") == [(str(chat.id), "About rain")]


def test_models_complete_from_what_is_here_and_from_paths(home: Paths, tmp_path: Path) -> None:
    home.make()
    (home.models / "kept.gguf").write_bytes(b"GGUF")
    assert complete.model_names("ke") == [("kept.gguf", "")]
    assert ("embedded", "") in complete.model_names("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.gguf").write_bytes(b"GGUF")
    (tmp_path / "file.txt").write_bytes(b"")
    assert complete.model_names(f"{tmp_path}/f") == [(f"{tmp_path}/file.gguf", ""), (f"{tmp_path}/folder/", "")]


def test_offering_makes_no_file_and_shows_no_error(home: Paths, capfd: pytest.CaptureFixture[str]) -> None:
    for offer in (complete.adapter_ids, complete.hint_ids, complete.chat_ids, complete.run_ids):
        assert offer("") == []
    assert not home.data.exists()
    home.make()
    home.database.write_bytes(b"this is no database at all, only some words" * 10)
    assert complete.chat_ids("") == []
    assert capfd.readouterr() == ("", "")


def test_offering_is_quick(home: Paths) -> None:
    store = Store(home)
    for number in range(200):
        store.chats.create(title=f"chat {number}")
    store.close()
    complete.chat_ids("")
    started = time.process_time()
    assert len(complete.chat_ids("")) == complete.MOST
    assert time.process_time() - started < 0.3


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
def test_the_completion_that_is_installed_works_in_bash(home: Paths, tmp_path: Path) -> None:
    """--install-completion writes a script for the person's shell; bash then runs it."""
    person, programs = tmp_path / "person", tmp_path / "bin"
    person.mkdir()
    programs.mkdir()
    program = programs / "claw-local"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m claw_local "$@"\n')
    program.chmod(0o755)
    environment = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "app", "trainer")),
        "HOME": str(person),
        "CLAW_LOCAL_HOME": str(home.data),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    subprocess.run([program, "--install-completion", "bash"], env=environment, check=True, capture_output=True)
    script = """
    source ~/.bashrc
    COMP_WORDS=(claw-local config get sampling.top_) COMP_CWORD=3
    set -- $(complete -p claw-local)  # complete -o default -F FUNCTION claw-local
    "${@: -2:1}" claw-local
    echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, timeout=60, check=True)
    assert done.stdout.decode().split() == ["sampling.top_p", "sampling.top_k"], done.stderr.decode()
