"""Whether it may learn by itself now, and what it waits for. It must never ask anything: all it needs is given to it.

What is unknown counts so that nothing unsafe is begun and nothing waits for ever:

- The desktop: as left alone. What is typed to the assistant, the load and the low priority of a run remain.
- Mains power: as battery power, until the battery is full. `idle.on_mains` says that it does not matter.
- Load: as low enough, since a run has the lowest priority there is.
- Temperature: as low enough. Processors protect themselves, and the bound is there for comfort.
- GPU: as free. Where nvidia-smi does not answer, a run could hardly use the GPU either.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .. import hours
from ..language import _, ngettext
from ..settings import IdleSettings
from .probes import Readings

COOLER = 10.0
"""A run begins only this far below the bound, in °C, since it makes the processor warmer by itself."""


@dataclass(frozen=True)
class Facts:
    """What the store and the settings say.

    Attributes:
        enabled: whether learning is on.
        held: "" or until when it is held, in words ("until you resume it").
        lessons: new ones since the last run that came to its end.
        going_on: "" or that a run that was left goes on, and where, in words.
        wish: "" or why learning waits for the person, in a sentence.
        lacking: "" or what it lacks to learn at all, in a sentence.
        other_run: whether a run is going on that is not ours.
        away_s: seconds since the person's last sign in the assistant's own programs.
        used_s: seconds learned by itself today.
        rest_s: seconds that are left of a rest after a failure.
    """

    enabled: bool
    held: str
    lessons: int
    going_on: str
    wish: str
    lacking: str
    other_run: bool
    away_s: float
    used_s: float
    rest_s: float


@dataclass(frozen=True)
class Condition:
    """One thing that must hold.

    Attributes:
        met: whether it does.
        words: met: how things are. Not met: what is waited for, to be read after "waits for".
        known: False: it could not be measured, and `met` is what that counts as.
    """

    name: str
    met: bool
    words: str
    known: bool = True


def of_facts(settings: IdleSettings, facts: Facts, wall: datetime, *, running: bool = False) -> tuple[Condition, ...]:
    """What can be said without measuring anything.

    Args:
        wall: the time of day here.
        running: whether a run of ours goes on: what is needed only to begin one is left out then.
    """
    found = [
        _switch(settings, facts),
        Condition(
            "held",
            not facts.held,
            _("you to resume it: it is held {until}", until=facts.held) if facts.held else _("not held"),
        ),
    ]
    if not running:
        found += [
            Condition("possible", not facts.lacking, facts.lacking or _("all that learning needs is there")),
            Condition(
                "failures",
                not facts.wish,
                _("your word. {why}", why=facts.wish) if facts.wish else _("nothing went wrong twice in the same way"),
            ),
            _lessons(settings, facts),
            _alone(facts),
            _rest(facts),
        ]
    return (*found, _hours(settings, wall), _budget(settings, facts), _away(settings, facts))


def of_machine(settings: IdleSettings, readings: Readings, *, running: bool = False) -> tuple[Condition, ...]:
    """What has to be measured. `running` as above."""
    found = (
        _desktop(settings, readings),
        _mains(settings, readings),
        _load(settings, readings),
        _temperature(settings, readings, running),
    )
    return found if running else (*found, _gpu(settings, readings))


def unmet(found: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Those that are waited for."""
    return tuple(condition for condition in found if not condition.met)


def _switch(settings: IdleSettings, facts: Facts) -> Condition:
    if not facts.enabled:
        return Condition("on", False, _("learning to be turned on: claw-local learn on"))
    if not settings.enabled:
        return Condition("on", False, _("the setting idle.enabled to be true"))
    return Condition("on", True, _("learning is on"))


def _alone(facts: Facts) -> Condition:
    words = _("the run that goes on to end") if facts.other_run else _("no run goes on")
    return Condition("alone", not facts.other_run, words)


def _lessons(settings: IdleSettings, facts: Facts) -> Condition:
    if facts.going_on:
        return Condition("lessons", True, facts.going_on)
    if facts.lessons >= settings.min_lessons:
        return Condition("lessons", True, ngettext("{number} new lesson", "{number} new lessons", facts.lessons))
    words = ngettext(
        "{number} new lesson ({so_far} so far, with replies not judged yet)",
        "{number} new lessons ({so_far} so far, with replies not judged yet)",
        settings.min_lessons,
        so_far=facts.lessons,
    )
    return Condition("lessons", False, words)


def _away(settings: IdleSettings, facts: Facts) -> Condition:
    enough = settings.away_minutes * 60
    if facts.away_s >= enough:
        return Condition("away", True, _("nobody has typed for {span}", span=_span(facts.away_s)))
    words = _("nobody to type for {span} ({so_far} so far)", span=_span(enough), so_far=_span(facts.away_s))
    return Condition("away", False, words)


