"""How long the person has been away, whatever the wall clock does; and what is remembered across programs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from claw_local.idle import activity, records
from claw_local.idle.activity import Presence
from claw_local.idle.clock import Ticks
from claw_local.paths import Paths
from claw_local.store import Store
from tests.idle.simulated import Clock, add_message


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


def at_noon(store: Store, clock: Clock) -> None:
    """The last message was written at the simulated clock's time."""
    message = add_message(store)
    with store.database.write() as db:
        stamp = clock.wall().isoformat(timespec="microseconds")
        db.execute("update messages set created_at = ? where id >= ?", [stamp, message - 1])


def test_it_counts_from_the_last_message_and_from_a_key_in_another_program(store: Store) -> None:
    clock = Clock()
    at_noon(store, clock)
    clock.advance(100)
    presence = Presence(store, clock)
    assert presence.away_s() == pytest.approx(100)
    clock.advance(50)
    assert presence.away_s() == pytest.approx(150)
    activity.note(store, clock.wall())
    assert presence.away_s() == pytest.approx(0)
    clock.advance(30)
    at_noon(store, clock)
    clock.advance(5)
    assert presence.away_s() == pytest.approx(5)
    assert Presence(store, clock).away_s() == pytest.approx(5), "a program that begins now sees the same"


@pytest.mark.parametrize("jump_h", [-48.0, -1.0, 1.0, 48.0])
def test_a_program_that_was_watching_does_not_notice_that_the_clock_is_set(store: Store, jump_h: float) -> None:
    clock = Clock()
    at_noon(store, clock)
    presence = Presence(store, clock)
    presence.away_s()
    clock.advance(60)
    assert presence.away_s() == pytest.approx(60)
    clock.time += timedelta(hours=jump_h)
    clock.advance(10)
    # Set back, the sign in the store lies in the future and is written anew: that may count as being here just now.
    assert presence.away_s() == pytest.approx(70) or (jump_h < 0 and presence.away_s() <= 70)
    before = presence.away_s()
    clock.advance(600)
    assert presence.away_s() == pytest.approx(before + 600), "and it never stands still"


def test_a_sign_that_is_new_is_not_older_than_the_last_look(store: Store) -> None:
    clock = Clock()
    at_noon(store, clock)
    presence = Presence(store, clock)
    presence.away_s()
    at_noon(store, clock)
    clock.time += timedelta(hours=5)  # Set forward before anybody looked.
    clock.advance(10)
    assert presence.away_s() == pytest.approx(10)


def test_one_that_begins_after_the_clock_was_set_back_begins_to_count_once(store: Store) -> None:
    clock = Clock()
    at_noon(store, clock)
    clock.time -= timedelta(days=3)
    assert Presence(store, clock).away_s() == 0
    clock.advance(300)
    assert Presence(store, clock).away_s() == pytest.approx(300), "the timer's program, called again"


def test_keys_close_together_are_one_sign(store: Store) -> None:
    clock = Clock()
    presence = Presence(store, clock)
    told = []
    for _ in range(100):
        told.append(presence.touch())
        clock.advance(0.3)
    assert told[0] and sum(told) == 3
    assert presence.away_s() < 1


def test_what_cannot_be_read_counts_as_never_written(store: Store) -> None:
    clock = Clock()
    for name in (activity.FLAG, records.HELD, records.USED, records.REST, records.TRIED):
        for nonsense in ("{", "[]", '["x", "y"]', "[1, 2, 3]", "null", "7"):
            store.flags.set(name, nonsense)
            assert Presence(store, clock).away_s() == 0
            assert records.held(store, clock.wall()) is None or name == records.HELD
            assert records.used_s(store, clock.wall().date()) == 0
            assert records.rest_s(store, clock.wall()) == 0
            assert records.tried(store) == (0, 0)


def test_held_until_a_time_ends_by_itself_and_survives_a_restart(home: Paths, store: Store) -> None:
    clock = Clock()
    records.hold(store, clock.wall(), clock.wall() + timedelta(hours=1))
    again = Store(home)
    assert records.held(again, clock.wall()) is not None
    clock.advance(3601)
    assert records.held(again, clock.wall()) is None
    records.hold(again, clock.wall())
    clock.advance(10**7)
    assert records.held(store, clock.wall()) is not None
    assert records.release(store) and not records.release(store)
    again.close()


def test_a_day_s_time_is_added_up_and_begins_anew(store: Store) -> None:
    today = Clock().wall().date()
    records.add_used(store, today, 60)
    assert records.add_used(store, today, 30) == 90
    assert records.used_s(store, today - timedelta(days=1)) == 90, "set back over midnight: no second helping"
    assert records.used_s(store, today - timedelta(days=9)) == 0, "no day that can be trusted"
    assert records.used_s(store, today + timedelta(days=1)) == 0


def test_sleep_shows_as_the_wall_clock_running_ahead() -> None:
    clock = Clock()
    ticks = Ticks(clock)
    clock.advance(20)
    assert ticks.passed() == (20, False)
    clock.time += timedelta(hours=8)
    clock.advance(1)
    assert ticks.passed() == (1, True)
    clock.time -= timedelta(hours=8)
    clock.advance(1)
    assert ticks.passed() == (1, False)
