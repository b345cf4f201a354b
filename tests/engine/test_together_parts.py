"""Sharing a context out: lines, pace, and seats over a real KV cache."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw_local.engine._fair import FairQueue
from claw_local.engine._native import Adapters, NativeContext
from claw_local.engine._pace import ALONE_S, FEWEST, STEP_S, Pace, share
from claw_local.engine._seats import Seat, Seats
from claw_local.engine._threads import FixedThreads
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.engine.prefixes import common

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
def test_a_batch_is_shared_out_so_that_each_gets_on(wants: list[int], room: int) -> None:
    given_ = share(wants, room)
    assert sum(given_) <= room
    assert all(0 <= got <= want for got, want in zip(given_, wants, strict=True))
    if wants and room >= len(wants):
        part = room // 2 // len(wants)
        # Two tokens may be left for the next batch, so that it is not one of one.
        assert all(got >= min(part, want) - 2 for got, want in zip(given_, wants, strict=True))
    if sum(wants) <= room:
        assert given_ == wants


def test_a_short_prompt_is_read_at_once_beside_a_long_one() -> None:
    assert share([2000, 12], 64) == [52, 12]
    assert share([2000, 40], 64) == [24, 40]
    assert share([1, 1, 1], 2) == [1, 1, 0]


def test_the_pace_follows_what_a_token_costs_here() -> None:
    pace = Pace(256)
    for _ in range(30):
        pace.note(100, 0.1)
    assert pace.room(True) == pytest.approx(1000 * STEP_S, abs=2)
    assert pace.room(False) == pytest.approx(1000 * ALONE_S, abs=2)
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


def fill(seats: Seats, context: NativeContext, ids: list[int], adapters: Adapters = ()) -> tuple[Seat, int]:
    """A seat that holds these tokens, and how many of them had to be computed."""
    seat = seats.take(ids, adapters)
    new = ids[len(seat.tokens) :]
    context.decode(new, len(seat.tokens), seat.number)
    seats.add(seat, new)
    return seat, len(new)


def test_what_is_kept_no_more_is_given_back_to_the_system(context: NativeContext) -> None:
    for start in range(0, ROOM, 64):
        context.decode([1] * 64, start, 0)
    process, small = psutil.Process(), []
    for _ in range(3):  # The heap learns which sizes come and go.
        context.save(0)
    before = process.memory_info().rss
    states = []
    for _ in range(20):
        states.append(context.save(0))
        small.append(bytearray(20_000))
    held = process.memory_info().rss - before
    size = sum(state.nbytes for state in states if state is not None)
    assert size > 10_000_000 and held > 0.9 * size
    states.clear()
    assert process.memory_info().rss - before < 0.2 * size
    assert len(small) == 20, "what is still in use lies between"


def test_seats_share_what_they_have_in_common_and_count_each_cell_once(context: NativeContext) -> None:
    seats = Seats(context, seats=4, room=ROOM, keep=ROOM)
    beginning = list(range(100, 130))
    one, computed = fill(seats, context, [*beginning, *range(200, 210)])
    two, again = fill(seats, context, [*beginning, *range(300, 310)])
    assert (computed, again) == (40, 10)
    assert seats.free == ROOM - 30 - 10 - 10
    assert seats.shareable([*beginning, 1, 2, 3], ()) == 30
    seats.leave(one)
    assert seats.free == ROOM - 40
    assert seats.kept == 40
    seats.leave(two)
    assert seats.free == ROOM


def test_what_is_kept_is_fetched_and_gives_the_same_logits(context: NativeContext) -> None:
    seats = Seats(context, seats=4, room=ROOM, keep=ROOM)
    ids = list(range(100, 140))
    context.decode(ids, 0, 3, [39])
    expected = context.logits(39).copy()
    context.remove(3, 0)
    first, _ = fill(seats, context, ids)
    seats.leave(first)
    other, _ = fill(seats, context, list(range(500, 520)))
    again = seats.take(ids, ())
    assert len(again.tokens) == 38
    context.decode(ids[38:], 38, again.number, [1])
    assert np.array_equal(context.logits(1), expected)
    seats.leave(other)
    assert seats.take([*ids, 7], ((1, 1.0),)).tokens == []  # Another adapter has another cache.


def test_a_longer_turn_takes_the_place_of_what_was_kept_of_it(context: NativeContext) -> None:
    seats = Seats(context, seats=4, room=ROOM, keep=ROOM)
    for length in (20, 30, 40):
        seat, computed = fill(seats, context, list(range(100, 100 + length)))
        assert computed == (20 if length == 20 else 10)
        seats.leave(seat)
        assert seats.kept == length


def test_no_more_is_kept_than_allowed_and_the_oldest_goes_first(context: NativeContext) -> None:
    seats = Seats(context, seats=4, room=ROOM, keep=70)
    for seat in [fill(seats, context, list(range(start, start + 30)))[0] for start in (100, 200, 300)]:
        seats.leave(seat)
    assert seats.kept == 60
    assert seats.free == ROOM
    assert [len(seats.take([*range(start, start + 30), 1, 2], ()).tokens) for start in (100, 200, 300)] == [0, 30, 30]


def test_a_lost_cache_leaves_everyone_seated(context: NativeContext) -> None:
    seats = Seats(context, seats=4, room=ROOM, keep=ROOM)
    kept, _ = fill(seats, context, list(range(200, 240)))
    seats.leave(kept)
    seat, _ = fill(seats, context, list(range(100, 130)))
    seats.forget()
    assert (seat.taken, seat.tokens, seats.free) == (True, [], ROOM)
    assert len(seats.take([*range(200, 240), 1, 2], ()).tokens) == 40


@pytest.mark.slow
def test_attention_in_one_kernel_is_quicker_where_several_replies_share_a_context(engine: LlamaCppEngine) -> None:
    """Each token is compared with its own reply's cells only, not with those of all."""
    replies, length = 6, 192
    tokens = (engine.tokenize("Rain fell on the hills and the sea, and nobody minded. ") * 40)[:length]
    made = {}
    for fused in (True, False):
        context = made[fused] = NativeContext(
            engine._model,
            context=replies * (length + 64),
            batch=128,
            threads=FixedThreads(1),
            sequences=replies,
            outputs=replies,
            fused=fused,
        )
        for reply in range(replies):
            for start in range(0, length, 128):
                context.decode(tokens[start : start + 128], start, reply)
    ratios = []
    for step in range(40):  # In turns, so that whatever else the machine does slows both down.
        took = {}
        for fused, context in made.items():
            began = time.perf_counter()
            context.decode(
                [tokens[step]] * replies, [length + step] * replies, list(range(replies)), list(range(replies))
            )
            took[fused] = time.perf_counter() - began
        ratios.append(took[True] / took[False])
    for context in made.values():
        context.close()
    assert statistics.median(ratios) < 1.0, ratios
