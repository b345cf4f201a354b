"""`claw-local models`: which models there are here, which is in use, and fetching one."""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import UsageError
from ..language import N_, _, number
from . import complete
from .common import JSON_OPTION, harmless, print_json, print_table, size
from .waiting import bars

if TYPE_CHECKING:
    from ..engine.catalog import FoundModel, Models
    from ..engine.pulling import Fetched

app = typer.Typer(help="The models that could answer.", no_args_is_help=True)
NAME = typer.Argument(..., help="A model's name, or its file.", autocompletion=complete.model_names)

_WHERE = {
    "embedded": N_("comes with claw-local"),
    "models": N_("models folder"),
    "named": N_("named in the settings"),
    "ollama-files": N_("Ollama's files"),
    "lm-studio": N_("LM Studio"),
    "huggingface": N_("Hugging Face cache"),
    "llama.cpp": N_("llama.cpp's cache"),
    "ollama": N_("Ollama server"),
    "openai": N_("server"),
}


@app.command("list")
def show_all(
    recommended: bool = typer.Option(
        False, "--recommended", help="Models to fetch that suit this machine, best first."
    ),
    json_output: bool = JSON_OPTION,
) -> None:
    """List the models found on this machine, those of other programs too."""
    models = _models()
    if recommended:
        suggestions = models.recommend()
        if json_output:
            print_json({"recommended": suggestions})
            return
        for one in suggestions:
            typer.echo(f"{one.name}, {size(one.size_bytes)}, {one.licence}. {one.why}")
            typer.echo(f"  claw-local models pull {one.repo}:{one.file}")
        return
    found = models.list()
    if json_output:
        print_json({"models": found})
    elif not found:
        typer.echo(_("No models here yet. `claw-local models list --recommended` shows which to fetch."))
    else:
        print_table([_row(model) for model in found], right={2, 3})


@app.command()
def show(name: str = NAME, json_output: bool = JSON_OPTION) -> None:
    """Show one model: what it is, where it is, what it needs."""
    details = _models().show(name)
    if json_output:
        print_json(details)
        return
    model = details.model
    facts = [
        (_("Name"), model.name),
        (_("Calls itself"), details.title if details.title != model.name else ""),
        (_("Where"), str(model.path or model.chooses)),
        (_("From"), _(_WHERE[model.source])),
        (_("Architecture"), model.architecture),
        (_("Weights"), _count(model.parameters)),
        (_("Quantisation"), model.quantisation),
        (_("Size"), size(model.size_bytes) if model.size_bytes else ""),
        (
            _("Memory"),
            _("about {size} with the context of the settings", size=size(details.memory_bytes))
            if details.memory_bytes
            else "",
        ),
        (_("Trained for"), _("{number} tokens", number=number(details.context)) if details.context else ""),
        (_("Licence"), details.licence),
        (_("Learning"), _("can be trained here") if details.learns else _("chats only: it cannot be trained here")),
        (_("In use"), _("yes") if model.in_use else _("no; {command}", command=_use(model.chooses))),
    ]
    print_table([(f"{label}:", value) for label, value in facts if value])


@app.command()
def use(name: str = NAME, json_output: bool = JSON_OPTION) -> None:
    """Let new chats be answered by this model; it is tried first."""
    model = _models().use(name)
    if json_output:
        print_json(model)
    else:
        typer.echo(_("{name} answers in programs that are started from now on.", name=harmless(model.name)))


@app.command()
def add(
    file: Path = typer.Argument(..., help="A GGUF file."),
    link: bool = typer.Option(False, "--link", help="Only point to it: it must stay where it is."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Take a GGUF file into the models folder, so that its bare name is enough."""
    model = _models().add(file, link=link)
    if json_output:
        print_json(model)
    else:
        typer.echo(
            _(
                "Added {name}. Put it into use with: {command}",
                name=harmless(model.chooses),
                command=_use(model.chooses),
            )
        )


@app.command()
def remove(
    name: str = NAME,
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Delete a model's files from the models folder."""
    models = _models()
    model = models.find(name)
    if not yes and model.source == "models" and not model.in_use:
        if not sys.stdin.isatty():
            raise UsageError(_("Nobody is there to ask whether to delete it: add --yes."))
        typer.confirm(
            _("Delete {name} ({size}) for good?", name=harmless(model.chooses), size=size(model.size_bytes)),
            abort=True,
            err=True,
        )
    gone = models.remove(name)
    if json_output:
        print_json({"removed": gone})
    else:
        typer.echo(_("Removed {names}.", names=", ".join(harmless(path.name) for path in gone)))


@app.command()
def pull(
    what: str = typer.Argument(..., help="OWNER/NAME on the Hugging Face Hub, or OWNER/NAME:Q4_K_M, or :FILE."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Fetch a model from the Hugging Face Hub: a quantisation that suits this machine, unless you name one."""
    from ..engine.base import Cancelled

    cancel = threading.Event()
    try:
        pulled = _with_bar(lambda report: _models().pull(what, on_progress=report, cancel=cancel), quiet=json_output)
    except (KeyboardInterrupt, Cancelled):
        typer.echo(_("What was fetched is kept: the same command goes on from there."), err=True)
        raise KeyboardInterrupt from None
    if json_output:
        print_json(pulled)
        return
    told = {"name": harmless(pulled.path.name), "size": size(pulled.size_bytes)}
    typer.echo(
        _("{name} ({size}) was here already.", **told) if pulled.already else _("{name} ({size}) is here.", **told)
    )
    if pulled.warning:
        typer.echo(harmless(pulled.warning), err=True)
    typer.echo(_("Put it into use with: {command}", command=_use(_chooses(pulled.path))))


def _models() -> Models:
    from ..engine.catalog import Models
    from ..paths import locate
    from ..settings import load

    paths = locate()
    return Models(paths, load(paths))


def _use(name: str) -> str:
    """The command that puts a model into use, as the shell takes it."""
    return f"claw-local models use {shlex.quote(harmless(name))}"


def _chooses(path: Path) -> str:
    from ..paths import locate

    return str(path.relative_to(locate().models))


def _row(model: FoundModel) -> tuple[str, ...]:
    where = _(_WHERE[model.source])
    return (
        "*" if model.in_use else " ",
        model.name,
        _count(model.parameters),
        size(model.size_bytes) if model.size_bytes else "",
        model.quantisation,
        where if model.source == "embedded" else f"{where}: {model.chooses}",
    )


def _count(parameters: int) -> str:
    """Weights as people say them: 135M, 7.6B."""
    if parameters >= 10**9:
        return f"{parameters / 10**9:.1f}B"
    return f"{parameters / 10**6:.0f}M" if parameters else ""


def _with_bar(work: Callable[[Callable[[Fetched], None] | None], Any], *, quiet: bool) -> Any:
    """Do the work under a progress bar on standard error."""
    if quiet or not sys.stderr.isatty():
        return work(None)
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with bars(*columns) as bar:
        task = bar.add_task(_("asking the hub"), total=None)

        def show(fetched: Fetched) -> None:
            name = harmless(Path(fetched.file).name)
            bar.update(task, total=fetched.total_bytes, completed=fetched.done_bytes)
            bar.update(task, description=f"{fetched.phase} {name if len(name) < 40 else '…' + name[-39:]}")

        return work(show)
