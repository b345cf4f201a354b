"""Long texts and files that stand in the field as one short label each. It must never know about the screen.

A label is a stretch of ordinary text such as `[notes.md · 1,234 characters]`: whoever deletes it takes away what it
stands for, and undo brings both back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from claw_local.language import N_, _, ngettext

if TYPE_CHECKING:
    from claw_local.signals.attached import Attachment

LONG_CHARACTERS = 4000
LONG_LINES = 20
PASTED = N_("pasted text")
_SHOWN_NAME = 48


def is_long(text: str) -> bool:
    """Whether a text would make the field slow and hide what else is typed."""
    return len(text) > LONG_CHARACTERS or text.count("\n") > LONG_LINES


@dataclass(frozen=True)
class _Chip:
    """What a label stands for. `name`: "" for the person's own words, `PASTED`, or a file's path as typed."""

    name: str
    text: str


class Chips:
    """The labels of one field."""

    def __init__(self) -> None:
        self._chips: dict[str, _Chip] = {}
        self._composed = ("", "")

    def add(self, name: str, text: str) -> str:
        """Keep a text aside. Returns its label."""
        chip = _Chip(name, text)
        shown = name if len(name) <= _SHOWN_NAME else f"…{name[1 - _SHOWN_NAME :]}"
        if not name or name == PASTED:
            shown = _(name) or _("text")
        length = ngettext("{number} character", "{number} characters", len(text))
        number = 0
        while True:
            number += 1
            title = f"{shown} {number}" if not name or name == PASTED or number > 1 else shown
            label = f"[{title} · {length}]"
            if self._chips.setdefault(label, chip) == chip:
                return label

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the labels stand in a text."""
        return [found.span() for found in self._labels().finditer(text)] if self._chips else []

    def message(self, text: str) -> str:
        """The text as it is sent: pastes in their place, files after the words that name them."""
        if not self.spans(text):
            return text
        if self._composed[0] != text:
            self._composed = (text, self._compose(text))
        return self._composed[1]

    def _compose(self, text: str) -> str:
        from claw_local.signals.attached import Attachment, compose

        parts: list[str | Attachment] = [""]
        files: dict[str, Attachment] = {}

        def say(words: str) -> None:
            if isinstance(parts[-1], str):
                parts[-1] += words
            else:
                parts.append(words)

        end = 0
        for found in self._labels().finditer(text):
            say(text[end : found.start()])
            end = found.end()
            chip = self._chips[found.group()]
            if not chip.name:
                say(chip.text)
            elif chip.name == PASTED:
                parts.append(Attachment(PASTED, chip.text))
            else:
                say(f"@{chip.name}")
                files.setdefault(found.group(), Attachment(chip.name, chip.text))
        say(text[end:])
        if files and isinstance(parts[-1], str):
            parts[-1] = parts[-1].rstrip()
        return compose([*(part for part in parts if part), *files.values()])

    def fold(self, message: str) -> str:
        """The opposite: a message as it was sent, with labels again where something long is in it."""
        from claw_local.signals.attached import split

        text = ""
        files: list[Attachment] = []
        for part in split(message):
            if isinstance(part, str):
                words = part.strip("\n") if part is not message else part
                text = _beside(text, self.add("", words) if is_long(words) else words)
            elif part.name == PASTED:
                text = _beside(text, self.add(PASTED, part.text))
            else:
                files.append(part)
        for file in files:
            label = self.add(file.name, file.text)
            mention = f"@{file.name}"
            text = text.replace(mention, label, 1) if mention in text else f"{text} {label}".lstrip()
        return text

    def _labels(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(label) for label in self._chips))


def _beside(text: str, more: str) -> str:
    """Two pieces of a message, on lines of their own unless a space parts them already."""
    apart = not text or not more or text[-1].isspace() or more[0].isspace()
    return f"{text}{more}" if apart else f"{text}\n{more}"
