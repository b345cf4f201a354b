"""Sharing a context out: lines, pace, and seats over a real KV cache."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw_local.engine._fair import FairQueue
from claw_local.engine._native import NativeContext
from claw_local.engine._pace import ALONE_S, FEWEST, STEP_S, Pace, share
from claw_local.engine._seats import Seats, common
from claw_local.engine._threads import FixedThreads
from claw_local.engine.llama_cpp import LlamaCppEngine

ROOM = 512


def nobody(client: object) -> int:
    return 0


def served(queue: FairQueue[int]) -> list[int]:
    order = []
    while len(queue):
        client, item = queue.peek(nobody)
        queue.remove(client, item)
        order.append(item)
    return order


def test_clients_take_turns_and_each_ones_requests_keep_their_order() -> None:
    queue: FairQueue[int] = FairQueue()
    for item in (1, 2, 3, 4):
        queue.put("much", item)
    queue.put("little", 10)
    queue.put("some", 20)
    queue.put("some", 21)
    assert served(queue) == [1, 10, 20, 2, 21, 3, 4]
    with pytest.raises(LookupError):
        queue.peek(nobody)


def test_who_is_served_least_now_comes_first() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.put("busy", 1)
    queue.put("new", 2)
    assert queue.peek({"busy": 3, "new": 0}.__getitem__) == ("new", 2)
    queue.put("new", 3, first=True)
    assert queue.peek({"busy": 3, "new": 0}.__getitem__) == ("new", 3)


@given(st.lists(st.integers(1, 400), max_size=8), st.integers(0, 300))
@settings(max_examples=200, deadline=None)
def test_a_batch_is_shared_out_in_equal_parts(wants: list[int], room: int) -> None:
    given_ = share(wants, room)
    assert sum(given_) <= room
    assert all(0 <= got <= want for got, want in zip(given_, wants, strict=True))
    if wants and room >= len(wants):
        part = room // len(wants)
        # Two tokens may be left for the next batch, so that it is not one of one.
        assert all(got >= min(part, want) - 2 for got, want in zip(given_, wants, strict=True))
    if sum(wants) <= room:
        assert given_ == wants


def test_a_short_prompt_is_read_at_once_beside_a_long_one() -> None:
    assert share([2000, 12], 64) == [52, 12]


def test_the_pace_follows_what_a_token_costs_here() -> None:
    pace = Pace(256)
    for _ in range(30):
        pace.note(100, 0.1)
    assert pace.room(True) == pytest.approx(1000 * STEP_S, abs=2)
    assert pace.room(False) == min(256, pytest.approx(1000 * ALONE_S, abs=2))
    for _ in range(30):
        pace.note(20, 20.0)
    assert pace.room(True) == FEWEST
    for _ in range(60):
        pace.note(256, 0.001)
    assert pace.room(True) == 256


@given(st.lists(st.integers(0, 2), max_size=12), st.lists(st.integers(0, 2), max_size=12))
@settings(max_examples=200, deadline=None)
def test_common_beginnings(one: list[int], other: list[int]) -> None:
    length = common(one, other)
    assert one[:length] == other[:length]
    assert length in (len(one), len(other)) or one[length] != other[length]


@pytest.fixture
def context(engine: LlamaCppEngine) -> Iterator[NativeContext]:
    made = NativeContext(engine._model, context=ROOM, batch=64, threads=FixedThreads(1), sequences=4, outputs=4)
    yield made
    made.close()


def fill(seats: Seats, context: NativeContext, ids: list[int], adapters: tuple[tuple[int, float], ...] = ()) -> object:
    seat = seats.take(ids, adapters)
    new = ids[len(seat.tokens) :]
    context.decode(new, len(seat.tokens), seat.number)
    seats.add(seat, new)
    return seat


def test_seats_share_what_they_have_in_common_and_count_each_cell_once(context: NativeContext) -> None:
    seats = Seats(context, seats=4, room=ROOM, keep=ROOM)
    beginning = list(range(100, 130))
    one = fill(seats, context, [*beginning, *range(200, 210)])
    two = fill(seats, context, [*beginning, *range(300, 310)])
    assert one is not two
    assert seats.free == ROOM - 30 - 10 - 10
    assert seats.spare == seats.free
    seats.leave(one)
    assert seats.kept == 40
    assert seats.spare == ROOM - 40
    assert seats.make_room(ROOM - 40)
    assert seats.free == ROOM - 40  # The ten cells of its own are gone; those that are shared stay.
    assert not seats.make_room(ROOM - 39)


def test_a_next_turn_takes_its_old_seat_and_another_chat_takes_another(context: NativeContext) -> None:
    seats = Seats(context, seats=4, room=ROOM, keep=ROOM)
    first = fill(seats, context, list(range(100, 140)))
    seats.leave(first)
    other = fill(seats, context, list(range(500, 520)))
    assert other is not first
    seats.leave(other)
    again = seats.take([*range(100, 140), 7, 8, 9], ())
    assert again is first
    assert again.tokens == list(range(100, 140))
    under_another_adapter = seats.take([*range(100, 140), 7], ((1, 1.0),))
    assert under_another_adapter.tokens == []


def test_no_more_is_kept_than_allowed_the_oldest_goes_first(context: NativeContext) -> None:
    seats = Seats(context, seats=4, room=ROOM, keep=50)
    taken = [fill(seats, context, list(range(start, start + 30))) for start in (100, 200, 300)]
    for seat in taken:
        seats.leave(seat)
    assert seats.kept == 30
    assert seats.free == ROOM - 30
    assert seats.take(list(range(300, 330)), ()).tokens == list(range(300, 328))
