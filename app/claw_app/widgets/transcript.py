"""The messages of the open chat, as many as the screen needs. It must never decide what is on the branch.

However long a chat is, only a stretch of it is drawn. Coming near an end of the stretch draws the next page there and
takes away the far one, and what the person is reading stays where it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.css.query import NoMatches
from textual.events import Resize
from textual.scrollbar import ScrollBar
from textual.widget import Widget
from textual.widgets import Static

from claw_local.language import ngettext

from .bubbles import Bubble, Notice, Question
from .messages import drawn_message, tell
from .tool_use import ToolUse
from .walked import Walked
from .welcome import Welcome

if TYPE_CHECKING:
    from textual.geometry import Size

    from ..app import ClawApp
    from ..branch import Branch, Shown

T = TypeVar("T")
PAGE = 10
"""Messages drawn at once: few enough not to be noticed while scrolling."""
FIRST = 12
MOST = 60
"""Messages drawn at all. Markdown is costly to lay out."""
BRING_TRIES = 20
_LAYOUT_S = 5.0


class Transcript(Walked, can_focus=False):
    """Scrolls; stays at the end while a reply streams, unless the person has scrolled away."""

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._branch: Branch | None = None
        self._held: float | None = None
        self._paging = False

    def compose(self) -> ComposeResult:
        yield Static(id="earlier", classes="more")
        yield Vertical(id="messages")
        yield Static(id="later", classes="more")

    @property
    def _list(self) -> Vertical:
        # At least as tall as the screen: an anchored container puts shorter content at its bottom.
        return self.query_one("#messages", Vertical)

    async def _quick(self, function: Callable[..., T], *arguments: Any) -> T | None:
        return await cast("ClawApp", self.app).quick(function, *arguments)

    # What is shown

    async def show(self, branch: Branch, *, at: int | None = None, focus: int | None = None) -> None:
        """Show a chat from its end, or around a message; `focus`: the message that gets the focus, if it is drawn."""
        self._branch = branch
        place = branch.place(at) if at is not None else None
        stop = len(branch) if place is None else min(len(branch), place + PAGE)
        page = await self._quick(branch.load, stop - FIRST if place is None else place - PAGE, stop) or []
        if branch is not self._branch:
            return
        await self._replace(list(self._list.children), page, focus)
        if place is None:
            self.anchor()
        else:
            self.anchor(False)
        self.call_after_refresh(self._fill)

    async def clear(self) -> None:
        """Show nothing."""
        self._branch = None
        await self._list.remove_children()
        self._count()

    async def welcome(self, *, first: bool, learning: bool, home: str) -> None:
        """Show an empty chat."""
        with self.app.batch_update():
            await self.clear()
            welcome = Welcome()
            await self._list.mount(welcome)
        welcome.tell(first=first, learning=learning, home=home)

    async def renew(self, branch: Branch, *, focus: int | None = None) -> bool:
        """The chat is on another branch now, or its marks have changed: draw only what is different. Whether it was
        drawn: not if another chat was opened meanwhile."""
        before, there = self._branch, list[Question | Bubble | ToolUse]()
        page: Sequence[Shown] = ()
        while not page or there != self._drawn():  # Pages may come in while they are read.
            there = self._drawn()
            start = branch.place(there[0].message_id) if there else None
            if start is None:
                await self.show(branch, focus=focus)
                return branch is self._branch
            page = await self._quick(branch.load, start, start + max(len(there), FIRST)) or []
            if before is not self._branch:  # Another chat was opened meanwhile.
                return False
            if not page:
                break
        self._branch = branch
        same = 0
        while same < min(len(there), len(page)) and there[same].message_id == page[same].message.id:
            tell(there[same], page[same])
            same += 1
        after = there[same - 1] if same else None
        gone = list(self._list.children[self._list.children.index(after) + 1 :] if after else self._list.children)
        if same == len(there):  # What was said about the chat stays before what has come since.
            gone = [widget for widget in gone if not isinstance(widget, Notice)] if same < len(page) else []
        if gone or page[same:]:
            await self._replace(gone, page[same:], focus)
        else:
            self._count()
        self.call_after_refresh(self._fill)
        return True

    def _drawn(self) -> list[Question | Bubble | ToolUse]:
        return [widget for widget in self._messages() if widget.message_id]

    def leaves(self, branch: Branch) -> bool:
        """Whether a message that is drawn is not on this branch."""
        drawn = [widget.message_id for widget in self._messages() if widget.message_id]
        return any(branch.place(message_id) is None for message_id in drawn)

    async def _replace(self, gone: Sequence[Widget], page: Sequence[Shown], focus: int | None) -> None:
        """Draw messages in the place of others."""
        drawn = [drawn_message(shown) for shown in page]
        chosen = next((widget for widget in drawn if widget.message_id == focus), None)
        with self.app.batch_update():
            if chosen is not None:
                # First of all: the focus of what goes would fall to a neighbour, and take the next key there.
                await self._list.mount_all(drawn)
                self.screen.set_focus(chosen, scroll_visible=False)
                await self._list.remove_children(gone)
            else:
                await self._list.remove_children(gone)
                await self._list.mount_all(drawn)
            self._count()

    async def cut(self, widget: Question | Bubble) -> None:
        """Take a message away with all that follows it: something else is being said in its place."""
        children = self._list.children
        if self._branch is not None:
            self._branch.cut(widget.message_id)
        with self.app.batch_update():
            await self._list.remove_children(list(children[children.index(widget) :]))

    async def add(self, *widgets: Widget) -> None:
        """Add messages at the end, and go there."""
        await self.query(Welcome).remove()
        if self._later():
            await self.end()
        with self.app.batch_update():
            # A reply that streams lays out all that is drawn, many times a second: that is to be little.
            await self._list.remove_children(self._messages()[:-FIRST])
            await self._list.mount_all(widgets)
            self._count()
        self.anchor()

    async def note(self, text: str, *, error: bool = False) -> None:
        """Say something about the chat, in the chat."""
        await self._list.mount(Notice(text, error=error))
        self.scroll_end(animate=False)

    async def reveal(self, message_id: int, *, focus: bool = False) -> bool:
        """Bring a message of this chat into view and mark it, or give it the focus. False: it is not in this chat."""
        if self._find(message_id) is None and self._branch is not None and self._branch.place(message_id) is not None:
            await self.show(self._branch, at=message_id)
        found = self._find(message_id)
        for widget in self._messages():
            widget.set_class(widget is found and not focus, "-found")
        if found is None:
            return False
        if focus and found.has_focus:
            self.call_after_refresh(found.show_end if isinstance(found, Bubble) else found.scroll_visible)
        elif focus:
            found.focus()
        else:
            self.anchor(False)
            self.call_after_refresh(self._bring, found, BRING_TRIES)
        return True

    def _bring(self, widget: Widget, tries: int) -> None:
        """Scroll to a message, again while pages that come in around it still move it."""
        if not widget.is_attached or not widget.has_class("-found"):
            return
        self.scroll_to_widget(widget, animate=False, top=True)
        if tries > 0:
            moved = self._paging or not self.region.contains_point(widget.region.offset)
            self.set_timer(0.02, partial(self._bring, widget, tries - 1 if moved else min(tries - 1, 1)))

    async def put_after(self, widget: Widget, message: Widget) -> None:
        """Put something below a message."""
        await self._list.mount(widget, after=message)

    async def swap(self, widget: Widget, other: Widget) -> None:
        """Put a message in the place of another."""
        with self.app.batch_update():
            await self._list.mount(other, after=widget)
            await widget.remove()

    def before(self, widget: Widget) -> Question | Bubble | None:
        """The message above something."""
        place = self._list.children.index(widget)
        above = self._list.children[place - 1] if place else None
        return above if isinstance(above, (Question, Bubble)) else None

    def holds(self, message_id: int) -> bool:
        """Whether a message is among those drawn."""
        return self._find(message_id) is not None

    def version(self, message_id: int) -> Question | Bubble | None:
        """A message that is drawn, if it may have other versions."""
        found = self._find(message_id)
        return found if isinstance(found, (Question, Bubble)) else None

    # Pages

    def _messages(self) -> list[Question | Bubble | ToolUse]:
        return [widget for widget in self._list.children if isinstance(widget, (Question, Bubble, ToolUse))]

    def _find(self, message_id: int) -> Question | Bubble | ToolUse | None:
        return next((widget for widget in self._messages() if widget.message_id == message_id), None)

    def _edge(self, last: bool) -> int | None:
        """Place of the first or last message drawn that is on the branch."""
        if self._branch is None:
            return None
        drawn = self._messages()
        places = (self._branch.place(widget.message_id) for widget in (reversed(drawn) if last else drawn))
        return next((place for place in places if place is not None), None)

    def _earlier(self) -> int:
        """How many messages stand before those drawn."""
        return self._edge(last=False) or 0

    def _later(self) -> int:
        """How many messages stand after those drawn. What was said since the branch was looked up is always drawn."""
        edge = self._edge(last=True)
        return 0 if edge is None or self._branch is None else len(self._branch) - 1 - edge

    def _count(self) -> None:
        earlier, later = self._earlier(), self._later()
        before = ngettext("{number} earlier message", "{number} earlier messages", earlier)
        after = ngettext("{number} later message", "{number} later messages", later)
        for name, words, number in (("earlier", f"▲ {before}", earlier), ("later", f"▼ {after}", later)):
            line = self.query_one(f"#{name}", Static)
            line.update(words)
            line.display = number > 0

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw the next page before the person gets there."""
        super().watch_scroll_y(old_value, new_value)
        if self._held is not None:
            self._held -= new_value - old_value
        self._fill()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        if self._paging or not self.is_attached or not self.size.height:
            return
        room = self.size.height
        if self.scroll_y < room and self._earlier():
            self._paging = True
            self.run_worker(self._page(up=True))
        elif self.max_scroll_y - self.scroll_y < room and self._later():
            self._paging = True
            self.run_worker(self._page(up=False))

    async def _page(self, *, up: bool) -> None:
        branch = self._branch
        try:
            edge = self._edge(last=not up)
            if branch is None or edge is None:
                return
            start = max(0, edge - PAGE) if up else edge + 1
            page = await self._quick(branch.load, start, edge if up else start + PAGE) or []
            if not page or branch is not self._branch:
                return
            made = [drawn_message(shown) for shown in page]
            self._hold(up)
            with self.app.batch_update():
                if up:
                    await self._list.mount_all(made, before=0)
                else:
                    await self._list.mount_all(made, after=self._list.children[-1])
                self._count()
            await self._laid_out()
            await self._drop_far(branch, up)
        except NoMatches:
            pass  # The app is closing: what it was drawn in is gone.
        finally:
            self._held, self._paging = None, False
            self._fill()

    async def _drop_far(self, branch: Branch, up: bool) -> None:
        """Take away what is too far from where the person reads, unless it is being written."""
        drawn = self._messages()
        number = len(drawn) - max(MOST, 2 * self.size.height)
        if number <= 0 or (up and self._at_end):
            return
        far = drawn[-number:] if up else drawn[:number]
        if any(not widget.message_id or getattr(widget, "state", "") == "streaming" for widget in far):
            return
        if any(branch.place(widget.message_id) is None for widget in far):
            await self._quick(branch.refresh)  # Said since the branch was looked up.
        children = self._list.children
        place = children.index(far[0] if up else far[-1])
        self._hold(not up)
        with self.app.batch_update():
            await self._list.remove_children(list(children[place:] if up else children[: place + 1]))
            self._count()
        await self._laid_out()

    @property
    def _at_end(self) -> bool:
        return self._anchored and not self._anchor_released

    def _hold(self, from_end: bool) -> None:
        """Until what changes above is laid out, what is on the screen keeps its distance to the end."""
        self._held = self.virtual_size.height - self.scroll_y if from_end and not self._at_end else None

    async def _laid_out(self) -> None:
        done = asyncio.Event()
        if self.call_after_refresh(done.set):
            await asyncio.wait_for(done.wait(), _LAYOUT_S)
        self._held = None

    def arrange(self, size: Size, optimal: bool = False) -> Any:
        """As usual; but what grows above the screen must not move what is on it, not even for one frame."""
        result = super().arrange(size, optimal)
        if self._held is not None:
            place = max(0.0, result.spatial_map.total_region.bottom - self._held)
            if place != self.scroll_y:
                self.set_reactive(Widget.scroll_y, place)
                self.set_reactive(Widget.scroll_target_y, place)
                self.vertical_scrollbar.set_reactive(ScrollBar.position, place)
        return result

    def _scroll_to(self, *arguments: Any, **options: Any) -> bool:
        # At once: an animation would go on to where its goal was before a page came in above.
        return super()._scroll_to(*arguments, **{**options, "animate": False})

    # Going somewhere

    async def end(self) -> None:
        """Go to the end, wherever that is."""
        if self._branch is not None and self._later():
            await self.show(self._branch)
        self.anchor()

    async def home(self) -> None:
        """Go to the beginning."""
        if self._branch is not None and self._earlier():
            await self.show(self._branch, at=self._branch.ids[0])
        self.anchor(False)
        self.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        """End: the end of the chat."""
        self.run_worker(self.end())

    def action_scroll_home(self) -> None:
        """Home: the beginning of the chat."""
        self.run_worker(self.home())
