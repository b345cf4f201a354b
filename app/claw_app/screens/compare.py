"""One question, two adapters, side by side; then a vote. It must never tell which side is which before that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Input, Select, Static

from claw_local.language import N_, _

from ..styles import LEARNED
from ..talk import LiveReply
from ..text import adapter_name, clean, excerpt, one_line
from ..widgets.bubbles import Bubble
from .keys import Keyed

if TYPE_CHECKING:
    from claw_local.assistant import Assistant, Reply
    from claw_local.store import AdapterRecord

    from ..app import ClawApp
    from ..widgets.composer import Composer
    from ..widgets.transcript import Transcript

SIDES = (N_("Left"), N_("Right"))
BASE = 0


class CompareActions(Screen[None]):
    """Opens the comparison from the chat's screen."""

    if TYPE_CHECKING:
        transcript: Transcript
        composer: Composer
        chat_id: int | None
        sending: bool

        @property
        def claw(self) -> ClawApp: ...
        @property
        def incognito(self) -> bool: ...
        async def open_chat(self, chat_id: int | None, message_id: int | None = None) -> None: ...
        async def refresh_status(self) -> None: ...

    def action_compare(self) -> None:
        """Ask one question of two adapters, and choose without knowing which is which."""
        if self.sending:
            self.claw.say(_("A reply is still being written. Esc stops it."))
        else:
            self.run_worker(self._compare())

    async def _compare(self) -> None:
        assistant = await self.claw.assistant()
        adapters = await self.claw.quick(_mine, assistant)
        if adapters is None:
            return
        if not adapters:
            self.claw.say(
                _("There is only the base model so far, so nothing to compare. A training run (F5) makes an adapter.")
            )
            return
        typed = self.composer.whole_text.strip()
        question = typed or self.transcript.question_of_chosen()
        chat_id = await self.app.push_screen_wait(CompareScreen(assistant, adapters, one_line(question), self.chat_id))
        if chat_id is not None:
            if typed and typed == self.composer.whole_text.strip():
                self.composer.accept(self.composer.text, remember=not self.incognito)
            await self.open_chat(chat_id)
        await self.refresh_status()


def _mine(assistant: Assistant) -> list[AdapterRecord]:
    """The adapters of the model in use: the one in use first, then the newest."""
    model = assistant.model_sha256
    found = [record for record in assistant.adapters.list() if record.model_sha256 == model]
    return sorted(found, key=lambda record: (record.state != "active", -record.id))


