"""Why an answer came out as it did. It must never guess: all it shows was noted when the answer was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from claw_local.language import N_, _, ngettext

from ..styles import LEARNED
from ..text import adapter_name, clean, excerpt, one_line
from ..words import EXAMPLE

if TYPE_CHECKING:
    from claw_local.assistant import Assistant
    from claw_local.store import Hint
    from claw_local.talking.reasons import Why

    from ..app import ClawApp

_SAMPLING = {
    "temperature": N_("temperature"),
    "top_k": "top-k",
    "top_p": "top-p",
    "min_p": "min-p",
    "repeat_penalty": N_("repeat penalty"),
    "max_tokens": N_("at most tokens"),
    "seed": N_("seed"),
}
_NOTICED_S = 0.05
_TIMES = {"load": N_("loading the model"), "first_token": N_("to the first word"), "total": N_("in all")}

_BY = {
    "person": N_("you: the reply as you want it."),
    "elsewhere": N_("another assistant, in the chat that was imported"),
}


class WhyScreen(ModalScreen[None]):
    """The panel over the chat. A hint under the cursor is switched off, or on again, with Space."""

    CSS_PATH = LEARNED
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,w", "dismiss", "Close", show=False),
        Binding("space,x", "switch", "Hint on or off", show=False),
    ]

    def __init__(self, assistant: Assistant, why: Why) -> None:
        super().__init__()
        self._assistant, self._why = assistant, why
        self._hints: dict[int, Hint] = {hint.id: hint for hint in why.hints}

    @property
    def _claw(self) -> ClawApp:
        return cast("ClawApp", self.app)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog large why"):
            yield Static(Content.assemble((_("Why this answer"), "bold $primary"), ("   " + _("Esc closes"), "$quiet")))
            yield Static(self._heading(), classes="why-hints")
            if self._hints:
                yield OptionList(*(self._option(hint) for hint in self._hints.values()), markup=False, compact=True)
            with VerticalScroll(can_focus=not self._hints):
                for label, words in self._facts():
                    with Horizontal(classes="fact"):
                        yield Static(label, classes="label")
                        yield Static(Content(words), classes="value")

    def _heading(self) -> Content:
        gone = self._why.hints_removed
        stood = len(self._hints) + gone
        if not stood:
            return Content.styled(_("No hint of yours stood in the prompt beside what this chat says."), "$quiet")
        said = ngettext(
            "{number} hint of yours stood in the prompt", "{number} hints of yours stood in the prompt", stood
        )
        removed = ngettext("{number} was removed since", "{number} were removed since", gone)
        keys = _("Space switches one off or on")
        notes = [note for note, there in ((removed, gone), (keys, self._hints)) if there]
        return Content.assemble((said, "bold"), ("   " + " · ".join(notes), "$quiet"))

    @staticmethod
    def _option(hint: Hint) -> Option:
        on = hint.state == "active"
        note = {
            "dropped": "  " + _("off from now on"),
            "consolidated": "  " + _("learned since: no longer in the prompt"),
        }.get(hint.state, "")
        return Option(
            Content.assemble(
                ("● " if on else "○ ", "$success" if on else "$quiet"), one_line(hint.text), (note, "$quiet")
            ),
            id=str(hint.id),
        )

    def _facts(self) -> list[tuple[str, str]]:
        why = self._why
        if why.by != "model":
            example = [_(EXAMPLE[why.example_of])] if why.example_of is not None else []
            return [(_("Written by"), " ".join([_(_BY[why.by]), *example]))]
        read = ngettext("{number} token read", "{number} tokens read", why.prompt_tokens)
        written = ngettext("{number} written", "{number} written", why.completion_tokens)
        return [
            (_("Model"), one_line(why.model) or _("not noted")),
            (_("Adapter"), self._adapter()),
            (_("Drawn with"), self._sampling()),
            (_("Length"), f"{read}, {written}"),
            (_("Time"), self._times()),
            (_("System"), excerpt(clean(why.system)).strip() or _("no system prompt")),
        ]

    def _adapter(self) -> str:
        adapter = self._why.adapter
        if adapter is None:
            return _("none: the base model wrote it")
        return ngettext(
            "{adapter}, learned from {number} reply of your chats",
            "{adapter}, learned from {number} replies of your chats",
            len(adapter.lineage),
            adapter=adapter_name(adapter),
        )

    def _sampling(self) -> str:
        drawn = {words: _number(self._why.sampling.get(name)) for name, words in _SAMPLING.items()}
        return ", ".join(f"{_(words)} {number}" for words, number in drawn.items() if number) or _("not noted")

    def _times(self) -> str:
        times = self._why.timings
        said = (
            f"{times[name]:.1f} s {_(words)}" for name, words in _TIMES.items() if times.get(name, 0.0) >= _NOTICED_S
        )
        return ", ".join(said) or _("no time worth a word")

    async def action_switch(self) -> None:
        """Switch the hint under the cursor off, or on again."""
        if not self._hints:
            return
        options = self.query_one(OptionList)
        place = options.highlighted
        if place is None:
            return
        hint = list(self._hints.values())[place]
        change = self._assistant.hints.off if hint.state == "active" else self._assistant.hints.on
        changed = await self._claw.quick(change, hint.id)
        if changed is not None:
            self._hints[hint.id] = changed
            options.set_options(self._option(one) for one in self._hints.values())
            options.highlighted = place

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.run_worker(self.action_switch())


def _number(value: object) -> str:
    """A setting that says something: a number other than 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value:
        return ""
    return str(value) if isinstance(value, int) else f"{value:g}"
