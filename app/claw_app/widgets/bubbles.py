"""One message on the screen. It must never know where messages are kept or who wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.timer import Timer
from textual.widgets import Static

from claw_local.language import N_, _

from ..attachments import folded
from ..commands import BY_LETTER
from ..text import clean, excerpt, one_line

if TYPE_CHECKING:
    from claw_local.store import Signal

    from .markdown import ReplyText

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WEIGHT = {"judge": 0, "copy": 0, "tool": 1, "regenerate": 2, "thumb": 3, "edit": 3}
"""Whose word counts: what the person said outright before what they did, and both before what the judge thinks."""
_ENDED = {"interrupted": N_("stopped"), "failed": N_("failed"), "cut": N_("cut at the longest reply allowed")}
_MARKS = {
    1: ("▲", "$success", N_("good")),
    -1: ("▼", "$error", N_("bad")),
    0: ("·", "$quiet", N_("neither good nor bad")),
}
_BECAUSE = 160
WALKING: list[BindingType] = [
    Binding("left", "screen.walk(-1)", "Version before", show=False),
    Binding("right", "screen.walk(1)", "Next version", show=False),
]


def clickable(keys: str) -> Content:
    """What can be done, as `+ good  - bad`: a click on one does what its key does."""
    parts = []
    for part in keys.split("  "):
        action = BY_LETTER.get(part[:1])
        words = Content.styled(part, "$secondary")
        # What has the focus is what is meant: these words only stand below it.
        parts.append(words.stylize(Style.from_meta({"@click": f"screen.{action}"})) if action else words)
    return Content("  ").join(parts)


def version_mark(message_id: int, versions: Sequence[int]) -> str:
    """2/3 for the second of three versions; nothing for the only one."""
    return f"{versions.index(message_id) + 1}/{len(versions)}" if len(versions) > 1 and message_id in versions else ""


def walkable(message_id: int, versions: Sequence[int]) -> Content | None:
    """`◂ 2/3 ▸`: a click on an arrow walks to the version on that side, if there is one. None for the only version."""
    mark = version_mark(message_id, versions)
    if not mark:
        return None
    place = versions.index(message_id)
    arrows = []
    for arrow, by in (("◂ ", -1), (" ▸", 1)):
        leads = 0 <= place + by < len(versions)
        words = Content.styled(arrow, "$secondary" if leads else "$quiet")
        # By its id, not by the focus: a second click comes before the walk of the first is over.
        go = Style.from_meta({"@click": f"screen.walk_from({message_id}, {by})"})
        arrows.append(words.stylize(go) if leads else words)
    return Content.styled(mark, "$accent").join(arrows)


class Notice(Static):
    """A sentence from the app about the chat: a notice or an error."""

    def __init__(self, text: str, *, error: bool = False) -> None:
        super().__init__(Content(clean(text)), classes="notice error" if error else "notice")


class Question(Static, can_focus=True):
    """What the person said, as they typed it; below it which version it is, and focused what can be done with it.

    Attributes:
        message_id: 0 until it is known.
        raw: the text, cleaned.
        versions: the ids of all that were asked in this place.
    """

    BINDINGS: ClassVar[list[BindingType]] = WALKING

    def __init__(self, text: str, *, message_id: int = 0, versions: Sequence[int] = ()) -> None:
        self.raw = clean(text)
        self.message_id, self.versions = message_id, tuple(versions)
        super().__init__(self._page(), classes="question")

    def tell(self, versions: Sequence[int]) -> None:
        """It has other versions now."""
        self.versions = tuple(versions)
        self.update(self._page(self.has_focus))

    def watch_has_focus(self, focused: bool) -> None:
        """Say what can be done with it, or stop saying it."""
        super().watch_has_focus(focused)
        self.update(self._page(focused))

    def _page(self, focused: bool = False) -> Content:
        text = Content(excerpt(folded(self.raw)))
        mark = walkable(self.message_id, self.versions)
        parts = [mark] if mark else []
        if focused and self.message_id:
            walk = "  " + _("←→ versions") if mark else ""
            parts.append(clickable(_("e say it otherwise  y copy") + walk))
        return Content("\n").join([text, Content("  ").join(parts)]) if parts else text


class Bubble(Vertical, can_focus=True):
    """A reply: Markdown, and a line below it with its mark. Focused, the line says more.

    Attributes:
        message_id: 0 until it is known.
        raw: the reply as text, cleaned.
        because: what the person said next, which is what the judge went by.
        versions: the ids of all replies in this place.
    """

    BINDINGS: ClassVar[list[BindingType]] = WALKING

    @dataclass
    class LinkOpened(Message):
        """The person clicked a link in a reply."""

        href: str

    @dataclass
    class CodeCopied(Message):
        """The person wants one block of code; `code` is None if there is none of that number."""

        code: str | None
        number: int = 0

    def __init__(
        self,
        text: str = "",
        *,
        message_id: int = 0,
        state: str = "done",
        detail: str = "",
        versions: Sequence[int] = (),
    ) -> None:
        super().__init__(classes="reply")
        self.message_id = message_id
        self.raw = clean(text)
        self.state, self.detail = state, detail
        self.versions = tuple(versions)
        self.because = ""
        self._signals: tuple[Signal, ...] = ()
        self._waiting_for = ""
        self._frame = 0
        self._ticker: Timer | None = None
        # What only calls tools says nothing: the lines of the tools stand for it.
        self.display = state != "called" or bool(self.raw.strip())

    def compose(self) -> ComposeResult:
        # Imported here: its parser would take a tenth of the time to the first paint, which has no message in it.
        from .markdown import ReplyText

        yield ReplyText(self.raw)
        yield Static(classes="foot")

    @property
    def body(self) -> ReplyText:
        """The reply's text on the screen."""
        return cast("ReplyText", self.query_one(".body"))

    def on_mount(self) -> None:
        self._draw_foot()

    def watch_has_focus(self, focused: bool) -> None:
        """Say more, or less, below the reply."""
        super().watch_has_focus(focused)
        self._draw_foot()

    def show_end(self) -> None:
        """Scroll to the line below the reply."""
        for foot in self.query(".foot"):
            foot.scroll_visible(animate=False)

    def on_reply_text_link_clicked(self, event: ReplyText.LinkClicked) -> None:
        event.stop()
        self.post_message(self.LinkOpened(event.href))

    def on_reply_text_code_clicked(self, event: ReplyText.CodeClicked) -> None:
        event.stop()
        self._copy_code(event.number)

    def on_key(self, event: events.Key) -> None:
        if event.key.isdigit() and event.key != "0":
            event.stop()
            self._copy_code(int(event.key))

    def _copy_code(self, number: int) -> None:
        codes = self.body.codes
        self.post_message(self.CodeCopied(codes[number - 1] if number <= len(codes) else None, number))

    # Being written

    def wait_for(self, what: str) -> None:
        """Show that nothing has come yet, and why."""
        if self._ticker is None:
            self._ticker = self.set_interval(0.1, self._tick)
        self._waiting_for = what
        self._draw_foot()

    def _tick(self) -> None:
        self._frame += 1
        self._draw_foot()

    def _stop_waiting(self) -> None:
        if self._ticker is not None:
            self._ticker.stop()
            self._ticker = None
        self._waiting_for = ""
        self._draw_foot()

    async def write(self, text: str) -> None:
        """Add text that has come. Returns at once: it is drawn when the screen has time."""
        if not text:
            return
        if self._ticker is not None:
            self._stop_waiting()
        self.raw += text
        self.body.feed(text)

    async def finish(self, state: str, detail: str = "") -> None:
        """No more text comes."""
        self.body.flush()
        self.state, self.detail = state, detail
        self._stop_waiting()

    # What it was worth

    def tell(self, signals: Sequence[Signal], versions: Sequence[int], because: str = "") -> None:
        """What is known beside the text has changed."""
        self.versions, self.because = tuple(versions), because
        self.mark(signals)

    def mark(self, signals: Sequence[Signal]) -> None:
        """Show what the reply was worth, by the word that counts most; of two alike, the later."""
        active = [signal for signal in signals if signal.state in ("active", "copied")]
        active.sort(key=lambda signal: (_WEIGHT.get(signal.source, 0), signal.id))
        self._signals = tuple(active)
        self._draw_foot()

    def add_mark(self, signal: Signal) -> None:
        """Show one more signal."""
        self.mark((*(old for old in self._signals if old.id != signal.id), signal))

    @property
    def score(self) -> int | None:
        """The mark that counts: 1, 0 or -1; None if the reply has not been judged."""
        return self._signals[-1].score if self._signals else None

    @property
    def thumb(self) -> str:
        """The mark that the person gave outright, as it is drawn; "" for none."""
        given = self._thumb
        return _MARKS[max(-1, min(1, given.score))][0] if given is not None else ""

    @property
    def thumb_hint(self) -> str:
        """The hint that came with that mark, on one line."""
        given = self._thumb
        return one_line(given.hint) if given is not None else ""

    @property
    def _thumb(self) -> Signal | None:
        return next((signal for signal in reversed(self._signals) if signal.source == "thumb"), None)

    @property
    def hint(self) -> str:
        """The latest hint the person gave to this reply, on one line."""
        return next((one_line(signal.hint) for signal in reversed(self._signals) if signal.hint), "")

    def _draw_foot(self) -> None:
        if not self.query(".foot"):  # not composed yet: the mount draws it
            return
        lines = [Content("  ").join(parts)] if (parts := self._summary()) else []
        if self.has_focus and self.message_id:
            if self._signals and self._signals[-1].source == "judge":
                lines.append(self._reason())
            keys = _("+ good  - bad  h hint  e correct  y copy  r again  c compare  w why")
            lines.append(clickable(keys))
            if self.detail:
                lines.append(Content.styled(self.detail, "$quiet"))
        foot = self.query_one(".foot", Static)
        foot.update(Content("\n").join(lines))
        foot.display = bool(lines)

    def _summary(self) -> list[Content]:
        parts: list[Content] = []
        if self._waiting_for:
            parts.append(Content.styled(_FRAMES[self._frame % len(_FRAMES)], "$primary"))
            parts.append(Content.styled(self._waiting_for, "$quiet"))
        if version := walkable(self.message_id, self.versions):
            parts.append(version)
        if self.score is not None:
            mark, style, word = _MARKS[max(-1, min(1, self.score))]
            parts.append(Content.styled(mark, f"bold {style}"))
            if self.has_focus:
                parts.append(Content.styled(f"{_(word)}, {_giver(self._signals[-1])}", style))
        ended = _ENDED.get(self.state)
        if self.state == "done" and not self.raw.strip():
            ended = N_("an empty reply")
        if ended:
            parts.append(Content.styled(_(ended), "$warning"))
        if self.has_focus and self.hint:
            parts.append(Content.styled(f"“{self.hint}”", "italic $accent"))
        return parts

    def _reason(self) -> Content:
        said = one_line(self.because)
        overrules = _("+ or - overrules it")
        if not said:
            return Content.styled(overrules, "$quiet")
        said = f"{said[:_BECAUSE]}{'…' if len(said) > _BECAUSE else ''}"
        because = _("because you went on: “{said}”", said=said)
        return Content.styled(f"{because}  {overrules}", "$quiet")


def _giver(signal: Signal) -> str:
    """Who says so, and how sure the judge is."""
    if signal.source == "judge":
        sure = max(signal.probabilities.values(), default=0.0)
        return _("says the judge, {sure:.0%} sure", sure=sure) if sure else _("says the judge")
    return {
        "edit": _("you corrected it"),
        "regenerate": _("you asked again"),
        "tool": _("by what the tool returned"),
        "copy": _("you copied it"),
    }.get(signal.source, _("marked by you"))
