"""`claw-local uninstall`: what is where, and taking it out. Never touches data without an explicit yes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from ..errors import StoreError, UsageError
from ..language import _, ngettext
from .common import JSON_OPTION, print_json, size

if TYPE_CHECKING:
    from ..installed import Data, Package, Piece
    from ..paths import Paths


def uninstall(
    keep_data: bool = typer.Option(False, "--keep-data", help="Keep chats, adapters, models and settings; do not ask."),
    delete_data: bool = typer.Option(False, "--delete-data", help="Delete them too, for good."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask. Data goes only with --delete-data beside it."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what is where."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Take claw-local off this machine: what lies outside the package, your data if you say so, and how to remove the
    package itself."""
    from .. import installed
    from ..paths import locate

    if keep_data and delete_data:
        raise UsageError(_("--keep-data and --delete-data contradict each other: choose one."))
    if json_output and not (dry_run or yes):
        raise UsageError(_("With --json nothing is asked: add --dry-run to look, or --yes to do it."))
    paths = locate()
    pieces, data, package = installed.outside(), installed.kept_data(paths), installed.package()
    if not json_output:
        _show(pieces, data, package)
    if dry_run:
        if json_output:
            print_json(_plan(pieces, data, package))
        return
    if not yes and not sys.stdin.isatty():
        raise UsageError(
            _("There is no terminal to ask. Add --yes; your data stays, unless --delete-data is there too.")
        )
    outside_goes = bool(pieces) and (yes or typer.confirm(_("Remove what lies outside the package?"), err=True))
    data_goes = bool(data.entries) and not keep_data and _asked_for_data(delete_data, yes)
    if data_goes:
        _nothing_runs(paths)
    removed, left = _take_out(pieces if outside_goes else [])
    if data_goes:
        _delete(data)
    if json_output:
        print_json({**_plan(pieces, data, package), "removed": removed, "left": left, "data_deleted": data_goes})
    else:
        _say_done(removed, left, data, data_goes=data_goes, package=package)
    if left:
        raise typer.Exit(1)


def _plan(pieces: list[Piece], data: Data, package: Package) -> dict[str, object]:
    return {
        "outside": pieces,
        "data": {"folders": data.folders, "entries": data.entries, "others": data.others, "bytes": data.size},
        "package": package,
    }


def _show(pieces: list[Piece], data: Data, package: Package) -> None:
    typer.echo(_("Outside the package:") if pieces else _("Outside the package: nothing"))
    for piece in pieces:
        typer.echo(
            f"  {piece.kind}: {piece.path}" + (" " + _("(the line {line})", line=piece.line) if piece.line else "")
        )
    typer.echo(_("Your data, {size}:", size=size(data.size)) if data.entries else _("Your data: none"))
    for entry in data.entries:
        typer.echo(f"  {entry}")
    for entry in data.others:
        typer.echo("  " + _("not ours, stays: {entry}", entry=entry))
    typer.echo(_("The package ({way}): {remove}", way=package.way, remove=package.remove))


def _asked_for_data(delete_data: bool, yes: bool) -> bool:
    """Whether the data goes: only by a word that nobody types by accident."""
    if yes:
        return delete_data
    if not delete_data and not typer.confirm(_("Delete your data too? It cannot be brought back."), err=True):
        return False
    said = typer.prompt(_("Type delete to delete it for good"), default="keep", err=True)
    return bool(said.strip().lower() == "delete")


def _nothing_runs(paths: Paths) -> None:
    """Raises StoreError: a learning run goes on. A damaged database stands in nobody's way."""
    from ..store import Store

    if not paths.database.is_file():
        return
    try:
        store = Store(paths)
    except StoreError:
        return
    try:
        store.runs.bury()
        running = store.runs.running()
    except StoreError:
        return
    finally:
        store.close()
    if running is not None:
        raise StoreError(_("A learning run is going on. Stop it first, or wait for its end; nothing was removed."))


def _take_out(pieces: list[Piece]) -> tuple[list[Piece], list[str]]:
    from ..installed import take_out

    removed, left = [], []
    for piece in pieces:
        try:
            take_out(piece)
        except (OSError, UnicodeDecodeError) as error:
            left.append(f"{piece.path}: {getattr(error, 'strerror', None) or error}")
        else:
            removed.append(piece)
    return removed, left


def _delete(data: Data) -> None:
    from ..installed import delete

    try:
        delete(data)
    except OSError as error:
        raise StoreError(
            _(
                "Not all of your data could be deleted: {filename}: {error}. Close every "
                "claw-local, make it writable, and run this again.",
                filename=error.filename,
                error=error.strerror or error,
            )
        ) from error


def _say_done(removed: list[Piece], left: list[str], data: Data, *, data_goes: bool, package: Package) -> None:
    typer.echo("")
    if removed:
        typer.echo(
            ngettext("Removed: {number} outside the package.", "Removed: {number} outside the package.", len(removed))
        )
    for sentence in left:
        typer.echo(_("Not removed: {what}. Delete it by hand.", what=sentence), err=True)
    if data_goes:
        typer.echo(_("Your data is deleted. Backups and exports that you made elsewhere stay."))
    elif data.entries:
        typer.echo(_("Your data stays in {folders}.", folders=", ".join(map(str, data.folders))))
    typer.echo(_("Now remove the package: {remove}", remove=package.remove))
