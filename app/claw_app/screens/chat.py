"""The chat: composes the widgets and passes between them and the assistant. It must never decide what is learned."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.lazy import Lazy
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Footer, Input, TextArea
from textual.widgets._toast import ToastRack

from claw_local.language import N_, _

from ..branch import Branch
from ..commands import bindings
from ..styles import CHAT
from ..text import at_home
from ..widgets.bubbles import Bubble
from ..widgets.chat_list import Sidebar
from ..widgets.composer import Composer
from ..widgets.learn_bar import LearnBar
from ..widgets.status_line import StatusLine
from ..widgets.top_bar import TopBar
from ..widgets.transcript import Transcript
from ..widgets.undo_line import UndoLine
from ..words import BROAD, WIDE
from .branches import BranchActions
from .bursts import Bursts
from .by_itself import ByItself
from .chats import ChatActions
from .compare import CompareActions
from .drafts import Drafts
from .elsewhere import Elsewhere
from .first_start import FirstStart
from .forgetting import ForgetActions
from .forgotten import look_up
from .incognito import INCOGNITO, IncognitoActions
from .keys import Keyed
from .learning import LearningActions
from .replies import ReplyActions
from .slash_words import SlashWords
from .talking import Talking
from .typing import TypingActions
from .working import WorkActions

if TYPE_CHECKING:
    from claw_local.assistant import Assistant
    from claw_local.store import Chat, Signal

    from ..app import ClawApp

STATUS_EVERY_S = 0.8
DAY_S = 86_400
LISTED = 1000
"""Most chats in the list; search finds those beyond it."""
HIDES, GOES = N_("Hide chats"), N_("To chats")
"""What Ctrl+O does next, where the list is shown."""
ELSEWHERE = N_(
    "This was said on another version of the chat, which is shown from now on. ← and → on a message marked ◂ 1/2 ▸ "
    "change back."
)


class ChatScreen(
    Talking,
    Elsewhere,
    WorkActions,
    ChatActions,
    Drafts,
    ReplyActions,
    BranchActions,
    CompareActions,
    LearningActions,
    ByItself,
    TypingActions,
    Bursts,
    SlashWords,
    ForgetActions,
    FirstStart,
    IncognitoActions,
    Keyed[None],
):
    """One open chat, the list of the others, and a field to type in."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(),
        Binding("ctrl+z", "undo_delete_key", "Undo delete", show=False, priority=True),
        Binding("tab", "to_messages", "To the messages", show=False),
        Binding("j,down", "step(1)", "Next reply", show=False),
        Binding("k,up", "step(-1)", "Previous reply", show=False),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide"), (BROAD, "-broad")]  # noqa: RUF012
    CSS_PATH = CHAT
    AUTO_FOCUS = "#composer"

    @dataclass
    class Judged(Message):
        """The judge has scored a reply; comes from its thread."""

        signal: Signal

    def __init__(self, chat_id: int | None = None, workspace: str = "") -> None:
        super().__init__()
        self.chat_id = chat_id
        self.first_workspace = workspace
        self.put_away = []
        self.not_drawn = set()
        self.renewing = asyncio.Lock()
        self._visit = 0
        self._turning = 0
        self._showing = asyncio.Lock()
        self.letting_go = asyncio.Lock()
        self.turned = asyncio.Event()
        self.turned.set()
        # Set once the first chat is shown; what is sent before that is shown at once and joins it.
        self._ready = asyncio.Event()

    @property
    def claw(self) -> ClawApp:
        """The app, by its own type."""
        return cast("ClawApp", self.app)

    def compose(self) -> ComposeResult:
        yield TopBar()
        with Horizontal(id="middle"):
            yield Sidebar()
            with Vertical(id="talk"):
                yield Transcript()
                yield ToastRack(id="textual-toastrack", classes="-placed")
                yield Lazy(LearnBar())
                yield Lazy(UndoLine())
                yield Composer()
        with Vertical(id="foot"):
            yield StatusLine()
            yield Lazy(Footer(compact=True, show_command_palette=False))

    def _extend_compose(self, widgets: list[Widget]) -> None:
        """As Textual does it, without the place for notices: that stands within the chat."""
        super()._extend_compose(widgets)
        widgets[:] = [widget for widget in widgets if not isinstance(widget, ToastRack)]

    def place_notices(self, rack: ToastRack, rows: int) -> None:
        """Notices of so many rows are about to be shown: what was said just now is to stay in sight."""
        transcript = self.query_one(Transcript)
        short = transcript.max_scroll_y == 0 and 2 * rows <= transcript.size.height
        rack.set_class(short, "-below")

    def on_mount(self) -> None:
        self.transcript = self.query_one(Transcript)
        self.composer = self.query_one(Composer)
        self.sidebar = self.query_one(Sidebar)
        self.chats = self.sidebar.list
        self.status = self.query_one(StatusLine)
        self.top = self.query_one(TopBar)
        # Nothing slow before the first paint: the assistant opens, and the model loads, after it.
        self.call_after_refresh(self._start)

    def action_to_messages(self) -> None:
        """From the field to the last reply; from anywhere else to what comes next."""
        if self.composer.has_focus and self.transcript.replies():
            self.transcript.step(1)
        else:
            self.focus_next()

    def set_focus(self, widget: Widget | None, scroll_visible: bool = True, from_app_focus: bool = False) -> None:
        """As usual, but a reply reached by keys shows its end, with the line about it. A click scrolls nothing."""
        super().set_focus(widget, scroll_visible and not isinstance(widget, Bubble), from_app_focus)
        if scroll_visible and isinstance(widget, Bubble):
            self.call_after_refresh(widget.show_end)

    def words_for(self, binding: Binding) -> str:
        """As it is called; Ctrl+O says what it does next."""
        if binding.action == "toggle_chats" and self.query(Sidebar):
            sidebar = self.query_one(Sidebar)
            return HIDES if sidebar.has_the_focus else GOES if sidebar.display else binding.description
        return super().words_for(binding)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Ctrl+Z undoes what was typed, where something was; else it brings back the chat put away last."""
        if action == "undo_delete_key":
            away = self.may_come_back
            if self.focused is self.composer:
                return away and not self.typed
            return away and not isinstance(self.focused, Input | TextArea)
        return super().check_action(action, parameters)

    def _start(self) -> None:
        if self.query(Lazy):  # What the first paint did without is on its way.
            self.call_after_refresh(self._start)
            return
        self.claw.take_typed_ahead()
        self.run_worker(self._begin(), exit_on_error=self.claw.debug_errors)

    async def _begin(self) -> None:
        home = await self.claw.open()
        if home is None:
            return
        home.on_judged(self._hear)
        if said := home.store.database.adrift:
            self.claw.say(said, title=_("Nothing is kept"), severity="warning", timeout=20)
        # Long before the rest of how learning stands, which may take the hash of a big model file.
        learning = await self.claw.quick(lambda: home.learn.enabled)
        if learning is not None:
            self.top.set_learning(learning)
        try:
            await self.open_chat(self.chat_id)
            if self.first_workspace:
                await self.work_in(self.first_workspace)
        except Exception as error:  # Whatever it was: the person can still talk.
            self.show_draft(self.chat_id, "")
            self.claw.fail(error)
        self._ready.set()
        # What an app that was killed had deleted: nobody will want it back any more.
        await self.claw.quick(home.history.purge, older_than_s=DAY_S)
        await self.refresh_status()
        self.set_interval(STATUS_EVERY_S, self.poll_status)
        self.status.model = _("loading the model …")
        try:
            info = await self.claw.background.slow(home.load)
        except Exception as error:
            self.status.model, self.status.trouble = _("no model"), True
            await self.transcript.note(self.claw.sentence(error), error=True)
            return
        self.status.model, self.claw.loaded = info.name, True
        await self.refresh_status()
        await self.claw.background.slow(self.claw.watch_over.begin, home)

    def _hear(self, signal: Signal) -> None:
        self.post_message(self.Judged(signal))

    # Which chat is open

    def action_new_chat(self) -> None:
        """Begin a new chat."""
        self.run_worker(self.go_to(None))
        self.composer.focus()

    async def go_to(self, chat_id: int | None, message_id: int | None = None) -> None:
        """Go to a stored chat, and to a message in it; None begins a new one. An incognito chat left is gone."""
        self.leave_incognito(chat_id)
        await self.open_chat(chat_id, message_id)

    async def open_chat(self, chat_id: int | None, message_id: int | None = None) -> None:
        """Show a chat of the assistant that is spoken to now (the open one: show it again), and jump to a message.

        None shows a new one, which exists only once something is said in it.
        """
        self._turning += 1
        self.turned.clear()
        try:
            await self._turn_to(chat_id, message_id)
        finally:
            self._turning -= 1
            if not self._turning:
                self.turned.set()

    async def _turn_to(self, chat_id: int | None, message_id: int | None) -> None:
        home = await self.claw.home()  # Where it is open, all up to `chat_id` happens before the next key.
        self._visit += 1
        visit = self._visit
        first = not self._ready.is_set()
        if not (self.incognito or first) and chat_id != self._draft_chat:
            self.change_draft(chat_id)
        self._live_bubble, self.chat_id = None, chat_id
        assistant = self.private or home
        chat = await look_up(self, assistant, chat_id) if chat_id is not None else None
        if chat_id is not None and chat is None:
            await self.open_chat(None)
            return
        await self._list(chat)
        if visit != self._visit:
            return
        if not self.incognito and (first or self.draft_is_due(chat_id)):
            draft = await self.claw.quick(home.history.draft, chat_id)
            if visit != self._visit:
                return
            self.show_draft(chat_id, draft or "")
        async with self._showing:
            if visit != self._visit:
                return
            if chat is None:
                await self._show_new(assistant)
            else:
                await self._show(assistant, chat, message_id, visit)

    async def _show_new(self, assistant: Assistant) -> None:
        learning = bool(await self.claw.quick(lambda: assistant.learn.enabled))
        if self.sending and not self._ready.is_set():
            return
        if self.incognito:
            await self.transcript.clear()
            await self.transcript.note(_(INCOGNITO))
        else:
            first = not self.chats.titles()
            await self.transcript.welcome(first=first, learning=learning, home=at_home(assistant.paths.data))

    async def _show(self, assistant: Assistant, chat: Chat, message_id: int | None, visit: int) -> None:
        live = self.live if self.live is not None and self.live.chat_id == chat.id else None
        arriving = live.reply.message_id if live is not None and live.reply is not None else None
        self.not_drawn.clear()
        caught_up = self.caught_up
        hidden = [arriving] if arriving is not None else []
        branch = await self.claw.quick(Branch, assistant, chat.id, leave_out=hidden, stored=True)
        if branch is not None and message_id is not None and branch.place(message_id) is None:
            await self.claw.quick(assistant.show_version, message_id)
            await self.claw.quick(branch.refresh)
            if branch.place(message_id) is not None:
                self.claw.say(_(ELSEWHERE), timeout=8)
        if branch is None or visit != self._visit:
            return
        await self.transcript.show(branch, at=message_id)
        self.drawn_anew(caught_up)
        if live is not None:
            await self._watch(live, Bubble(live.text, message_id=arriving or 0, state="streaming"))
        if message_id is not None:
            await self.transcript.reveal(message_id)

    async def refresh_chats(self) -> None:
        """Show the list, and the open chat's title, as they are now."""
        assistant = await self.claw.assistant()
        chat_id = self.chat_id
        chat = await self.claw.quick(assistant.chat, chat_id) if chat_id is not None else None
        if chat_id == self.chat_id:
            await self._list(chat)

    async def _list(self, chat: Chat | None) -> None:
        home = await self.claw.home()
        chats = await self.claw.quick(home.chats, limit=LISTED)
        archived = await self.claw.quick(home.chats, limit=LISTED, archived=True)
        own = chat if chat is not None else self.pending
        self.composer.workspace = own.workspace if own is not None else ""
        if chats is not None and archived is not None:
            self.chats.fill(chats, chat.id if chat is not None and not self.incognito else None, archived)
            self.status.silent = self.incognito or (own is not None and not own.learn)
            self.top.tell(chat, incognito=self.incognito, pending=self.pending)

    # The rest

    @on(Composer.Scrolled)
    def _scrolled(self, event: Composer.Scrolled) -> None:
        (self.transcript.scroll_page_up if event.pages < 0 else self.transcript.scroll_page_down)()

    @on(Composer.Left)
    async def _left(self) -> None:
        await self.app.run_action("quit")

    def action_step(self, by: int) -> None:
        """Move from reply to reply."""
        self.transcript.step(by)

    @on(Judged)
    async def _judged(self, event: Judged) -> None:
        if not self.incognito:
            for bubble in self.transcript.replies():
                if bubble.message_id == event.signal.message_id:
                    bubble.add_mark(event.signal)
        await self.refresh_status()
