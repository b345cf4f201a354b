"""The colours: readable by calculation, the person's own from TOML files, remembered, and none at all with NO_COLOR."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from claw_app.app import ClawApp
from claw_app.own_themes import own_theme
from claw_app.themes import CONTRAST, DARK, LIGHT, OURS, Look, variable_defaults
from claw_local.paths import Paths, locate
from tests.app.driving import said

Until = Callable[..., Any]
TEXTS = ("foreground", "quiet", "primary", "secondary", "accent", "success", "warning", "error")
PAIRS = (
    ("footer-key-foreground", "footer-background"),
    ("footer-description-foreground", "footer-background"),
    ("block-cursor-foreground", "block-cursor-background"),
    ("block-cursor-blurred-foreground", "block-cursor-blurred-background"),
)


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    channels = [
        c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in Color.parse(colour).rgb
    ]
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_calculation_is_that_of_wcag() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", OURS, ids=lambda theme: theme.name)
def test_every_text_stands_out_from_every_ground(theme: Theme) -> None:
    least = 7.0 if theme is CONTRAST else 4.5
    for ground in ("background", "surface", "panel"):
        for text in TEXTS:
            colour = theme.variables["quiet"] if text == "quiet" else getattr(theme, text)
            assert contrast(colour, getattr(theme, ground)) >= least, (text, ground)
    for text, ground in PAIRS:
        assert contrast(theme.variables[text], theme.variables[ground]) >= least, (text, ground)


@pytest.mark.parametrize("theme", [*OURS, *BUILTIN_THEMES.values()], ids=lambda theme: theme.name)
def test_quiet_text_is_there_in_every_theme(theme: Theme) -> None:
    quiet = {**variable_defaults(theme), **theme.variables}["quiet"]
    Color.parse(quiet)
    if theme in OURS:
        assert quiet == theme.variables["quiet"]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = locate(tmp_path / "home")
    paths.themes.mkdir(parents=True)
    return paths


def test_a_persons_theme_is_read_and_a_broken_one_said_in_a_sentence(paths: Paths) -> None:
    (paths.themes / "sea.toml").write_text(
        'dark = true\nprimary = "#58a6ff"\n[variables]\nquiet = "#9aa4b2"\n', "utf-8"
    )
    (paths.themes / "cut.toml").write_text("primary = ", "utf-8")
    (paths.themes / "odd.toml").write_text('primary = "blurple"', "utf-8")
    (paths.themes / "latin.toml").write_bytes(b'# \xff\nprimary = "#58a6ff"')
    look = Look(paths)
    assert look.themes["sea"].primary == "#58a6ff"
    assert set(look.themes) == {*(theme.name for theme in OURS), "sea"}
    assert len(look.problems) == 3
    assert "cut.toml was left out" in look.problems[0]
    assert "it is no UTF-8 text" in look.problems[1]
    assert "primary is not a colour: 'blurple'; write it like #e8835f" in look.problems[2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no primary colour"),
        ('primary = "#fff"\nborder = "#fff"', "no colour called border"),
        ('primary = "#fff"\ndark = "yes"', "dark is true or false"),
        ('primary = "#fff"\nvariables = 3', "variables is a table"),
        ('primary = "#fff"\n[variables]\nquiet = "nope"', "variables.quiet is not a colour"),
        ('primary = "#fff"\n[variables]\nfooter-background = "nope"', "variables.footer-background is not a colour"),
        ('primary = "#fff"\n[variables]\nborder = "red; } * {"', "variables.border is not a colour"),
        ('primary = "#fff"\n[variables]\nprimary-lighten-1 = "x"', "variables.primary-lighten-1 is not a colour"),
        ('primary = "#fff"\n[variables]\nmine = "{;"', "variables.mine is not a colour"),
        ('primary = "#fff"\n[variables]\nlink-style = "wavy"', "variables.link-style is no style of text"),
        ('primary = "#fff"\nbackground = "transparent"', "background is a colour that one can see through"),
        ('primary = "rgba(0,0,0,0)"', "primary is a colour that one can see through"),
        ('primary = "#fff"\n[variables]\nbackground = "#fff8"', "variables.background is a colour that one can see"),
    ],
)
def test_what_is_wrong_with_a_theme_is_said(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        own_theme("mine", tomllib.loads(text))
    with pytest.raises(ValueError, match="theme of that name"):
        own_theme(DARK.name, {"primary": "#fff"}, {DARK.name})


def test_what_textual_itself_holds_is_taken(paths: Paths) -> None:
    for key, value in DARK.to_color_system().generate().items():
        own_theme("mine", {"primary": "#fff", "variables": {key: value}})
    for key, value in {"text": "auto 87%", "link-style-hover": "bold not underline", "mine": "anything"}.items():
        own_theme("mine", {"primary": "ansi_blue", "variables": {key: value}})


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")
def test_files_that_are_no_themes_stop_nothing(paths: Paths) -> None:
    (paths.themes / "deep.toml").write_text("a = " + "[" * 3000)
    (paths.themes / "long.toml").write_text("# " + "x" * 200_000)
    (paths.themes / "digits.toml").write_text("primary = " + "9" * 5000)
    (paths.themes / "folder.toml").mkdir()
    os.mkfifo(paths.themes / "pipe.toml")
    names = [b".toml", b"two\nlines.toml", b"red\x1b[31m.toml", *([b"bad\xff.toml"] if sys.platform == "linux" else [])]
    for name in names:
        Path(os.fsdecode(os.fsencode(paths.themes) + b"/" + name)).write_text('primary = "#58a6ff"\n')
    (paths.themes / "fine.toml").write_bytes(b'\xef\xbb\xbfprimary = "#58a6ff"\n')
    look = Look(paths)
    assert set(look.themes) == {*(theme.name for theme in OURS), "fine"}
    said = " ".join(look.problems)
    assert said.isprintable() and said.count("holds what cannot be shown") == len(names)
    assert len(look.problems) == 5 + len(names) and "go too deep" in said
    assert "it is a device or a pipe" in said and "it is larger than" in said and "it is a folder" in said


async def test_an_own_theme_that_cannot_be_drawn_leaves_the_app_in_ours_and_is_said(
    scripted: Any, paths: Paths, until: Until
) -> None:
    (paths.themes / "bad.toml").write_text('primary = "#58a6ff"\n[variables]\nfooter-background = "nope"\n', "utf-8")
    paths.settings.write_text('[app]\ntheme = "bad"\n', "utf-8")
    app = ClawApp(lambda: scripted, look=Look(paths))
    async with app.run_test() as pilot:
        await until(pilot, lambda: "variables.footer-background is not a colour" in said(app))
        assert app.theme == DARK.name


def test_the_chosen_theme_comes_from_the_settings_and_the_environment_goes_first(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLAW_LOCAL_APP__THEME", raising=False)
    assert Look(paths).chosen == DARK.name
    paths.settings.write_text('[app]\ntheme = "claw-light"\n', "utf-8")
    assert Look(paths).chosen == LIGHT.name
    monkeypatch.setenv("CLAW_LOCAL_APP__THEME", "claw-contrast")
    assert Look(paths).chosen == CONTRAST.name
    monkeypatch.delenv("CLAW_LOCAL_APP__THEME")
    paths.settings.write_text("not toml", "utf-8")
    assert Look(paths).chosen == DARK.name


async def test_a_theme_is_put_on_at_the_first_paint_and_a_choice_is_remembered(
    scripted: Any, until: Until, paths: Paths
) -> None:
    paths.settings.write_text('# mine\n[app]\ntheme = "claw-light"\n', "utf-8")
    app = ClawApp(lambda: scripted, look=Look(paths))
    async with app.run_test() as pilot:
        assert app.theme == LIGHT.name
        await pilot.press(*"/theme claw-contrast", "enter")
        await until(pilot, lambda: "claw-contrast" in paths.settings.read_text("utf-8"))
        assert app.theme == CONTRAST.name
        assert paths.settings.read_text("utf-8").startswith("# mine")
        await pilot.press(*"/theme nonsense", "enter")
        await until(pilot, lambda: any("There is no theme nonsense" in n.message for n in app._notifications))
    assert Look(scripted.paths).chosen == CONTRAST.name


async def test_a_theme_that_is_gone_is_said_and_the_app_opens_all_the_same(scripted: Any, paths: Paths) -> None:
    paths.settings.write_text('[app]\ntheme = "gone"\n', "utf-8")
    app = ClawApp(lambda: scripted, look=Look(paths))
    async with app.run_test() as pilot:
        await pilot.pause()
        assert app.theme == DARK.name
        assert any("There is no theme gone" in n.message for n in app._notifications)


async def test_a_theme_written_while_the_app_is_open_can_be_put_on(scripted: Any, until: Until, paths: Paths) -> None:
    app = ClawApp(lambda: scripted, look=Look(paths))
    async with app.run_test() as pilot:
        await until(pilot, app.main._ready.is_set)
        (paths.themes / "mine.toml").write_text('primary = "#58a6ff"\n', "utf-8")
        await pilot.press(*"/theme mine", "enter")
        await until(pilot, lambda: app.theme == "mine")
        (paths.themes / "mine.toml").write_text('primary = "blurple"\n', "utf-8")
        await pilot.press(*"/theme mine", "enter")
        await until(pilot, lambda: any("mine.toml was left out" in n.message for n in app._notifications))


async def test_textuals_own_themes_can_be_worn_too(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        for name in ("nord", "textual-ansi" if "textual-ansi" in BUILTIN_THEMES else "ansi-dark", "solarized-light"):
            app.theme = name
            await pilot.pause()
            assert app.is_running


async def test_with_no_color_not_one_colour_is_sent(
    scripted: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = ClawApp(lambda: scripted)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: not app.main.sending and app.main.chat_id is not None)
        await pilot.press("/")
        await until(pilot, lambda: app.main.composer._completions is not None)
        await pilot.pause()
        painted = app.screen._compositor.render_full_update().render_segments(app.console)
        codes = {code for found in re.findall(r"\x1b\[([0-9;]*)m", painted) for code in found.split(";")}
        # Default colours (39, 49) and weight only; the cursor of the field is reversed (7).
        assert codes <= {"", "0", "1", "2", "3", "4", "7", "39", "49"}
        assert "7" in codes
        app.main.composer.text = ""
        await pilot.press("escape", "ctrl+o")
        await until(pilot, lambda: app.main.chats.has_focus and app.main.chats.under_cursor() is not None)
        await pilot.pause()
        rows = [strip for strip in app.screen._compositor.render_strips(app.size) if "hello" in strip.text]
        assert any(segment.style and segment.style.underline and "hello" in segment.text for segment in rows[-1]), rows
