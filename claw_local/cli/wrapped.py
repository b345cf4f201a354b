"""Text for a terminal, broken between words; also text that comes in pieces, which goes on coming in pieces.

What goes into a pipe or a file is left as it is. It must never know what is said.
"""

from __future__ import annotations

import shutil
import sys
from typing import Any, TextIO

import typer

FENCE = "```"


def room(stream: TextIO | Any) -> int:
    """Cells of a line where this is written; 0: it is no terminal, and nothing is to be broken."""
    try:
        return max(0, shutil.get_terminal_size().columns - 1) if stream is not None and stream.isatty() else 0
    except ValueError:  # It is closed.
        return 0


def echo(text: str, *, err: bool = False) -> None:
    """`typer.echo`, broken between words on a terminal."""
    wrap = Wrap(room(sys.stderr if err else sys.stdout))
    typer.echo(wrap.feed(text) + wrap.rest(), err=err)


class Wrap:
    """Breaks what is fed to it between words. Only the word that is coming is held back. Blocks of code stay as they
    are, and so does a word that is longer than a line."""

    def __init__(self, width: int) -> None:
        """`width`: cells of a line; 0: nothing is broken, nothing held back."""
        self._width = width
        self._column = 0
        self._gap = ""
        self._word = ""
        self._may_break = False
        self._line = ""
        self._fenced = False

    def lead(self, text: str) -> str:
        """What stands before the text on its first line, and is no part of it."""
        self._column += _cells(text)
        return text

    def feed(self, text: str) -> str:
        """What can be written by now."""
        return "".join(map(self._letter, text)) if self._width else text

    def rest(self) -> str:
        """What was held back; nothing follows."""
        return self._placed() + self._take_gap()

    def _letter(self, letter: str) -> str:
        if letter == "\n":
            written = self._placed() + self._take_gap() + letter
            if self._line.lstrip().startswith(FENCE):
                self._fenced = not self._fenced
            self._column, self._line, self._may_break = 0, "", False
            return written
        self._line += letter
        if self._fenced or self._line.lstrip().startswith(FENCE):
            return self._placed() + self._take_gap() + letter
        if letter in " \t":
            written = self._placed()
            self._gap += letter
            return written
        if _cells(letter) > 1:  # Between such letters a line may end anywhere.
            written = self._placed()
            self._word, self._may_break = letter, self._may_break or bool(written) or self._column > 0
            written += self._placed()
            self._may_break = True
            return written
        self._word += letter
        # Once it is clear on which line it stands, it need not be waited for.
        return self._placed() if self._must_break() else ""

    def _must_break(self) -> bool:
        free = bool(self._gap) or self._may_break
        return free and self._column > 0 and self._column + len(self._gap) + _cells(self._word) > self._width

    def _placed(self) -> str:
        if not self._word:
            return ""
        if self._must_break():
            written, self._column = f"\n{self._word}", _cells(self._word)
        else:
            written = f"{self._gap}{self._word}"
            self._column += len(self._gap) + _cells(self._word)
        self._word, self._gap, self._may_break = "", "", False
        return written

    def _take_gap(self) -> str:
        gap, self._gap = self._gap, ""
        self._column += len(gap)
        return gap


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
