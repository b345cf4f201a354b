"""What the tools in a folder do when nobody attacks them: looking, writing with a diff, running."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from claw_local.paths import Paths
from claw_local.settings import ToolsSettings
from claw_local.tools.base import cut_middle
from claw_local.tools.folder import Place
from claw_local.tools.running import environment
from claw_local.tools.toolbox import Toolbox
from tests.tools.conftest import Tried

PYTHON = sys.executable
ROOT = Path(__file__).parents[2]


def test_listing_says_what_is_there(tried: Tried) -> None:
    assert tried("list").text == "a.txt  14 bytes\nsub/"
    assert tried("list", depth=2).text == "a.txt  14 bytes\nsub/\nsub/b.txt  5 bytes"
    assert tried("list", path="sub").text == "b.txt  5 bytes"
    assert "no none in the workspace" in tried("list", path="none").text


def test_reading_goes_by_lines(tried: Tried, root: Path) -> None:
    assert tried("read", path="a.txt").text == "one\ntwo\nthree"
    assert tried("read", path="a.txt", start=2, lines=1).text == "[lines 2 to 2 of 3]\ntwo"
    assert "3 lines only" in tried("read", path="a.txt", start=9).text
    (root / "empty").write_text("")
    assert tried("read", path="empty").text == "(empty is empty)"
    assert "path" in tried("read").text


def test_searching_finds_lines_in_any_case_and_by_name(tried: Tried, root: Path) -> None:
    (root / "sub" / "c.py").write_text("Deep = 1\n")
    assert tried("search", text="DEEP").text == "sub/b.txt:1: deep\nsub/c.py:1: Deep = 1"
    assert tried("search", text="deep", files="*.py").text == "sub/c.py:1: Deep = 1"
    assert tried("search", text="two", path="a.txt").text == "a.txt:2: two"
    (root / "many.txt").write_text("x\n" * 500)
    assert "the first 60 only" in tried("search", text="x").text


@pytest.mark.skipif(sys.platform == "win32", reason="makes folders by descriptors")
def test_a_tree_of_folders_without_end_costs_little(tried: Tried, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = os.open(root, os.O_RDONLY)
    for _ in range(600):
        os.mkdir("d", dir_fd=place)
        below = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    said = tried("search", text="two").text
    assert said.startswith("a.txt:2: two") and "100 folders deep" in said
    subprocess.run(["rm", "-rf", root / "d"], check=True)  # Too deep for those who tidy up after tests.
    looked: list[str] = []
    status = Place.status
    monkeypatch.setattr(Place, "status", lambda self, name: looked.append(name) or status(self, name))
    for folder in "xyz":
        (root / folder).mkdir()
        for number in range(200):
            (root / folder / f"{number}.txt").touch()
    assert "[more than 300: list a folder below]" in tried("list", depth=5).text
    assert len(looked) < 600


def test_writing_shows_a_diff_first_and_keeps_the_mode(tried: Tried, root: Path) -> None:
    (root / "a.txt").chmod(0o640)
    prepared = tried.prepare("write", path="a.txt", content="one\n2\nthree\n")
    assert prepared.asks and prepared.title == "write a.txt"
    assert prepared.preview == "--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n", "nothing happens before it is allowed"
    assert tried.box.perform(prepared).text == "wrote a.txt: 12 bytes"
    assert (root / "a.txt").read_text() == "one\n2\nthree\n"
    if sys.platform != "win32":
        assert (root / "a.txt").stat().st_mode & 0o777 == 0o640


def test_a_new_file_gets_its_folders_and_is_called_new(tried: Tried, root: Path) -> None:
    prepared = tried.prepare("write", path="x/y/new.txt", content="hello")
    assert prepared.title == "write x/y/new.txt (a new file)"
    assert "--- nothing\n+++ x/y/new.txt" in prepared.preview and "+hello\n\\ No newline" in prepared.preview
    assert not (root / "x").exists()
    tried.box.perform(prepared)
    assert (root / "x" / "y" / "new.txt").read_text() == "hello"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
@pytest.mark.parametrize("mask", [0o077, 0o002])
def test_who_may_read_a_new_file_is_what_the_umask_says(tried: Tried, root: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        tried("write", path="mine.txt", content="hello")
    finally:
        os.umask(before)
    assert (root / "mine.txt").stat().st_mode & 0o777 == 0o666 & ~mask


def test_appending_begins_a_line_of_its_own(tried: Tried, root: Path) -> None:
    (root / "a.txt").write_bytes(b"one\r\ntwo")
    tried("append", path="a.txt", content="three\n")
    assert (root / "a.txt").read_bytes() == b"one\r\ntwo\r\nthree\n"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_appending_keeps_to_the_files_own_encoding(tried: Tried, root: Path, encoding: str) -> None:
    file = root / "wide.txt"
    file.write_bytes("\ufeffone".encode(encoding))
    prepared = tried.prepare("append", path="wide.txt", content="zwei ü\n")
    assert "+zwei ü" in prepared.preview and "\x00" not in prepared.preview
    tried.box.perform(prepared)
    assert file.read_bytes().decode("utf-16") == "one\nzwei ü\n"


def test_what_changed_since_the_diff_was_shown_is_not_written_over(tried: Tried, root: Path) -> None:
    prepared = tried.prepare("write", path="a.txt", content="mine\n")
    (root / "a.txt").write_text("theirs\n")
    assert "has changed since" in tried.box.perform(prepared).text
    assert (root / "a.txt").read_text() == "theirs\n"


def test_what_is_so_already_asks_nothing(tried: Tried) -> None:
    prepared = tried.prepare("write", path="a.txt", content="one\ntwo\nthree\n")
    assert not prepared.asks and "so already" in tried.box.perform(prepared).text


def test_a_diff_moves_no_terminal(tried: Tried) -> None:
    preview = tried.prepare("write", path="evil.txt", content="\x1b[2J\x1b]0;title\x07 \u202eabc\n").preview
    assert "\x1b" not in preview and "\x07" not in preview and "\u202e" not in preview


def test_a_command_runs_in_the_folder_and_its_status_is_the_verdict(tried: Tried) -> None:
    result = tried("run", command=f'"{PYTHON}" -c "import os; print(sorted(os.listdir()))"')
    assert result.text == "['a.txt', 'sub']\n[exit code: 0]" and result.score == 1
    failed = tried("run", command=f'"{PYTHON}" -c "raise SystemExit(3)"')
    assert failed.text == "[exit code: 3]" and failed.score == -1
    assert "cannot be run" in tried("run", command="no-such-program-anywhere").text
    assert "quotes" in tried("run", command="echo 'half").text


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_there_is_no_shell_unless_asked(tried: Tried) -> None:
    assert tried("run", command="echo $HOME | cat").text == "$HOME | cat\n[exit code: 0]"
    assert tried("run", command="echo a | tr a b", shell=True).text == "b\n[exit code: 0]"
    assert tried.prepare("run", command="echo 'a b' c").preview.startswith("without a shell:\necho\n'a b'\nc\nin ")
    assert tried.prepare("run", command="rm x", shell=True).preview.startswith("through the shell:\nrm x\n")
    assert "cannot be shown" in tried("run", command="echo \u202e").text


def test_a_command_that_takes_too_long_ends_with_all_it_started(tried: Tried, root: Path) -> None:
    child = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(p.pid, flush=True)\ntime.sleep(60)\n"
    )
    (root / "child.py").write_text(child)
    object.__setattr__(tried.box._by_name["run"], "timeout_s", 1.0)
    began = time.monotonic()
    result = tried("run", command=f'"{PYTHON}" child.py')
    assert time.monotonic() - began < 10
    assert "timed out" in result.text and result.score == -1
    grandchild = int(result.text.split()[0])
    until = time.monotonic() + 5
    while psutil.pid_exists(grandchild) and psutil.Process(grandchild).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until, "what it started is still there"
        time.sleep(0.05)


def test_the_person_can_stop_a_command(tried: Tried) -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    prepared = tried.prepare("run", command=f'"{PYTHON}" -c "import time; time.sleep(60)"')
    began = time.monotonic()
    result = tried.box.perform(prepared, stop)
    assert "stopped by the person" in result.text and result.stopped and result.score == 0
    assert time.monotonic() - began < 5


class _Interrupted(threading.Event):
    """Ctrl-C in the middle of the waiting."""

    def is_set(self) -> bool:
        raise KeyboardInterrupt


def test_a_command_ends_with_whoever_waits_for_it(tried: Tried, tmp_path: Path) -> None:
    prepared = tried.prepare("run", command=f'"{PYTHON}" -c "import time; time.sleep(60)"')
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises(KeyboardInterrupt):
        tried.box.perform(prepared, _Interrupted())
    assert {child.pid for child in psutil.Process().children()} <= before


def test_a_command_ends_with_a_program_that_does_not_wait_for_it(tmp_path: Path) -> None:
    program = f"""
