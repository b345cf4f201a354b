"""Words after a slash command: what may be offered for them, and carrying the command out. Part of the chat's screen.

Enter means what stands first in the list, unless the very words that were typed are there or can be.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import on
from textual.screen import Screen

from claw_local.errors import ClawError, UsageError
from claw_local.language import N_, _

from ..commands import meant
from ..text import one_line
from ..widgets.completion import Offer, best
from ..widgets.completion_files import find
from ..widgets.composer import Composer

if TYPE_CHECKING:
    from ..app import ClawApp
    from ..widgets.bubbles import Bubble
    from ..widgets.chat_list import ChatList
    from .chat_settings import Choices

MODELS_KNOWN_S = 30.0
"""How long a list of the models on this machine is good enough to offer from."""
LEARN = {
    "on": N_("Learning is on: what you say about a reply teaches the assistant."),
    "off": N_("Learning is off: nothing you say from now on trains the assistant."),
    "now": N_("Train on what you taught; again to stop"),
    "status": N_("What learning by itself waits for"),
    "pause": N_("Learn nothing by itself until you resume"),
    "resume": N_("It may learn by itself again"),
}
TITLES_KNOWN_S = 2.0
"""How long the list of chats is good enough to offer from: from the slash to the Enter, not longer."""
_NONE, _DEFAULT = "none", "default"


class SlashWords(Screen[None]):
    """Offers words, and does what the commands that take some ask for."""

    if TYPE_CHECKING:
        composer: Composer
        chats: ChatList
        chat_id: int | None
        pending: Choices | None

        @property
        def claw(self) -> ClawApp: ...
        def _reply(self) -> Bubble | None: ...
        async def keep_hint(self, bubble: Bubble, hint: str) -> None: ...
        async def _turn(self, on: bool) -> None: ...
        async def _search(self, words: str) -> None: ...
        async def _attach_file(self, path: str, token: str) -> None: ...
        async def _export_to(self, path: str) -> None: ...
        async def work_in(self, folder: str) -> None: ...
        async def learn_as_said(self, words: str) -> bool: ...
        async def forget_text(self, text: str) -> None: ...
        async def go_to(self, chat_id: int | None, message_id: int | None = None) -> None: ...
        async def refresh_chats(self) -> None: ...
        def now_chosen(self, assistant: Any) -> Choices: ...

    _models: tuple[Offer, ...] = ()
    _models_at = -MODELS_KNOWN_S
    _titles_at = -TITLES_KNOWN_S
    _listing: asyncio.Future[None] | None = None

    def with_words(self) -> dict[str, Callable[[str], Awaitable[object]]]:
        """The actions that take words, by their names."""
        return {
            "rename_chat": self._rename_to,
            "search_chats": self._search,
            "filter_chats": self._open_titled,
            "choose_model": self._answer_with,
            "forget_chat": self.forget_text,
            "hint": self._hint_at_once,
            "toggle_learning": self._learn_as_said,
            "workspace": self.work_in,
            "export_chat": self._export_to,
            "attach_file": lambda path: self._attach_file(path.strip('"'), ""),
            "app.toggle_theme": self._use_theme,
        }

    def with_values(self) -> dict[str, Callable[[str], Awaitable[object]]]:
        """The same for what an offer that was walked to stands for."""
        return {"filter_chats": self._open_id, "choose_model": self._answer_with_model}

    async def carry_out(self, action: Callable[[str], Awaitable[object]], words: str) -> None:
        """Do it; what cannot be done is said."""
        try:
            await action(words)
        except ClawError as error:
            self.claw.fail(error)

    # What is offered

    @on(Composer.Completing)
    def _completing(self, event: Composer.Completing) -> None:
        event.stop()
        self.run_worker(self._offer_words(event), group="completing", exclusive=True)

    async def _offer_words(self, event: Composer.Completing) -> None:
        command = meant(event.name)
        offers = await self._offers(command.action, event.words) if command is not None else []
        self.composer.offer_words(event.typed, offers)

    async def _offers(self, action: str, words: str) -> list[Offer]:
        """What may be meant by the words behind a command, best first."""
        if action == "toggle_learning":
            return best(words, (Offer(word=word, about=_(about)) for word, about in LEARN.items()))
        if action == "app.toggle_theme":
            self.claw.look.read_anew(self.app)
            return best(words, self._themes())
        if action == "filter_chats":
            if time.monotonic() - self._titles_at > TITLES_KNOWN_S:  # Other programs make chats too.
                self._titles_at = time.monotonic()
                self._listing = asyncio.ensure_future(self.refresh_chats())
            if self._listing is not None:  # Also for the letters that come meanwhile.
                await asyncio.shield(self._listing)
            return best(words, self._titles(), loosely=False)
        if action == "choose_model":
            return best(words, await self._known_models())
        if action in ("workspace", "attach_file", "export_chat"):
            beside = self.composer.workspace if action == "attach_file" else ""
            hits = await self.claw.background.slow(find, words.strip('"'), beside)
            paths = [Offer(word=hit.path, is_path=True) for hit in hits if hit.is_folder or action == "attach_file"]
            none = [Offer(word=_NONE, about=_("This chat has no tools any more."))] if action == "workspace" else []
            return [*best(words, none), *paths]
        return []

    def _themes(self) -> list[Offer]:
        own = sorted(self.app.available_themes, key=lambda name: (not name.startswith("claw"), name))
        return [Offer(word=name, about=_("in use") if name == self.app.theme else "") for name in own]

    def _titles(self) -> list[Offer]:
        chats = self.chats.dated()
        known = Counter(chat[1] for chat in chats)
        return [
            Offer(word=title, value=str(chat_id), about=when if known[title] > 1 else "")
            for chat_id, title, when in chats
        ]

    async def _known_models(self) -> tuple[Offer, ...]:
        if time.monotonic() - self._models_at > MODELS_KNOWN_S:
            from .chat_settings import about

            home = await self.claw.home()
            try:
                found = await self.claw.background.slow(home.models.list)
            except ClawError:
                found = []
            named = [Offer(word=one_line(one.name), about=about(one), value=one.chooses) for one in found]
            self._models = (*named, Offer(word=_DEFAULT, about=_("As the settings say")))
            self._models_at = time.monotonic()
        return self._models

    # What is done

    async def _rename_to(self, title: str) -> None:
        if self.chat_id is None:
            raise UsageError(_("This chat is still empty: say something first, then name it."))
        assistant = await self.claw.assistant()
        await self.claw.quick(assistant.rename_chat, self.chat_id, one_line(title))
        await self.refresh_chats()

    async def _open_titled(self, title: str) -> None:
        await self.refresh_chats()
        found = best(title, self._titles(), loosely=False)
        if not found:
            raise UsageError(
                _("No chat is called anything like “{title}”. /search looks into what was said.", title=one_line(title))
            )
        await self._open_id(found[0].value)

    async def _open_id(self, chat_id: str) -> None:
        await self.go_to(int(chat_id))

    async def _answer_with(self, name: str) -> None:
        """Let this chat be answered by a model: one that is known here, or whatever `--model` takes."""
        known = best(name, await self._known_models())
        typed = ":" in name or Path(name).expanduser().is_file()
        await self._answer_with_model(name if typed or not known else known[0].value or known[0].word)

    async def _answer_with_model(self, model: str) -> None:
        assistant, chat_id = await self.claw.assistant(), self.chat_id
        model = "" if model == _DEFAULT else model
        if chat_id is not None:
            await self.claw.background.quick(assistant.set_chat, chat_id, model=model)
        else:
            model = await self.claw.background.slow(assistant.checked_model, model)
            self.pending = replace(self.now_chosen(assistant), model=model)
        await self.refresh_chats()
        if model:
            self.claw.say(_("{model} answers here from your next message on.", model=one_line(model)))
        else:
            self.claw.say(_("The model of the settings answers here from your next message on."))

    async def _hint_at_once(self, hint: str) -> None:
        bubble = self._reply()
        if bubble is not None:
            await self.keep_hint(bubble, hint)

    async def _learn_as_said(self, words: str) -> None:
        word = next((offer.word for offer in best(words, [Offer(word=word) for word in LEARN])), "")
        if word == "now":
            await self.run_action("learn_now")
        elif word in ("on", "off"):
            await self._turn(word == "on")
        elif not await self.learn_as_said(word):
            raise UsageError(
                _("/learn takes on, off, now, status, pause or resume; alone it turns learning on or off.")
            )

    async def _use_theme(self, name: str) -> None:
        problems = self.claw.look.read_anew(self.app)
        found = best(name, self._themes())
        if broken := [words for words in problems if f"{name}.toml" in words]:
            raise UsageError(broken[0])
        if not found:
            there = ", ".join(sorted(self.app.available_themes))
            raise UsageError(_("There is no theme {name}. There are: {value}.", name=one_line(name), value=there))
        self.app.theme = found[0].word
