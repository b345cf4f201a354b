"""`claw-local config`: the settings file, read and changed by key."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import SettingsError, UsageError
from ..language import N_, _
from . import complete
from .careful import Careful
from .common import JSON_OPTION, harmless, print_json, print_table

if TYPE_CHECKING:
    from ..paths import Paths
    from ..settings_file import Setting

app = typer.Typer(help="The settings: what there is to set, and setting it.", no_args_is_help=True)
KEY = typer.Argument(..., help="A setting's name, such as model.path.", autocompletion=complete.setting_names)

NARROWEST = 30
_NEGATIVE = re.compile(r"-\.?\d")
_FROM = {"default": "", "file": N_("set in the file"), "environment": N_("set in the environment")}


@app.command("list")
def show_all(
    changed: bool = typer.Option(False, "--changed", help="Only those that are not at their default."),
    json_output: bool = JSON_OPTION,
) -> None:
    """List every setting with its value, its default and what it means."""
    from .. import settings_file
    from ..paths import locate

    settings = [
        setting for setting in settings_file.listing(locate()) if not changed or setting.value != setting.default
    ]
    if json_output:
        print_json({"settings": settings})
    elif not settings:
        typer.echo(_("Every setting is at its default."))
    elif sys.stdout is None or not sys.stdout.isatty():
        print_table([_row(setting) for setting in settings])
    else:
        _print_for_people(settings)


@app.command()
def get(key: str = KEY, json_output: bool = JSON_OPTION) -> None:
    """Print the value of one setting."""
    from .. import settings_file
    from ..paths import locate

    setting = settings_file.get(locate(), key)
    if json_output:
        print_json(setting)
        return
    value = setting.value
    if key == "app.theme" and not value:
        from claw_app.themes import DARK

        value = DARK.name  # What is in use then.
    typer.echo(harmless(value if isinstance(value, str) else settings_file.shown(value)))


class Signed(Careful):
    """Takes -1 for a value, not for an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        numbers = [] if "--" in args else [word for word in args if _NEGATIVE.match(word)]
        if numbers:
            args = [*(word for word in args if word not in numbers), "--", *numbers]
        return super().parse_args(ctx, args)


