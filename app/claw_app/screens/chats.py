"""What a person can do with a chat as a whole: find, rename, archive, delete, copy, write to a file, set up.

Part of the chat's screen. It must never know how chats are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from textual import on

from claw_local.language import N_, _

from ..text import one_line
from ..widgets.chat_list import ChatList, Filter, Sidebar
from .ask import AskLine
from .undoing import UndoActions

if TYPE_CHECKING:
    from claw_local.assistant import Assistant

    from ..app import ClawApp
    from ..widgets.composer import Composer
    from .chat_settings import Choices

EMPTY = N_("This chat is still empty: there is nothing to {what} yet.")
_WHAT = {
    "rename": N_("rename"),
    "delete": N_("delete"),
    "archive": N_("archive"),
    "duplicate": N_("duplicate"),
    "export": N_("export"),
    "forget": N_("forget"),
}
"""What can be done with a chat, as it stands in these sentences."""


class ChatActions(UndoActions):
    """The actions on the open chat, or on the one under the cursor of the list."""

    if TYPE_CHECKING:
        chats: ChatList
        sidebar: Sidebar
        composer: Composer
        chat_id: int | None

        @property
        def claw(self) -> ClawApp: ...
        @property
        def incognito(self) -> bool: ...
        async def go_to(self, chat_id: int | None, message_id: int | None = None) -> None: ...
        async def refresh_chats(self) -> None: ...

    pending: Choices | None = None
    """What was chosen for the new chat, until it begins."""

    def _open_one(self, what: str) -> int | None:
        """The chat meant by a key: the one under the cursor if the list has the focus, else the open one."""
        chat_id = self.chats.under_cursor() if self.chats.has_focus else None
        if chat_id is not None:
            return chat_id
        if self.incognito:
            self.claw.say(
                _(
                    "This chat is incognito: there is nothing to {what}. It is gone when you leave it.",
                    what=_(_WHAT[what]),
                )
            )
            return None
        if self.chat_id is None:
            self.claw.say(_(EMPTY, what=_(_WHAT[what])))
        return self.chat_id

    # The list

    def action_toggle_chats(self) -> None:
        """Show the list and go there; from there, hide it."""
        self.run_worker(self.refresh_chats())  # Other programs write chats too.
        there = self.sidebar.has_the_focus
        self.sidebar.display = not there
        self.chats.to_open_chat()
        self.set_focus(self.composer if there else self.chats)

    def action_filter_chats(self) -> None:
        """Go to the filter above the list."""
        self.run_worker(self.refresh_chats())
        self.sidebar.display = True
        self.query_one(Filter).focus()

    @on(ChatList.Chosen)
    def _chosen(self, event: ChatList.Chosen) -> None:
        self.run_worker(self.go_to(event.chat_id))
        self.sidebar.clear_filter()
        if self.has_class("-narrow"):
            self.sidebar.display = False
        self.composer.focus()

    @on(ChatList.Act)
    def _act(self, event: ChatList.Act) -> None:
        acts = {
            "delete": self._delete,
            "rename": self._rename,
            "archive": self._archive,
            "duplicate": self._duplicate,
            "export": self._export,
        }
        self._begin_on(event.what, acts[event.what](event.chat_id))

    # Search

    def action_search_chats(self) -> None:
        """Search in everything that was said."""
        self.run_worker(self._search(""))

    @on(ChatList.SearchWanted)
    def _search_wanted(self, event: ChatList.SearchWanted) -> None:
        self.sidebar.clear_filter()
        self.run_worker(self._search(event.words))

    async def _search(self, words: str) -> None:
        from .search import Search

        found = await self.app.push_screen_wait(Search(await self.claw.home(), words))
        if found is not None:
            await self.go_to(found.chat_id, None if found.role == "title" else found.message_id)

    # One chat

    def action_rename_chat(self) -> None:
        """Give the chat another name."""
        self._on_one("rename", self._rename)

    def action_delete_chat(self) -> None:
        """Delete the chat; it can be brought back."""
        if self.incognito and not self.chats.has_focus:
            self.run_worker(self.go_to(None))
            return
        self._on_one("delete", self._delete)

    def action_archive_chat(self) -> None:
        """Put the chat away, or take it out again."""
        self._on_one("archive", self._archive)

    def action_duplicate_chat(self) -> None:
        """Go on in a copy of the chat."""
        self._on_one("duplicate", self._duplicate)

    def action_export_chat(self) -> None:
        """Write the chat, or all of them, to a file."""
        self._on_one("export", self._export)

    def _on_one(self, what: str, act: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        chat_id = self._open_one(what)
        if chat_id is not None:
            self._begin_on(what, act(chat_id))

    def _begin_on(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        begun = self.run_worker(work)
        if what in ("delete", "archive"):
            self.being_put_away = begun

    async def _rename(self, chat_id: int) -> None:
        home = await self.claw.home()
        title = await self.app.push_screen_wait(AskLine(_("The chat's new name"), self.chats.title_of(chat_id)))
        if title is not None:
            await self.claw.quick(home.rename_chat, chat_id, one_line(title))
            await self.refresh_chats()

    async def _duplicate(self, chat_id: int) -> None:
        home = await self.claw.home()
        copy = await self.claw.quick(home.history.duplicate, chat_id)
        if copy is not None:
            await self.go_to(copy.id)
            self.claw.say(_("This is the copy; the chat it came from stays as it is."))

    async def _export_to(self, path: str) -> None:
        chat_id = self._open_one("export")
        if chat_id is not None:
            await self._export(chat_id, path)

    async def _export(self, chat_id: int, to: str = "") -> None:
        from .export import Export

        home = await self.claw.home()
        title = self.chats.title_of(chat_id)
        path = await self.app.push_screen_wait(Export(home, chat_id, title, to))
        if path is not None:
            self.claw.say(str(path), title=_("Written"), timeout=8)

    # Settings

    def now_chosen(self, assistant: Assistant) -> Choices:
        """What is chosen so far for the new chat."""
        from .chat_settings import Choices

        return self.pending or Choices(system=assistant.settings.model.system)

    def action_choose_model(self) -> None:
        """Choose the model of the open chat: the first field of its settings."""
        self.action_chat_settings()

    def action_chat_settings(self) -> None:
        """Choose model, system prompt and sampling of the open chat, and whether it may teach."""
        self.run_worker(self._choose())

    async def _choose(self) -> None:
        from .chat_settings import ChatSettings, Choices, kept_adapter

        assistant = await self.claw.assistant()
        chat_id = self.chat_id
        if chat_id is not None:
            chat = await self.claw.quick(assistant.chat, chat_id)
            if chat is None:
                return
            kept = kept_adapter(chat.adapter_id)
            now = Choices(chat.model, chat.system, chat.sampling, chat.learn, chat.workspace, kept)
        else:
            now = self.now_chosen(assistant)
        chosen = await self.app.push_screen_wait(ChatSettings(assistant, now, incognito=self.incognito))
        if chosen is None or chosen == now:
            return
        if self.chat_id is None:
            self.pending = chosen
        elif await self.claw.quick(assistant.set_chat, self.chat_id, **chosen.changes(now)) is None:
            return
        await self.refresh_chats()
        self.claw.say(_("Kept; it holds from your next message on."))
