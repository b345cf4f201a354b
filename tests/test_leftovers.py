"""What a killed process leaves half made is gone at the next start, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from claw_local import Assistant, leftovers
from claw_local.paths import Paths

SCRIPT = """
import os, signal, sys
from pathlib import Path
from claw_local.files import write_pieces
from claw_local.leftovers import aside
from claw_local.paths import locate

locate(sys.argv[1]).make()

def pieces():
    yield b"half"
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[3] == "file":
    write_pieces(Path(sys.argv[2]), pieces())
else:
    with aside(Path(sys.argv[2])) as made:
        made.mkdir()
        (made / "half").write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")


def kill(home: Paths, target: Path, kind: str) -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT, str(home.data), str(target), kind], check=False)
    assert ended.returncode == -9


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("where", ["inside", "outside"])
def test_half_made_files_and_folders_are_gone_at_the_next_start(
    home: Paths, tmp_path: Path, kind: str, where: str
) -> None:
    target = home.data / "adapters" / "whole" if where == "inside" else tmp_path / "elsewhere" / "whole"
    target.parent.mkdir(parents=True)
    kill(home, target, kind)
    assert len(list(target.parent.glob(".*.tmp"))) == 1
    assert leftovers.found(home) == list(target.parent.glob(".*.tmp"))
    Assistant.open(home.data).close()
    assert list(target.parent.iterdir()) == []
    assert list((home.data / leftovers.NOTES).glob("*")) == []


def test_what_a_living_process_is_making_stays(home: Paths, tmp_path: Path) -> None:
    home.make()
    target = tmp_path / "elsewhere" / "whole"
    target.parent.mkdir()
    with leftovers.aside(target) as made:
        made.write_bytes(b"half")
        assert leftovers.sweep(home) == []
        assert made.exists()
    assert not made.exists() and list((home.data / leftovers.NOTES).iterdir()) == []


def test_names_that_only_look_like_it_and_forged_notes_delete_nothing(home: Paths, tmp_path: Path) -> None:
    home.make()
    mine = tmp_path / "letter.txt"
    mine.write_text("dear")
    for name in (".letter.tmp", "letter.4194305.1.tmp", ".letter.txt", ".x.y.tmp"):
        (home.data / name).write_text("kept")
    notes = home.data / leftovers.NOTES
    notes.mkdir()
    (notes / ".letter.txt.4194305.1.tmp").write_text(str(mine))
    (notes / ".other.4194305.1.tmp").write_text("relative/.other.4194305.1.tmp")
    assert leftovers.sweep(home) == []
    assert mine.read_text() == "dear"
    assert len(list(home.data.glob("*letter*"))) == 3


def test_a_long_name_is_written_aside_too(tmp_path: Path) -> None:
    target = tmp_path / ("ä" * 120)
    with leftovers.aside(target) as made:
        made.write_bytes(b"x")
        os.replace(made, target)
    assert target.read_bytes() == b"x"


def test_a_number_that_belongs_to_another_process_by_now_keeps_nothing(home: Paths) -> None:
    """This process is younger than the file, so the file is another's of the same number."""
    home.make()
    old = home.data / f".x.{os.getpid()}.1.tmp"
    old.write_text("half")
    os.utime(old, (1, 1))
    assert leftovers.sweep(home) == [old]
