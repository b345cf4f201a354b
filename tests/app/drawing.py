"""A screen as text: its characters, then the style of each stretch of a line. Small, and a change reads as a diff."""

from __future__ import annotations

import string
from typing import Any

from rich.style import Style
from textual.widgets import Input, TextArea

_LETTERS = string.ascii_letters + string.digits
_FLAGS = ("bold", "dim", "italic", "underline", "reverse", "strike")


def quiet(app: Any) -> None:
    """Stop what moves by itself."""
    for kind in (Input, TextArea):
        for field in app.screen.query(kind):
            field.cursor_blink = False


def lines(app: Any) -> list[str]:
    """The characters on the screen, each line to its end."""
    return [strip.text for strip in _strips(app)]


def text(app: Any) -> str:
    """The characters on the screen, without the blanks at the ends of lines."""
    return "\n".join(line.rstrip() for line in lines(app))


def styles(app: Any) -> str:
    """For each line its stretches as letter and width, then what the letters mean. Blank ends of lines count too."""
    names: dict[str, str] = {}
    found = []
    for strip in _strips(app):
        runs: list[tuple[str, int]] = []
        for segment in strip:
            name = _called(segment.style)
            letter = names.setdefault(name, _LETTERS[len(names)])
            width = segment.cell_length
            if runs and runs[-1][0] == letter:
                runs[-1] = (letter, runs[-1][1] + width)
            else:
                runs.append((letter, width))
        found.append(" ".join(f"{letter}{width}" for letter, width in runs if width))
    return "\n".join([*found, *(f"{letter} = {name}" for name, letter in names.items())])


def _strips(app: Any) -> Any:
    return app.screen._compositor.render_strips(app.size)


def _called(style: Style | None) -> str:
    if style is None:
        return "plain"
    colours = [
        (colour.triplet.hex if colour.triplet is not None else colour.name) if colour is not None else "-"
        for colour in (style.color, style.bgcolor)
    ]
    return " ".join([f"{colours[0]} on {colours[1]}", *(flag for flag in _FLAGS if getattr(style, flag))])