def _desktop(settings: IdleSettings, readings: Readings) -> Condition:
    enough, reading = settings.desktop_minutes * 60, readings.desktop_idle_s
    if not enough:
        return Condition("desktop", True, _("not asked for"))
    if reading.value is None:
        words = _("not known whether the desktop is in use ({why}), so what is typed here decides", why=reading.why)
        return Condition("desktop", True, words, known=False)
    if reading.value >= enough:
        return Condition("desktop", True, _("keyboard and mouse left alone for {span}", span=_span(reading.value)))
    words = _(
        "keyboard and mouse to be left alone for {span} ({so_far} so far)",
        span=_span(enough),
        so_far=_span(reading.value),
    )
    return Condition("desktop", False, words)


def _mains(settings: IdleSettings, readings: Readings) -> Condition:
    reading = readings.on_mains
    if not settings.on_mains:
        return Condition("mains", True, _("not asked for"))
    if reading.value is None:
        words = _(
            "mains power, which is not known here ({why}; `claw-local config set idle.on_mains false`)",
            why=reading.why,
        )
        return Condition("mains", False, words, known=False)
    words = _("on mains power ({why})", why=reading.why) if reading.value else _("mains power")
    return Condition("mains", reading.value, words)


def _load(settings: IdleSettings, readings: Readings) -> Condition:
    reading = readings.load
    if reading.value is None:
        return Condition("load", True, _("the load is not known ({why})", why=reading.why), known=False)
    if reading.value <= settings.max_load:
        return Condition("load", True, _("other programs use {share:.0%} of the processor", share=reading.value))
    words = _(
        "other programs to use at most {most:.0%} of the processor ({share:.0%} now)",
        most=settings.max_load,
        share=reading.value,
    )
    return Condition("load", False, words)


def _temperature(settings: IdleSettings, readings: Readings, running: bool) -> Condition:
    reading, bound = readings.temperature, settings.max_temperature - (0.0 if running else COOLER)
    if reading.value is None:
        words = _("the processor's temperature is not known ({why})", why=reading.why)
        return Condition("temperature", True, words, known=False)
    if reading.value <= bound:
        return Condition("temperature", True, _("the processor is at {degrees:.0f} °C", degrees=reading.value))
    words = _("the processor to cool down to {bound:.0f} °C ({degrees:.0f} now)", bound=bound, degrees=reading.value)
    return Condition("temperature", False, words)


def _gpu(settings: IdleSettings, readings: Readings) -> Condition:
    reading = readings.gpu
    if reading.value is None:
        words = _("the use of a GPU is not known ({why})", why=reading.why)
        return Condition("gpu", True, words, known=False)
    if reading.value <= settings.max_gpu:
        return Condition("gpu", True, _("{share:.0%} of the GPU in use", share=reading.value))
    words = _("the GPU to be in use at most {most:.0%} ({share:.0%} now)", most=settings.max_gpu, share=reading.value)
    return Condition("gpu", False, words)


def _hours(settings: IdleSettings, wall: datetime) -> Condition:
    spans, minute = hours.parse(settings.hours), wall.hour * 60 + wall.minute
    if hours.within(spans, minute):
        words = _("within {hours}", hours=settings.hours) if spans else _("any time of the day")
        return Condition("hours", True, words)
    then = hours.clock(minute + hours.until_next(spans, minute))
    return Condition("hours", False, _("{then} (allowed: {hours})", then=then, hours=settings.hours))


def _budget(settings: IdleSettings, facts: Facts) -> Condition:
    used, most = facts.used_s / 60, settings.daily_minutes
    if used < most:
        return Condition("budget", True, _("{used:.0f} of today's {most:.0f} minutes used", used=used, most=most))
    return Condition("budget", False, _("tomorrow (today's {most:.0f} minutes are used)", most=most))


def _rest(facts: Facts) -> Condition:
    if facts.rest_s > 0:
        words = _("{span} to pass since the last try went wrong or was stopped", span=_span(facts.rest_s))
        return Condition("rest", False, words)
    return Condition("rest", True, _("nothing went wrong lately"))


def _span(seconds: float) -> str:
    """A time in words, rounded down: "9 minutes"."""
    if seconds >= 2 * 3600:
        return ngettext("{number} hour", "{number} hours", int(seconds // 3600))
    if seconds >= 60:
        return ngettext("{number} minute", "{number} minutes", int(seconds // 60))
    return ngettext("{number} second", "{number} seconds", int(seconds))