import threading, time
from pathlib import Path
from claw_local.tools.folder import Folder
from claw_local.tools.running import _AT_WORK, Running
from claw_local.tools.base import Call
command = 'sleep 60'
made = Running(Folder(Path({str(tmp_path)!r}))).prepare(Call("run", {{"command": command}}))
threading.Thread(target=made.perform, args=(None,), daemon=True).start()
while not _AT_WORK:
    time.sleep(0.01)
print(next(iter(_AT_WORK)).pid)
"""
    said = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, timeout=30, check=True, cwd=ROOT)
    until = time.monotonic() + 5
    pid = int(said.stdout)
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until, "the command is still there"
        time.sleep(0.05)


LEFT_BEHIND = """
import os, sys, time
if os.fork() == 0:  # Its parent ends at once, so that it is nobody's child; and it leaves group and session.
    os.setsid()
    if os.fork() == 0:
        os.environ.clear()
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(MARK)"])
    os._exit(0)
os.wait()
print("left one behind", flush=True)
time.sleep(AFTER)
"""


def living(mark: str) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words, status = process.info["cmdline"] or [], process.info["status"]
        if f"import time; time.sleep({mark})" in words and status != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def gone(mark: str) -> bool:
    until = time.monotonic() + 5
    while living(mark) and time.monotonic() < until:
        time.sleep(0.05)
    return not living(mark)


@pytest.mark.skipif(sys.platform != "linux", reason="a subreaper")
@pytest.mark.parametrize("after", ["0", "60"])
def test_what_leaves_the_session_of_a_command_ends_with_it_too(tried: Tried, root: Path, after: str) -> None:
    mark = f"{600 + os.getpid() % 300}.{after}"
    (root / "leave.py").write_text(LEFT_BEHIND.replace("MARK", mark).replace("AFTER", after))
    object.__setattr__(tried.box._by_name["run"], "timeout_s", 2.0)
    assert tried("run", command=f'"{PYTHON}" leave.py').text.startswith("left one behind")
    assert gone(mark)


@pytest.mark.skipif(sys.platform != "linux", reason="a subreaper")
def test_a_command_ends_with_a_program_that_is_killed(tmp_path: Path) -> None:
    mark = f"{900 + os.getpid() % 90}.5"
    (tmp_path / "leave.py").write_text(LEFT_BEHIND.replace("MARK", mark).replace("AFTER", "60"))
    program = f"""
