"""What one chat does differently: model, adapter, system prompt, sampling, whether it may teach. It asks, and sets
nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Horizontal, Vertical
from textual.content import Content
from textual.markup import escape
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Label, Select, Static, Switch, TextArea

from claw_local.language import N_, _
from claw_local.settings import SamplingSettings

from ..styles import OVER
from ..text import adapter_name, one_line

if TYPE_CHECKING:
    from claw_local.assistant import Assistant
    from claw_local.engine.catalog import FoundModel
    from claw_local.store import AdapterRecord

    from ..app import ClawApp

FIELDS: dict[str, tuple[str, str]] = {
    "temperature": (N_("Temperature"), N_("0 takes the likeliest word every time; higher is livelier.")),
    "max_tokens": (N_("Longest reply"), N_("In tokens: about three quarters of a word each.")),
    "top_p": (N_("Top P"), N_("Draw from the smallest set of words that holds this much probability.")),
    "top_k": (N_("Top K"), N_("Draw from this many likeliest words; 0 means all.")),
    "min_p": (N_("Min P"), N_("Leave out words less likely than this share of the likeliest one.")),
    "repeat_penalty": (N_("Repeat penalty"), N_("Makes words that were used lately less likely; 1 means off.")),
}
BASE = "base"
ABOUT = {
    "other-model": N_("Goes before the choice above."),
    "adapter": N_("This chat keeps to it, whatever is put into use elsewhere."),
}
_KEYS = N_("Ctrl+S keeps · Tab goes on · Esc cancels")
_TEACHES = {True: N_("on: while learning is on, this chat teaches."), False: N_("off: this chat never teaches.")}
_NEVER = N_("An incognito chat never teaches.")


@dataclass(frozen=True)
class Choices:
    """What a chat does differently. Empty fields are as the settings say.

    Attributes:
        workspace: the folder its tools may touch, which has a command of its own.
        adapter: the id of the adapter it keeps to, or "base"; empty is the one in use.
    """

    model: str = ""
    system: str = ""
    sampling: dict[str, Any] = field(default_factory=dict)
    learn: bool = True
    workspace: str = ""
    adapter: str = ""

    def changes(self, before: Choices | None = None) -> dict[str, Any]:
        """For `Assistant.set_chat`. What is as it was is left alone: an adapter that is gone since harms nothing."""
        now = {
            "model": self.model,
            "system": self.system,
            "sampling": self.sampling,
            "learn": self.learn,
            "adapter": self.adapter,
        }
        return {name: value for name, value in now.items() if before is None or getattr(before, name) != value}


def kept_adapter(adapter_id: int | None) -> str:
    """What a chat keeps to, as it is chosen here: nothing, "base", or an id."""
    return "" if adapter_id is None else str(adapter_id or BASE)


class ChatSettings(ModalScreen["Choices | None"]):
    """A form. Ctrl+S gives what was chosen, Esc gives None; where something was changed, it asks once. Values out of
    range are said at once, and not taken."""

    CSS_PATH = OVER
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f6", "leave", "Cancel", show=False),
        Binding("ctrl+s", "keep", "Keep", show=False, priority=True),
    ]

    HORIZONTAL_BREAKPOINTS = [(0, "-slim"), (80, "-narrow"), (100, "-wide")]  # noqa: RUF012

    def __init__(self, assistant: Assistant, now: Choices, *, incognito: bool = False) -> None:
        super().__init__()
        self._assistant, self._now, self._incognito = assistant, now, incognito
        self._first: list[object] = []
        self._asked: list[object] = []

    def compose(self) -> ComposeResult:
        defaults = self._assistant.settings.sampling
        with Vertical(classes="dialog large", id="chat-settings"):
            yield Static(Content.styled(_("What this chat does differently"), "bold"))
            with Vertical(id="form"):
                with Horizontal(classes="row"):
                    yield Label(_("Model"))
                    models = list(self._models())
                    yield Select(models, value=self._now.model, allow_blank=False, compact=True, id="model")
                with Horizontal(classes="row"):
                    yield Label("")
                    yield Input(
                        placeholder=_("or a GGUF file, ollama:NAME, openai:NAME"), compact=True, id="other-model"
                    )
                with Horizontal(classes="row"):
                    yield Label(_("Adapter"))
                    adapters = list(self._adapters())
                    yield Select(adapters, value=self._now.adapter, allow_blank=False, compact=True, id="adapter")
                with Horizontal(classes="row tall"):
                    yield Label(_("System prompt"))
                    yield TextArea(
                        self._now.system,
                        soft_wrap=True,
                        highlight_cursor_line=False,
                        tab_behavior="focus",
                        compact=True,
                        placeholder=_("empty: the model's own"),
                    )
                with Grid(id="sampling"):
                    for name, (label, __) in FIELDS.items():
                        value = self._now.sampling.get(name)
                        with Horizontal(classes="row"):
                            yield Label(_(label))
                            yield Input(
                                "" if value is None else f"{value:g}",
                                placeholder=f"{getattr(defaults, name):g}",
                                compact=True,
                                name=name,
                                classes="number",
                                select_on_focus=False,
                            )
                            yield Static(allowed(name), classes="range")
                with Horizontal(classes="row"):
                    yield Label(_("May teach"))
                    learn = self._now.learn and not self._incognito
                    yield Switch(learn, animate=False, disabled=self._incognito)
                    words = _NEVER if self._incognito else _TEACHES[learn]
                    yield Static(_(words), classes="range", id="teaches")
            yield Static("", id="settings-help")
            yield Static(_(_KEYS), classes="dialog-keys")

    async def on_mount(self) -> None:
        self._first = self._asked = self._filled_in()
        self.query_one(Select).focus()
        self.run_worker(self._find_models())
        self.run_worker(self._find_adapters())

    def _models(self, found: tuple[tuple[str, str], ...] = ()) -> Iterator[tuple[str, str]]:
        """(what is shown, what is chosen) of each model to choose from, the one in use now among them."""
        yield _("As the settings say"), ""
        if self._now.model and self._now.model not in (value for __, value in found):
            yield escape(one_line(self._now.model)), self._now.model
        yield from found

    async def _find_models(self) -> None:
        """The models on this machine. Looking through folders may take a moment: the form is there already."""
        claw = cast("ClawApp", self.app)
        try:
            found = await claw.background.slow(self._assistant.models.list)
        except Exception as error:
            self._help(claw.sentence(error), "$warning")
            return
        self._offer("#model", self._models(tuple((described(model), model.chooses) for model in found)))

    def _adapters(self, found: Sequence[AdapterRecord] = ()) -> Iterator[tuple[str, str]]:
        """The same for adapters."""
        yield _("The one in use"), ""
        yield _("None: the base model"), BASE
        kept = self._now.adapter
        if kept not in ("", BASE, *(str(record.id) for record in found)):
            yield _("adapter {id}", id=kept), kept
        for record in found:
            words = {"active": N_("{adapter}, in use"), "rejected": N_("{adapter}, not taken")}.get(record.state)
            name = adapter_name(record)
            yield _(words, adapter=name) if words else name, str(record.id)

    async def _find_adapters(self) -> None:
        """The adapters of the model in use. Its hash may have to be read from the file first."""
        claw = cast("ClawApp", self.app)
        try:
            found = await claw.background.slow(_mine, self._assistant)
        except Exception:  # Without a model there is none to choose from; the chat says what is wrong with the model.
            return
        self._offer("#adapter", self._adapters(found))

    def _offer(self, selector: str, options: Iterator[tuple[str, str]]) -> None:
        if not self.is_attached:
            return
        select = cast("Select[str]", self.query_one(selector, Select))
        chosen = select.value
        with self.prevent(Select.Changed):
            select.set_options(options)
            select.value = chosen

    def _help(self, words: str, style: str = "$quiet") -> None:
        self.query_one("#settings-help", Static).update(Content.styled(words, style))

    @on(Switch.Changed)
    def _switched(self, event: Switch.Changed) -> None:
        self.query_one("#teaches", Static).update(_(_TEACHES[event.value]))

    @on(Input.Changed, ".number")
    def _number_changed(self, event: Input.Changed) -> None:
        self._explain(event.input)

    def on_descendant_focus(self) -> None:
        """Say what the field in focus is about; what was asked before is out of sight, and asked again."""
        self._asked = self._first
        if isinstance(self.focused, Input) and self.focused.name in FIELDS:
            self._explain(self.focused)
        else:
            self._help(_(ABOUT.get(str(self.focused.id), "")) if self.focused is not None else "")

    def _explain(self, number: Input) -> None:
        name = str(number.name)
        problem = self._problem(name, number.value)
        number.set_class(bool(problem), "-wrong")
        if number is self.focused:
            self._help(problem or _(FIELDS[name][1]), "$error" if problem else "$quiet")

    @staticmethod
    def _problem(name: str, text: str) -> str:
        try:
            number(name, text)
        except ValueError:
            return _(
                "{field} is {range}; leave it empty for what the settings say.",
                field=_(FIELDS[name][0]),
                range=allowed(name),
            )
        return ""

    def _filled_in(self) -> list[object]:
        """All that stands in the form."""
        fields = self.query("Select, Input, TextArea, Switch").results(Widget)
        return [field.text if isinstance(field, TextArea) else getattr(field, "value", None) for field in fields]

    def action_leave(self) -> None:
        """Give it up; what was changed is only lost at the second time."""
        filled_in = self._filled_in()
        if filled_in in (self._first, self._asked):
            self.dismiss(None)
            return
        self._asked = filled_in
        self._help(_("Not kept yet: Ctrl+S keeps it, Esc again throws away what you changed."), "$warning")

    def action_keep(self) -> None:
        """Give what was chosen, if all of it can be."""
        sampling = {name: value for name, value in self._now.sampling.items() if name not in FIELDS}
        for entry in self.query("Input.number").results(Input):
            name = str(entry.name)
            problem = self._problem(name, entry.value)
            if problem:
                entry.focus()
                self._help(problem, "$error")
                return
            value = number(name, entry.value)
            if value is not None:
                sampling[name] = value
        other = self.query_one("#other-model", Input).value.strip()
        learn = self._now.learn if self._incognito else self.query_one(Switch).value
        model = other or str(self.query_one("#model", Select).value)
        adapter = str(self.query_one("#adapter", Select).value)
        system = self.query_one(TextArea).text.strip()
        self.dismiss(Choices(model, system, sampling, learn, self._now.workspace, adapter))


def number(name: str, text: str) -> float | int | None:
    """A value of the sampling as it was typed; None for an empty field.

    Raises:
        ValueError: it is no number, or out of its range.
    """
    text = text.strip().replace(",", ".")
    if not text:
        return None
    value = getattr(SamplingSettings.model_validate({name: text}), name)
    return cast("float | int", value)


def allowed(name: str) -> str:
    """The range of a value, in words."""
    limits = {
        limit: getattr(rule, limit)
        for rule in SamplingSettings.model_fields[name].metadata
        for limit in ("ge", "gt", "le", "lt")
        if hasattr(rule, limit)
    }
    low = _("over {low:g}", low=limits["gt"]) if "gt" in limits else f"{limits.get('ge', 0):g}"
    return _("{low} to {high:g}", low=low, high=limits["le"]) if "le" in limits else _("{low} or more", low=low)


def _mine(assistant: Assistant) -> list[AdapterRecord]:
    model = assistant.model_sha256
    return [record for record in assistant.adapters.list() if record.model_sha256 == model and record.gguf_path]


def described(model: FoundModel) -> str:
    """A model on this machine, in a line: its name, quantisation and size, and whose it is."""
    # The list reads markup; a name is what a file says of itself.
    return escape(one_line(" · ".join(part for part in (model.name, about(model)) if part)))


def about(model: FoundModel) -> str:
    """What is to be said of a model beside its name: quantisation and size, and whose it is."""
    size = f"{model.size_bytes / 1e9:.1f} GB" if model.size_bytes else ""
    return " · ".join(part for part in (model.quantisation, size, model.source) if part)
