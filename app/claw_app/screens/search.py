"""Full-text search over everything that was said. It must never open a chat itself: it gives back what was chosen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from claw_local.language import N_, _, ngettext

from ..styles import OVER
from ..text import clean, day_name, one_line

if TYPE_CHECKING:
    from claw_local.assistant import Assistant
    from claw_local.history import Found

    from ..app import ClawApp

MOST = 100
_SIGNS = re.compile(r"(?<!\w)\*\*(?=\S)|(?<=\S)\*\*(?!\w)|`+|^#{1,6} ", re.MULTILINE)
_PAUSE_S = 0.06
_HOW_TO = N_('Any words, in any order; "quotes" keep them together.')
_WHO = {
    "user": N_("You:"),
    "assistant": N_("Assistant:"),
    "tool": N_("Tool:"),
    "title": N_("Title:"),
}


class Search(ModalScreen["Found | None"]):
    """Results come while the person types. Enter gives the chosen one, Esc gives None."""

    CSS_PATH = OVER
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f7", "dismiss(None)", "Close", show=False),
        Binding("down", "move('cursor_down')", "Next", show=False),
        Binding("up", "move('cursor_up')", "Previous", show=False),
        Binding("pagedown", "move('page_down')", "Next page", show=False),
        Binding("pageup", "move('page_up')", "Previous page", show=False),
    ]

    def __init__(self, assistant: Assistant, words: str = "") -> None:
        super().__init__()
        self._assistant, self._words = assistant, words
        self._found: Sequence[Found] = ()
        self._timer: Timer | None = None
        self._asked = ""
        self._busy = False
        self._hurried = False  # Enter was pressed before the results were there.

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog large", id="search"):
            yield Static(Content.styled(_("Search in everything that was said"), "bold"))
            yield Input(self._words, placeholder=_("umbrella"), id="search-words", select_on_focus=False, compact=True)
            yield Static(_(_HOW_TO), id="search-state")
            yield OptionList(id="found", markup=False, compact=True)
            yield Static(_("↑ ↓ chooses · Enter opens the chat there · Esc closes"), classes="dialog-keys")

    def on_mount(self) -> None:
        self.query_one(OptionList).can_focus = False  # The keys work from the field; a click needs no focus.
        if self._words:
            self._ask()

    @property
    def _claw(self) -> ClawApp:
        from typing import cast

        return cast("ClawApp", self.app)

    @on(Input.Changed)
    def _typed(self) -> None:
        self._hurried = False
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_PAUSE_S, self._ask)

    def _ask(self) -> None:
        if not self._busy:  # What is typed while an answer is awaited is asked after it.
            self.run_worker(self._search())

    async def _search(self) -> None:
        self._busy = True
        try:
            found: Sequence[Found] = self._found
            while (words := self.query_one(Input).value.strip()) != self._asked:
                self._asked = words
                found = (
                    await self._claw.background.slow(self._assistant.history.search, words, limit=MOST) if words else []
                )
                if not self.is_attached:
                    return
                found = _without_doubles(found)
                self._show(words, found)
            if self._hurried and found:
                self.dismiss(found[0])
        except Exception as error:
            # None is left where the search was closed while its results were on their way.
            for state in self.query("#search-state").results(Static):
                state.update(Content(self._claw.sentence(error)))
        finally:
            self._busy = False

    def _show(self, words: str, found: Sequence[Found]) -> None:
        self._found = found
        listed = self.query_one(OptionList)
        today = date.today()
        listed.set_options([Option(_content(one, today), id=str(place)) for place, one in enumerate(found)])
        if found:
            listed.highlighted = 0
        if not words:
            state = _(_HOW_TO)
        elif not found:
            state = _("Nothing was said with “{words}” in it.", words=one_line(words))
        else:
            state = (
                _("The {most} best matches", most=MOST)
                if len(found) >= MOST
                else ngettext("{number} message", "{number} messages", len(found))
            )
        self.query_one("#search-state", Static).update(Content(state))

    def action_move(self, how: str) -> None:
        """Move the cursor in the results."""
        getattr(self.query_one(OptionList), f"action_{how}")()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        if self._busy or self._asked != self.query_one(Input).value.strip():
            self._hurried = True
            self._ask()
        else:
            self.query_one(OptionList).action_select()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._found[event.option_index])


def _without_doubles(found: Sequence[Found]) -> list[Found]:
    """Leave out titles that are the first words of a message which was found too."""
    messages = {one.message_id for one in found if one.role != "title"}
    return [one for one in found if one.role != "title" or one.message_id not in messages]


def _content(found: Found, today: date) -> Content:
    """Two lines: which chat and when; who said what, with the words marked."""
    head = Content.assemble(
        (one_line(found.title) or _("New chat"), "bold"),
        (f"  {day_name(found.created_at, today)}", "$quiet"),
    )
    text: str = found.snippet
    marks: Sequence[tuple[int, int]] = found.marks
    if found.role == "assistant":
        text, marks = unmarked(text, marks)
    who = Content.styled(f"{_(_WHO[found.role])} " if found.role in _WHO else "", "$secondary")
    return Content("\n").join([head, Content.assemble(who, _snippet(text, marks)), Content("")])


def unmarked(text: str, marks: Sequence[tuple[int, int]]) -> tuple[str, Sequence[tuple[int, int]]]:
    """A piece of Markdown without the signs for bold, code and headings, and where its marks are then."""
    gone = [one.span() for one in _SIGNS.finditer(text)]

    def moved(place: int) -> int:
        return place - sum(min(end, place) - start for start, end in gone if start < place)

    return _SIGNS.sub("", text), [(moved(start), moved(end)) for start, end in marks]


def _snippet(text: str, marks: Sequence[tuple[int, int]]) -> Content:
    """The snippet on one line, each mark in the accent's colour."""
    parts: list[Content] = []
    place = 0
    for start, end in marks:
        parts.append(Content(_flat(text[place:start])))
        parts.append(Content.styled(_flat(text[start:end]), "bold $accent"))
        place = end
    parts.append(Content(_flat(text[place:])))
    return Content("").join(parts)


def _flat(text: str) -> str:
    return clean(text).replace("\n", " ").replace("\t", " ")
