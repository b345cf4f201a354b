"""The commands, put together, and how their errors reach a person. Each command group has a file of its own."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from ..errors import ClawError
from ..language import N_, _, begin, use
from ..nowhere import has_lost
from ..prompting import ask_with
from . import (
    adapters,
    ask,
    backup,
    bench,
    chat,
    config,
    doctor,
    encrypt,
    feedback,
    forget,
    hints,
    history,
    judge,
    learn,
    merging,
    models,
    serve,
    tools,
)
from .careful import make_careful, on_one_line
from .common import CLOSED, harmless
from .passphrase import ask as ask_passphrase
from .uninstall import uninstall

FULL = N_("The answer could not be written: the disk is full. Free some space.")


class Commands(TyperGroup):
    """The command group that turns every error into a sentence and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            typer.echo(_("Stopped."), err=True)
            raise typer.Exit(130) from stop
        except ClawError as error:
            if ctx.params.get("debug"):
                raise
            typer.echo(harmless(on_one_line(str(error), ctx.obj or ())), err=True)
            raise typer.Exit(error.exit_code) from error
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            # What the parser has to say about wrong use is its own to print.
            if hasattr(error, "show"):
                from .wrong_use import say_plainly

                say_plainly(error)
                raise
            if ctx.params.get("debug"):
                raise
            if isinstance(error, RuntimeError) and "home directory" in str(error):
                typer.echo(_("A path begins with a ~ and a name that nobody here has. Write the folder out."), err=True)
                raise typer.Exit(2) from error
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                typer.echo(_("A name is longer than a file's can be. Give a shorter one."), err=True)
                raise typer.Exit(2) from error
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                typer.echo(_(FULL), err=True)
                raise typer.Exit(1) from error
            typer.echo(
                _(
                    "Something unexpected went wrong: {error!r}. `claw-local doctor` checks the "
                    "set-up; `claw-local --debug …` shows where it happened.",
                    error=error,
                ),
                err=True,
            )
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=Commands,
    name="claw-local",
    help="A personal assistant that lives on your machine and gets better at being yours. Nothing leaves the machine.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("ask")(ask.ask)
app.command("chat")(chat.chat)
app.command("feedback")(feedback.feedback)
app.add_typer(learn.app, name="learn")
app.add_typer(hints.app, name="hints")
app.add_typer(adapters.app, name="adapters")
app.add_typer(judge.app, name="judge")
app.add_typer(history.app, name="history")
app.add_typer(models.app, name="models")
app.add_typer(tools.app, name="tools")
app.add_typer(config.app, name="config")
app.command("forget")(forget.forget)
app.add_typer(encrypt.app, name="encrypt")
app.command("backup")(backup.backup)
app.add_typer(serve.app, name="serve")
app.command("restore")(backup.restore)
adapters.app.command("merge")(merging.merge)
app.command("doctor")(doctor.doctor)
app.command("uninstall")(uninstall)
app.command("bench")(bench.bench)
make_careful(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"claw-local {__version__}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    version: bool = typer.Option(
        False, "--version", "-V", help="Show the version.", is_eager=True, callback=_show_version
    ),
) -> None:
    """Options that go before every command."""
    ask_with(ask_passphrase)
    # What programs read is the same in every language.
    _speak(english=ctx.invoked_subcommand == "serve" or "--json" in (ctx.obj or ()))


def _speak(*, english: bool) -> None:
    """Use the person's language, if where it is set can be found."""
    from ..paths import locate

    use("en")
    if english:
        return
    with contextlib.suppress(ClawError, OSError, RuntimeError):  # The command says what is wrong with the home.
        begin(locate())


def run(arguments: Sequence[str]) -> int:
    """Run one command. Returns its exit status: 0 done, 1 could not, 2 wrong use, 130 interrupted."""
    status = _run(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        if not status and not isinstance(error, BrokenPipeError):
            _say_unwritten(error)
        # What is left in the buffer was told of: Python would try it again at its end, and say so in its own words.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return status or 1
    if has_lost(sys.stdout):
        typer.echo(_(CLOSED), err=True)
        return status or 1
    return status


def _run(arguments: Sequence[str]) -> int:
    try:
        app(list(arguments), prog_name="claw-local", obj=list(arguments))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except OSError as error:  # Help could not be written.
        if "--debug" in arguments:
            raise
        _say_unwritten(error)
        return 1
    return 0


def _say_unwritten(error: OSError) -> None:
    full = error.errno == errno.ENOSPC
    typer.echo(_(FULL) if full else _("Nothing could be written: {reason}.", reason=error.strerror), err=True)
