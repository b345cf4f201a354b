"""Commands run with their output in the log, and stop when they should. Real child processes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time

import pytest
from bootstrapping import verbs
from bootstrapping.progress import LiveLine
from bootstrapping.running import run_logged

from claw_local.idle.learning import SWITCH
from claw_local.store import Store


def run(tmp_path, code, **more):
    line = more.pop("line", None) or LiveLine(io.StringIO())
    return run_logged(
        [sys.executable, "-c", code],
        stage="stage",
        log=tmp_path / "log",
        line=line,
        cwd=tmp_path,
        env=os.environ,
        **more,
    )


def test_the_whole_output_is_logged_and_its_end_is_handed_back(tmp_path):
    done = run(tmp_path, "for i in range(500): print('line', i)")
    assert done.returncode == 0
    assert "line 0\n" in (tmp_path / "log").read_text()
    assert "line 0\n" not in done.tail
    assert done.tail.endswith("line 499\n")


def test_bytes_that_are_not_text_do_no_harm(tmp_path):
    done = run(tmp_path, "import sys; sys.stdout.buffer.write(b'\\xff\\xfe bad\\n')")
    assert "bad" in done.tail


def test_a_failure_keeps_its_exit_status(tmp_path):
    assert run(tmp_path, "import sys; sys.exit(3)").returncode == 3


def test_a_command_that_hangs_is_killed(tmp_path):
    started = time.monotonic()
    done = run(tmp_path, "import time; time.sleep(60)", timeout_s=0.5)
    assert done.returncode != 0
    assert time.monotonic() - started < 20


def test_ctrl_c_stops_the_command_too(tmp_path):
    class Interrupted(LiveLine):
        def show(self, text: str) -> None:
            raise KeyboardInterrupt

    code = "import time, pathlib; time.sleep(3); pathlib.Path('late').touch()"
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, code, line=Interrupted(io.StringIO()))
    assert time.monotonic() - started < 3
    time.sleep(max(0.0, 3.5 - (time.monotonic() - started)))
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize(("arguments", "status"), [([], 2), (["fly"], 2), (["learn", "--x"], 2), (["--help"], 0)])
def test_a_verb_that_does_not_exist_gets_the_usage(root, arguments, status):
    command = [sys.executable, str(root / "packaging" / "bootstrap.py"), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == status
    assert "usage: python3 packaging/bootstrap.py chat" in done.stdout + done.stderr


def test_learn_says_how_to_turn_learning_on_only_where_it_is_off(home, root, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(root))
    assert verbs._is_off(sys.executable), "a fresh account"
    store = Store(home)
    store.flags.set(SWITCH, "on")
    store.close()
    assert not verbs._is_off(sys.executable)
    assert not verbs._is_off("/no/such/python"), "not known"
