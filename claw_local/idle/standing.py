"""How learning by itself stands, for whoever asks: `learn status` and the app. It must never begin anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..engine.gguf_file import read_header
from ..errors import ClawError
from ..language import _
from . import records
from .conditions import Condition, of_facts, of_machine, unmet
from .surroundings import Surroundings
from .vram import trains_on

if TYPE_CHECKING:
    from ..assistant import Assistant


@dataclass(frozen=True)
class Standing:
    """What `learn status` says about learning by itself.

    Attributes:
        state: "off": learning, or idle.enabled, is off; "held" by the person; "running": a run that began by itself is
            going on; "waiting".
        conditions: all of them, as measured just now; waits_for: the words of those that are not met.
        used_minutes: learned by itself today, of daily_minutes.
        held_since, held_until: when it was held, and until when; "" if it is not, or without an end.
        device: what a run that starts now would compute on, in words.
    """

    state: str
    conditions: tuple[Condition, ...]
    waits_for: tuple[str, ...]
    used_minutes: float
    daily_minutes: float
    held_since: str = ""
    held_until: str = ""
    device: str = ""

    @property
    def sentence(self) -> str:
        """The same in a sentence or two."""
        if self.state == "running":
            return _("A run that began by itself goes on; it leaves as soon as you are back.")
        if self.state == "held":
            return _("Learning by itself is held by you, until you resume it.")
        if not self.waits_for:
            return _("It may begin to learn by itself at any moment.")
        return _("By itself, it waits for:") + "\n" + "\n".join(f"· {words}" for words in self.waits_for)


def standing(assistant: Assistant) -> Standing:
    """Measure everything once, which takes about a second."""
    world, store = Surroundings(assistant), assistant.store
    wall = world.clock.wall()
    run = store.runs.running()
    running = run is not None and run.started_by == "idle"
    facts = world.facts(running=running)
    found = (
        *of_facts(world.settings, facts, wall, running=running),
        *of_machine(world.settings, world.readings(running=running), running=running),
    )
    held = records.held(store, wall)
    return Standing(
        state=_state(facts.enabled and world.settings.enabled, bool(facts.held), running),
        conditions=found,
        waits_for=tuple(condition.words for condition in unmet(found)),
        used_minutes=round(facts.used_s / 60, 1),
        daily_minutes=world.settings.daily_minutes,
        held_since=held.since if held else "",
        held_until=held.until if held else "",
        device=_device(assistant),
    )


def _device(assistant: Assistant) -> str:
    try:
        header = read_header(assistant.model_path)
    except (ClawError, OSError, ValueError):
        header = None
    return trains_on(assistant.settings, header)


def _state(enabled: bool, held: bool, running: bool) -> str:
    if running:
        return "running"
    return "off" if not enabled else "held" if held else "waiting"
