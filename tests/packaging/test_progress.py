"""What a person sees while pip works."""

from __future__ import annotations

import io

import pytest
from bootstrapping.progress import LiveLine, PipProgress, clock, describe


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def after(*lines: str) -> PipProgress:
    progress = PipProgress()
    for line in lines:
        progress.feed(line)
    return progress


def test_the_compilers_steps_become_a_percentage():
    progress = after("  *** Building project with Ninja...", "  [58/193] /usr/bin/g++ -DGGML_BUILD -o x.o -c x.cpp")
    assert progress.doing == "compiling llama.cpp, step 58 of 193"
    assert progress.fraction == pytest.approx(58 / 193)
    assert describe("llama.cpp", 83, progress) == "llama.cpp  1:23  compiling llama.cpp, step 58 of 193 30%"


def test_a_download_shows_its_name_its_size_and_how_far_it_is():
    progress = after("  Downloading torch-2.13.0-cp311-none-linux.whl (184.5 MB)\n", "Progress 46125000 of 184500000\n")
    assert progress.doing == "downloading torch (184.5 MB)"
    assert progress.fraction == pytest.approx(0.25)


def test_the_next_thing_takes_the_percentage_away():
    progress = after("[3/4] cc x.c", "Installing collected packages: numpy, rich, typer")
    assert progress.doing == "unpacking 3 packages"
    assert progress.fraction is None


@pytest.mark.parametrize(
    ("line", "doing"),
    [
        ("Collecting textual<9,>=8.2", "looking for textual"),
        ("Collecting numpy", "looking for numpy"),
        ("Processing /here/annotated_types-0.8.0-py3-none-any.whl (from x)", "looking for annotated_types"),
        ("  Using cached rich-15.0.0-py3-none-any.whl (312 kB)", "downloading rich (312 kB)"),
        ("Downloading https://example.org/files/numpy-2.4.6-cp311.whl (16 MB)", "downloading numpy (16 MB)"),
        ("Building wheel for llama-cpp-python (pyproject.toml): started", "building llama-cpp-python"),
        ("  Installing build dependencies: started", "fetching build tools"),
    ],
)
def test_pips_lines_are_told_in_a_few_words(line, doing):
    assert after(line).doing == doing


def test_lines_that_mean_nothing_change_nothing():
    progress = after("[2/9] cc a.c", "  -- Found Threads: TRUE", "", "[not/steps] at all")
    assert progress.doing == "compiling llama.cpp, step 2 of 9"


def test_a_terminal_gets_one_line_that_is_rewritten(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    out = Terminal()
    line = LiveLine(out)
    line.show("a long line about what is going on right now")
    line.show("short")
    line.settle("done")
    first, second, *_ = out.getvalue().split("\r")[1:]
    assert len(first) <= 39
    assert first.endswith("...")
    assert second.rstrip() == "short"
    assert len(second) >= len(first)  # what was longer before is painted over
    assert out.getvalue().endswith("done\n")


def test_without_a_terminal_there_is_a_plain_line_now_and_then(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("bootstrapping.progress.time.monotonic", lambda: now[0])
    out = io.StringIO()
    line = LiveLine(out)
    for second in range(61):
        now[0] = 1000.0 + second
        line.show(f"at {second}")
    assert out.getvalue().splitlines() == ["at 0", "at 30", "at 60"]


def test_minutes_and_seconds():
    assert [clock(7.9), clock(61), clock(3601)] == ["0:07", "1:01", "60:01"]
