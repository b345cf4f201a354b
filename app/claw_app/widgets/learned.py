"""The panels of the learning screen: score over time, and lists of what there is. They never ask for anything."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from claw_local.language import N_, _, ngettext

from ..text import local_time, padded

if TYPE_CHECKING:
    from textual_plotext import PlotextPlot

    from claw_local.signals.scores import Scored

Row = tuple[str, Content]
"""An id and the words of one line of a list."""

RECENT = 20
"""Replies that a point of the curve is the mean of, and that the sentence compares with those before."""
_SETTLED = 4
_LEAST = 10
"""Fewer replies make no curve: it would be a few dots that say nothing."""
_DAY_CELLS = 12
_COLUMNS = ((N_("good"), 6), (N_("so-so"), 7), (N_("bad"), 6), (N_("mean"), 8))
"""The columns behind the day, and how many cells each has at least."""


class RowList(OptionList):
    """A list that keeps its cursor when its rows change, and redraws nothing when they do not."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
    ]

    def __init__(self, *, empty: str, id: str) -> None:
        super().__init__(id=id, markup=False, compact=True)
        self._empty = empty
        self._rows: list[Row] | None = None

    def fill(self, rows: Sequence[Row]) -> None:
        """Show these rows."""
        if rows == self._rows:
            return
        chosen, place = self.chosen(), self.highlighted
        self._rows = list(rows)
        if not rows:
            self.set_options([Option(Content.styled(self._empty, "$quiet"), disabled=True)])
            return
        self.set_options(Option(words, id=identity) for identity, words in rows)
        ids = [identity for identity, _ in rows]
        self.highlighted = ids.index(chosen) if chosen in ids else min(place or 0, len(ids) - 1)

    def chosen(self) -> str | None:
        """Id of the row under the cursor."""
        if self.highlighted is None or not self._rows:
            return None
        return self.get_option_at_index(self.highlighted).id


class ScorePanel(Vertical, can_focus=True):
    """How good its replies were, over time: a curve, a sentence, and where another adapter came into use."""

    def __init__(self) -> None:
        super().__init__(id="score")
        self._scored: list[Scored] | None = None
        self._plots = find_spec("textual_plotext") is not None

    def compose(self) -> ComposeResult:
        yield Static(id="score-words")
        if self._plots:
            from textual_plotext import PlotextPlot

            yield PlotextPlot(id="curve")
        yield Static(id="score-table")

    def fill(self, scored: Sequence[Scored]) -> None:
        """Show these replies' worth, oldest first."""
        if list(scored) == self._scored:
            return
        self._scored = list(scored)
        self.query_one("#score-words", Static).update(in_words(scored))
        drawn = self._plots and len(scored) >= _LEAST
        table = self.query_one("#score-table", Static)
        table.display = not drawn
        if self._plots:
            self.query_one("#curve").display = drawn
        if drawn:
            self._draw(scored)
        else:
            table.update(by_day(scored))

    def _draw(self, scored: Sequence[Scored]) -> None:
        chart = cast("PlotextPlot", self.query_one("#curve"))
        plt: Any = chart.plt
        plt.clear_data()
        # The mean of one or two replies leaps about and says nothing.
        start = min(_SETTLED, len(scored) - 1)
        numbers = list(range(1 + start, len(scored) + 1))
        theme = self.app.theme_variables
        plt.plot(numbers, rolling(scored)[start:], marker="braille", color=_rgb(theme["primary"]))
        for number in changes(scored):
            plt.vline(number, _rgb(theme["accent"]))
        plt.hline(0, _rgb(theme["border-blurred"]))
        step = max(1, len(numbers) // 4)
        plt.xticks(numbers[::step])
        plt.ylim(-1.05, 1.05)
        plt.yticks([-1, 0, 1], [_("bad"), _("so-so"), _("good")])
        plt.xlabel(_("replies you reacted to; a line: another adapter"))
        chart.refresh()

    def on_mount(self) -> None:
        self.watch(self.app, "theme", self._recolour, init=False)

    def _recolour(self) -> None:
        if self._plots and self._scored and len(self._scored) >= _LEAST:
            self.call_after_refresh(self._draw, self._scored)


def rolling(scored: Sequence[Scored]) -> list[float]:
    """For each reply the mean score of it and the ones just before it."""
    scores = [one.score for one in scored]
    return [sum(scores[max(0, end - RECENT) : end]) / min(end, RECENT) for end in range(1, len(scores) + 1)]


def changes(scored: Sequence[Scored]) -> list[int]:
    """At which replies, counted from 1, another adapter (or the base) came into use."""
    return [place + 1 for place in range(1, len(scored)) if scored[place].adapter_id != scored[place - 1].adapter_id]


def in_words(scored: Sequence[Scored]) -> Content:
    """The last replies against those before them, in a sentence."""
    if not scored:
        return Content.styled(
            _(
                "No reply has a mark yet. With learning on, what you say next judges the reply before; "
                "Ctrl+G and Ctrl+B mark one yourself."
            ),
            "$quiet",
        )
    last, before = scored[-RECENT:], scored[-2 * RECENT : -RECENT]
    words = [
        Content(
            ngettext(
                "Of the last {number} reply you reacted to:", "Of the last {number} replies you reacted to:", len(last)
            )
            + " "
        ),
        *_tally(last),
    ]
    if len(scored) < _LEAST:
        words.append(Content.styled("\n" + _("Fewer than ten say little yet about how it goes."), "$quiet"))
    if before:
        words += [
            Content("\n" + ngettext("Of the {number} before:", "Of the {number} before:", len(before)) + " "),
            *_tally(before),
        ]
    return Content("").join(words)


def _tally(scored: Sequence[Scored]) -> list[Content]:
    good, bad = sum(one.score > 0 for one in scored), sum(one.score < 0 for one in scored)
    parts = [(f"▲ {good}", "$success"), (f"▼ {bad}", "$error"), (f"· {len(scored) - good - bad}", "$quiet")]
    return [Content("  ").join(Content.styled(words, style) for words, style in parts)]


def by_day(scored: Sequence[Scored], days: int = 14) -> Content:
    """A table for where no curve can be drawn: one line a day, newest first."""
    if not scored:
        return Content("")
    columns = [(_(name), max(cells, cell_len(_(name)) + 2)) for name, cells in _COLUMNS]
    head = padded(_("day"), _DAY_CELLS) + "".join(" " * (cells - cell_len(name)) + name for name, cells in columns)
    lines = [Content.styled(head, "$quiet")]
    found = [(day, list(group)) for day, group in groupby(scored, lambda one: local_time(one.created_at).date())]
    for day, group in reversed(found[-days:]):
        scores = [one.score for one in group]
        row = [*(str(scores.count(score)) for score in (1, 0, -1)), f"{sum(scores) / len(scores):+.2f}"]
        cells = "".join(f"{value:>{width}}" for value, (__, width) in zip(row, columns, strict=True))
        lines.append(Content(f"{day.isoformat():<{_DAY_CELLS}}{cells}"))
    return Content("\n").join(lines)


def _rgb(colour: str) -> tuple[int, int, int]:
    from textual.color import Color

    return Color.parse(colour).rgb
