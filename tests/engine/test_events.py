"""Server-sent events, however they are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_local.engine._events import LONGEST_EVENT, LONGEST_LINE, TooLong, bounded, events

STREAM = (
    ': hello\r\n\r\ndata: {"a": "é\u2028\x85"}\r\n\r\nevent: x\ndata:two\ndata: lines\n\ndata: [DONE]\r\rdata: last'
).encode()
SAID = ['{"a": "é\u2028\x85"}', "two\nlines", "[DONE]", "last"]


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_the_same_events_come_out_wherever_the_bytes_are_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    assert list(events(STREAM[a:b] for a, b in pairwise(places))) == SAID


def test_an_endless_line_is_given_up() -> None:
    with pytest.raises(TooLong):
        list(events(b"x" * 2**20 for _ in range(LONGEST_LINE // 2**20 + 2)))


def test_an_event_of_ever_more_lines_is_given_up() -> None:
    line = b"data: " + b"x" * 2**20 + b"\n"
    most = LONGEST_EVENT // 2**20
    with pytest.raises(TooLong):
        list(events(line for _ in range(most + 2)))
    assert len(list(events(line + b"\n" for _ in range(most + 2)))) == most + 2, "each event counts for itself"


def test_chunks_pass_unchanged_however_many_as_long_as_lines_end() -> None:
    piece = b"x" * 2**20 + b"\n"
    assert sum(len(chunk) for chunk in bounded(piece for _ in range(20))) == 20 * len(piece)
    assert list(bounded([b"a", b"b\nc", b""])) == [b"a", b"b\nc", b""]
    with pytest.raises(TooLong):
        list(bounded([b"\n", *(b"x" * 2**20 for _ in range(LONGEST_LINE // 2**20 + 1))]))
