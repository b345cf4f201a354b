"""Writing chats to a file: what, in which form, and where. It never replaces a file without being told twice."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, RadioButton, RadioSet, Static

from claw_local.language import N_, _, ngettext

from ..styles import OVER
from ..text import dressed

if TYPE_CHECKING:
    from claw_local.assistant import Assistant

    from ..app import ClawApp

What = Literal["markdown", "json", "all"]
_WHATS: tuple[tuple[What, str], ...] = (
    ("markdown", N_("“{title}”, to read (Markdown)")),
    ("json", N_("The same with all branches, to import again (JSON)")),
    ("all", N_("All chats, to import again (JSON)")),
)
_TITLE_CELLS = 28


class Choice(RadioButton):
    """A button that tells by its shape, not by its colour alone, whether it is chosen."""

    BUTTON_INNER = "○"

    def watch_value(self) -> None:
        """Draw it anew."""
        self.BUTTON_INNER = "●" if self.value else "○"
        super().watch_value()


class Export(ModalScreen["str | None"]):
    """Asks what to write and where, and writes it. Gives a sentence about what was written; Esc gives None.

    Args:
        to: where, if that was said already; it is written there at once, unless something stands in the way.
    """

    CSS_PATH = OVER
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", show=False),
        Binding("ctrl+s", "write", "Write", show=False),
    ]

    def __init__(self, assistant: Assistant, chat_id: int, title: str, to: str = "") -> None:
        super().__init__()
        self._assistant, self._chat_id = assistant, chat_id
        self._title = Content(title or _("New chat")).truncate(_TITLE_CELLS, ellipsis=True)
        self._stem = file_name(title) or f"chat-{chat_id}"
        self._to = to.strip().strip('"')
        self._what: What = "json" if self._to.lower().endswith(".json") else "markdown"
        self._replace: Path | None = None
        self._checked = ""
        self._writing = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="export"):
            yield Static(Content.styled(_("Write to a file"), "bold"))
            with RadioSet(compact=True):
                for what, words in _WHATS:
                    yield Choice(dressed(words, title=self._title), value=what == self._what, name=what)
            yield Input(self._to or str(self._suggestion()), select_on_focus=False, id="export-path")
            yield Static("", id="export-problem")
            yield Static(_("Enter writes · Tab goes to the format · Esc cancels"), classes="dialog-keys")

    def on_mount(self) -> None:
        self.query_one("#export-problem").display = False
        self.query_one(Input).focus()
        if self._to:
            self.action_write()

    def _suggestion(self) -> Path:
        folder = documents()
        if self._what == "all":
            return folder / "claw-local-chats.json"
        return folder / f"{self._stem}{'.md' if self._what == 'markdown' else '.json'}"

    @on(RadioSet.Changed)
    def _chosen(self, event: RadioSet.Changed) -> None:
        before = str(self._suggestion())
        self._what = cast("What", event.pressed.name)
        field = self.query_one(Input)
        if field.value == before:
            field.value = str(self._suggestion())
        elif self._what != "all":
            suffix = ".md" if self._what == "markdown" else ".json"
            field.value = re.sub(r"\.(md|json)$", suffix, field.value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        if event.value == self._checked:  # That is what was said to stand in the way.
            return
        self._checked, self._replace = "", None
        self._say("")

    def _say(self, words: str) -> None:
        problem = self.query_one("#export-problem", Static)
        problem.update(Content.styled(words, "$warning"))
        problem.display = bool(words)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_write()

    def action_write(self) -> None:
        """Write it, unless something stands in the way."""
        if self._writing:
            return
        self._checked = self.query_one(Input).value
        typed = self._checked.strip()
        try:
            path = Path(typed).expanduser().absolute()
            if path.is_dir():
                path = path / self._suggestion().name
                self._checked = self.query_one(Input).value = str(path)
            there, folder = path.exists(), path.parent.is_dir()
        except (OSError, RuntimeError) as error:  # A name too long, a folder one may not look into, a ~nobody.
            why = getattr(error, "strerror", None) or error
            self._say(_("{path} could not be written ({said}). Choose another place.", path=typed, said=why))
            return
        if not folder:
            self._say(_("There is no folder {parent}. Make it first, or choose another one.", parent=path.parent))
        elif there and self._replace != path:
            self._replace = path
            self._say(_("{name} is there already. Enter once more replaces it.", name=path.name))
        else:
            self._writing = True
            self._say(_("Writing …"))
            self.run_worker(self._write(path))

    async def _write(self, path: Path) -> None:
        claw = cast("ClawApp", self.app)
        try:
            chats = await claw.background.slow(write, self._assistant, self._what, self._chat_id, path)
        except OSError as error:
            self._say(
                _(
                    "{path} could not be written ({said}). Choose another place.",
                    path=path,
                    said=error.strerror or error,
                )
            )
        except Exception as error:
            self._say(claw.sentence(error))
        else:
            self.dismiss(ngettext("{number} chat to {path}", "{number} chats to {path}", chats, path=path))
        finally:
            self._writing = False


def write(assistant: Assistant, what: What, chat_id: int, path: Path) -> int:
    """Write the file, whole or not at all, readable by its owner only. Returns how many chats are in it.

    Raises UsageError: nothing may be written there.
    """
    from claw_local.files import write_pieces
    from claw_local.targets import check_target

    check_target(path, assistant.paths)
    history = assistant.history
    ids = history.all_ids() if what == "all" else [chat_id]
    pieces = [history.markdown(chat_id)] if what == "markdown" else history.json_pieces(ids)
    write_pieces(path, (piece.encode() for piece in pieces))
    return len(ids)


def file_name(title: str) -> str:
    """A title as a file's name, without a suffix; empty if nothing of it can stand in one."""
    return re.sub(r"[^\w-]+", "-", title).strip("-_")[:60].rstrip("-_").lower()


def documents() -> Path:
    """Where people keep documents, if there is such a folder; else where they are."""
    import platformdirs

    folder = platformdirs.user_documents_path()
    with suppress(OSError):  # The folder one is in may be gone.
        return folder if folder.is_dir() else Path.cwd()
    return Path.home()
