"""Shows findings to a person: symbol and word, aligned, each remedy on a line of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..language import N_, _
from .check import Check, exit_code
from .diagnosis import checks

if TYPE_CHECKING:
    from rich.console import Console

    from ..paths import Paths
    from ..settings import Settings

SYMBOLS = {"ok": "✓", "warning": "!", "problem": "✗"}
PLAIN_SYMBOLS = {"ok": "+", "warning": "!", "problem": "x"}
STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}
WORDS = {"ok": N_("ok"), "warning": N_("warning"), "problem": N_("problem")}
NAME_WIDTH = 12


def render(found: Iterable[Check], console: Console) -> int:
    """Print each finding as it comes (`found` may be a generator), then one line that sums up.

    Returns:
        The exit status: 1 when chatting would not work.
    """
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    seen: list[Check] = []
    symbols = SYMBOLS if "utf" in console.encoding.lower() else PLAIN_SYMBOLS
    words = {state: _(word) for state, word in WORDS.items()}
    width = max(map(cell_len, words.values()))
    indent = NAME_WIDTH + width + 4
    for check in found:
        seen.append(check)
        style = STYLES[check.state]
        row = Table.grid(padding=(0, 1))
        row.add_column(width=1)
        row.add_column(width=width)
        row.add_column(width=NAME_WIDTH)
        row.add_column(overflow="fold")
        row.add_row(
            Text(symbols[check.state], style), Text(words[check.state], style), Text(check.name), Text(check.detail)
        )
        console.print(row)
        if check.remedy:
            console.print(Text(" " * indent + check.remedy, "bold"), soft_wrap=True)
    console.print(_sum_up(seen))
    return exit_code(seen)


def examine(paths: Paths, console: Console, settings: Settings | None = None) -> int:
    """Look at everything and show each finding as it comes; a spinner says what is being looked at.

    Returns:
        The exit status: 1 when chatting would not work.
    """
    with console.status("") as status:
        begun = checks(paths, settings, on_start=lambda name: status.update(_("looking at: {name}", name=name)))
        return render(begun, console)


def _sum_up(seen: list[Check]) -> str:
    if exit_code(seen):
        if not exit_code(check for check in seen if check.name != "disk"):
            return _("What is said in chats cannot be kept: free some space.")
        return _("Chatting does not work yet: mend what is marked as a problem.")
    if any(check.state != "ok" for check in seen):
        return _("Chatting works. What is marked above is worth a look.")
    return _("Everything works.")
