"""The keys of a screen, named in the language in use. It must never know what they do."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic

from rich.cells import cell_len
from textual.binding import ActiveBinding, Binding
from textual.screen import Screen, ScreenResultType

from claw_local.language import _

_HELP = "f1"
_BETWEEN = 3
"""Cells between two keys in the last line."""


class Keyed(Screen[ScreenResultType], Generic[ScreenResultType]):
    """A screen whose footer speaks the person's language. Bindings stand in the code in English."""

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """As usual, each with its description in the language in use."""
        found = {
            key: active._replace(binding=replace(active.binding, description=_(self.words_for(active.binding))))
            for key, active in super().active_bindings.items()
        }
        return self._fitting(found)

    def words_for(self, binding: Binding) -> str:
        """What the last line calls it now, in English."""
        return binding.description

    def _fitting(self, found: dict[str, ActiveBinding]) -> dict[str, ActiveBinding]:
        """The same; what has no room in the last line of the screen is not shown there, but for the way to the help."""

        def cells(one: ActiveBinding) -> int:
            return cell_len(f"{self.app.get_key_display(one.binding)} {one.binding.description}") + _BETWEEN

        # Of several keys for one thing, the first stands there.
        firsts = {one.binding.action: key for key, one in reversed(found.items()) if one.binding.show}
        shown = {key: cells(one) for key, one in found.items() if firsts.get(one.binding.action) == key}
        left, fits, hidden = self.size.width + 1 - shown.get(_HELP, 0), True, set[str]()
        for key, wide in shown.items():
            if key != _HELP:
                left -= wide
                fits = fits and left >= 0
                if not fits:
                    hidden.add(found[key].binding.action)
        return {
            key: one._replace(binding=replace(one.binding, show=False)) if one.binding.action in hidden else one
            for key, one in found.items()
        }

    def on_resize(self) -> None:
        """Others fit now."""
        self.refresh_bindings()

    def on_screen_suspend(self) -> None:
        """Under a dialog these keys do nothing, so they are not shown."""
        self.add_class("-covered")

    def on_screen_resume(self) -> None:
        """They hold again."""
        self.remove_class("-covered")
