"""The colours: ours, the person's own, and which were chosen. It must never know what is painted with them.

Every text colour stands out from every ground it is used on by at least 4.5 to 1 (WCAG 2.2, 1.4.3), in the theme of
high contrast by at least 7 to 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from textual.color import Color
from textual.theme import Theme

from claw_local.glimpse import glimpse
from claw_local.language import _
from claw_local.named_text import shown

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import App

    from claw_local.paths import Paths


def _theme(
    name: str, *, dark: bool, quiet: str, chosen: tuple[str, str], edge: tuple[str, str], **colours: str
) -> Theme:
    """A whole theme from its colours.

    Args:
        quiet: text that stands back. chosen: text and ground of what the cursor is on. edge: of borders and scrollbars,
            at rest and under the mouse.
    """
    background, primary = colours["background"], colours["primary"]
    return Theme(
        name=name,
        dark=dark,
        variables={
            "footer-background": background,
            "footer-key-foreground": primary,
            "footer-description-foreground": quiet,
            "block-cursor-foreground": chosen[0],
            "block-cursor-background": chosen[1],
            "block-cursor-text-style": "none",
            "block-cursor-blurred-background": colours["panel"],
            "block-cursor-blurred-foreground": colours["foreground"],
            "border-blurred": edge[0],
            "scrollbar": edge[0],
            "scrollbar-hover": edge[1],
            "scrollbar-active": primary,
            "scrollbar-background": background,
            "scrollbar-background-hover": background,
            "scrollbar-background-active": background,
            "quiet": quiet,
        },
        **cast("dict[str, Any]", colours),
    )


DARK = _theme(
    "claw-dark",
    dark=True,
    primary="#e8835f",
    secondary="#7fa8d1",
    accent="#f0b67f",
    foreground="#d9dde5",
    background="#14161b",
    surface="#1a1d24",
    panel="#232832",
    success="#8cc084",
    warning="#e5c07b",
    error="#e5707a",
    quiet="#8a92a0",
    chosen=("#f0b67f", "#3a2a26"),
    edge=("#2d333f", "#4a5262"),
)

LIGHT = _theme(
    "claw-light",
    dark=False,
    primary="#a63f24",
    secondary="#2b5f88",
    accent="#7d5119",
    foreground="#24272d",
    background="#fbf9f6",
    surface="#f3efe9",
    panel="#e9e4dc",
    success="#286a34",
    warning="#7a5600",
    error="#b3261e",
    quiet="#5d616a",
    chosen=("#7d2c15", "#f3d9cf"),
    edge=("#d5cec3", "#b9b0a2"),
)

CONTRAST = _theme(
    "claw-contrast",
    dark=True,
    primary="#ffd23f",
    secondary="#8fd0ff",
    accent="#ffb86b",
    foreground="#ffffff",
    background="#000000",
    surface="#0b0b0b",
    panel="#1c1c1c",
    success="#7dff8a",
    warning="#ffe27a",
    error="#ff9d9d",
    quiet="#cfcfcf",
    chosen=("#000000", "#ffd23f"),
    edge=("#9a9a9a", "#ffffff"),
)

OURS = (DARK, LIGHT, CONTRAST)


class Look:
    """Which themes there are beside Textual's own, and the one the person chose.

    Reads a settings file and a folder, both small: the first paint is in the chosen colours already.

    Attributes:
        themes: ours and the person's, by name.
        chosen: the one to begin with.
        problems: sentences about files that are no themes.
    """

    def __init__(self, paths: Paths | None = None) -> None:
        self.themes = {theme.name: theme for theme in OURS}
        self.problems: list[str] = []
        self._folder = paths.themes if paths is not None else None
        self._read_own()
        chosen = glimpse(paths, "app", "theme") if paths is not None else ""
        self.chosen = chosen if chosen and isinstance(chosen, str) else DARK.name

    def names(self) -> set[str]:
        """Those that the app can wear: Textual's own, ours and the person's."""
        from textual.theme import BUILTIN_THEMES

        return {*BUILTIN_THEMES, *self.themes}

    def dress(self, app: App[Any]) -> None:
        """Make the themes known to an app and put the chosen one on."""
        for theme in self.themes.values():
            app.register_theme(theme)
        if self.chosen not in app.available_themes:
            if not any(
                f"{shown(self.chosen)}.toml" in words for words in self.problems
            ):  # Else it is said what is wrong.
                self.problems.append(
                    _(
                        "There is no theme {chosen}, so the app wears {name}. There are: {value}.",
                        chosen=shown(self.chosen),
                        name=DARK.name,
                        value=", ".join(sorted(app.available_themes)),
                    )
                )
            self.chosen = DARK.name
        app.theme = self.chosen

    def read_anew(self, app: App[Any]) -> list[str]:
        """Look for the person's files again: they may have written one meanwhile. Returns what is wrong with some."""
        self.problems = []
        self._read_own()
        for name, theme in self.themes.items():
            if app.available_themes.get(name) != theme:
                app.register_theme(theme)
                if name == app.theme:
                    app.refresh_css(animate=False)
        return self.problems

    def _read_own(self) -> None:
        try:
            files = sorted(self._folder.glob("*.toml")) if self._folder is not None else []
        except OSError:
            files = []
        for file in files:
            try:
                theme = read_whole(file)
            except Exception as error:  # Whatever it is: the app comes up in colours that work.
                said = getattr(error, "strerror", None) or str(error) or type(error).__name__
                self.problems.append(_("The theme {file} was left out: {error}.", file=shown(file), error=said))
            else:
                self.themes[theme.name] = theme


def read_whole(file: Path) -> Theme:
    """A person's theme, with all that is painted with it. Raises OSError, ValueError: what is wrong with it."""
    from .own_themes import read_theme  # The first paint does without, where there is no such file.

    theme = read_theme(file, {theme.name for theme in OURS})
    variable_defaults(theme)
    return theme


def variable_defaults(theme: Theme) -> dict[str, str]:
    """What our styles use beside Textual's variables, for themes that do not set it."""
    colours = theme.to_color_system().generate()
    foreground, background = Color.parse(colours["foreground"]), Color.parse(colours["background"])
    return {"quiet": background.blend(foreground, 0.7).hex}
