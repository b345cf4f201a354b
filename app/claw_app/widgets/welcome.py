"""What a person sees before anything is said: four lines, and on the first start the first steps below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from claw_local.language import N_, _

from ..text import dressed, one_line

if TYPE_CHECKING:
    from claw_local.engine.catalog import FoundModel
    from claw_local.engine.recommended import Recommended

LISTED = 6
"""Most models of a kind that are offered here; `claw-local models list` shows all."""
_WHERE = {
    "embedded": N_("comes with claw-local"),
    "models": N_("in the models folder"),
    "named": N_("named in the settings"),
    "ollama-files": N_("a file of Ollama's"),
    "ollama": N_("served by Ollama"),
    "lm-studio": N_("of LM Studio"),
    "huggingface": N_("in the Hugging Face cache"),
    "openai": N_("served here"),
    "llama.cpp": N_("in llama.cpp's cache"),
}


class Welcome(Vertical):
    """Says what this is, that it does not learn yet, how to change that, and where things are kept.

    The first steps below it never hold anyone up: the field keeps the focus, and the first message takes them away.
    """

    DEFAULT_CSS = """
    Welcome { height: auto; }
    Welcome Static { height: auto; }
    Welcome #first-steps { height: auto; margin-top: 1; }
    Welcome OptionList {
        height: auto; max-height: 9; border: none; padding: 0; background: transparent; scrollbar-size-vertical: 1;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    Welcome .begin { color: $quiet; }
    """

    class Opened(Message):
        """The four lines of a first start are shown; whoever knows may add the first steps."""

    @dataclass
    class Typed(Message):
        """The person began to type while the list of models had the focus."""

        text: str

    @dataclass
    class ModelChosen(Message):
        """The person chose a model that is here, or one to fetch."""

        model: FoundModel | Recommended

    def __init__(self) -> None:
        super().__init__(id="welcome")
        self.first = True
        self.text = ""
        self._models: list[FoundModel | Recommended] = []

    def compose(self) -> ComposeResult:
        yield Static(id="welcome-lines")

    def tell(self, *, first: bool, learning: bool, home: str) -> None:
        """Fill in the lines: all four before the first chat, a greeting after it."""
        self.first = first
        lines = self._four_lines(learning, home) if first else [Content.styled(_(_GREETING), "$quiet")]
        page = Content("\n").join(lines)
        self.text = page.plain
        for place in self.query("#welcome-lines").results(Static):  # None, if something was said meanwhile.
            place.update(page)
        for place in self.query(".learning").results(Static):
            place.update(_learning(learning, home))
        if first:
            self.post_message(self.Opened())

    @staticmethod
    def _four_lines(learning: bool, home: str) -> list[Content]:
        state = (
            (_("Learning is on: what you say about a reply teaches it.") + "  ", _("Ctrl+L turns it off."))
            if learning
            else (_("Learning is off: nothing you say trains it.") + "  ", _("Ctrl+L turns it on."))
        )
        name = Content.styled("claw-local", "bold $primary")
        return [
            dressed(N_("{name} is an assistant that lives on this machine."), name=name),
            Content.assemble(_("Say what you like and dislike about its replies, and it becomes yours.")),
            Content.assemble(state[0], (state[1], "bold")),
            dressed(
                N_("Nothing leaves this machine. Everything is kept in {folder}"),
                folder=Content.styled(home, "$secondary"),
            ),
        ]

    # The first steps

    @property
    def has_steps(self) -> bool:
        """Whether the first steps are shown."""
        return bool(self.query("#first-steps"))

    async def add_steps(self, *, learning: bool, home: str) -> None:
        """Show the first steps; the models come with `show_models`."""
        if self.has_steps or not self.is_attached:  # Not attached: the app is closing, or a chat has been opened.
            return
        models = OptionList(id="welcome-models", markup=False, compact=True)
        models.display = False
        self.add_class("-steps")  # All of it is to be in sight at 80x24.
        await self.mount(
            Vertical(
                Static(_note(_("looking for models on this machine …")), id="welcome-note"),
                models,
                Static(_learning(learning, home), classes="learning"),
                Static(_("Just type to begin. F1 shows all keys, Esc hides this."), classes="begin"),
                id="first-steps",
            )
        )

    async def drop_steps(self) -> None:
        """Leave only the four lines."""
        await self.query("#first-steps").remove()
        self.remove_class("-steps")

    def show_models(self, found: Sequence[FoundModel], worth: Sequence[Recommended]) -> None:
        """Offer the models that are here, the one in use first, and those worth fetching."""
        listed = next(iter(self.query("#welcome-models").results(OptionList)), None)
        if listed is None:  # The steps were hidden, or are being taken down this moment.
            return
        here = sorted(found, key=lambda model: not model.in_use)[:LISTED]
        have = {model.path.name.lower() for model in found if model.path is not None}
        fetch = [model for model in worth if model.file.lower() not in have][: LISTED // 2]
        self._models = [*here, *fetch]
        listed.set_options([Option(_model_line(model)) for model in self._models])
        listed.display = bool(self._models)
        if any(model.in_use for model in here):
            self.note(_("Tab goes to the list, Enter takes another one."))
        elif here:
            self.note(_("None is in use yet: Tab goes to the list, Enter takes one."))
        else:
            self.note(_("There is none yet: Tab goes to the list, Enter fetches one."))

    def note(self, words: str, *, style: str = "$quiet") -> None:
        """Say how it stands with the models."""
        for place in self.query("#welcome-note").results(Static):
            place.update(_note(words, style))

    def on_key(self, event: events.Key) -> None:
        """A letter is the beginning of a message: there is no reply yet that it could be about."""
        if event.is_printable and event.character:
            event.stop()
            event.prevent_default()
            self.post_message(self.Typed(event.character))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.ModelChosen(self._models[event.option_index]))


def _note(words: str, style: str = "$quiet") -> Content:
    return Content.assemble((_("Which model answers"), "bold $secondary"), "  ", (one_line(words), style))


_GREETING = N_("A new chat. Type below to begin.")


def _learning(on: bool, home: str) -> Content:
    return Content.assemble(
        (_("Learning is on.") if on else _("Learning is off."), "bold $secondary"),
        "  ",
        _(
            "Turned on (Ctrl+L), it keeps what you say about replies (thumbs, hints, corrections, your next message) "
            "as lessons in {home}, and trains a small adapter on them (F5, or by itself while you are away). "
            "To undo: Ctrl+T switches hints off and takes adapters back; deleting a chat takes its lessons with it.",
            home=home,
        ),
    )


def _model_line(model: FoundModel | Recommended) -> Content:
    size = f"{model.size_bytes / 1e9:.1f} GB" if model.size_bytes else ""
    if hasattr(model, "repo"):
        why = one_line(cast("Recommended", model).why)
        return Content.assemble(
            ("↓ ", "$accent"), one_line(model.name), ("  " + _("{size} to fetch", size=size) + f" · {why}", "$quiet")
        )
    details = " · ".join(part for part in (model.quantisation, size, _(_WHERE.get(model.source, ""))) if part)
    mark = ("● ", "$success") if model.in_use else ("○ ", "$quiet")
    return Content.assemble(mark, one_line(model.name), (f"  {details}", "$quiet"))