@app.command("set", cls=Signed)
def set_one(
    key: str = KEY,
    value: str | None = typer.Argument(None, help="Its new value; a text that begins with - comes after --."),
    default: bool = typer.Option(False, "--default", help="Take it out of the file, so that its default holds."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Change one setting; the file's comments stay."""
    from .. import settings_file
    from ..paths import locate

    if (value is None) is not default:
        raise UsageError(_("Give either a value or --default."))
    paths = locate()
    if key == "app.theme" and value:
        _check_theme(paths, value)
    if key == "adapters.profile" and value:
        _check_profile(paths, value)
    setting = settings_file.unset(paths, key) if default else settings_file.set_value(paths, key, value)
    if json_output:
        print_json(setting)
        return
    typer.echo(
        _(
            "{key} is {value} for programs that are started from now on.",
            key=key,
            value=harmless(settings_file.shown(setting.value)),
        )
    )
    if setting.origin == "environment":
        typer.echo(_("The variable {variable} is set, and goes before the file.", variable=setting.variable), err=True)


@app.command()
def path(json_output: bool = JSON_OPTION) -> None:
    """Print where the settings file is, or would be."""
    from ..paths import locate

    file = locate().settings
    if json_output:
        print_json({"path": file, "exists": file.is_file()})
    else:
        typer.echo(str(file))


@app.command()
def edit() -> None:
    """Open the settings file in your editor ($VISUAL or $EDITOR); it is checked before it is kept."""
    from .. import settings_file
    from ..named_text import read_text
    from ..paths import locate

    paths = locate()
    before = settings_file.text_to_edit(paths)
    with tempfile.TemporaryDirectory(prefix="claw-local-") as folder:
        copy = Path(folder) / "settings.toml"
        copy.write_text(before, "utf-8")
        while True:
            _open_editor(copy)
            try:
                text = read_text(copy)
                if text == before:
                    typer.echo(_("Nothing was changed."))
                    return
                settings_file.check_text(paths, text)
                theme = _theme_in(text)
                if theme and theme != _theme_in(before):
                    _check_theme(paths, theme)
                settings_file.write_text(paths, text)
            except FileNotFoundError as error:
                raise SettingsError(_("The editor left no file. Nothing was changed.")) from error
            except OSError as error:
                raise SettingsError(
                    _(
                        "What the editor left cannot be read: {error}. Nothing was changed.",
                        error=error.strerror or error,
                    )
                ) from error
            except (SettingsError, UsageError, UnicodeDecodeError) as error:
                said = str(error) if not isinstance(error, UnicodeDecodeError) else _("This is not UTF-8 text.")
                if not sys.stdin.isatty():
                    raise SettingsError(said + " " + _("Nothing was changed.")) from error
                typer.echo(said, err=True)
                if not typer.confirm(_("Edit it again?"), default=True, err=True):
                    raise SettingsError(_("Nothing was changed.")) from error
            else:
                typer.echo(_("Kept in {file}.", file=paths.settings))
                return


def _theme_in(text: str) -> str:
    """The theme that a settings file names; "" if it names none, or cannot be read."""
    import tomllib

    try:
        return str(tomllib.loads(text).get("app", {}).get("theme", ""))
    except (ValueError, RecursionError, AttributeError):
        return ""


def _check_theme(paths: Paths, name: str) -> None:
    """Raises UsageError: the app has no theme of that name, nor has the person a file that makes one."""
    from claw_app.themes import Look

    from ..named_text import shown

    look = Look(paths)
    if name not in look.names():
        there = _(
            "There are: {names}; a file in {folder} makes one of your own.",
            names=", ".join(sorted(look.names())),
            folder=paths.themes,
        )
        said = shown(name)
        broken = [words for words in look.problems if f"{said}.toml" in words]
        raise UsageError(" ".join([_("There is no theme {name}.", name=said), *broken, there]))


def _check_profile(paths: Paths, name: str) -> None:
    """Raises UsageError: no profile of that name was made."""
    from ..store import Store
    from ..talking.adapters import profiles_in

    known: dict[str, Any] = {}
    if paths.database.exists():
        store = Store(paths)
        try:
            known = profiles_in(store)
        finally:
            store.close()
    if name not in known:
        raise UsageError(
            _(
                "There is no profile {profile!r}. Make it with: claw-local adapters use ID --profile NAME",
                profile=name[:60],
            )
        )


def editor_command() -> list[str]:
    """The person's editor. Raises UsageError: there is none."""
    for variable in ("VISUAL", "EDITOR"):
        named = os.environ.get(variable, "").strip()
        if named:
            try:
                return shlex.split(named, posix=os.name != "nt")
            except ValueError as error:
                raise UsageError(
                    _(
                        "${variable} cannot be read as a command: {error}. Set it to your editor.",
                        variable=variable,
                        error=error,
                    )
                ) from error
    for program in ("notepad",) if os.name == "nt" else ("nano", "vi"):
        if shutil.which(program):
            return [program]
    raise UsageError(_("There is no editor. Set the variable EDITOR to one, or use: claw-local config set KEY VALUE"))


def _open_editor(file: Path) -> None:
    command = editor_command()
    try:
        status = subprocess.run([*command, str(file)], check=False).returncode
    except OSError as error:
        raise UsageError(
            _(
                "The editor {command} cannot be started: {error}. Set EDITOR to another.",
                command=command[0],
                error=error.strerror or error,
            )
        ) from error
    if status:
        raise SettingsError(
            _(
                "The editor {command} ended with status {status}. Nothing was changed.",
                command=command[0],
                status=status,
            )
        )


def _print_for_people(settings: Sequence[Setting]) -> None:
    """Name and value on a line, the meaning below it; the sections apart. Nothing is wider than the terminal."""
    from rich.cells import cell_len, set_cell_size

    from ..settings_file import shown

    width = max(shutil.get_terminal_size().columns - 1, NARROWEST)
    section = ""
    for setting in settings:
        if section and setting.key.partition(".")[0] != section:
            typer.echo("")
        section = setting.key.partition(".")[0]
        where = _(_FROM[setting.origin])
        default = "" if setting.value == setting.default else _("default {value}", value=shown(setting.default))
        notes = ", ".join(filter(None, [where, default]))
        value = f" = {_lined(shown(setting.value))}"
        room = max(width - len(setting.key), 1)
        value = value if cell_len(value) <= room else set_cell_size(value, room - 1).rstrip() + "…"
        typer.echo(typer.style(setting.key, bold=True) + value)
        about = f"{setting.doc} ({notes})" if notes else setting.doc
        typer.echo(textwrap.fill(_lined(about), width, initial_indent="    ", subsequent_indent="    "))


def _lined(text: str) -> str:
    return " ".join(harmless(text).split())


def _row(setting: Setting) -> tuple[str, ...]:
    from ..settings_file import shown

    default = "" if setting.value == setting.default else _("(default {value})", value=shown(setting.default))
    origin = _(_FROM[setting.origin])
    about = " ".join(filter(None, [default, f"[{origin}]" if origin else "", setting.doc]))
    return setting.key, shown(setting.value), about
