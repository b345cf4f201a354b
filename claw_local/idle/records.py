"""What the scheduler remembers in the store: whether it is held, what was tried, how much of today's time is used.

It must never decide anything. Every program sees the same; what cannot be read counts as never written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from ..store import Store

HELD = "idle.held"
BEGAN = "idle.began"
TRIED = "idle.tried"
USED = "idle.used"
REST = "idle.rest"
NEWS = "idle.news"


@dataclass(frozen=True)
class Held:
    """Learning by itself was held by the person, until a moment if they named one."""

    since: str
    until: str = ""


def hold(store: Store, wall: datetime, until: datetime | None = None) -> Held:
    """Let nothing be learned by itself until `release`, or until then."""
    held = Held(_stamp(wall), _stamp(until) if until is not None else "")
    store.flags.set(HELD, json.dumps([held.since, held.until]))
    return held


def release(store: Store) -> bool:
    """Take `hold` back; whether it was held."""
    was = bool(store.flags.get(HELD))
    store.flags.set(HELD, "")
    return was


def held(store: Store, wall: datetime) -> Held | None:
    """Whether learning by itself is held."""
    found = _read(store, HELD)
    if not isinstance(found, list) or len(found) != 2:
        return None
    until = _moment(found[1])
    return Held(str(found[0]), str(found[1])) if until is None or wall < until else None


def remember_began(store: Store, newest: tuple[int, int]) -> None:
    """A run has begun with all that had been said until then: the newest signal and message."""
    store.flags.set(BEGAN, json.dumps(list(newest)))


def remember_tried(store: Store) -> None:
    """The run that began then has come to its end: the same lessons again would come to the same."""
    store.flags.set(TRIED, store.flags.get(BEGAN))


def tried(store: Store) -> tuple[int, int]:
    """The newest signal and the newest message there were when the last run that came to its end began."""
    found = _read(store, TRIED)
    if isinstance(found, list) and len(found) == 2 and all(isinstance(one, int) for one in found):
        return found[0], found[1]
    return 0, 0


def used_s(store: Store, today: date) -> float:
    """Seconds learned by itself today. A day that is tomorrow's was written before the clock was set back over midnight
    and counts as today; one still further off is no day that can be trusted."""
    found = _read(store, USED)
    if isinstance(found, list) and len(found) == 2:
        try:
            day, seconds = date.fromisoformat(found[0]), float(found[1])
        except (ValueError, TypeError):
            return 0.0
        if today <= day <= today + timedelta(days=1):
            return max(0.0, seconds)
    return 0.0


def add_used(store: Store, today: date, seconds: float) -> float:
    """Count seconds of a run into today's time; returns the sum."""
    with store.database.write():
        sum_s = used_s(store, today) + seconds
        store.flags.set(USED, json.dumps([today.isoformat(), round(sum_s, 3)]))
    return sum_s


def rest(store: Store, wall: datetime, seconds: float) -> None:
    """Begin nothing for so long: something went wrong."""
    store.flags.set(REST, json.dumps([_stamp(wall), _stamp(wall + timedelta(seconds=seconds))]))


def rest_s(store: Store, wall: datetime) -> float:
    """Seconds that are left of a rest. One that began in the future was written before the clock was set back: nobody
    knows how much of it is left, so none is."""
    found = _read(store, REST)
    if not isinstance(found, list) or len(found) != 2:
        return 0.0
    start, end = _moment(found[0]), _moment(found[1])
    if start is None or end is None or start > wall + timedelta(minutes=1):
        return 0.0
    return max(0.0, (end - wall).total_seconds())


def put_news(store: Store, words: str) -> None:
    """What a run that began by itself has changed, until the person has been told."""
    store.flags.set(NEWS, words)


def news(store: Store) -> str:
    """What the person has not been told yet; "" if they know all."""
    return store.flags.get(NEWS)


def _read(store: Store, name: str) -> Any:
    try:
        return json.loads(store.flags.get(name) or "null")
    except ValueError:
        return None


def _moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
