"""Lines of a terminal are broken between words; into a pipe nothing is broken, and what streams goes on streaming."""

from __future__ import annotations

import io
import os
import sys

import pytest

from claw_local.cli.wrapped import Wrap, echo, room


def whole(text: str, width: int) -> str:
    wrap = Wrap(width)
    return wrap.feed(text) + wrap.rest()


def pieces(text: str, width: int) -> str:
    wrap = Wrap(width)
    return "".join(map(wrap.feed, text)) + wrap.rest()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Rain is water that falls.", ["Rain is", "water that", "falls."]),
        ("ten cells.\nand more", ["ten cells.", "and more"]),
        ("a  b", ["a  b"]),
        ("  indented words", ["  indented", "words"]),
        ("see incomprehensibilities now", ["see", "incomprehensibilities", "now"]),
        ("雨は空から落ちる水です", ["雨は空から", "落ちる水で", "す"]),
        ("one\n\ntwo", ["one", "", "two"]),
        ("```\nlong_line(of, code)\n```\nand then words", ["```", "long_line(of, code)", "```", "and then", "words"]),
        ("word ", ["word "]),
        ("", [""]),
    ],
)
def test_lines_end_between_words(text: str, lines: list[str]) -> None:
    assert whole(text, 10).split("\n") == lines
    assert pieces(text, 10) == whole(text, 10)


def test_only_the_word_that_is_coming_is_held_back() -> None:
    wrap = Wrap(20)
    assert wrap.lead("Answer: ") == "Answer: "
    assert wrap.feed("Rain is wa") == "Rain is"
    assert wrap.feed("ter, so they say") == "\nwater, so they"
    assert wrap.feed("ing it") == "\nsaying" and wrap.rest() == " it"


def test_a_word_that_cannot_stand_on_this_line_is_begun_on_the_next_at_once() -> None:
    wrap = Wrap(10)
    assert wrap.feed("eight on ") == "eight on"
    assert wrap.feed("the") == "\nth"
    assert wrap.feed("re") == "" and wrap.feed(" ") == "ere"


def test_a_pipe_gets_the_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert room(io.StringIO()) == 0 and room(None) == 0
    text = "word " * 60
    echo(text)
    assert capsys.readouterr().out == f"{text}\n"
    assert [Wrap(0).feed(piece) for piece in ("ab", " c")] == ["ab", " c"]


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
def test_a_terminal_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    ours, theirs = os.openpty()
    with open(theirs, "w", encoding="utf-8") as terminal:
        assert room(terminal) == 39
    os.close(ours)
