"""A person's own colours: a TOML file that is checked value by value, as Textual is going to use them. It must never
let one through that the app cannot be drawn with.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from textual.color import Color, ColorParseError
from textual.css.stylesheet import Stylesheet
from textual.theme import Theme

from claw_local.language import _
from claw_local.named_text import read_text

LARGEST_BYTES = 100_000
_COLOURS = (
    *("primary", "secondary", "accent", "foreground", "background", "surface", "panel", "boost"),
    *("success", "warning", "error"),
)
_SEE_THROUGH = ("boost",)
"""Of these, the one that is laid over others."""
_AUTOMATIC = ("text", "text-muted", "text-disabled", "link-color", "link-color-hover", "block-cursor-foreground")
"""Variables that only colour text: it may take its colour from what is below it, as in `auto 87%`."""
_ANYWHERE = "color: $value; background: $value; border: tall $value; scrollbar-color: $value;"


def read_theme(file: Path, taken: Collection[str]) -> Theme:
    """The theme in a file, called as the file is.

    Args:
        taken: names that it cannot have.

    Raises:
        OSError, ValueError: what is wrong with it.
    """
    if file.stem.startswith(".") or not file.stem.isprintable():
        raise ValueError(_("its name begins with a dot or holds what cannot be shown; give the file another name"))
    try:
        content = tomllib.loads(read_text(file, most=LARGEST_BYTES))
    except RecursionError as error:
        raise ValueError(_("its lists go too deep")) from error
    except UnicodeDecodeError as error:
        raise ValueError(_("it is no UTF-8 text; save it as UTF-8")) from error
    return own_theme(file.stem, content, taken)


def own_theme(name: str, content: Mapping[str, Any], taken: Collection[str] = ()) -> Theme:
    """A theme from a person's TOML file: `dark = true`, colours by name, and a table `variables`.

    Only `primary` must be there; what is left out comes from Textual, as in its own themes.

    Raises:
        ValueError: what is wrong with it, in words.
    """
    if name in taken:
        raise ValueError(_("the app has a theme of that name; give the file another name"))
    values = dict(content)
    dark, variables = values.pop("dark", True), values.pop("variables", {})
    if not isinstance(dark, bool):
        raise ValueError(_("dark is true or false"))
    if not isinstance(variables, dict) or not all(isinstance(value, str) for value in variables.values()):
        raise ValueError(_("variables is a table of texts"))
    if "primary" not in values:
        raise ValueError(_('it has no primary colour, for example: primary = "#e8835f"'))
    for key, colour in values.items():
        if key not in _COLOURS:
            raise ValueError(
                _("there is no colour called {key}; there are {names}", key=key, names=", ".join(_COLOURS))
            )
        _check_colour(key, colour, key)
    known = Theme(name=name, dark=dark, **values).to_color_system().generate()
    for key, value in variables.items():
        _check_variable(key, value, known)
    return Theme(name=name, dark=dark, variables=variables, **values)


def _check_colour(said: str, colour: object, key: str) -> None:
    """A colour that others are mixed from is one, and nothing shines through it."""
    try:
        parsed = Color.parse(colour if isinstance(colour, str) else "")
    except ColorParseError as error:
        raise ValueError(
            _("{key} is not a colour: {colour!r}; write it like #e8835f", key=said, colour=colour)
        ) from error
    if parsed.a < 1 and key not in _SEE_THROUGH:
        raise ValueError(
            _("{key} is a colour that one can see through: {colour!r}; write it like #e8835f", key=said, colour=colour)
        )


def _check_variable(key: str, value: str, known: Mapping[str, str]) -> None:
    """Read it as Textual's styles read it."""
    said = f"variables.{key}"
    stem = key.partition("-lighten")[0].partition("-darken")[0]
    if stem in _COLOURS or key == "quiet":
        _check_colour(said, value, stem)
    elif "style" in key.split("-"):
        if not _is_read("text-style: $value;", value):
            raise ValueError(_("{key} is no style of text: {value!r}; write it like bold", key=said, value=value))
    elif value != known.get(key):
        rules = "color: $value;" if key in _AUTOMATIC else _ANYWHERE
        if key not in known:  # No style of Textual's uses it: it can hold what it likes, if it can be read at all.
            rules = "color: red;"
        if not _is_read(rules, value):
            raise ValueError(_("{key} is not a colour: {colour!r}; write it like #e8835f", key=said, colour=value))


def _is_read(rules: str, value: str) -> bool:
    try:
        sheet = Stylesheet(variables={"value": value})
        sheet.add_source(f"Widget {{ {rules} }}", read_from=("", ""))
        sheet.parse()
    except Exception:  # Beside those of styles, its tokenizer has errors of its own.
        return False
    return True
