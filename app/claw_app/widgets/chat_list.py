"""The list of chats at the side, grouped by day, with a filter. It must never open a chat itself: it says which one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from math import prod
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.fuzzy import FuzzySearch
from textual.lazy import Lazy
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from claw_local.language import N_, _

from ..text import day_name, moment, one_line

if TYPE_CHECKING:
    from claw_local.store import Chat

_LONGEST_TITLE = 200
_MARGIN = 2
"""Cells beside a title, as styles/chats.tcss lays it out."""
_MOST_TRIES = 5_000
"""FuzzySearch tries every way to find the letters; beyond this many, a title must hold the words as they are."""
_ARCHIVE, _SEARCH = "archive", "search"


@dataclass(frozen=True)
class Row:
    """What the list knows about one chat."""

    chat_id: int
    title: str
    day: str
    archived: bool
    draft: bool
    when: str


class Filter(Input):
    """The field above the list. Up, Down and Enter work on the list meanwhile."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move(1)", "Next chat", show=False),
        Binding("up", "move(-1)", "Previous chat", show=False),
        Binding("escape", "leave", "Clear", show=False),
    ]

    class Left(Message):
        """Esc: the person is done with the filter."""

    @dataclass
    class Moved(Message):
        """The person wants the cursor of the list elsewhere."""

        by: int

    def __init__(self) -> None:
        super().__init__(id="filter", placeholder=_("/ finds a chat"), compact=True, select_on_focus=False)

    def action_move(self, by: int) -> None:
        """Move the list's cursor."""
        self.post_message(self.Moved(by))

    def action_leave(self) -> None:
        """Empty the field and leave it."""
        self.value = ""
        self.post_message(self.Left())


