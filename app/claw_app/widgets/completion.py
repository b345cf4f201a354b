"""The list that opens over the field: slash commands, words for them, and files after `@`. It must never run or read
what is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.geometry import Offset
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from claw_local.language import _

from ..commands import Command, key_names, slash_commands
from ..text import one_line, padded
from .completion_files import PART, FileHit, rank

ROWS = 8
"""Most rows shown at once; the rest scrolls."""
_NAME_WIDTH = 18
_WORD_WIDTH = 8


@dataclass(frozen=True)
class Offer:
    """One line of the list: a command, a word for one, or a file.

    Attributes:
        word: what may follow a slash command. about: what it means.
        is_path: it is a path, which may be gone on with.
        value: what the word stands for, where there may be another one of that name: a chat's id, a model's file.
    """

    command: Command | None = None
    file: FileHit | None = None
    word: str = ""
    about: str = ""
    is_path: bool = False
    value: str = ""

    def line(self) -> Content:
        """The line as it is shown."""
        if self.command is not None:
            words = f" {self.command.words}" if self.command.words else ""
            name = f"/{self.command.slash}{words}"
            keys = key_names(self.command)
            return Content.assemble(
                (f"{padded(name, _NAME_WIDTH)} ", "$secondary"),
                _(self.command.help),
                (f"  {keys}" if keys else "", "$quiet"),
            )
        if self.file is None:
            word = one_line(self.word)
            return Content.assemble(
                (padded(word, _WORD_WIDTH) if self.about else word, "$secondary"),
                (f" {one_line(self.about)}", "$quiet"),
            )
        style = "$secondary" if self.file.is_folder else ""
        return Content.assemble((one_line(self.file.name), style))


class Completions(OptionList, can_focus=False):
    """Stands just above the field, over the messages; the field keeps the focus and hands on the keys.

    Hidden, or with at least one offer and one of them highlighted.
    """

    DEFAULT_CSS = """
    Completions {
        display: none;
        overlay: screen;
        constrain: inside inside;
        width: 100%;
        max-width: 100;
        height: auto;
        margin: 0 1;
        padding: 0 1;
        border: round $border-blurred;
        background: $surface;
        text-wrap: nowrap;
        text-overflow: ellipsis;
        scrollbar-size-vertical: 1;
        &.-bare { border: none; }
        & > .option-list--option { padding: 0; }
        & > .option-list--option-highlighted {
            color: $block-cursor-foreground; background: $block-cursor-background; text-style: bold;
        }
    }
    """

    @dataclass
    class Taken(Message):
        """The person clicked on an offer."""

        offer: Offer

    def __init__(self) -> None:
        super().__init__(id="completions", markup=False)
        self._offers: tuple[Offer, ...] = ()
        self.walked = False
        """Whether the person has gone to an offer themselves."""

    @property
    def is_open(self) -> bool:
        """Whether offers are shown."""
        return bool(self.display)

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What is shown, best first."""
        return self._offers if self.is_open else ()

    @property
    def chosen(self) -> Offer | None:
        """The highlighted offer."""
        return self._offers[self.highlighted] if self.is_open and self.highlighted is not None else None

    def offer(self, offers: Sequence[Offer], room: int = ROWS + 2) -> None:
        """Show these; none closes the list.

        Args:
            room: rows above the field: the list takes no more, so that what is typed stays in sight.
        """
        if not offers:
            self.close()
            return
        if tuple(offers) != self._offers or not self.is_open:
            self._offers = tuple(offers)
            self.set_options([Option(offer.line()) for offer in offers])
            self.highlighted = 0
            room = max(1, room)
            bare = room < 3
            self.set_class(bare, "-bare")
            height = min(len(offers) + (0 if bare else 2), ROWS + 2, room)
            self.styles.max_height = height
            # It lies where the field begins, and stands on that line.
            self.styles.offset = Offset(0, -height)
        self.walked = False
        self.display = True

    def close(self) -> None:
        """Hide the list."""
        self.display = False
        self._offers = ()

    def walk(self, by: int) -> None:
        """Highlight the next offer; past the last one comes the first."""
        if self.highlighted is not None:
            self.highlighted = (self.highlighted + by) % len(self._offers)
            self.walked = True

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Taken(self._offers[event.option_index]))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        # The field keeps the focus.
        event.prevent_default()


def command_offers(text: str) -> list[Offer]:
    """The commands that fit a field whose text begins with a slash; none if it is no command."""
    if not text.startswith("/") or text.startswith("//") or any(c.isspace() for c in text):
        return []
    return [Offer(command=command) for command in slash_commands(text[1:])]


def best(typed: str, offers: Iterable[Offer], *, loosely: bool = True) -> list[Offer]:
    """The offers whose word fits what was typed, best first: the word itself, its beginning, a part of it, and with
    `loosely` its letters in their order."""
    wanted = typed.strip().lower()
    ranked = [(rank(wanted, offer.word.lower()), offer) for offer in offers]
    fitting = [one for one in ranked if one[0] is not None and (loosely or one[0] <= PART)]
    return [offer for fit, offer in sorted(fitting, key=lambda one: one[0] or 0)]
