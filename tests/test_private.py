"""The whole loop with every way out of the machine shut: chat, learning, exports, backup. And nobody else may read what
is kept, nor is a secret found where it does not belong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.doctor.home import check_private
from claw_local.judge.bounds import without_secrets
from claw_local.paths import Paths
from claw_local.signals import turns
from stress.homes import make

ROOT = Path(__file__).resolve().parents[1]
SHUT = """
import os, sys

def shut(event, arguments):
    if not event.startswith("socket.") or event in ("socket.__new__", "socket.gethostname"):
        return
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        if isinstance(address, (str, bytes)):
            return  # A socket of this machine's own (AF_UNIX).
        if event == "socket.bind" and address[:2] == ("::1", 0):
            raise OSError("no IPv6")  # urllib3 tries, as it is imported, whether there is any. It connects to nothing.
    with open(os.environ["CLAW_TEST_TRIES"], "a") as file:
        file.write(f"{event} {arguments!r} by {sys.argv!r}\\n")
    raise PermissionError(f"no network: {event}")

sys.addaudithook(shut)
"""
SECRET = "sk-proj-Zy8mQ4vT2nR7wK1pL5xB9cD3"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes and AF_UNIX are POSIX")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    return make(tmp_path_factory.mktemp("private") / "home")


@pytest.fixture
def tries(tmp_path: Path) -> Path:
    return tmp_path / "tries"


def run(paths: Paths, folder: Path, tries: Path, *arguments: str) -> str:
    """A command, and all it starts, in a Python that refuses every socket but the machine's own."""
    (folder / "sitecustomize.py").write_text(SHUT)
    parts = [str(folder), str(ROOT), str(ROOT / "app"), str(ROOT / "trainer")]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLAW_LOCAL_")}
    environment = {
        **kept,
        "CLAW_LOCAL_HOME": str(paths.data),
        "PYTHONPATH": os.pathsep.join(parts),
        "CLAW_TEST_TRIES": str(tries),
        "OMP_NUM_THREADS": "1",
    }
    environment.pop("HF_HUB_OFFLINE", None)  # Nothing may need it.
    ended = subprocess.run(
        [sys.executable, "-m", "claw_local", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=170,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended.stdout


def test_the_hook_does_refuse(paths: Paths, tmp_path: Path, tries: Path) -> None:
    with pytest.raises(AssertionError, match=r"\w"):
        run(paths, tmp_path, tries, "models", "pull", "nobody/nothing")
    assert "socket." in tries.read_text()


def test_the_whole_loop_needs_no_network(paths: Paths, tmp_path: Path, tries: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    run(paths, tmp_path, tries, "ask", "What is rain?", "--max-tokens", "8")
    run(paths, tmp_path, tries, "ask", "--chat", "1", "Shorter, please.", "--max-tokens", "8")
    run(paths, tmp_path, tries, "adapters", "use", "base")  # The planted adapter is for the engine, not the trainer.
    run(paths, tmp_path, tries, "learn", "now", "--json")
    run(paths, tmp_path, tries, "adapters", "export", "1", str(out / "me.claw"))
    run(paths, tmp_path, tries, "backup", str(out / "me.backup"))
    assert not tries.exists(), tries.read_text()
    assert {file.stat().st_mode & 0o077 for file in out.iterdir()} == {0}


def test_only_the_owner_can_read_what_is_kept(paths: Paths) -> None:
    assert check_private(paths).state == "ok"
    kept = [
        path for path in paths.data.rglob("*") if paths.models not in (path, *path.parents) and not path.is_symlink()
    ]
    assert len(kept) > 5
    assert [str(path) for path in kept if path.is_dir() and path.stat().st_mode & 0o077] == []
    assert [str(path) for path in kept if path.is_file() and path.stat().st_mode & 0o077] == []


def test_a_secret_is_no_lesson_and_leaves_with_nothing_but_the_persons_own_chats(
    home: Paths, tmp_path: Path, tries: Path
) -> None:
    paths = make(home.data, lessons=1)
    with Assistant.open(paths.data) as assistant:
        first = assistant.ask(f"My key is {SECRET}. What is a key?", sampling={"max_tokens": 8})
        assistant.ask("Too long. Shorter answers, please.", chat=first.chat_id, sampling={"max_tokens": 8})
        assistant.feedback(first.message_id, "bad", hint=f"Write in lowercase and call me {SECRET}.")
        pairs = turns.pair(assistant.store)
        told = [turn.reply.id for turn in pairs if turn.reply.chat_id == first.chat_id]
        assert first.message_id in told
        assert not {turn.reply.id for turn in without_secrets(pairs)} & set(told)
        assert {turn.reply.id for turn in pairs} - set(told) <= {turn.reply.id for turn in without_secrets(pairs)}
    run(paths, tmp_path, tries, "adapters", "export", "1", str(tmp_path / "me.claw"))
    assert SECRET.encode() not in (tmp_path / "me.claw").read_bytes()
    logs = [file for file in paths.runs.rglob("*") if file.is_file()]
    assert [file for file in logs if SECRET.encode() in file.read_bytes()] == []
    assert SECRET not in run(paths, tmp_path, tries, "doctor", "--json")
