"""How long the person has not typed anything to the assistant, in whatever program. It must never know what they typed.

The last sign of them stands in the store, so that every program sees it: the time of their last message, or of a key in
the app. Times of the wall clock are not believed blindly: one that lies in the future was written before the clock was
set back, and counts as now, once. From then on a program counts by the steady clock.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from datetime import UTC, datetime

from ..store import Store
from .clock import Clock

FLAG = "idle.activity"
QUIET_S = 10.0
"""Keys that follow one another closer than this are one sign."""
SLACK_S = 5.0
"""So far ahead a time may lie without the clock having been set back."""


@dataclass(frozen=True)
class Sign:
    """The last sign of the person: when, in UTC, and the last message there was by then, theirs or the reply to it."""

    at: str
    message: int


def last_sign(store: Store, wall: datetime) -> Sign:
    """The last sign of the person, as every program sees it; newer messages and a clock that was set back are brought
    into the store."""
    sign = _read(store)
    message, written = store.messages.last()
    found = sign or Sign(written or _stamp(wall), message)
    if message != found.message:
        found = Sign(max(found.at, written), message)
    moment = _moment(found.at)
    if moment is None or (moment - wall).total_seconds() > SLACK_S:
        found = Sign(_stamp(wall), found.message)
    if found != sign:
        store.flags.set(FLAG, json.dumps([found.at, found.message]))
    return found


def note(store: Store, wall: datetime | None = None) -> None:
    """The person has just done something that leaves no message: typed in the app, asked through the server."""
    message, _ = store.messages.last()
    store.flags.set(FLAG, json.dumps([_stamp(wall or datetime.now(UTC)), message]))


class Presence:
    """How long the person has been away, as one program sees it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._guard = threading.Lock()
        self._sign: Sign | None = None
        self._since = clock.steady()
        self._noted_at: float | None = None

    def away_s(self) -> float:
        """Seconds since the person's last sign. Quick: two look-ups in the store."""
        wall, steady = self._clock.wall(), self._clock.steady()
        sign = last_sign(self._store, wall)
        with self._guard:
            if sign != self._sign:
                moment = _moment(sign.at)
                age = max(0.0, (wall - moment).total_seconds()) if moment is not None else 0.0
                # A sign that is new to us is not older than our last look, whatever the wall clock did meanwhile.
                looked = age if self._sign is None else steady - self._looked
                self._since = steady - min(age, looked)
                self._sign = sign
            self._looked = steady
            return steady - self._since

    def touch(self) -> bool:
        """The person is here: a key was pressed. Returns whether the others should be told: `note` does that, and
        costs a write, so not at every key."""
        steady = self._clock.steady()
        with self._guard:
            self._since = steady
            tell = self._noted_at is None or steady - self._noted_at >= QUIET_S
            if tell:
                self._noted_at = steady
        return tell

    _looked = 0.0


def _read(store: Store) -> Sign | None:
    try:
        at, message = json.loads(store.flags.get(FLAG) or "null")
        return Sign(str(at), int(message))
    except (ValueError, TypeError):
        return None


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
