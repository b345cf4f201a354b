"""What must hold before it learns by itself, and how it is said."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from claw_local.idle.conditions import Facts, of_facts, of_machine, unmet
from claw_local.idle.probes import Reading, Readings, unknown
from claw_local.settings import IdleSettings

NOON = datetime(2026, 3, 4, 12, 0).astimezone()
FACTS = Facts(
    enabled=True,
    held="",
    lessons=4,
    going_on="",
    wish="",
    lacking="",
    other_run=False,
    away_s=600,
    used_s=0,
    rest_s=0,
)
READINGS = Readings(Reading(300.0), Reading(True, "no battery"), Reading(0.1), Reading(50.0), Reading(0.0))
NOTHING_KNOWN = Readings(*(unknown("nobody tells") for _ in range(5)))


def waits(settings: IdleSettings | None = None, *, running: bool = False, **changes: Any) -> dict[str, str]:
    """What is waited for when these facts or readings are so."""
    settings = settings or IdleSettings()
    facts = replace(FACTS, **{key: value for key, value in changes.items() if hasattr(FACTS, key)})
    readings = replace(READINGS, **{key: value for key, value in changes.items() if hasattr(READINGS, key)})
    found = of_facts(settings, facts, NOON, running=running) + of_machine(settings, readings, running=running)
    assert all(one.words for one in found)
    return {one.name: one.words for one in unmet(found)}


def test_with_the_defaults_all_holds() -> None:
    assert waits() == {}
    assert waits(running=True) == {}


@pytest.mark.parametrize(
    ("changes", "name", "words"),
    [
        ({"enabled": False}, "on", "learn on"),
        ({"held": "until 13:00"}, "held", "it is held until 13:00"),
        ({"lessons": 3}, "lessons", "4 new lessons (3 so far, with replies not judged yet)"),
        ({"away_s": 200}, "away", "nobody to type for 10 minutes (3 minutes so far)"),
        ({"desktop_idle_s": Reading(61.0)}, "desktop", "left alone for 5 minutes (1 minute so far)"),
        ({"on_mains": Reading(False)}, "mains", "mains power"),
        ({"on_mains": unknown("nobody tells")}, "mains", "idle.on_mains false"),
        ({"load": Reading(0.55)}, "load", "at most 30% of the processor (55% now)"),
        ({"temperature": Reading(76.0)}, "temperature", "cool down to 75 °C (76 now)"),
        ({"gpu": Reading(0.9)}, "gpu", "at most 20% (90% now)"),
        ({"used_s": 7200}, "budget", "tomorrow (today's 120 minutes are used)"),
        ({"rest_s": 1800}, "rest", "30 minutes to pass"),
        ({"other_run": True}, "alone", "the run that goes on to end"),
        ({"wish": "It went wrong twice."}, "failures", "your word. It went wrong twice."),
        ({"lacking": "packages"}, "possible", "packages"),
    ],
)
def test_each_condition_alone_keeps_it_waiting_and_says_for_what(
    changes: dict[str, Any], name: str, words: str
) -> None:
    found = waits(**changes)
    assert list(found) == [name]
    assert words in found[name]


def test_the_hours_allowed_are_said() -> None:
    settings = IdleSettings(hours="22:00-07:00, 9-11")
    assert waits(settings) == {"hours": "22:00 (allowed: 22:00-07:00, 9-11)"}
    assert waits(IdleSettings(hours="9-13")) == {}


def test_a_run_that_was_left_needs_no_new_lessons() -> None:
    assert waits(lessons=0, going_on="step 3 of 8") == {}


def test_a_run_that_goes_on_is_not_asked_for_what_is_needed_to_begin_one() -> None:
    begun = {"lessons": 0, "rest_s": 60, "other_run": True, "gpu": Reading(1.0), "temperature": Reading(84.0)}
    assert waits(running=True, **begun) == {}
    assert set(waits(running=True, temperature=Reading(86.0), away_s=1, used_s=9999)) == {
        "temperature",
        "away",
        "budget",
    }


def test_what_is_unknown_is_said_and_only_power_is_waited_for() -> None:
    found = of_machine(IdleSettings(), NOTHING_KNOWN)
    assert [one.known for one in found] == [False] * 5
    assert [one.name for one in unmet(found)] == ["mains"]
    assert unmet(of_machine(IdleSettings(on_mains=False), NOTHING_KNOWN)) == ()
    assert all("nobody tells" in one.words for one in found)


def test_settings_switch_conditions_off() -> None:
    assert list(waits(IdleSettings(enabled=False))) == ["on"]
    relaxed = IdleSettings(on_mains=False, desktop_minutes=0)
    assert waits(relaxed, on_mains=Reading(False), desktop_idle_s=Reading(0.0)) == {}
