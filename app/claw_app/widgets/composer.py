"""Where the person types. It must never know what happens to the text."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from claw_local.language import _

from ..commands import MOVING, meant
from ..text import clean
from ..words import PLACEHOLDER, SENDS
from .chips import PASTED, is_long
from .completing_area import CompletingArea
from .completion_files import looks_like_file, tokens_in

_NEW_LINE = ("shift+enter", "alt+enter", "ctrl+j")
_LIST_KEYS = ("up", "down", "ctrl+p", "ctrl+n", "escape", "tab", "enter")


class Composer(CompletingArea):
    """A text field that grows with its text. Enter sends; Shift+Enter, Alt+Enter or Ctrl+J begins a new line.

    A long paste or an attached file is kept aside and stands in the field as one short label, so that a megabyte costs
    nothing to edit. A slash at the beginning, and `@` before a path, open a list of what may be meant.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "older", "Older text", show=False),
        Binding("down", "newer", "Newer text", show=False),
        Binding("pageup", "scroll(-1)", "Scroll up", show=False),
        Binding("pagedown", "scroll(1)", "Scroll down", show=False),
        Binding("ctrl+d", "delete_or_leave", "Delete right, or quit", show=False),
    ]

    @dataclass
    class Sent(Message):
        """The person pressed Enter. The field keeps its text until `accept`.

        Attributes:
            text: the message.
            field: what stood in the field, labels and all.
        """

        text: str
        field: str

    @dataclass
    class Commanded(Message):
        """The person entered a slash command: its name as typed, and the words after it. The field keeps its text.

        Attributes:
            value: what the offer stands for that the person walked to; else empty.
            field: what stood in the field.
        """

        name: str
        words: str
        value: str = ""
        field: str = ""

    @dataclass
    class Scrolled(Message):
        """The person wants to see other messages while typing."""

        pages: int

    class Left(Message):
        """Ctrl+D on an empty field: the end of input, as in a shell."""

    def __init__(self) -> None:
        super().__init__(id="composer", placeholder=_(PLACEHOLDER))
        self._sent: list[str] = []
        self._place = 0
        self._draft = ""
        self._shown = ""
        self._warned_of = ""
        self.moved = False
        """Whether the last Enter was a command that opens a page, or moves the focus."""

    def on_mount(self) -> None:
        self.border_subtitle = _(SENDS)

    # What stands in the field

    @property
    def whole_text(self) -> str:
        """What will be sent: the text with every label replaced by what it stands for."""
        return self.chips.message(self.text)

    @property
    def draft(self) -> str:
        """What stands in the field, to be kept and put back with `restore`."""
        return self.whole_text

    def restore(self, draft: str) -> None:
        """Put back what `draft` gave, in place of what stands there."""
        self.text = self.chips.fold(clean(draft)) if draft else ""
        self.move_cursor(self.document.end)
        self._looked_up = self._typed  # Nobody is typing: no list opens.

    def throw_away(self) -> None:
        """Empty the field; undo brings back what stood there."""
        self._replace_via_keyboard("", self.document.start, self.document.end)

    def accept(self, field: str, *, remember: bool = True) -> None:
        """The text was taken: it leaves the field, and is remembered for the Up key."""
        if remember:
            self.add_sent(self.chips.message(field).strip())
        self._place = len(self._sent)
        self.take(field)

    def take(self, field: str) -> None:
        """Take out what stood in the field when Enter came; what was typed behind that stays."""
        before = os.path.commonprefix([field, self.text])  # noqa: RUF071  (these are no paths)
        self.text = self.text[len(before) :].removesuffix(field[len(before) :])
        self.move_cursor(self.document.end)

    def add_sent(self, text: str) -> None:
        """This was sent just now: the Up key brings it."""
        at_end = self._place == len(self._sent)
        if text and (not self._sent or self._sent[-1] != text):
            self._sent.append(text)
        if at_end:
            self._place = len(self._sent)

    def give_back(self, text: str) -> None:
        """Sending failed: put the text back, unless the person has begun another one; then the Up key brings it."""
        if not self.text.strip():
            self.restore(text)
        self._place = len(self._sent)

    def remember(self, texts: list[str]) -> None:
        """What was sent before this field was opened, newest first, for the Up key."""
        known = set(self._sent)
        older = [text for text in reversed(texts) if text.strip() and text not in known]
        self._sent[:0] = older
        self._place += len(older)

    def recall(self, texts: list[str]) -> None:
        """These, newest first, are all that the Up key may bring: something was forgotten."""
        self._sent, self._place = [], 0
        self.remember(texts)

    def attach(self, token: str, name: str, text: str) -> None:
        """Put a file's label where its token stands; at the cursor if the token is gone."""
        label = self.chips.add(name, text)
        start, end = self.selection
        for row in range(self.document.line_count):
            column = self.document.get_line(row).find(token) if token else -1
            if column >= 0:
                start, end = (row, column), (row, column + len(token))
                break
        follows = self.document.get_line(end[0])[end[1] :]
        at_end = self.cursor_location == end
        # What is typed behind the token meanwhile stays behind it, and the cursor with it.
        result = self.replace(label if follows else f"{label} ", start, end, maintain_selection_offset=True)
        if at_end:
            self.move_cursor(result.end_location)

    def _insert_pasted(self, text: str) -> None:
        text = clean(text)
        self.insert_here(self.chips.add(PASTED, text) if is_long(text) else text)

    # Keys

    async def _on_key(self, event: events.Key) -> None:
        if self._take_key(event.key):
            event.stop()
            event.prevent_default()
        else:
            await super()._on_key(event)

    def _take_key(self, key: str) -> bool:
        """Do what this key does in the list of completions, or in the field. Whether it was taken."""
        completions = self._completions
        if completions is not None and completions.is_open and key in _LIST_KEYS:
            self._look_up()  # Of letters that came just before this key, nobody has told yet.
        if completions is not None and completions.is_open and self._looked_up == self._typed:
            if key in ("up", "down", "ctrl+p", "ctrl+n"):
                completions.walk(1 if key in ("down", "ctrl+n") else -1)
                return True
            if key == "escape":
                completions.close()
                return True
            chosen = self._chosen()
            if chosen is not None and (key == "tab" or (key == "enter" and chosen.file is not None)):
                self._take(chosen)
                return True
            if key == "tab":
                return True  # What it is to take is not known yet.
            if key == "space":
                self._attach_what_is_typed(completions)
        if key == "enter":
            self.action_send()
        elif key in _NEW_LINE:
            self.insert_here("\n")
        else:
            return False
        return True

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._insert_pasted(event.text)

    def action_paste(self) -> None:
        """Paste the app's own clipboard."""
        self._insert_pasted(self.app.clipboard)

    def action_send(self) -> None:
        """Offer the text to whoever listens: a message, or a command after a slash (two slashes send one)."""
        text = self.text.strip()
        self.moved = False
        if not text:
            return
        name, _, words = text[1:].partition(" ")
        if text.startswith("/") and not text.startswith("//") and "/" not in name and "\n" not in text:
            chosen, value = self._entered(), ""
            if chosen is not None and chosen.command is not None:
                name = chosen.command.slash
            elif chosen is not None and chosen.word and self._walked:
                words, value = chosen.word, chosen.value
            command = meant(name)
            self.moved = command is not None and command.action in MOVING
            self.post_message(self.Commanded(name, words.strip(), value, self.text))
        elif tokens := [] if text.startswith("/") else tokens_in(self.text):
            self.run_worker(self._send_unless_files(tokens), group="sending", exclusive=True)
        else:
            self.post_message(self.Sent(self._unslashed(), self.text))

    def _unslashed(self) -> str:
        text = self.whole_text
        return text.replace("//", "/", 1) if text.lstrip().startswith("//") else text

    async def _send_unless_files(self, tokens: list[tuple[str, str]]) -> None:
        """A typed path that was not attached yet is attached now, so that it is seen before it is sent."""
        from .completion_files import is_file

        text, folder = self.text, self.workspace
        found = await self._background.slow(lambda: [(token, path) for token, path in tokens if is_file(path, folder)])
        if text != self.text:
            return
        missing = next((path for _, path in tokens if looks_like_file(path)), "")
        if not found and missing and self._warned_of != text:
            self._warned_of = text
            self.post_message(self.Missing(missing))
        elif not found:
            self.post_message(self.Sent(self._unslashed(), self.text))
        for token, path in found:
            self.post_message(self.Wanted(path, token))

    def action_older(self) -> None:
        """Move up; from the first line on to what was sent before."""
        self._begin_anew_if_cleared()
        if self.cursor_location[0] > 0 or self._place == 0 or not self._browsing:
            self.action_cursor_up()
            return
        if self._place == len(self._sent):
            self._draft = self.text
        self._show(self._place - 1)

    def action_newer(self) -> None:
        """Move down; from the last line back to what was being typed."""
        self._begin_anew_if_cleared()
        at_end = self.cursor_location[0] == self.document.line_count - 1
        if not at_end or self._place >= len(self._sent) or not self._browsing:
            self.action_cursor_down()
            return
        self._show(self._place + 1)

    def _begin_anew_if_cleared(self) -> None:
        """Who empties the field is done with the old text in it."""
        if not self.text and self._shown:
            self._place, self._shown, self._draft = len(self._sent), "", ""

    @property
    def _browsing(self) -> bool:
        """Whether the field is empty or holds an old text unchanged: only then do the arrows replace it."""
        return not self.text or (self._place < len(self._sent) and self.text == self._shown)

    def _show(self, place: int) -> None:
        self._place = place
        self._shown = self.chips.fold(self._sent[place]) if place < len(self._sent) else self._draft
        self.text = self._shown
        self.move_cursor(self.document.end)
        self._looked_up = self._typed

    def action_scroll(self, pages: int) -> None:
        """Scroll the messages, not the field."""
        self.post_message(self.Scrolled(pages))

    def action_delete_or_leave(self) -> None:
        """Delete the character at the cursor; on an empty field, leave."""
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.Left())
