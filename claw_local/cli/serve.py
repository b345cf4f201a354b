"""`claw-local serve`: other programs' APIs over this assistant; and the keys they show."""

from __future__ import annotations

import ipaddress
import logging
import sys
from typing import TYPE_CHECKING

import typer

from .. import extras
from ..errors import ClawError, UsageError
from ..language import _
from .common import JSON_OPTION, harmless, plain, print_json, print_table

if TYPE_CHECKING:
    import socket

    from ..assistant import Assistant
    from ..server.guard import Door

app = typer.Typer(help="Answer other programs over HTTP, as OpenAI, Anthropic and Ollama do.", no_args_is_help=False)
keys = typer.Typer(help="The keys that programs show.", no_args_is_help=True)
app.add_typer(keys, name="keys")

LEARN_OFF = "Learning is switched off, so nothing of it teaches yet: claw-local learn on"


@app.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    host: str = typer.Option("127.0.0.1", "--host", help="Where to listen. Any other address than this needs a key."),
    port: int = typer.Option(8484, "--port", "-p", min=0, max=65535, help="0 takes a free one."),
    model: str | None = typer.Option(None, "--model", help="A GGUF file, ollama:NAME or openai:NAME."),
    learn: bool = typer.Option(False, "--learn", help="What programs without a key say may teach."),
    key: str | None = typer.Option(
        None, "--key", envvar="CLAW_LOCAL_SERVE_KEY", show_envvar=True, help="A key of your own that all have to show."
    ),
    key_needed: bool = typer.Option(False, "--need-key", help="On this machine, too, programs have to show a key."),
    allow_host: list[str] = typer.Option([], "--allow-host", help="A name this server is reached by."),
    allow_origin: list[str] = typer.Option(
        [], "--allow-origin", help="A page that may ask, such as http://localhost:3000."
    ),
    json_output: bool = JSON_OPTION,
) -> None:
    """Answer other programs over HTTP until Ctrl-C."""
    if context.invoked_subcommand is not None:
        return
    from ..assistant import Assistant
    from ..paths import locate
    from ..server.keys import take
    from ..server.running import listen, run
    from ..settings import for_many, load

    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    _installed()
    with Assistant.open(model=model, settings=for_many(load(locate()))) as assistant:
        if key is not None:
            take(assistant.store, key, learn=learn)
        door = _door(host, allow_host, allow_origin, learn=learn, needed=key_needed or key is not None)
        listening = listen(host, port)
        if not json_output:
            typer.echo("Loading the model …", err=True)
        info = assistant.load()
        # Last of all: it is shown once, so nothing may go wrong between.
        made = None if key is not None else _first_key(assistant, host, learn=learn, needed=key_needed)

        def announce() -> None:
            url = _address(listening)
            if json_output:
                print_json({"url": url, "model": info.name, "key": made, "learn": learn})
                return
            typer.echo(f"{harmless(info.name)} answers at {url}/v1 (OpenAI). Ctrl-C stops it.")
            if made:
                typer.echo(f"Key, shown this once: {made}")
            if (learn or any(one.learn for one in assistant.store.keys.list())) and not assistant.learn.enabled:
                typer.echo(LEARN_OFF)

        run(assistant, door, listening, announce)
    if not json_output:
        typer.echo("Stopped.", err=True)


@keys.command("add")
def add(
    name: str = typer.Argument(..., help="What to call it: the program or machine that shows it."),
    learn: bool = typer.Option(False, "--learn", help="What comes with it may teach."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Make a key. It is shown this once: only its hash is kept."""
    from ..assistant import Assistant
    from ..server.keys import make

    with Assistant.open() as assistant:
        made, secret = make(assistant.store, name, learn=learn)
        off = learn and not assistant.learn.enabled
    if json_output:
        print_json({**plain(made), "key": secret})
        return
    typer.echo(secret)
    if off:
        typer.echo(LEARN_OFF, err=True)


@keys.command("list")
def list_keys(json_output: bool = JSON_OPTION) -> None:
    """The keys there are, without what they say."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        found = assistant.store.keys.list()
    if json_output:
        print_json({"keys": plain(found)})
    elif not found:
        typer.echo("There are no keys. `claw-local serve keys add NAME` makes one.")
    else:
        rows = [["name", "teaches", "made", "used"]]
        rows += [[one.name, "yes" if one.learn else "no", one.created_at[:16], one.used_at[:16]] for one in found]
        print_table(rows)


@keys.command("learn")
def set_learn(
    name: str = typer.Argument(..., help="The key's name."),
    state: str = typer.Argument(..., help="on or off"),
    json_output: bool = JSON_OPTION,
) -> None:
    """Say whether what comes with a key may teach."""
    from ..assistant import Assistant

    if state not in ("on", "off"):
        raise UsageError(f"Say on or off, not {state!r}.")
    with Assistant.open() as assistant:
        changed = assistant.store.keys.set_learn(name, state == "on")
        off = changed.learn and not assistant.learn.enabled
    if json_output:
        print_json(plain(changed))
        return
    typer.echo(f"What comes with {harmless(name)} {'may teach' if changed.learn else 'does not teach'}.")
    if off:
        typer.echo(LEARN_OFF, err=True)


@keys.command("remove")
def remove(name: str = typer.Argument(..., help="The key's name."), json_output: bool = JSON_OPTION) -> None:
    """Take a key back: it opens nothing any more. Its chats stay yours."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        gone = assistant.store.keys.remove(name)
    if json_output:
        print_json(plain(gone))
    else:
        typer.echo(f"{harmless(gone.name)} opens nothing any more.")


def _installed() -> None:
    """Raises ClawError: what serving needs is not there. Said before a model is loaded."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ClawError(
            _("Serving needs the extra `serve`. Install it: {command}", command=extras.to_type("serve"))
        ) from error


def _first_key(assistant: Assistant, host: str, *, learn: bool, needed: bool) -> str | None:
    """Where a key is needed and there is none, make one, and return it."""
    from ..server.keys import make

    if (needed or not _is_loopback(host)) and not assistant.store.keys.list():
        return make(assistant.store, "first", learn=learn)[1]
    return None


def _door(host: str, names: list[str], origins: list[str], *, learn: bool, needed: bool) -> Door:
    import socket

    from ..server.guard import Door

    local = _is_loopback(host)
    known = {name.strip().lower() for name in names} | ({host.lower()} if not local else set())
    if not local:
        known.add(socket.gethostname().lower())
    for origin in origins:
        if not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
            raise UsageError(f"An origin is written as browsers do, such as http://localhost:3000, not {origin!r}.")
    return Door(
        local=local,
        hosts=frozenset(known),
        origins=frozenset(origins),
        key_needed=needed or not local,
        learn=learn,
    )


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
