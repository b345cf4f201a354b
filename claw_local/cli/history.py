"""`claw-local history`: the chats that are kept."""

from __future__ import annotations

import typer

from .common import JSON_OPTION, harmless, plain, print_json, short

app = typer.Typer(help="The chats that are kept.", invoke_without_command=True)


@app.callback()
def history(ctx: typer.Context) -> None:
    """The chats that are kept; without more words, the list of them."""
    if ctx.invoked_subcommand is None:
        show_all(limit=50, json_output=False)


@app.command("list")
def show_all(
    limit: int = typer.Option(50, "--limit", min=1, help="How many."), json_output: bool = JSON_OPTION
) -> None:
    """List chats, newest first."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        chats = assistant.chats(limit=limit)
    if json_output:
        print_json({"chats": chats})
    elif not chats:
        typer.echo("No chats yet. Start one with: claw-local chat")
    else:
        for chat in chats:
            typer.echo(f"{chat.id:>5}  {chat.updated_at[:16].replace('T', ' ')}  {short(chat.title or 'untitled')}")


@app.command()
def show(chat: int = typer.Argument(..., help="The chat's id."), json_output: bool = JSON_OPTION) -> None:
    """Print a chat with its message ids and signals."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        record = assistant.chat(chat)
        messages = assistant.messages(chat)
        signals = assistant.signals([message.id for message in messages])
    if json_output:
        left_out = ("prompt_ids", "response_ids", "logprobs")
        print_json(
            {
                "chat": record,
                "messages": [
                    {**{k: v for k, v in plain(m).items() if k not in left_out}, "signals": plain(signals[m.id])}
                    for m in messages
                ],
            }
        )
        return
    for message in messages:
        marks = "".join(f"  [{signal.source} {signal.score:+d}]" for signal in signals[message.id])
        typer.echo(f"{message.id} {message.role}{marks}\n{harmless(message.content)}\n")
