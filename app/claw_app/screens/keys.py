"""The keys of a screen, named in the language in use. It must never know what they do."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic

from textual.binding import ActiveBinding
from textual.screen import Screen, ScreenResultType

from claw_local.language import _


class Keyed(Screen[ScreenResultType], Generic[ScreenResultType]):
    """A screen whose footer speaks the person's language. Bindings stand in the code in English."""

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """As usual, each with its description in the language in use."""
        return {
            key: active._replace(binding=replace(active.binding, description=_(active.binding.description)))
            for key, active in super().active_bindings.items()
        }
