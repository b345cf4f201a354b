"""A text area with labels in it, and the cutting keys of a shell. It must never know what the labels stand for.

Labels are whole: the cursor never stands in one, and one key deletes one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.document._document import EditResult, Location, Selection
from textual.strip import Strip
from textual.widgets import TextArea

from .chips import Chips


class ChipArea(TextArea):
    """Every key that edits takes effect before the letters typed behind it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+b,alt+left", "cursor_word_left", "Word left", show=False),
        Binding("alt+f,alt+right", "cursor_word_right", "Word right", show=False),
        Binding("alt+d", "delete_word_right", "Delete word", show=False),
        Binding("ctrl+h", "delete_left", "Delete left", show=False),
        Binding("ctrl+home,alt+less_than_sign", "text_start", "Start of the text", show=False),
        Binding("ctrl+end,alt+greater_than_sign", "text_end", "End of the text", show=False),
        Binding("ctrl+y", "yank", "Put back what was cut", show=False),
        Binding("ctrl+shift+z,alt+z", "redo", "Redo", show=False),
    ]
    DEFAULT_CSS = """
    ChipArea .chip-area--chip { background: $panel; color: $accent; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"chip-area--chip"}

    def __init__(self, *, id: str, placeholder: str) -> None:
        self.chips = Chips()
        self._killing = False
        self._killed = ""
        super().__init__(
            id=id, soft_wrap=True, tab_behavior="focus", highlight_cursor_line=False, placeholder=placeholder
        )

    def render_line(self, y: int) -> Strip:
        """Where there is no room for a letter, Textual cannot wrap what stands in an empty field."""
        return super().render_line(y) if self.content_size.width else Strip.blank(self.size.width)

    async def _on_key(self, event: events.Key) -> None:
        # A binding comes round only after the key has been to the app and back, when more letters may have come.
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return
        await super()._on_key(event)

    def insert_here(self, text: str) -> None:
        """Put text where the cursor is, in place of what is selected."""
        result = self._replace_via_keyboard(text, *self.selection)
        if result is not None:
            self.move_cursor(result.end_location)

    def before_cursor(self) -> str:
        """The line up to the cursor."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    def action_text_start(self) -> None:
        """Move to the first character."""
        self.move_cursor((0, 0))

    def action_text_end(self) -> None:
        """Move behind the last character."""
        self.move_cursor(self.document.end)

    # Cutting, and keys that other screens may want

    def _delete_via_keyboard(self, start: Location, end: Location) -> EditResult | None:
        result = super()._delete_via_keyboard(*self._with_chips(start, end))
        if self._killing and result is not None and result.replaced_text:
            self._killed = result.replaced_text
        return result

    @contextmanager
    def _cutting(self) -> Iterator[None]:
        """What is deleted inside can be put back with Ctrl+Y."""
        self._killing = True
        try:
            yield
        finally:
            self._killing = False

    def action_delete_word_left(self) -> None:
        """Cut to the start of the word."""
        with self._cutting():
            super().action_delete_word_left()

    def action_delete_word_right(self) -> None:
        """Cut to the end of the word."""
        with self._cutting():
            super().action_delete_word_right()

    def action_delete_to_start_of_line(self) -> None:
        """Cut to the start of the line."""
        with self._cutting():
            super().action_delete_to_start_of_line()

    async def action_delete_to_end_of_line_or_delete_line(self) -> None:
        """Cut to the end of the line."""
        with self._cutting():
            await super().action_delete_to_end_of_line_or_delete_line()

    def action_yank(self) -> None:
        """Redo what was just undone; else put back what was cut last."""
        if self.history._redo_stack:
            self.action_redo()
        elif self._killed:
            self.insert_here(self._killed)

    def action_undo(self) -> None:
        """Undo; where nothing was typed the key is left to the screen."""
        if not self.history._undo_stack:
            raise SkipAction
        super().action_undo()

    def action_cut(self) -> None:
        """Cut what is selected; without a selection the key is left to the screen."""
        if self.selection.is_empty:
            raise SkipAction
        super().action_cut()

    def action_select_line(self) -> None:
        """F6 is a key of the screen's."""
        raise SkipAction

    def action_select_all(self) -> None:
        """F7 is a key of the screen's."""
        raise SkipAction

    # Labels

    def _with_chips(self, start: Location, end: Location) -> tuple[Location, Location]:
        """The range, widened to the labels it touches in part."""
        first, last = sorted((start, end))
        for low, high in self._spans(first[0]):
            if low < first[1] < high:
                first = (first[0], low)
        for low, high in self._spans(last[0]):
            if low < last[1] < high:
                last = (last[0], high)
        return first, last

    def _spans(self, row: int) -> list[tuple[int, int]]:
        # Deleting a whole last line names the line after it.
        return self.chips.spans(self.document.get_line(row)) if row < self.document.line_count else []

    def _watch_selection(self, previous_selection: Selection, selection: Selection) -> None:
        snapped = Selection(
            self._out_of_chip(selection.start, previous_selection.start),
            self._out_of_chip(selection.end, previous_selection.end),
        )
        if snapped != selection:
            self.selection = snapped
            return
        super()._watch_selection(previous_selection, selection)

    def _out_of_chip(self, place: Location, before: Location) -> Location:
        row, column = place
        if row < self.document.line_count:
            for low, high in self._spans(row):
                if low < column < high:
                    return row, low if place < before else high
        return place

    def get_line(self, line_index: int) -> Text:
        """The line, its labels set off from what is typed."""
        line = super().get_line(line_index)
        for span in self._spans(line_index):
            line.stylize(self.get_component_rich_style("chip-area--chip"), *span)
        return line