class CompareScreen(Keyed["int | None"]):
    """Gives the chat the question was asked in, or None if nothing was asked."""

    CSS_PATH = LEARNED
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", N_("Stop or leave"), key_display="Esc"),
        Binding("left,1", "vote(0)", N_("Left is better"), key_display="←"),
        Binding("down,0,t", "vote(2)", N_("Neither"), key_display="↓"),
        Binding("right,2", "vote(1)", N_("Right is better"), key_display="→"),
        Binding("r", "again", N_("Ask again")),
        Binding("f1", "app.help", "Help"),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-stacked"), (90, "-beside")]  # noqa: RUF012
    AUTO_FOCUS = "#question"

    def __init__(
        self, assistant: Assistant, adapters: Sequence[AdapterRecord], question: str, chat_id: int | None
    ) -> None:
        super().__init__()
        self._assistant, self._adapters = assistant, adapters
        self._question, self._chat_id = question, chat_id
        self._pair: tuple[Reply, Reply] | None = None
        self._live: LiveReply | None = None
        self._asked_in: int | None = None
        self._sides: tuple[int, int] = (BASE, BASE)
        self._ready = self._voted = self._stopped = self._alike = False

    @property
    def _claw(self) -> ClawApp:
        return cast("ClawApp", self.app)

    def compose(self) -> ComposeResult:
        choices = [(self._called(record.id, record.state), record.id) for record in self._adapters]
        choices.append((self._called(BASE), BASE))
        with Vertical(id="ask"):
            yield Static(_("Compare two adapters on one question. Which side is which shows after your vote."))
            yield Input(
                self._question, id="question", placeholder=_("The question; Enter asks it"), select_on_focus=False
            )
            with Horizontal(id="sides"):
                for number, value in enumerate((choices[0][1], choices[1][1])):
                    yield Select(choices, value=value, allow_blank=False, id=f"choice-{number}", compact=True)
        yield Static(id="asked")
        with Horizontal(id="beside"):
            for number, side in enumerate(SIDES):
                with VerticalScroll(id=f"side-{number}", classes="side") as box:
                    box.border_title = _(side)
                    # As tall as the side: an anchored container puts shorter content at its bottom.
                    yield Vertical(classes="page")
        yield Static(_("Enter asks. The first answer comes on one side, then the second on the other."), id="say")
        with Vertical(id="foot"):
            yield Footer(compact=True, show_command_palette=False)

    def _called(self, adapter_id: int, state: str = "") -> str:
        if not adapter_id:
            return _("the base model")
        record = next((one for one in self._adapters if one.id == adapter_id), None)
        name = adapter_name(record) if record is not None else _("adapter {id}", id=adapter_id)
        if state == "active":
            return _("{adapter}, in use", adapter=name)
        if state == "rejected":
            return _("{adapter}, not taken", adapter=name)
        return name

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Votes only when both answers are there; where they are the same, they are asked for again."""
        if action == "vote":
            return self._ready and not self._voted and not self._alike
        if action == "again":
            return self._ready and self._alike
        return super().check_action(action, parameters)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        first, second = (cast("Select[int]", self.query_one(f"#choice-{number}")).value for number in (0, 1))
        if not event.value.strip():
            self._say(_("Type a question first."))
        elif first == second:
            self._say(_("Both sides are the same. Choose two (Tab goes to them)."))
        elif self._pair is None:
            self.run_worker(self._run(event.value, cast(int, first), cast(int, second)), exit_on_error=False)

    async def _run(self, question: str, first: int, second: int) -> None:
        self.query_one("#question", Input).disabled = True
        self._sides = first, second
        try:
            self._pair = await self._claw.background.slow(
                self._assistant.compare, question, first or "base", second or "base", chat=self._chat_id
            )
        except Exception as error:
            self.query_one("#question", Input).disabled = False
            self._claw.fail(error)
            return
        self._asked_in = self._pair[0].chat_id
        self.query_one("#ask").display = False
        asked = self.query_one("#asked", Static)
        asked.update(Content(excerpt(clean(question), 400, 4)))
        asked.display = True
        await self._show(self._pair)

    async def _run_again(self, question_id: int) -> None:
        first, second = self._sides
        try:
            self._pair = await self._claw.background.slow(
                self._assistant.compare_again, question_id, first or "base", second or "base"
            )
        except Exception as error:
            self._ready = True
            self._claw.fail(error)
            return
        for page in self.query(".page"):
            await page.remove_children()
        await self._show(self._pair)

    async def _show(self, pair: tuple[Reply, Reply]) -> None:
        """Both answers as they come, then the question which is better."""
        from claw_local.talking.comparing import alike

        for number, reply in enumerate(pair):
            if not await self._stream(number, reply):
                await self._claw.quick(_give_up, pair[number + 1 :])
                return
        self._ready, self._alike = True, alike([reply.answer.text for reply in pair])
        for box in self.query(".side").results(VerticalScroll):
            box.anchor(False)
            box.scroll_home(animate=False)
        self._say(
            _("Both answers are the same, so a vote would teach nothing.  r asks again   Esc leaves")
            if self._alike
            else _("Which is better?  ← left   → right   ↓ neither   Esc leaves without a vote")
        )
        self.query_one("#side-0").focus()
        self.refresh_bindings()

    async def _stream(self, number: int, reply: Reply) -> bool:
        bubble = Bubble(state="streaming")
        box = self.query_one(f"#side-{number}", VerticalScroll)
        await box.query_one(".page").mount(bubble)
        box.anchor()
        bubble.can_focus = False
        bubble.wait_for(_("reading"))
        self._say(_("{side} answers …   Esc stops", side=_(SIDES[number])))
        live = self._live = LiveReply("", lambda: reply, self._claw.background)
        ended = False
        while not ended:
            ended = live.ended
            await live.batch()
            if bubble.is_attached:
                await bubble.write(live.text[len(bubble.raw) :])
        self._live = None
        if live.error is not None:
            await bubble.finish("failed")
            self._say(self._claw.sentence(live.error))
            return False
        await bubble.finish("interrupted" if self._stopped else "done")
        if self._stopped:
            self._say(_("Stopped: without both answers there is no vote. Esc leaves."))
        return not self._stopped

    def _say(self, words: str) -> None:
        self.query_one("#say", Static).update(Content(words))

    def action_leave(self) -> None:
        """Stop what is being written; else go back to the chat."""
        if self._live is not None:
            self._stopped = True
            self._live.cancel()
        else:
            self.dismiss(self._asked_in)

    def action_again(self) -> None:
        """Ask the same question once more: both answers were the same."""
        if self._pair is not None and self._ready and self._alike:
            self._ready = self._alike = False
            self.refresh_bindings()
            self.run_worker(self._run_again(self._pair[0].user_message_id), exit_on_error=False)

    async def action_vote(self, side: int) -> None:
        """Say which answer is better, and see which adapter wrote which."""
        if self._pair is None or not self._ready or self._voted or self._alike:
            return
        ids = [reply.message_id for reply in self._pair]
        winner = ids[side] if side < len(ids) else None
        self._voted = True
        try:
            await self._claw.background.quick(self._assistant.prefer, winner, ids)
        except Exception as error:
            self._voted = False
            self._claw.fail(error)
            return
        for number, reply in enumerate(self._pair):
            name, box = self._called(reply.answer.adapter), self.query_one(f"#side-{number}")
            box.border_title = f"{_(SIDES[number])}: {name}"
            box.set_class(reply.message_id == winner, "-winner")
        better = self._called(self._pair[side].answer.adapter) if winner else ""
        self._say(
            _("You preferred {better}. The vote counts like a thumb on both.  Esc goes back", better=better)
            if winner
            else _("A tie: it counts for neither.  Esc goes back")
        )
        self.refresh_bindings()


def _give_up(replies: Sequence[Reply]) -> None:
    for reply in replies:
        reply.close()
