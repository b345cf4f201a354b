"""Streamed text: whole characters, and nothing of a stop string."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from claw_local.engine._text import StreamText


def test_a_character_comes_out_when_its_last_byte_has_come() -> None:
    text = StreamText(())
    emoji = "🥚".encode()
    assert [text.push(emoji[n : n + 1]) for n in range(4)] == ["", "", "", "🥚"]


def test_a_character_cut_off_at_the_end_is_dropped() -> None:
    text = StreamText(())
    assert text.push("a🥚".encode()[:3]) == "a"
    assert text.finish() == ""


def test_bytes_that_are_no_text_become_replacement_characters() -> None:
    assert StreamText(()).push(b"a\xffb") == "a�b"


def test_a_stop_string_may_span_pieces_and_is_left_out_with_what_follows() -> None:
    text = StreamText(("STOP",))
    assert [text.push(piece) for piece in (b"one S", b"TO", b"P two")] == ["one ", "", ""]
    assert text.stopped
    assert text.push(b"more") == text.finish() == ""


def test_what_only_began_like_a_stop_string_comes_out_after_all() -> None:
    text = StreamText(("STOP",))
    assert text.push(b"one ST") == "one "
    assert text.push(b"AR") == "STAR"
    assert text.push(b" ST") == " "
    assert text.finish() == "ST"


def test_the_earliest_stop_string_counts() -> None:
    text = StreamText(("cd", "bcd", ""))
    assert text.push(b"abcd") == "a"


@given(st.text(max_size=40), st.lists(st.text(min_size=1, max_size=4), max_size=3), st.integers(1, 5))
def test_any_text_in_any_pieces_comes_out_up_to_the_first_stop(whole: str, stops: list[str], size: int) -> None:
    stream, out, data = StreamText(stops), "", whole.encode("utf-8", "replace")
    for at in range(0, len(data), size):
        out += stream.push(data[at : at + size])
    out += stream.finish()
    whole = data.decode()
    ends = [place for stop in stops if (place := whole.find(stop)) >= 0]
    if not ends:
        assert out == whole
    else:
        # Pieces decide which of overlapping stops is met first; nothing before the earliest end is ever lost.
        assert whole.startswith(out)
        assert not any(stop in out for stop in stops)
