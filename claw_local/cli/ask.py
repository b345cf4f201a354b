"""`claw-local ask`: one question, one answer on standard output."""

from __future__ import annotations

import dataclasses
import select
import stat
import sys
from typing import TYPE_CHECKING, Any

import typer

from ..errors import UsageError
from ..language import _
from ..nowhere import leads_nowhere
from ..signals.attached import Attachment, compose
from . import complete, working
from .common import CLOSED, harmless, print_json, with_profile
from .hints import say_made_room

if TYPE_CHECKING:
    from ..assistant import Assistant
    from ..reply import Answer

WAIT_FOR_PIPE_S = 2.0


def ask(
    question: list[str] | None = typer.Argument(None, help="The question. Piped standard input is added to it."),
    chat: int | None = typer.Option(
        None, "--chat", help="Go on with this chat: the question is its next message.", autocompletion=complete.chat_ids
    ),
    new: bool = typer.Option(False, "--new", help="Start a new chat (as it does without --chat)."),
    model: str | None = typer.Option(
        None,
        "--model",
        help="What answers this: a GGUF file, ollama:NAME or openai:NAME.",
        autocompletion=complete.model_names,
    ),
    system: str | None = typer.Option(None, "--system", help="The chat's system prompt."),
    max_tokens: int | None = typer.Option(None, "--max-tokens", min=1, help="Longest answer, in tokens."),
    temperature: float | None = typer.Option(None, "--temperature", min=0.0, max=5.0, help="0 takes the likeliest."),
    top_p: float | None = typer.Option(None, "--top-p", min=0.001, max=1.0, help="Share of probability to draw from."),
    top_k: int | None = typer.Option(
        None, "--top-k", min=0, help="How many likeliest tokens to draw from; 0 means all."
    ),
    min_p: float | None = typer.Option(
        None, "--min-p", min=0.0, max=1.0, help="Least probability, as a share of the likeliest token's."
    ),
    repeat_penalty: float | None = typer.Option(
        None, "--repeat-penalty", min=1.0, max=3.0, help="Makes words used lately less likely; 1 means off."
    ),
    stop: list[str] | None = typer.Option(None, "--stop", help="End the answer before this text. Can be given again."),
    seed: int | None = typer.Option(None, "--seed", min=0, help="The same seed gives the same answer."),
    no_learn: bool = typer.Option(False, "--no-learn", help="Neither this question nor its answer may teach."),
    no_memory: bool = typer.Option(False, "--no-memory", help="Put no hints in the prompt."),
    adapter: str | None = typer.Option(
        None, "--adapter", help="An adapter's id or name, or `base`.", autocompletion=complete.adapter_ids
    ),
    profile: str | None = typer.Option(None, "--profile", help="Go by what this profile keeps to."),
    workspace: str | None = typer.Option(
        None,
        "--workspace",
        help="A folder its tools may list, read, search and, if you allow it, change.",
    ),
    allow: list[str] | None = typer.Option(
        None, "--allow", help="Ask nothing before: write, append, run, or SERVER__TOOL. Can be given again."
    ),
    must_call: bool = typer.Option(False, "--must-call", help="The first reply has to call a tool: for small models."),
    json_output: bool = typer.Option(False, "--json", help="Print one JSON object with the answer and its figures."),
) -> None:
    """Ask one question and print the answer."""
    if chat is not None and new:
        raise UsageError(_("--chat and --new contradict each other: name a chat, or start a new one."))
    from ..assistant import Assistant

    if leads_nowhere(sys.stdout):
        raise UsageError(_(CLOSED))
    allowing = working.allowed(allow or ())
    text = _question(question or [])
    with Assistant.open(model=model, settings=with_profile(profile)) as assistant:
        hints = assistant.hints.list()
        if model and chat is None:
            _must_be_there(assistant, model)
        options: dict[str, Any] = {
            "chat": chat,
            "model": model,
            "system": system,
            "sampling": {
                "max_tokens": max_tokens,
                "temperature": temperature,
                "top_p": top_p,
                "top_k": top_k,
                "min_p": min_p,
                "repeat_penalty": repeat_penalty,
                "stop": stop or None,
                "seed": seed,
            },
            "adapter": adapter,
            "learn": False if no_learn else None,
            "memory": not no_memory,
        }
        if workspace is not None:
            options["chat"] = chat = _in_workspace(assistant, workspace, text, options)
        if chat is not None and assistant.chat(chat).workspace:
            work = working.Working(assistant, allowing)
            answer = work.run(text, quiet=json_output, must_call=must_call, **options)
            _print(answer, json_output, assistant, calls=work.calls)
            assistant.wait_judged()
            say_made_room(hints, assistant.hints.list())
            return
        if allowing or must_call:
            raise UsageError(_("--allow and --must-call go with a workspace: claw-local ask --workspace FOLDER …"))
        reply = assistant.stream(text, **options)
        shown = False
        try:
            for piece in reply:
                if not json_output:
                    sys.stdout.write(harmless(piece))
                    sys.stdout.flush()
                    shown = True
        except BaseException:
            # Ctrl-C, an error, or a reader that has gone: what was shown is kept, and the shown line ends.
            reply.close()
            if shown and sys.stdout.isatty():
                sys.stdout.write("\n")
            raise
        _print(reply.answer, json_output, assistant, shown=True)
        # The answer is out. What the question says about the answer before it is read now.
        assistant.wait_judged()
        say_made_room(hints, assistant.hints.list())