from pathlib import Path
from claw_local.tools.folder import Folder
from claw_local.tools.running import Running
from claw_local.tools.base import Call
made = Running(Folder(Path({str(tmp_path)!r}))).prepare(Call("run", {{"command": {PYTHON + " leave.py"!r}}}))
made.perform(None)
"""
    waits = subprocess.Popen([PYTHON, "-c", program], cwd=ROOT)
    until = time.monotonic() + 20
    while not living(mark):
        assert time.monotonic() < until, "it did not begin"
        time.sleep(0.05)
    waits.kill()
    waits.wait()
    assert gone(mark)


def test_output_without_end_keeps_its_beginning_and_its_end(tried: Tried) -> None:
    program = "import sys; sys.stdout.write('BEGIN' + 'x' * 3000000 + 'END')"
    text = tried("run", command=f'"{PYTHON}" -c "{program}"').text
    assert text.startswith("BEGIN") and text.endswith("END\n[exit code: 0]") and len(text) < 7000


def test_secrets_stay_out_of_the_environment(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "CLAW_LOCAL_OPENAI_KEY"):
        monkeypatch.setenv(name, "hidden-value")
    result = tried("run", command=f'"{PYTHON}" -c "import os; print(dict(os.environ))"')
    assert "hidden-value" not in result.text and "PATH" in result.text
    assert environment({"MY_FLAG": "1", "OTHER": "2"}, ("MY_*",)).get("MY_FLAG") == "1"
    assert "OTHER" not in environment({"OTHER": "2"})


def test_a_tool_that_is_gone_since_the_model_was_told_of_it_is_said_to_be_so(root: Path, tmp_path: Path) -> None:
    home = tmp_path / "config"
    home.mkdir()
    without = Tried(Toolbox(root, Paths(data=home, config=home), ToolsSettings(run=False)))
    assert without("run", command="true").text.startswith("error: There is no tool run any more")


def test_nothing_can_be_read_from_the_terminal_by_a_command(tried: Tried) -> None:
    assert tried("run", command=f'"{PYTHON}" -c "import sys; print(repr(sys.stdin.read()))"').text.startswith("''")


def test_a_long_text_loses_its_middle() -> None:
    assert cut_middle("abc", 10) == "abc"
    assert cut_middle("a" * 50 + "z" * 50, 20) == "a" * 10 + "\n[… 80 characters left out …]\n" + "z" * 10


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_said_to_be_so(tried: Tried, root: Path) -> None:
    (root / "a.txt").chmod(0)
    assert "cannot be used" in tried("read", path="a.txt").text
