"""What stands in a paste is never taken for a key, however the terminal's bytes are cut."""

from __future__ import annotations

import pytest
from textual._xterm_parser import XTermParser
from textual.events import Key, Paste

from claw_app.pastes import Pastes, guard_pastes

HOSTILE = "\x1b[200~one \x1b[31mred\x1b\r/learn on\r\x1b\x1b[A\x1b[200~ two\x1b[20\x1b[201~k\x1b[A"
TEXT = "one [31mred\r/learn on\r[A[200~ two[20"


@pytest.fixture(autouse=True)
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(XTermParser, "feed", XTermParser.feed)
    guard_pastes()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_a_paste_types_nothing(size: int) -> None:
    parser = XTermParser()
    pieces = [HOSTILE[start : start + size] for start in range(0, len(HOSTILE), size)]
    events = [event for piece in pieces for event in parser.feed(piece)]
    assert [event.text for event in events if isinstance(event, Paste)] == [TEXT]
    assert [event.key for event in events if isinstance(event, Key)] == ["k", "up"]


def test_outside_of_a_paste_nothing_is_held_back() -> None:
    pastes = Pastes()
    assert [pastes.clean(piece) for piece in ("\x1b", "[20", "x\x1b", "", "[200", "~a\x1b", "b\x1b[201", "~\x1b")] == [
        *("\x1b", "[20", "x\x1b", "", "[200", "~a"),
        "b",
        "\x1b[201~\x1b",
    ]