class ChatList(OptionList):
    """Newest first; a heading for each day. Narrowed by words, the best match comes first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d,delete", "act('delete')", N_("Delete"), key_display="d"),
        Binding("r", "act('rename')", N_("Rename"), key_display="r"),
        Binding("a", "act('archive')", N_("Archive"), key_display="a"),
        Binding("c", "act('duplicate')", N_("Copy"), key_display="c"),
        Binding("x", "act('export')", N_("Export"), key_display="x"),
    ]

    @dataclass
    class Chosen(Message):
        """The person wants to see this chat."""

        chat_id: int

    @dataclass
    class Act(Message):
        """The person wants something done with this chat: delete, rename, archive, duplicate, export."""

        chat_id: int
        what: str

    @dataclass
    class SearchWanted(Message):
        """No title will do: the person wants these words looked for in the messages."""

        words: str

    def __init__(self) -> None:
        super().__init__(id="chats", markup=False, compact=True)
        self._rows: list[Row] = []
        self._current: int | None = None
        self._words = ""
        self._archive_open = False
        self._fuzzy = FuzzySearch()

    # What is shown

    def fill(self, chats: Sequence[Chat], current: int | None, archived: Sequence[Chat] = ()) -> None:
        """Show these chats; nothing is redrawn if nothing has changed."""
        today = date.today()
        rows = [
            Row(
                chat.id,
                one_line(chat.title)[:_LONGEST_TITLE] or _("New chat"),
                day_name(chat.updated_at, today),
                chat.archived,
                bool(chat.draft.strip()),
                moment(chat.updated_at),
            )
            for chat in [*chats, *archived]
        ]
        if rows == self._rows and self._current == current and self.option_count:
            return
        moved = self._current != current
        self._rows, self._current = rows, current
        # With the chat that was open gone, who is in the list goes on from where it stood.
        self._draw(follow=moved and not (self.has_focus and current is None))

    def narrow(self, words: str) -> None:
        """Show only the chats whose title has these words in it, letters left out allowed."""
        if words != self._words:
            self._words = words
            self._draw(follow=not words)
            if words:
                self.action_first()

    def _draw(self, *, follow: bool = False) -> None:
        """Draw the rows; the cursor goes to the open chat (`follow`), or stays as near to where it was as it can."""
        place, under = self.highlighted, self.under_cursor()
        options = list(self._matches() if self._words else self._days())
        self.set_options(options)
        if not (self.to_open_chat() if follow or under is None else self._go(str(under))):
            self._near(0 if place is None or follow else min(place, len(options) - 1))

    def to_open_chat(self) -> bool:
        """Put the cursor on the open chat, or on the heading it is put away under. False: it is not in the list."""
        if self._go(str(self._current)):
            return True
        return self._current is not None and self.is_archived(self._current) and self._go(_ARCHIVE)

    def _go(self, option_id: str) -> bool:
        ids = [option.id for option in self.options]
        if option_id in ids:
            self.highlighted = ids.index(option_id)
        return option_id in ids

    def _near(self, place: int) -> None:
        for index in (*range(place, self.option_count), *range(place, -1, -1)):
            if not self.get_option_at_index(index).disabled:
                self.highlighted = index
                return

    def _days(self) -> Iterator[Option]:
        heading = ""
        shown = [row for row in self._rows if not row.archived]
        for row in shown:
            if row.day != heading:
                heading = row.day
                yield Option(Content.styled(heading, "bold $quiet"), disabled=True)
            yield self._option(row)
        archived = [row for row in self._rows if row.archived]
        if not shown:
            none = _("All chats are archived") if archived else _("No chats yet")
            yield Option(Content.styled(none, "$quiet"), disabled=True)
        if archived:
            mark = "▾" if self._archive_open else "▸"
            yield Option("", disabled=True)
            yield Option(
                Content.styled(mark + " " + _("Archived") + f"  {len(archived)}", "$quiet"),
                id=_ARCHIVE,
            )
            if self._archive_open:
                yield from map(self._option, archived)

    def _matches(self) -> Iterator[Option]:
        found = []
        for row in self._rows:
            score, places = self._match(row.title)
            if score:
                found.append((score, row, places))
        for __, row, places in sorted(found, key=lambda match: -match[0]):
            yield self._option(row, places)
        if not found:
            yield Option(Content.styled(_("No title matches"), "$quiet"), disabled=True)
        yield Option(Content.styled(_("Search the messages …"), "$secondary"), id=_SEARCH)

    def _match(self, title: str) -> tuple[float, list[int]]:
        score, places, lower = 0.0, list[int](), title.lower()
        if len(lower) != len(title):  # A letter whose small form is longer would shift every place after it.
            lower = title
        for word in self._words.lower().split():
            if word not in lower and prod(lower.count(letter) for letter in word) > _MOST_TRIES:
                return 0.0, []
            own, own_places = self._fuzzy.match(word, lower)
            if not own:
                return 0.0, []
            score += own
            places.extend(own_places)
        return score, places

    def _option(self, row: Row, places: Sequence[int] = ()) -> Option:
        title = Content(row.title)
        for place in places:
            title = title.stylize("bold $accent", place, place + 1)
        if row.chat_id == self._current:
            title = title.stylize_before("bold $primary")
        if row.archived:
            title = title.stylize_before("$quiet")
        if row.draft:
            title = Content.assemble(("✎ ", "$accent"), title)
        return Option(title, id=str(row.chat_id))

    # What is asked of it

    def title_of(self, chat_id: int) -> str:
        """The title shown for a chat; empty if it is not in the list."""
        return next((row.title for row in self._rows if row.chat_id == chat_id), "")

    def is_archived(self, chat_id: int) -> bool:
        """Whether a chat is shown among the archived ones."""
        return any(row.archived for row in self._rows if row.chat_id == chat_id)

    def titles(self) -> list[tuple[int, str]]:
        """(id, title) of every chat, the archived ones last."""
        return [(row.chat_id, row.title) for row in self._rows]

    def dated(self) -> list[tuple[int, str, str]]:
        """The same with when it was last spoken in, which tells two of one title apart."""
        return [(row.chat_id, row.title, row.when) for row in self._rows]

    def under_cursor(self) -> int | None:
        """The chat the cursor is on."""
        option = self.highlighted_option
        return int(option.id) if option is not None and option.id is not None and option.id.isdigit() else None

    def cut_title(self) -> str:
        """The title under the cursor if there is no room for all of it; else empty."""
        option = self.highlighted_option
        chat_id = self.under_cursor()
        if option is None or chat_id is None:
            return ""
        room = self.scrollable_content_region.width - _MARGIN
        return self.title_of(chat_id) if Content(str(option.prompt)).cell_length > room else ""

    def show_archive(self, shown: bool) -> None:
        """Show or hide the archived chats."""
        self._archive_open = shown
        self._draw()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_id == _ARCHIVE:
            place = self.highlighted
            self.show_archive(not self._archive_open)
            self.highlighted = place
        elif event.option_id == _SEARCH:
            self.post_message(self.SearchWanted(self._words))
        elif event.option_id is not None:
            self.post_message(self.Chosen(int(event.option_id)))

    def action_act(self, what: str) -> None:
        """Do something with the chat under the cursor."""
        chat_id = self.under_cursor()
        if chat_id is not None:
            self.post_message(self.Act(chat_id, what))


class Sidebar(Vertical):
    """The filter and the list under it."""

    def __init__(self) -> None:
        super().__init__(id="sidebar")
        self.list = ChatList()

    def compose(self) -> ComposeResult:
        yield Lazy(Filter())
        yield Lazy(self.list)
        yield Lazy(Static(id="whole-title"))

    @on(OptionList.OptionHighlighted)
    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    @on(events.Resize)
    def _say_whole(self) -> None:
        # Once it is laid out: what is cut depends on how wide it is.
        self.call_after_refresh(self._show_whole)

    def _show_whole(self) -> None:
        title = self.list.cut_title() if self.has_the_focus else ""
        for line in self.query("#whole-title").results(Static):
            line.update(Content(title))
            line.display = bool(title)

    @property
    def has_the_focus(self) -> bool:
        """Whether the person is in the filter or in the list."""
        return self.screen.focused is not None and self in self.screen.focused.ancestors

    def clear_filter(self) -> None:
        """Show every chat again."""
        self.query_one(Filter).value = ""

    @on(Input.Changed, "#filter")
    def _narrow(self, event: Input.Changed) -> None:
        event.stop()
        self.list.narrow(event.value.strip())

    @on(Input.Submitted, "#filter")
    def _open(self, event: Input.Submitted) -> None:
        event.stop()
        self.list.action_select()

    @on(Filter.Moved)
    def _move(self, event: Filter.Moved) -> None:
        event.stop()
        (self.list.action_cursor_down if event.by > 0 else self.list.action_cursor_up)()

    @on(Filter.Left)
    def _leave(self, event: Filter.Left) -> None:
        event.stop()
        self.list.focus()
