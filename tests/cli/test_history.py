"""`claw-local history` as it is typed."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from claw_local.cli.main import app
from claw_local.paths import Paths
from claw_local.store import Store


def claw(*words: str) -> Result:
    return CliRunner().invoke(app, ["history", *words])


def as_json(*words: str) -> Any:
    result = claw(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def chat(home: Paths) -> int:
    store = Store(home)
    made = store.chats.create(title="About kites")
    question = store.messages.add(made.id, "user", "how do kites fly \x1b[31m", parent_id=None)
    store.messages.add(made.id, "assistant", "badly", parent_id=question)
    reply = store.messages.add(made.id, "assistant", "by lift", parent_id=question)
    store.adapters.add(parent_id=0, model_sha256="m", architecture="llama", lineage=[reply])
    store.close()
    return made.id


def test_finds_shows_and_lists(chat: int) -> None:
    assert "About kites" in claw("list").output
    found = claw("search", "kit")
    assert "how do kites fly" in found.output and "\x1b" not in found.output
    assert [hit["role"] for hit in as_json("search", "kites")["found"]] == ["user", "title"]
    assert claw("search", "nothing like it").exit_code == 0
    assert "badly" not in claw("show", str(chat)).output
    everything = claw("show", str(chat), "--all").output
    assert "badly" in everything and "not shown" in everything
    assert [m["shown"] for m in as_json("show", str(chat), "--all")["messages"]] == [True, False, True]


def test_archives_and_renames(chat: int) -> None:
    assert as_json("rename", str(chat), "On", "boats")["chat"]["title"] == "On boats"
    assert as_json("archive", str(chat)) == {"archived": True, "chats": [chat]}
    assert as_json("list")["chats"] == []
    assert [c["title"] for c in as_json("list", "--archived")["chats"]] == ["On boats"]
    claw("archive", str(chat), "--undo")
    assert len(as_json("list")["chats"]) == 1


def test_exports_whole_files_for_their_owner_only(chat: int, tmp_path: Path) -> None:
    assert claw("export", str(chat)).output.startswith("# About kites\n")
    target = tmp_path / "out.json"
    assert claw("export", "--all", "--format", "json", "--out", str(target)).exit_code == 0
    assert len(json.loads(target.read_text())["chats"][0]["messages"]) == 3
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["out.json"]


def test_an_export_writes_over_a_file_only_when_told_so_and_never_over_a_folder(chat: int, tmp_path: Path) -> None:
    target, link = tmp_path / "mine.md", tmp_path / "link.md"
    target.write_text("old")
    link.symlink_to(target)
    for out in (target, link):
        refused = claw("export", str(chat), "--out", str(out))
        assert refused.exit_code == 2 and "--force" in refused.output
    assert target.read_text() == "old"
    assert claw("export", str(chat), "--out", str(link), "--force").exit_code == 0
    assert link.is_symlink() and target.read_text().endswith("by lift\n")
    link.unlink()
    link.symlink_to(tmp_path / "new.md")
    assert claw("export", str(chat), "--out", str(link)).exit_code == 0
    assert link.is_symlink() and (tmp_path / "new.md").read_text().endswith("by lift\n")
    for out, code in ((tmp_path, 2), (tmp_path / "mine.md" / "below", 1), (tmp_path / "none" / "x.md", 1)):
        refused = claw("export", str(chat), "--out", str(out), "--force")
        assert refused.exit_code == code and "Traceback" not in refused.output
    link.unlink()
    link.symlink_to(link)
    assert claw("export", str(chat), "--out", str(link), "--force").exit_code == 1
    assert link.is_symlink() and list(tmp_path.glob(".*.tmp")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs and no /dev")
def test_an_export_goes_straight_into_what_the_shell_hands_over_and_into_no_other_pipe_or_device(
    chat: int, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)  # Nobody reads from it: whoever opened it for writing would wait for ever.
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    for out in (fifo, link):
        refused = claw("export", str(chat), "--out", str(out), "--force")
        assert refused.exit_code == 2 and "no regular file" in refused.output
    assert fifo.is_fifo() and Path(os.devnull).is_char_device() and link.is_symlink()
    # The shell's own file, as it stands behind /dev/stdout: what is in it before and after stays.
    line = '{ echo before; "$0" -m claw_local history export 1 --out /dev/stdout; echo after; }'
    for rest in (f" > {tmp_path / 'all'}", f" | cat > {tmp_path / 'all'}"):
        subprocess.run(["sh", "-c", line + rest, sys.executable], check=True, timeout=60, stderr=subprocess.DEVNULL)
        written = (tmp_path / "all").read_text()
        assert written.startswith("before\n# About kites\n") and written.endswith("by lift\nafter\n")


def test_an_export_never_goes_into_a_file_that_the_program_itself_has_open(chat: int, home: Paths) -> None:
    with home.database.open("r+b") as own:
        before = own.read()
        refused = claw("export", str(chat), "--out", f"/dev/fd/{own.fileno()}", "--force")
        assert refused.exit_code == 1
    assert home.database.read_bytes() == before


def test_deletes_for_good_when_told_so_and_says_who_learned_from_it(chat: int) -> None:
    refused = claw("delete", str(chat))
    assert refused.exit_code == 2 and "--yes" in refused.output
    assert len(as_json("list")["chats"]) == 1
    deleted = claw("delete", str(chat), "--yes")
    assert deleted.exit_code == 0 and "stays in these: 1" in deleted.output
    assert as_json("list")["chats"] == []


def test_imports_and_says_what_was_left_out(home: Paths, tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    message = {"uuid": "m", "sender": "human", "text": "hi"}
    file.write_text(json.dumps([{"uuid": "k", "name": "Boats", "chat_messages": [message]}, {"uuid": "e"}]))
    first = claw("import", str(file))
    assert first.exit_code == 0
    assert "Imported from Claude: 1 chat, 1 new message." in first.output
    assert "Left out: 1 entry (no chats of a kind that is known)." in first.output
    again = as_json("import", str(file))
    assert (again["chats"], again["already"]) == (0, 1)
    assert not as_json("list")["chats"][0]["learn"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show", "7"), 1, "no chat 7"),
        (("export", "7"), 1, "no chat 7"),
        (("export",), 2, "their ids, or --all"),
        (("export", "1", "--all"), 2, "not both"),
        (("delete", "7", "--yes"), 1, "no chat 7"),
        (("archive", "7"), 1, "no chat 7"),
        (("rename", "7", "x"), 1, "no chat 7"),
        (("import", "missing.zip"), 1, "There is no file"),
        (("search",), 2, "Missing argument"),
        (("search", "kites", "--limit", str(10**20)), 2, "--limit"),
        (("list", "--limit", str(10**20)), 2, "--limit"),
    ],
)
def test_what_cannot_be_done_is_said(home: Paths, words: tuple[str, ...], code: int, said: str) -> None:
    result = claw(*words)
    assert result.exit_code == code
    assert said in result.output
    assert "Traceback" not in result.output


def test_ctrl_c_stops_an_import_in_order(home: Paths, tmp_path: Path) -> None:
    messages = [{"uuid": f"m{n}", "sender": "human", "text": f"words {n} " * 50} for n in range(40)]
    file = tmp_path / "conversations.json"
    with file.open("w") as out:
        out.write("[")
        for n in range(3000):
            out.write(("," if n else "") + json.dumps({"uuid": f"k{n}", "name": f"c{n}", "chat_messages": messages}))
        out.write("]")
    command = [sys.executable, "-m", "claw_local", "history", "import", str(file)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    store = Store(home)
    deadline = time.monotonic() + 20
    while not store.chats.list(limit=1) and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    out_text, err_text = child.communicate(timeout=20)
    assert child.returncode == 130, err_text
    assert "Stopped. What was read until then is there" in out_text
    chats = store.chats.list(limit=-1)
    assert 0 < len(chats) < 3000
    assert all(len(store.trees.messages(chat.id)) == 40 for chat in chats)
