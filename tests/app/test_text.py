"""Text from a model, a paste or a database must never drive the terminal."""

from __future__ import annotations

import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_app.text import Cleaner, clean, day_name, excerpt, local_time, one_line

NASTY = [
    "a\x1b[31mred\x1b[0mb",
    "a\x1b]0;title\x07b",
    "a\x1b]52;c;ZXZpbA==\x1b\\b",
    "a\x1bPq#0\x1b\\b",
    "a\x9b2Jb",
    "a\x1bcb",
    "a\x07\x08\x7fb",
    "a\u202eb\u2069",
    "a\ud800b",
    "a&#x202e;b&#13;",
    "a\x1b]0;never ended",
    "a\x1b",
]


@pytest.mark.parametrize("text", NASTY)
def test_nothing_that_drives_a_terminal_is_left(text: str) -> None:
    assert not any(
        ord(letter) < 32 or 127 <= ord(letter) < 160 or 0xD800 <= ord(letter) < 0xE000 for letter in clean(text)
    )
    clean(text).encode()


def test_sequences_go_whole_and_words_stay() -> None:
    assert clean("a\x1b[31mred\x1b[0mb") == "aredb"
    assert clean("x\x1b]0;title\x07y") == "xy"
    assert clean("one\r\ntwo\rthree\tfour\n") == "one\ntwo\nthree\tfour\n"
    assert clean("AT&T &amp; you &#65;") == "AT&T &amp; you &#65;"


@pytest.mark.parametrize("text", NASTY)
def test_a_sequence_cut_into_pieces_is_cleaned_as_a_whole(text: str) -> None:
    cleaner = Cleaner()
    assert "".join(map(cleaner.feed, text)) + cleaner.flush() == clean(text)


def test_plain_text_is_never_held_back() -> None:
    cleaner = Cleaner()
    assert cleaner.feed("Tom & Jerry [1]") == "Tom & Jerry [1]"
    assert cleaner.feed("\x1b[3") == ""
    assert cleaner.feed("1mred") == "red"


@given(st.lists(st.text(alphabet="ab\x1b[]m;0\x07\\\n\r&#x202e1;P", max_size=8), max_size=8))
def test_pieces_are_safe_however_they_are_cut(pieces: list[str]) -> None:
    cleaner = Cleaner()
    shown = "".join(map(cleaner.feed, pieces)) + cleaner.flush()
    assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in shown)


def test_a_title_is_one_line() -> None:
    assert one_line("  two\nlines\x1b[2J ") == "two lines"


def test_a_long_text_says_how_much_follows() -> None:
    assert excerpt("x" * 1_000_000, 10) == "x" * 10 + "\n… and 999,990 more characters"
    assert excerpt("a\nb\nc\nd", lines=2) == "a\nb\n… and 3 more characters"
    assert excerpt("short", 10) == "short"


def test_chats_are_grouped_by_the_local_day() -> None:
    today = date(2026, 3, 10)
    assert day_name("2026-03-10T12:00:00+00:00", today) == "Today"
    assert day_name("2026-03-09 12:00:00", today) == "Yesterday"
    assert day_name("2026-03-06T12:00:00Z", today) == "Friday"
    assert day_name("2026-01-21T12:00:00Z", today) == "21 January"
    assert day_name("2025-01-01T12:00:00Z", today) == "1 January 2025"
    assert day_name("not a time", today) == "Earlier"


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone of a process can be set on POSIX only")
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_the_first_and_the_last_day_there_are_can_be_shown_everywhere(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for stamp in ("0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"):
            assert local_time(stamp).tzinfo is not None
            assert day_name(stamp, date(2026, 11, 30)) in ("Earlier", "Today")
    finally:
        monkeypatch.undo()
        time.tzset()
