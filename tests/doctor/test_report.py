"""What the doctor says, to people and to programs."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from claw_local.doctor import Check, as_json, exit_code, render
from claw_local.doctor.check import size, tidy

FINE = Check("python", "ok", "3.11")
NO_TORCH = Check("torch", "warning", "not installed: learning needs it", "pip install that")
BAD_TORCH = Check("torch", "problem", "it does not work", "reinstall it")
NO_MODEL = Check("model", "problem", "there is none", "get one")


def shown(*checks: Check, encoding: str = "utf-8") -> tuple[int, list[str]]:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding=encoding)
    status = render(iter(checks), Console(file=stream, width=100))
    stream.flush()
    return status, [line.rstrip() for line in buffer.getvalue().decode(encoding).splitlines()]


def test_only_what_stops_a_chat_fails():
    assert exit_code([FINE, NO_TORCH, BAD_TORCH]) == 0
    assert exit_code([FINE, NO_MODEL]) == 1


def test_programs_get_every_finding_as_one_object():
    told = json.loads(json.dumps(as_json([FINE, NO_MODEL])))
    assert told["ok"] is False
    assert told["checks"][1] == {"name": "model", "state": "problem", "detail": "there is none", "remedy": "get one"}
    assert as_json(iter([FINE]))["ok"] is True


def test_people_get_symbol_word_and_the_remedy_on_its_own_line():
    status, lines = shown(FINE, NO_TORCH, NO_MODEL)
    assert status == 1
    assert lines[0].startswith("✓ ok")
    assert lines[1].startswith("! warning")
    assert lines[2].strip() == "pip install that"
    assert lines[3].startswith("✗ problem")
    assert (
        len({line.index(word) for line, word in zip(lines[0:4:1], ("3.11", "not", "pip", "there"), strict=True)}) == 1
    )
    assert "does not work" in lines[-1]


def test_a_full_disk_keeps_nothing_but_does_not_stop_a_chat():
    full = Check("disk", "problem", "0 MB free", "free some space")
    assert shown(FINE, full) == (1, shown(FINE, full)[1]) and "cannot be kept" in shown(FINE, full)[1][-1]
    assert "does not work" in shown(full, NO_MODEL)[1][-1]


def test_when_all_is_well_it_says_so():
    assert shown(FINE)[1][-1] == "Everything works."
    assert shown(FINE, NO_TORCH)[1][-1].startswith("Chatting works.")


def test_a_terminal_without_unicode_gets_plain_symbols():
    status, lines = shown(NO_MODEL, encoding="ascii")
    assert status == 1
    assert lines[0].startswith("x problem")


def test_a_long_remedy_stays_one_line_to_copy():
    command = "CMAKE_ARGS=x " + "pip install " * 20
    _, lines = shown(Check("engine", "problem", "bad", command.strip()))
    assert command.strip() in [line.strip() for line in lines]


def test_the_home_folder_is_never_spelled_out():
    assert tidy(Path.home() / "x" / "y.db") == str(Path("~/x/y.db"))
    assert [size(98_000_000), size(2.5e9)] == ["98 MB", "2.5 GB"]
