"""The commands of `claw-local adapters` that carry adapters: out to files and other programs, and in again."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path

import typer

from ..errors import UsageError
from ..language import _
from ..named_text import shown
from . import complete
from .adapters_shown import label
from .common import JSON_OPTION, harmless, print_json
from .waiting import fractions, steps

PASSPHRASE_VARIABLE = "CLAW_LOCAL_PASSPHRASE"


class Format(StrEnum):
    claw = "claw"
    peft = "peft"
    gguf = "gguf"
    ollama = "ollama"
    merged = "merged"


FORMAT_OPTION = typer.Option(
    Format.claw,
    "--format",
    help="claw: one file to import again; peft: a folder for PEFT, vLLM, SGLang; gguf: a LoRA for llama.cpp; "
    "ollama: a folder with a Modelfile; merged: a whole model, as `adapters merge` writes it.",
)
PASSPHRASE_OPTION = typer.Option(
    False, "--passphrase", help=f"Ask for a passphrase; in scripts the variable {PASSPHRASE_VARIABLE} gives it."
)
MODEL_OPTION = typer.Option(None, "--model", help="The base model that is meant.", autocompletion=complete.model_names)


def register(app: typer.Typer) -> None:
    """Add the commands to the group."""
    app.command("export")(export)
    app.command("import")(import_)
    app.command("publish-ollama")(publish_ollama)


def export(
    adapter: str = typer.Argument(..., help="The adapter's id or name.", autocompletion=complete.adapter_ids),
    out: Path = typer.Argument(..., help="The file, or for peft and ollama the folder, to write."),
    form: Format = FORMAT_OPTION,
    passphrase: bool = PASSPHRASE_OPTION,
    with_base: bool = typer.Option(
        False, "--with-base", help="With --format ollama: copy the base model into the folder too."
    ),
    force: bool = typer.Option(False, "--force", help="Write over a file that exists."),
    model: Path | None = MODEL_OPTION,
    json_output: bool = JSON_OPTION,
) -> None:
    """Write an adapter for another machine or program. None of your chats is in it."""
    from ..assistant import Assistant

    out = out.expanduser()
    if with_base and form is not Format.ollama:
        raise UsageError(_("--with-base goes with --format ollama."))
    if passphrase and form is not Format.claw:
        raise UsageError(_("Only a claw pack can be sealed with a passphrase. Leave --passphrase out."))
    with Assistant.open(model=model) as assistant:
        record = assistant.adapters.get(adapter)
        words = _new_passphrase() if passphrase else ""
        with fractions(_("merging"), quiet=json_output or form is not Format.merged) as report:
            assistant.adapters.export(
                record.id,
                out,
                form.value,
                passphrase=words,
                force=force,
                with_base=with_base,
                on_progress=report,
            )
    if json_output:
        print_json({"adapter": record.id, "format": form.value, "path": out, "sealed": bool(words)})
        return
    told = {"id": record.id, "path": shown(out)}
    typer.echo(
        _("Written: adapter {id} to {path}, sealed", **told) if words else _("Written: adapter {id} to {path}", **told)
    )
    if form is Format.ollama:
        typer.echo(_("In that folder: ollama create NAME -f Modelfile"))


def import_(
    source: Path = typer.Argument(..., help="A claw pack, a PEFT folder, or a GGUF LoRA."),
    name: str = typer.Option("", "--as", help="What to call it."),
    passphrase: bool = PASSPHRASE_OPTION,
    force: bool = typer.Option(
        False, "--force", help="Take a pack that was made for another base model, if its shapes fit."
    ),
    model: Path | None = MODEL_OPTION,
    json_output: bool = JSON_OPTION,
) -> None:
    """Take an adapter in, after everything about it was checked. It is not put into use."""
    from ..assistant import Assistant

    with Assistant.open(model=model) as assistant:
        asks = passphrase or PASSPHRASE_VARIABLE in os.environ or sys.stdin.isatty()
        found = assistant.adapters.import_file(
            source.expanduser(), name=name, force=force, passphrase=_passphrase if asks else None
        )
    record = found.record
    if json_output:
        print_json({"adapter": record, "already": found.already})
        return
    adapter = label(record)
    if found.already:
        typer.echo(_("That is adapter {adapter} already. Nothing was changed.", adapter=adapter))
        return
    typer.echo(_("Imported: adapter {adapter}. It is not in use.", adapter=adapter))
    typer.echo(_("Ask the gate: claw-local adapters check {id}; use it: claw-local adapters use {id}", id=record.id))


def publish_ollama(
    name: str = typer.Argument(..., help="What Ollama is to call the model."),
    adapter: str | None = typer.Option(
        None,
        "--adapter",
        help="The adapter's id or name; without it, the one in use.",
        autocompletion=complete.adapter_ids,
    ),
    force: bool = typer.Option(False, "--force", help="Make a model of that name anew."),
    elsewhere: bool = typer.Option(False, "--elsewhere", help="Also to an Ollama on another machine."),
    model: Path | None = MODEL_OPTION,
    json_output: bool = JSON_OPTION,
) -> None:
    """Create a model in the running Ollama: the base model with an adapter."""
    from ..assistant import Assistant

    with Assistant.open(model=model) as assistant, steps(quiet=json_output) as report:
        record = assistant.adapters.publish_ollama(name, adapter, report, force=force, elsewhere=elsewhere)
    if json_output:
        print_json({"adapter": record.id, "model": name})
    else:
        typer.echo(_("Ollama has adapter {id} now: ollama run {name}", id=record.id, name=harmless(name)))


def _passphrase() -> str:
    """For a pack that is sealed. Raises UsageError: there is none."""
    return _given() or _asked(_("Passphrase"), again=False)


def _new_passphrase() -> str:
    return _given() or _asked(_("Passphrase (nobody can open the pack without it)"), again=True)


def _given() -> str:
    return os.environ.get(PASSPHRASE_VARIABLE, "")


def _asked(words: str, *, again: bool) -> str:
    if not sys.stdin.isatty():
        raise UsageError(
            _(
                "There is no terminal to ask for the passphrase. Give it in the variable {variable}.",
                variable=PASSPHRASE_VARIABLE,
            )
        )
    text: str = typer.prompt(words, hide_input=True, confirmation_prompt=again, err=True)
    return text
