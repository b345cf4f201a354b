"""A text area, and the list over it of what may be meant by what is typed. It must never know what is done with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from textual import on
from textual.message import Message
from textual.widget import Widget
from textual.widgets import TextArea

from .chip_area import ChipArea
from .completion_files import Token, find, token_before

if TYPE_CHECKING:
    from ..background import Background
    from .completion import Completions, Offer


NOTHING = ("", "")


class CompletingArea(ChipArea):
    """A slash at the beginning opens a list of commands, and a space behind one a list of words for it; `@` one of
    files."""

    if TYPE_CHECKING:

        def action_send(self) -> None: ...

    @dataclass
    class Completing(Message):
        """Words are being typed behind a slash command. Whoever knows what may be meant says so: see `offer_words`.

        Attributes:
            typed: all that stands in the field, as `offer_words` wants it back.
        """

        typed: str
        name: str
        words: str

    @dataclass
    class Wanted(Message):
        """The person wants to attach the file at `path`; `token` is how it stands in the field. See `attach`."""

        path: str
        token: str

    @dataclass
    class Missing(Message):
        """What is about to be sent names a file that is not there. The next Enter sends it all the same."""

        path: str

    def __init__(self, *, id: str, placeholder: str) -> None:
        self._completions: Completions | None = None
        self._looked_up = self._offered_for = NOTHING
        self.workspace = ""
        """The folder in which a typed path is looked for first; empty: the chat has none."""
        super().__init__(id=id, placeholder=placeholder)

    @property
    def _background(self) -> Background:
        return cast("Background", self.app.background)  # type: ignore[attr-defined]

    @property
    def _walked(self) -> bool:
        return self._completions is not None and self._completions.walked

    @property
    def _typed(self) -> tuple[str, str]:
        """What stands in the field, and before the cursor in its line."""
        return self.text, self.before_cursor()

    def _chosen(self) -> Offer | None:
        """What a key takes from the list: nothing, while the one that is shown belongs to an older text."""
        if self._completions is None or self._offered_for != self._typed:
            return None
        return self._completions.chosen

    def _entered(self) -> Offer | None:
        """What Enter takes: the same; before this was looked up, what would stand first among the commands."""
        if self._looked_up == self._typed:
            return self._chosen()
        from .completion import command_offers

        return next(iter(command_offers(self.text)), None)

    @on(TextArea.Changed)
    @on(TextArea.SelectionChanged)
    def _look_up(self) -> None:
        if self._typed == self._looked_up:
            return
        self._looked_up = self._typed
        typed = self.before_cursor()
        token = token_before(typed)
        if self.text.startswith("/") and typed == self.text and token is None:
            from .completion import command_offers

            name, space, words = typed[1:].partition(" ")
            if space and not name.startswith("/") and "/" not in name and "\n" not in typed:
                # What is shown stays until the answer is there: a list that closes between two letters flickers.
                self.post_message(self.Completing(typed, name, words.strip()))
            else:
                self._offer(command_offers(self.text))
        elif token is not None and self.has_focus:
            self.run_worker(self._look_up_files(token), group="completing", exclusive=True)
        else:
            self._offer([])

    async def _look_up_files(self, token: Token) -> None:
        hits = await self._background.slow(find, token.typed, self.workspace)
        if token_before(self.before_cursor()) == token:
            from .completion import Offer

            self._offer([Offer(file=hit) for hit in hits])

    def offer_words(self, typed: str, offers: list[Offer]) -> None:
        """What may be meant by the words behind a command, unless something else stands in the field by now."""
        if typed == self.before_cursor() == self.text and self.has_focus:
            self._offer(offers)

    def _offer(self, offers: list[Offer]) -> None:
        from .completion import ROWS, Completions

        self._offered_for = self._typed
        if self._completions is None:
            if not offers or not isinstance(self.parent, Widget):
                return
            self._completions = Completions()
            self.parent.mount(self._completions, before=self)
        self._completions.offer(offers, self.region.y if self.size else ROWS + 2)

    def on_blur(self) -> None:
        if self._completions is not None:
            self._completions.close()
            self._looked_up = NOTHING

    def take_offer(self, offer: Offer) -> None:
        """An offer was clicked on."""
        self._take(offer)
        if offer.command is not None or (offer.word and not offer.word.endswith("/")):
            self.action_send()

    def _take(self, offer: Offer) -> None:
        """Write an offer into the field: a command, a word for one, a folder to go on from, or a file to attach."""
        if offer.command is not None:
            self.text = f"/{offer.command.slash} "
            self.move_cursor(self.document.end)
        elif offer.word:
            self.text = f"{self.text.partition(' ')[0]} {offer.word}"
            self.move_cursor(self.document.end)
        token = token_before(self.before_cursor())
        if offer.file is not None and token is not None:
            row, column = self.cursor_location
            self._replace_via_keyboard(offer.file.token, (row, column - token.length), (row, column))
            if not offer.file.is_folder:
                self.post_message(self.Wanted(offer.file.path, offer.file.token))
                if self._completions is not None:
                    self._completions.close()

    def _attach_what_is_typed(self, completions: Completions) -> None:
        """A space behind the whole name of a file attaches it."""
        token = token_before(self.before_cursor())
        for offer in completions.offers:
            if token is not None and offer.file is not None and offer.file.path == token.typed:
                if not offer.file.is_folder:
                    self.post_message(self.Wanted(token.typed, self.before_cursor()[-token.length :]))
                return
