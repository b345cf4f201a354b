"""`claw-local judge`: how good the judge is, what it scored in its exams, and why it says what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import UsageError
from . import judged
from .common import JSON_OPTION, plain, print_json
from .judging import opened, progress

if TYPE_CHECKING:
    from ..assistant import Assistant
from ..store import Signal, StoredMessage

app = typer.Typer(help="The judge: how good it is, and why it says what it says.", no_args_is_help=True)
MODEL_OPTION = typer.Option(
    None, "--model", help="What judges instead of the one in the settings: a GGUF file, ollama:NAME or openai:NAME."
)
ADAPTER_OPTION = typer.Option(None, "--adapter", help="A judge's adapter: a GGUF LoRA for that model.")
BARE_OPTION = typer.Option(False, "--bare", help="Without any judge's adapter.")


@app.command("eval")
def evaluate(
    file: Path | None = typer.Argument(None, help="Labelled examples, JSON lines. Without it, the shipped ones."),
    split: str | None = typer.Option(
        None, "--split", help="train, dev or test; of the shipped ones, test if not said."
    ),
    model: str | None = MODEL_OPTION,
    adapter: Path | None = ADAPTER_OPTION,
    bare: bool = BARE_OPTION,
    show_wrong: bool = typer.Option(False, "--wrong", help="Also list the examples that were judged wrongly."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Measure the judge on labelled examples: accuracy, ranking, calibration, hints, time."""
    from ..judge import examples as labelled
    from ..judge.evaluation import evaluate as measure

    if split is not None and split not in labelled.SPLITS:
        raise UsageError(f"The split is train, dev or test, not {split!r}.")
    found = labelled.shipped(split or "test") if file is None else labelled.read(file, split)
    source = str(file) if file is not None else f"the shipped examples, split {split or 'test'}"
    with opened(model, adapter, bare=bare) as judge, progress(len(found), quiet=json_output) as on_progress:
        result = measure(judge.judge, found, on_progress=on_progress)
    if json_output:
        overall = plain(result.overall)
        rest = {key: value for key, value in plain(result).items() if key != "overall"}
        print_json({"source": source, "model": judge.name, "adapter": judge.adapter, **overall, **rest})
    else:
        name = f"{judge.name} with {Path(judge.adapter).name}" if judge.adapter else judge.name
        judged.print_evaluation(result, source, name, show_wrong)


@app.command()
def exam(
    question: str | None = typer.Option(None, "--question", help="next or follows; both if not said."),
    model: str | None = MODEL_OPTION,
    adapter: Path | None = ADAPTER_OPTION,
    bare: bool = BARE_OPTION,
    again: bool = typer.Option(False, "--again", help="Take an exam again that was taken before."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Let the judge take its exams, once each, and show what it scored: what it fails, its word counts nothing on."""
    from ..judge import changes
    from ..judge import exam as exams

    asked = [name for name in exams.QUESTIONS if question in (None, name)]
    if not asked:
        raise UsageError(f"The question is {' or '.join(exams.QUESTIONS)}, not {question!r}.")
    results = []
    with opened(model, adapter, bare=bare, keeps=True) as judge:
        assert judge.store is not None
        for name in asked:
            known = None if again else exams.find(judge.store.exams, judge.examined, name)
            if known is None:
                count = len(exams.next_cases() if name == "next" else exams.follows_cases())
                with progress(count, quiet=json_output) as on_progress:
                    known = judge.store.exams.put(exams.take(judge.examined, name, on_progress=on_progress))
                changes.note_change(judge.store)
            results.append(known)
    if json_output:
        print_json({"judge": judge.name, "pass_auc": exams.PASS_AUC, "exams": plain(results)})
    else:
        judged.print_exams(results, judge.name, exams.PASS_AUC)


@app.command()
def explain(
    message: str = typer.Argument(..., help="The id of a reply or of what followed it; or words to be judged."),
    question: str = typer.Option("", "--question", help="With words: what had been asked."),
    reply: str = typer.Option("", "--reply", help="With words: the reply before them."),
    model: str | None = MODEL_OPTION,
    adapter: Path | None = ADAPTER_OPTION,
    bare: bool = BARE_OPTION,
    json_output: bool = JSON_OPTION,
) -> None:
    """Show what the judge makes of one reply, part by part. Nothing is kept of it."""
    from ..assistant import Assistant
    from ..judge.explanation import explain as explain_one

    kept: list[Signal] = []
    next_text, next_role, working = message, "user", False
    if message.strip().isdecimal():
        with Assistant.open() as assistant:
            question, reply, next_text, next_role, kept, working = _stored(assistant, int(message))
    with opened(model, adapter, bare=bare) as judge:
        result = explain_one(judge.judge, question, reply, next_text, next_role, working=working)
    if json_output:
        print_json({"reply": reply, "next": next_text, "next_role": next_role, **plain(result), "kept": plain(kept)})
    else:
        judged.print_explanation(result, next_text, next_role, kept)


@app.command()
def train(
    forget: bool = typer.Option(False, "--forget", help="Take out what was learned, and judge as before."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Improve the judge from your own thumbs and edits. A judge that got worse on the shipped examples is not taken."""
    from ..assistant import Assistant
    from ..idle.judging import forget_judge, train_judge
    from .judging import following

    with Assistant.open() as assistant:
        if forget:
            gone = forget_judge(assistant)
            if json_output:
                print_json({"forgotten": gone})
            else:
                typer.echo(
                    "It judges as before." if gone else "It has learned nothing yet, so there is nothing to forget."
                )
            return
        with following(quiet=json_output) as (on_progress, cancel):
            result = train_judge(assistant, on_progress, cancel)
    if json_output:
        print_json(plain(result))
    else:
        judged.print_training(result)


def _stored(assistant: Assistant, message_id: int) -> tuple[str, str, str, str, list[Signal], bool]:
    """Question, reply, next state, its role, the signals that are kept of the reply, and whether it had tools."""
    from ..signals.turns import had_tools

    messages = assistant.store.messages
    reply = messages.get(message_id)
    following: StoredMessage | None
    if reply.role != "assistant" and reply.parent_id is not None:
        following, reply = reply, messages.get(reply.parent_id)
    else:
        following = next(iter(messages.next_states(message_id)), None)
    if reply.role != "assistant":
        raise UsageError(f"Message {message_id} is no reply and follows none, so there is nothing to judge.")
    if following is None:
        raise UsageError(
            f"Nothing has followed message {message_id} yet: a reply is judged by what is said next. "
            'Try words of your own: claw-local judge explain "too long"'
        )
    history = messages.branch(reply.parent_id)
    question = next((one.content for one in reversed(history) if one.role == "user"), "")
    signals = assistant.signals([reply.id])[reply.id]
    return question, reply.content, following.content, following.role, signals, had_tools(reply, history)
