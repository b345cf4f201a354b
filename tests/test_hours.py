"""Hours of the day, also over midnight."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_local import hours
from claw_local.errors import UsageError
from claw_local.paths import Paths
from claw_local.settings import load
from claw_local.settings_file import set_value

MINUTES = st.integers(0, hours.DAY - 1)


def test_spans_are_read_as_people_write_them() -> None:
    assert hours.parse("") == ()
    assert hours.parse("22:00-07:00, 12 – 13:30") == ((1320, 420), (720, 810))
    assert hours.parse("18-24") == ((1080, 0),)
    for wrong in ("night", "25-30", "22:60-23:00", "22:00", "22:00-07:00;"):
        with pytest.raises(ValueError, match="written like"):
            hours.parse(wrong)


@given(MINUTES, MINUTES, MINUTES)
def test_a_span_holds_its_start_but_not_its_end_and_goes_over_midnight(start: int, end: int, minute: int) -> None:
    spans = ((start, end),)
    if start < end:
        expected = start <= minute < end
    else:
        expected = minute >= start or minute < end  # Also the whole day, where both are the same.
    assert hours.within(spans, minute) is expected
    wait = hours.until_next(spans, minute)
    assert hours.within(spans, (minute + wait) % hours.DAY)
    assert all(not hours.within(spans, (minute + n) % hours.DAY) for n in range(0, wait, 7))


def test_the_setting_refuses_what_cannot_be_read(home: Paths) -> None:
    set_value(home, "idle.hours", "22:00-07:00")
    assert load(home).idle.hours == "22:00-07:00"
    with pytest.raises(UsageError, match="written like"):
        set_value(home, "idle.hours", "at night")
