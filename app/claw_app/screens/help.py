"""All keys, marks and slash commands on one page, made from the table of commands."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from claw_local.language import N_, _

from ..commands import GROUPS, key_names
from ..text import padded, wrapped

_KEY_WIDTH = 21
_SLASH_WIDTH = 12
_NARROWEST = 20
_WIDE = 90
"""From so many cells on, the keys of all groups stand in one column."""
_MORE: dict[str, tuple[tuple[str, str], ...]] = {
    N_("Typing"): (
        ("Enter", N_("Send")),
        (N_("Ctrl+J, Shift+Enter"), N_("New line")),
        (N_("@ and a path"), N_("Attach a text file; Tab completes, a space after the name takes it")),
        ("/", N_("A command by name, then the words it takes; two slashes send a message that begins with one")),
        (N_("Up, Down"), N_("What you sent before, in any chat, from an empty field")),
        (N_("Backspace on a label"), N_("Take the attached file or the long paste away")),
        (N_("Ctrl+A, Ctrl+E"), N_("Start and end of the line; Alt+B and Alt+F go by words")),
        (N_("Ctrl+U, Ctrl+K"), N_("Cut to the start or the end of the line; Ctrl+W and Alt+D cut a word")),
        (N_("Ctrl+Y"), N_("Put back what was cut")),
        (N_("Ctrl+Z, Alt+Z"), N_("Undo, redo")),
        (N_("Ctrl+D"), N_("Delete; on an empty field quit")),
    ),
    N_("Moving"): (
        (N_("PageUp, PageDown"), N_("Scroll the chat")),
        (N_("Tab, Shift+Tab"), N_("To the messages and the list, and back")),
        (N_("Up, Down, j, k"), N_("From message to message, once one has the focus")),
        ("Esc", N_("Back to typing")),
        (N_("Ctrl+P"), N_("Everything, by name")),
        (N_("Ctrl+C"), N_("Throw away what is typed; twice on an empty field quit")),
    ),
    N_("In the list of chats"): (
        ("Enter", N_("Go to the chat")),
        (N_("d, Delete"), N_("Delete it; Ctrl+Z brings it back")),
        ("r, a, c, x", N_("Rename, archive or take out again, copy, write to a file")),
        (N_("Ctrl+O"), N_("Hide the list; from elsewhere, go to it")),
        (N_("Ctrl+Z"), N_("Bring back what was deleted, or archived a moment ago")),
    ),
    N_("In what it learned"): (
        (N_("1 to 4, Tab"), N_("Score over time, hints, runs, adapters")),
        (N_("Space, e, x, a"), N_("On a hint: off or on, say it otherwise, remove it; add one")),
        ("u, b, Enter", N_("On an adapter: use it, one step back, its report")),
    ),
    N_("Marks on a reply"): (
        ("▲", N_("It was good: you said so, or your next message shows it")),
        ("▼", N_("It was not what you wanted; the hint says how it should have been")),
        ("·", N_("Neither good nor bad")),
        (N_("no mark"), N_("Not judged: nothing was said after it, or learning is off")),
        ("◂ 2/3 ▸", N_("The second of three versions; ← and → walk between them")),
        ("", N_("Tab to a reply to see who judged it, and why")),
    ),
    N_("Tools"): (
        (
            N_("/workspace FOLDER"),
            N_("From now on this chat may list, read and search there; writing and running ask first"),
        ),
        (N_("y, a, n, w, Esc"), N_("To what it asks: once, always in this chat, no, no and why, no and stop")),
        (N_("Enter on ▸"), N_("What a tool returned; again folds it")),
        ("/undo", N_("Gives a file back what it held before")),
    ),
    N_("Good to know"): (
        (N_("in tmux"), N_("Ctrl+B is tmux's own: press it twice, or - on the reply")),
        (N_("to select text"), N_("Drag over it, then Ctrl+C; with Shift held, your terminal selects by itself")),
        (N_("your colours"), N_("A TOML file in the folder `themes` beside settings.toml")),
        (N_("no colours"), N_("Start with NO_COLOR=1")),
        (N_("in a shell"), N_("`claw-local --help`: import and backup of chats, other programs, models, and more")),
    ),
}


class Help(ModalScreen[None]):
    """Typing searches; Esc or F1 closes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1", "dismiss", "Close", show=False),
        Binding("down", "scroll(1)", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("pagedown", "scroll(10)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
        Binding("home", "to_end(False)", show=False, priority=True),
        Binding("end", "to_end(True)", show=False, priority=True),
    ]
    AUTO_FOCUS = "#help-search"
    DEFAULT_CSS = """
    Help .dialog { padding: 0 2; max-width: 98%; }
    Help #help-search { margin: 0; height: 1; border: none; padding: 0; background: $surface; }
    Help #help-page { height: auto; }
    Help VerticalScroll { scrollbar-gutter: stable; }
    """

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog large"):
            yield Static(
                Content.assemble((_("Help"), "bold $primary"), ("   " + _("Esc closes · arrows scroll"), "$quiet"))
            )
            yield Input(placeholder=_("Type to search"), id="help-search", compact=True)
            with VerticalScroll(can_focus=False):
                yield Static(id="help-page")

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._draw()
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def _draw(self) -> None:
        place = self.query_one("#help-page", Static)
        place.update(page(self.query_one(Input).value, place.size.width))

    def action_scroll(self, lines: int) -> None:
        """Scroll the page while the search keeps the focus."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_to_end(self, last: bool) -> None:
        """Show the page's beginning, or its end."""
        page = self.query_one(VerticalScroll)
        (page.scroll_end if last else page.scroll_home)(animate=False)


def page(search: str, width: int) -> Content:
    """The page, or the lines of it in which every word of the search stands; `width` in cells."""
    words = search.lower().split()
    lines: list[Content] = []
    for group in dict.fromkeys([*GROUPS, *_MORE]):
        rows = [(key_names(command), f"/{command.slash}", _(command.help)) for command in GROUPS.get(group, ())]
        more = [(_(keys), "", _(text)) for keys, text in _MORE.get(group, ())]
        found = [row for row in [*more, *rows] if all(word in f"{_(group)} {' '.join(row)}".lower() for word in words)]
        if not found:
            continue
        lines.append(Content.styled(_(group), "bold"))
        slashes = any(slash for __, slash, __ in found)
        key_width = _KEY_WIDTH if width >= _WIDE else min(_KEY_WIDTH, max(cell_len(keys) for keys, __, __ in found))
        for keys, slash, text in found:
            keys, name = f"  {padded(keys, key_width)} ", f"{padded(slash, _SLASH_WIDTH)} " if slashes else ""
            margin = cell_len(keys) + cell_len(name)
            text = f"\n{' ' * margin}".join(wrapped(text, max(_NARROWEST, width - margin)))
            lines.append(Content.assemble((keys, "$secondary"), (name, "$accent"), text))
        lines.append(Content(""))
    return Content("\n").join(lines) if lines else Content.styled(_("Nothing of that kind. Esc closes."), "$quiet")
