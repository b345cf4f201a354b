"""`claw-local backup` and `claw-local restore`: everything of yours in one file, and the way back."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

import typer

from ..errors import UsageError
from ..language import _, ngettext
from ..named_text import shown
from .common import JSON_OPTION, harmless, plain, print_json, size
from .counted import counted
from .waiting import bar


def backup(
    file: Path = typer.Argument(..., help="The file to write."),
    force: bool = typer.Option(False, "--force", help="Write over a file that exists."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Write chats, hints, adapters and settings to one file, while everything runs. Models are not in it."""
    from ..backup import write_backup
    from ..paths import locate
    from ..store import Store

    paths = locate()
    store = Store(paths)
    try:
        with bar(quiet=json_output) as report:
            made = write_backup(store, paths, file.expanduser(), force=force, report=report)
    finally:
        store.close()
    if json_output:
        print_json(
            {
                "path": made.path,
                "size": made.size,
                "left_out": made.left_out,
                "encrypted": made.encrypted,
                **_summary(made.manifest),
            }
        )
        return
    typer.echo(
        _(
            "Written: {path} ({size}): {counts}.",
            path=shown(made.path),
            size=size(made.size),
            counts=_counted(made.manifest.counts),
        )
    )
    for path in made.left_out:
        typer.echo(
            _("Left out: {path}, which is not there, or not in the adapters folder.", path=harmless(path)), err=True
        )
    if made.encrypted:
        typer.echo(
            _(
                "Chats in it are encrypted, with the key of this store; adapters and settings "
                "are not. Models are not in it."
            )
        )
        return
    typer.echo(_("It holds what you said, for everyone who can read it. Models are not in it."))


def restore(
    file: Path = typer.Argument(..., help="A file that `claw-local backup` wrote."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Put a backup in the place of what is here now; that is kept aside."""
    from ..backup import look
    from ..backup import restore as restore_file
    from ..paths import locate

    paths, file = locate(), file.expanduser()
    manifest = look(file)
    since = _forgotten_since(paths.database, manifest.created_at)
    if not yes:
        said = _(
            "A backup of {time} UTC: {counts}.",
            time=manifest.created_at[:16].replace("T", " "),
            counts=_counted(manifest.counts),
        )
        if not sys.stdin.isatty() or json_output:
            raise UsageError(said + " " + _("Nothing was restored. To restore it without being asked, add --yes."))
        typer.echo(said, err=True)
        if since:
            typer.echo(
                ngettext(
                    "{number} thing was forgotten here since it was made, and it may bring it back.",
                    "{number} things were forgotten here since it was made, and it may bring them back.",
                    since,
                ),
                err=True,
            )
        if not typer.confirm(_("Put it in the place of what is here now?"), err=True):
            typer.echo(_("Nothing was restored."), err=True)
            raise typer.Exit(1)
    with bar(quiet=json_output) as report:
        done = restore_file(paths, file, report=report)
    if json_output:
        print_json(
            {
                "before": done.before,
                "forgotten_since": since,
                "made_plain": done.made_plain,
                **_summary(done.manifest),
            }
        )
        return
    typer.echo(_("Restored: {counts}.", counts=_counted(manifest.counts)))
    if done.made_plain:
        typer.echo(
            _(
                "The backup was encrypted, and its chats are plain here now, as this store was: "
                "`claw-local encrypt on` encrypts them."
            )
        )
    if done.before is not None:
        typer.echo(
            _(
                "What was here before is in {folder}. Delete that folder when all is well.",
                folder=shown(done.before),
            )
        )


def _summary(manifest: object) -> dict[str, object]:
    values = plain(manifest)
    return {"created_at": values["created_at"], "counts": values["counts"], "files": len(values["files"])}


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(counted(name, count) for name, count in counts.items())


def _forgotten_since(database: Path, moment: str) -> int:
    """How often something was forgotten here after a moment; 0 also where that cannot be read."""
    from ..backup.tables import receipts
    from ..store import opening

    if not database.is_file():
        return 0
    try:
        connection = opening.connect(database)
        try:
            return sum(receipt["at"] > moment for receipt in json.loads(receipts(connection) or "[]"))
        finally:
            connection.close()
    except (sqlite3.Error, ValueError):
        return 0
