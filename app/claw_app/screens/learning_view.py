"""What the assistant learned: score over time, hints, runs and adapters, live. It must never hold what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Footer, OptionList, Static

from claw_local.language import N_, _

from ..styles import LEARNED
from ..text import moment, one_line
from ..widgets.learned import RowList, ScorePanel
from .ask import AskLine, Confirm
from .keys import Keyed
from .learned_lines import adapter_row, dot, head, hint_row, run_row
from .report import Report

if TYPE_CHECKING:
    from claw_local.assistant import Assistant
    from claw_local.idle.learning import LearnStatus
    from claw_local.signals.scores import Scored
    from claw_local.store import AdapterRecord, Hint, Run

    from ..app import ClawApp

EVERY_S = 1.0
PANELS = {"score": N_("Score over time"), "hints": N_("Hints"), "runs": N_("Runs"), "adapters": N_("Adapters")}
_KEYS = {
    "score": "",
    "hints": N_("Space off/on · e edit · a add · x remove"),
    "runs": N_("Enter shows the report"),
    "adapters": N_("u use · b back · Enter report"),
}


class LearningView(Keyed[None]):
    """Four panels side by side where there is room, else one at a time. Keys 1 to 4 go to a panel."""

    CSS_PATH = LEARNED
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+t", "dismiss", N_("Back"), key_display="Esc"),
        *(
            Binding(str(number), f"panel('{name}')", title, show=False)
            for number, (name, title) in enumerate(PANELS.items(), 1)
        ),
        Binding("tab", "next(1)", N_("Next panel"), key_display="Tab"),
        Binding("shift+tab", "next(-1)", "Panel before", show=False),
        Binding("space", "hint_switch", N_("Hint off/on"), show=False),
        Binding("e", "hint_edit", N_("Edit hint"), show=False),
        Binding("a", "hint_add", N_("Add hint"), show=False),
        Binding("x,delete", "hint_remove", N_("Remove hint"), show=False),
        Binding("u", "use", N_("Use adapter"), show=False),
        Binding("b", "back", N_("Roll back"), show=False),
        Binding("f5", "learn_now", N_("Learn now")),
        Binding("f1", "app.help", "Help"),
        Binding("f9", "app.toggle_theme", "Theme", show=False),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-one"), (110, "-four")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (30, "-high")]  # noqa: RUF012
    AUTO_FOCUS = "#score"

    def __init__(self, assistant: Assistant) -> None:
        super().__init__()
        self._assistant = assistant
        self._hints: dict[int, Hint] = {}
        self._runs: dict[int, Run] = {}
        self._adapters: dict[int, AdapterRecord] = {}
        self._in_use = 0

    @property
    def _claw(self) -> ClawApp:
        return cast("ClawApp", self.app)

    def compose(self) -> ComposeResult:
        yield Static(id="learned-head")
        yield Static(id="learned-tabs")
        with Grid(id="learned"):
            yield ScorePanel()
            yield RowList(id="hints", empty=_("No hints. a adds one: a wish that stands in every prompt."))
            yield RowList(id="runs", empty=_("No training run yet. F5 starts one when there is something to learn."))
            yield RowList(id="adapters", empty=_("Only the base model. A training run makes an adapter."))
        with Vertical(id="foot"):
            yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        for number, (name, title) in enumerate(PANELS.items(), 1):
            panel = self.query_one(f"#{name}")
            panel.border_title, panel.border_subtitle = f"{number} {_(title)}", _(_KEYS[name])
        self.action_panel("score")
        self.run_worker(self.refresh_all())
        self.set_interval(EVERY_S, self.refresh_all)

    # What is shown

    async def refresh_all(self) -> None:
        """Ask how everything stands; other programs change these things too."""
        found = await self._claw.quick(self._look)
        if found is None or not self.is_attached:
            return
        status, scored, hints, runs, adapters = found
        self._hints = {hint.id: hint for hint in hints}
        self._runs = {run.id: run for run in runs}
        self._adapters = {record.id: record for record in adapters}
        self._in_use = status.adapter
        line = self.query_one("#learned-head", Static)
        line.update(head(status, line.content_size.width or self.app.size.width))
        self.query_one(ScorePanel).fill(scored)
        self._list("hints").fill([hint_row(hint) for hint in hints])
        self._list("runs").fill([run_row(run) for run in runs])
        base = Content.assemble(dot(not self._in_use), _("base model"), ("  " + _("as it came"), "$quiet"))
        rows = [adapter_row(record, self._in_use) for record in adapters]
        self._list("adapters").fill([*rows, ("0", base)] if rows else [])

    def _look(self) -> tuple[LearnStatus, list[Scored], list[Hint], list[Run], list[AdapterRecord]]:
        learn = self._assistant.learn
        hints = [hint for hint in self._assistant.hints.list(active_only=False) if hint.scope != "turn"]
        order = {"active": 0, "consolidated": 1, "dropped": 2}
        hints.sort(key=lambda hint: (order.get(hint.state, 3), -hint.id))
        return learn.status(), learn.scores(), hints, learn.runs(), self._assistant.adapters.list()

    def _list(self, name: str) -> RowList:
        return self.query_one(f"#{name}", RowList)

    # Moving

    def action_panel(self, name: str) -> None:
        """Go to a panel."""
        tabs = []
        for number, (one, title) in enumerate(PANELS.items(), 1):
            self.query_one(f"#{one}").set_class(one == name, "-shown")
            tabs.append(
                Content.styled(f" {number} {_(title)} ", "bold $primary on $panel" if one == name else "$quiet")
            )
        self.query_one("#learned-tabs", Static).update(Content(" ").join(tabs))
        self.query_one(f"#{name}").focus()

    def on_descendant_focus(self) -> None:
        self.refresh_bindings()

    def _shown(self) -> str:
        focused = self.focused
        return focused.id if isinstance(focused, Widget) and focused.id in PANELS else "score"

    def action_next(self, by: int) -> None:
        """Go to the next panel."""
        names = list(PANELS)
        self.action_panel(names[(names.index(self._shown()) + by) % len(names)])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """These keys work in the panel that names them at its lower edge."""
        if not self.is_mounted:
            return True
        if action in ("hint_switch", "hint_edit", "hint_remove"):
            return self._shown() == "hints"
        if action in ("use", "back"):
            return self._shown() == "adapters"
        return super().check_action(action, parameters)

    # Hints

    def _hint(self) -> Hint | None:
        chosen = self._list("hints").chosen()
        return self._hints.get(int(chosen)) if chosen else None

    async def action_hint_switch(self) -> None:
        """Take the hint under the cursor out of the prompt, or put it back."""
        hint = self._hint()
        if hint is not None:
            off = hint.state == "active"
            await self._change(self._assistant.hints.off if off else self._assistant.hints.on, hint.id)
            run = await self._claw.quick(self._assistant.learn.still_taught, hint.id) if off else None
            if run is not None:
                words = _(
                    "It is out of the prompt. The paused run {id} was begun with it, and teaches it all the same when "
                    "it goes on; to remove the hint (x) gives that run up.",
                    id=run.id,
                )
                self._claw.say(words, severity="warning", timeout=10)

    def action_hint_edit(self) -> None:
        """Say the hint under the cursor otherwise."""
        hint = self._hint()
        if hint is not None:
            self.run_worker(self._edit_hint(hint))

    async def _edit_hint(self, hint: Hint) -> None:
        text = await self.app.push_screen_wait(
            AskLine(_("The hint, as it is to stand in prompts"), one_line(hint.text))
        )
        if text and text != hint.text:
            await self._change(self._assistant.hints.edit, hint.id, text)

    def action_hint_remove(self) -> None:
        """Delete the hint under the cursor, with its lesson."""
        hint = self._hint()
        if hint is not None:
            self.run_worker(self._remove_hint(hint))

    async def _remove_hint(self, hint: Hint) -> None:
        question = _(
            "Remove the hint “{hint}” for good, with its lesson? Space only switches it off.", hint=one_line(hint.text)
        )
        if await self.app.push_screen_wait(Confirm(question, _("Remove"), _("Not now"))):
            await self._change(self._assistant.hints.remove, hint.id)

    def action_hint_add(self) -> None:
        """Add a wish for every chat."""
        self.run_worker(self._add_hint())

    async def _add_hint(self) -> None:
        text = await self.app.push_screen_wait(
            AskLine(_("What do you wish for, in every chat?"), "", _("for example: at most two sentences, no lists"))
        )
        if text:
            self.action_panel("hints")
            await self._change(self._assistant.hints.add, text)

    async def _change(self, change: Callable[..., Any], *arguments: Any) -> None:
        await self._claw.quick(change, *arguments)
        self._claw.main.say_given_up(await self._claw.quick(self._assistant.learn.given_up) or ())
        await self.refresh_all()
        await self._claw.main.refresh_status()  # It says which hints made room for another.

    # Adapters and runs

    async def action_use(self) -> None:
        """Put the adapter under the cursor into use."""
        chosen = self._list("adapters").chosen()
        if chosen is None:
            return
        await self._change(self._assistant.adapters.use, int(chosen) or "base")
        if self._in_use == int(chosen):
            self._say_in_use()

    async def action_back(self) -> None:
        """One step back, to what the adapter in use was made from."""
        before = self._in_use
        await self._change(self._assistant.adapters.rollback)
        if self._in_use != before:
            self._say_in_use()

    def _say_in_use(self) -> None:
        name = _("Adapter {id}", id=self._in_use) if self._in_use else _("The base model")
        self._claw.say(_("{name} is in use from your next message on.", name=name), topic="adapter")

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        chosen, name = event.option_id, event.option_list.id
        if chosen is None:
            return
        if name == "hints":
            self.action_hint_edit()
        elif name == "runs":
            self._show_report(self._runs.get(int(chosen)))
        elif int(chosen):
            runs: Sequence[Run] = [run for run in self._runs.values() if run.adapter_id == int(chosen)]
            record = self._adapters.get(int(chosen))
            if runs or record is None:
                self._show_report(runs[0] if runs else None)
            else:
                self.app.push_screen(
                    Report(
                        _("Adapter {id}", id=record.id), one_line(record.reason), dict(record.metrics.get("gate") or {})
                    )
                )

    def _show_report(self, run: Run | None) -> None:
        if run is None:
            self._claw.say(_("There is no report of it."))
            return
        reason = one_line(str(run.result.get("reason") or run.detail))
        title = _("Run {id}, {time}", id=run.id, time=moment(run.started_at, year=True))
        self.app.push_screen(Report(title, reason, dict(run.result.get("gate") or {})))

    def action_learn_now(self) -> None:
        """As on the chat's screen."""
        self._claw.main.action_learn_now()