def _print(
    answer: Answer,
    json_output: bool,
    assistant: Assistant,
    *,
    shown: bool = False,
    calls: list[dict[str, Any]] | None = None,
) -> None:
    """The answer with what stands beside it. `shown`: its text is on the screen already; `calls`: of tools."""
    # That the chat goes on in memory is not true here: whether it was kept is said at the end of this command.
    adrift = assistant.store.database.adrift
    answer = dataclasses.replace(answer, notices=tuple(said for said in answer.notices if said != adrift))
    if json_output:
        print_json({**as_json(answer), **({"tools": calls} if calls is not None else {})})
    else:
        sys.stdout.write("\n" if shown else f"{harmless(answer.text)}\n")
        for notice in answer.notices:
            typer.echo(harmless(notice), err=True)
    sys.stdout.flush()


def _in_workspace(assistant: Assistant, workspace: str, text: str, options: dict[str, Any]) -> int:
    """The chat to ask in, with this workspace: the one that goes on, or a new one. Raises UsageError."""
    from ..talking.text import first_words
    from ..tools.toolbox import workspace_of

    workspace_of(workspace, assistant.paths)  # Before a chat is begun for nothing.
    chat: int | None = options["chat"]
    if chat is None:
        chat = assistant.new_chat(title=first_words(text), learn=options["learn"] is not False).id
    assistant.tools.give(chat, workspace)
    return chat


def as_json(answer: Any) -> dict[str, Any]:
    """The object `ask --json` prints."""
    return {
        "answer": answer.text,
        "message_id": answer.message_id,
        "chat_id": answer.chat_id,
        "model": answer.model,
        "adapter": answer.adapter,
        "hints": list(answer.hints),
        "tokens": {
            "prompt": answer.prompt_tokens,
            "evaluated": answer.evaluated_tokens,
            "completion": answer.completion_tokens,
        },
        "timings_s": {
            "load": round(answer.load_s, 4),
            "first_token": round(answer.first_token_s, 4),
            "total": round(answer.total_s, 4),
        },
        "finish_reason": answer.finish_reason,
        "notices": list(answer.notices),
    }


def _question(words: list[str]) -> str:
    """The words; what was piped in beside them is attached, so that nothing it says is taken for a wish. Alone, it is
    the question."""
    said, piped = " ".join(words), _piped()
    if not said.strip() or not piped.strip():
        return piped if piped.strip() else said
    return compose([said, Attachment("piped text", piped)])


def _piped() -> str:
    """What was piped in, if anything. Raises UsageError if it is not text."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    try:
        mode = _mode_of_stdin()
        if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
            return ""
        if (
            stat.S_ISFIFO(mode)
            and sys.platform != "win32"
            and not select.select([sys.stdin], [], [], WAIT_FOR_PIPE_S)[0]
        ):
            typer.echo(_("Waiting for piped input to end…"), err=True)
        return sys.stdin.buffer.read().decode("utf-8").rstrip("\n")
    except UnicodeDecodeError as error:
        raise UsageError(_("What was piped in is not UTF-8 text. Convert it first, or leave it out.")) from error
    except (OSError, ValueError):
        return ""


def _mode_of_stdin() -> int:
    import os

    return os.fstat(sys.stdin.fileno()).st_mode


def _must_be_there(assistant: Assistant, model: str) -> None:
    """A slip in a file's name begins no chat. Raises ModelError."""
    from ..engine.models import check_model
    from ..engine.opening import locate_model

    path = locate_model(assistant.settings, assistant.paths, model).path
    if path is not None and not path.exists():
        check_model(path)
