"""`claw-local encrypt`: the store kept encrypted with SQLCipher, or plain again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import StoreError, UsageError
from ..language import N_, _, ngettext
from .common import JSON_OPTION, harmless, print_json

if TYPE_CHECKING:
    from ..paths import Paths
    from ..store.encrypting import Done
    from ..store.unlocking import Encryption, Key

app = typer.Typer(help="Keep what was said encrypted, and open it with a passphrase.", no_args_is_help=True)

PLAIN = (
    ("adapters", N_("adapters and what the gate wrote about them, with answers in it")),
    ("runs", N_("logs of learning runs, and what a run that is not finished learns from")),
    ("models", N_("models")),
    ("settings.toml", N_("settings")),
    ("mcp.json", N_("servers of tools")),
    ("themes", N_("themes")),
)
"""What is never encrypted, by its name in the home."""


@app.command("on")
def on(
    keyring: bool = typer.Option(
        False, "--keyring", help="Make a key, and keep it in the system's keyring, instead of a passphrase."
    ),
    json_output: bool = JSON_OPTION,
) -> None:
    """Encrypt the store. In scripts the variable CLAW_LOCAL_STORE_PASSPHRASE gives the passphrase."""
    from ..paths import locate
    from ..store import encrypting, unlocking

    paths = locate().make()

    def new() -> tuple[Encryption, Key]:
        if keyring:
            return unlocking.made(unlocking.into_keyring(), "keyring")
        return unlocking.made(_new_passphrase(), "passphrase")

    with _words(json_output) as report:
        done = encrypting.encrypt(paths, new, report)
    if json_output:
        print_json({"encrypted": True, **_told(done)})
        return
    typer.echo(
        _("Encrypted: {database}.", database=harmless(str(paths.database)))
        if done.database
        else _("The store is encrypted already.")
    )
    _say(done)
    if done.database and keyring:
        typer.echo(_("The key is in the system's keyring. Write it down too: keyring get claw-local store"))
    elif done.database:
        typer.echo(_("Without the passphrase nobody can open it, you neither. Write it down."))
    typer.echo(_("`claw-local encrypt status` says what is not encrypted."))


@app.command("off")
def off(json_output: bool = JSON_OPTION) -> None:
    """Make the store plain again."""
    from ..paths import locate
    from ..store import encrypting

    paths = locate().make()
    with _words(json_output) as report:
        done = encrypting.make_plain(paths, report)
    if json_output:
        print_json({"encrypted": False, **_told(done)})
        return
    typer.echo(
        _("Plain again: {database}.", database=harmless(str(paths.database)))
        if done.database
        else _("The store is plain.")
    )
    _say(done)


@app.command("status")
def status(json_output: bool = JSON_OPTION) -> None:
    """Whether the store is encrypted, where its key comes from, and what is not encrypted."""
    from ..paths import locate
    from ..store import cipher, encrypting, opening, unlocking

    paths = locate()
    noted = unlocking.read(paths.database)
    if encrypting.is_unnoted(paths.database):
        raise StoreError(_(encrypting.UNNOTED, path=paths.database))
    encrypted = noted is not None and opening.is_encrypted(paths.database)
    source = noted.source if noted is not None and encrypted else None
    plain_copies = [file for file, plain in encrypting.copies(paths) if plain]
    beside = [(place, words) for place, words in _unencrypted(paths)]
    if json_output:
        print_json(
            {
                "encrypted": encrypted,
                "key": source,
                "installed": cipher.is_installed(),
                "plain_copies": plain_copies,
                "unencrypted": [place for place, _ in beside],
            }
        )
        return
    if not encrypted:
        typer.echo(_("The store is not encrypted."))
    elif source == "keyring":
        typer.echo(_("The store is encrypted: its key is in the system's keyring."))
    else:
        typer.echo(_("The store is encrypted: opened with a passphrase."))
    if not cipher.is_installed():
        typer.echo(cipher.missing())
    if noted is not None and not encrypted:
        typer.echo(
            _("Encrypting it, or making it plain, was not finished: run `claw-local encrypt on` or `off` again.")
        )
    if encrypted and plain_copies:
        typer.echo(_("Copies of it that are still plain, which `claw-local encrypt on` encrypts if they can be read:"))
        for file in plain_copies:
            typer.echo(f"  {harmless(str(file))}")
    if encrypted and beside:
        typer.echo(_("Not encrypted:"))
        for place, words in beside:
            typer.echo(f"  {harmless(str(place))}: {_(words)}")


@contextmanager
def _words(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line on standard error for each thing that is being done, where somebody is there."""
    shown = not quiet and sys.stderr.isatty()
    yield lambda words: typer.echo(f"{words[0].upper()}{words[1:]} …", err=True) if shown else None


def _unencrypted(paths: Paths) -> list[tuple[Path, str]]:
    places = [(folder / name, words) for folder in dict.fromkeys((paths.data, paths.config)) for name, words in PLAIN]
    return [(place, words) for place, words in places if place.is_file() or (place.is_dir() and any(place.iterdir()))]


def _new_passphrase() -> str:
    from ..store.unlocking import VARIABLE

    if given := os.environ.get(VARIABLE, ""):
        return given
    if not sys.stdin.isatty():
        raise UsageError(
            _("There is no terminal to ask for a passphrase. Give it in the variable {variable}.", variable=VARIABLE)
        )
    text: str = typer.prompt(_("Passphrase of the store"), hide_input=True, confirmation_prompt=True, err=True)
    return text


def _told(done: Done) -> dict[str, object]:
    return {"database": done.database, "copies": done.copies, "left": done.left}


def _say(done: Done) -> None:
    if done.copies:
        typer.echo(
            ngettext(
                "{number} copy in the backups folder too.", "{number} copies in the backups folder too.", done.copies
            )
        )
    for file in done.left:
        typer.echo(_("Left as it was, because it cannot be read: {file}", file=harmless(str(file))), err=True)
