"""A text file that a person named is read, and nothing else is waited for or read without an end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claw_local.cli.main import app
from claw_local.errors import UsageError
from claw_local.judge.examples import read
from claw_local.named_text import read_text
from claw_local.paths import Paths


def test_a_text_is_read_without_the_mark_that_notepad_puts_before_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffkites".encode())
    (tmp_path / "link").symlink_to(tmp_path / "a.txt")
    assert read_text(tmp_path / "link") == "kites"
    assert read_text(tmp_path / "a.txt", most=8) == "kites"


@pytest.mark.parametrize(
    ("name", "says"),
    [("big", "larger than"), ("folder", "is a folder"), ("pipe", "a device or a pipe"), ("/dev/zero", "a device")],
)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs and no /dev")
def test_what_is_no_file_or_too_large_is_said_at_once(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "big").write_bytes(b"x" * 9)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=says):
        read_text(tmp_path / name, most=8)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a device that has no end")
def test_commands_that_read_a_text_say_what_it_is(home: Paths) -> None:
    done = CliRunner().invoke(app, ["feedback", "2", "--edit", "/dev/zero"])
    assert done.exit_code == 2 and "Cannot read /dev/zero: it is a device or a pipe" in done.output
    endless = CliRunner().invoke(app, ["feedback", "2", "--edit", "-"], input=b"x" * 10_000_001)
    assert endless.exit_code == 2 and "larger than 10 MB" in endless.output
    with pytest.raises(UsageError, match="a device or a pipe"):
        read(Path("/dev/zero"))
