"""Does a dozen corrections change the answers for good, and does nothing else get worse?

A scripted person with one wish asks questions, corrects each answer that breaks it and thanks for each that keeps it.
Measured are held-out prompts: before, at once with the hints of fast memory, and after one learning run without hints;
a quiz of general knowledge before and after; and, with --reverse, the same once the wish has turned into its opposite.

    python -m benchmarks.personalize --persona student --seeds 0 1 2 --out results
    python -m benchmarks.personalize --persona brief --methods all --reverse
    python -m benchmarks.personalize --check-persona my_persona.toml

Each question is asked in a chat of its own, through `Assistant`, judge included. What is learned from is the same for
all methods: each method gets a copy of the home folder. The settings are the product's own (its defaults, and what the
environment's CLAW_LOCAL_ variables change), but for --tokens, the method and the seed. `personas/persona.py` tells how
to write a persona.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from claw_local import Assistant
from claw_local.engine.base import Engine
from claw_local.errors import ClawError
from claw_local.idle import extra
from claw_local.settings import Settings

from . import quiz
from .personas import eye, life, report
from .personas.persona import Persona, load, shipped

METHODS = ("combined", "opd", "opd-token", "binary-rl")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.personalize",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--persona", default="student", help=f"{', '.join(shipped())}, or a persona's TOML file")
    parser.add_argument(
        "--method", "--methods", dest="methods", nargs="+", choices=[*METHODS, "all"], default=["combined"]
    )
    parser.add_argument(
        "--corrections",
        type=int,
        default=12,
        metavar="N",
        help="questions asked, each answer corrected or, if it kept the wish, thanked for (default: 12)",
    )
    parser.add_argument("--strict", action="store_true", help="go on until N answers were really corrected")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--reverse", action="store_true", help="then let the wish turn into its opposite")
    parser.add_argument("--answers", type=int, default=1, metavar="K", help="answers to each held-out prompt")
    parser.add_argument("--tokens", type=int, default=200, help="longest answer (default: 200)")
    parser.add_argument("--model", type=Path, help="a GGUF file (else the one in the settings)")
    parser.add_argument("--no-quiz", action="store_true", help="leave the quiz out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write JSON, table and learning curve there")
    parser.add_argument("--check-persona", metavar="PERSONA", help="only look whether a persona is sound")
    parser.add_argument("--list-checks", action="store_true", help="only list the checks that a wish can be made of")
    options = parser.parse_args(arguments)
    if min(options.corrections, options.answers, options.tokens) < 1:
        parser.error("--corrections, --answers and --tokens are at least 1")
    if "all" in options.methods:
        options.methods = list(METHODS)
    options.methods = list(dict.fromkeys(options.methods))
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    try:
        if options.list_checks:
            print("\n".join(eye.describe(kind) for kind in eye.kinds()))
            return 0
        if options.check_persona:
            print(about(load(options.check_persona)))
            return 0
        persona = load(options.persona)
        if options.reverse and persona.reverse is None:
            print(f"The persona {persona.name} has no [reverse], so its wish cannot turn.", file=sys.stderr)
            return 2
        if missing := extra.missing():
            command = extra.as_typed(extra.install_command())
            print(f"The trainer is not complete ({', '.join(missing)} cannot be imported): {command}", file=sys.stderr)
            return 1
        rows, facts = live(persona, options)
    except ClawError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        rows = []
    if not rows:
        print("Stopped before the first run was done.", file=sys.stderr)
        return 130
    whole = gather(persona, options, rows, facts)
    print(json.dumps(without_answers(whole), indent=2, ensure_ascii=False) if options.json else report.markdown(whole))
    return 130 if facts["stopped"] else 0


def about(persona: Persona) -> str:
    """A sound persona in a few lines."""
    lines = [
        f"{persona.name}: {persona.wish.who}",
        f"{len(persona.prompts)} prompts, {len(persona.held_out)} held out, "
        f"{len(persona.wish.corrections)} corrections, {len(persona.wish.thanks)} thanks",
        *(
            f"check {check.name}: {eye.describe(check.kind)} {dict(check.parameters) or ''}"
            for check in persona.wish.checks
        ),
    ]
    if persona.reverse is not None:
        lines.append(f"reversed: {persona.reverse.who} {len(persona.reverse.corrections)} corrections")
    return "\n".join([*lines, "The persona is sound."])


def live(persona: Persona, options: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Every seed and method. Ctrl-C ends it with the runs that are done. Each finished run is written at once."""
    rows: list[dict[str, Any]] = []
    wanted = life.Options(
        model=options.model,
        turns=options.corrections,
        strict=options.strict,
        reverse=options.reverse,
        tokens=options.tokens,
        times=options.answers,
    )
    with tempfile.TemporaryDirectory(prefix="claw-personalize-") as folder:
        engine, facts = open_engine(Path(folder), options.model)
        try:
            before = None if options.no_quiz else quiz.take(engine, quiz.questions())
            if before is not None:
                tell("base model", f"{before.points:.1f} points in the quiz")
            for seed in options.seeds:
                home = Path(folder) / f"seed-{seed}"
                taught = life.teach(home, persona, seed, wanted, engine, partial(tell, f"seed {seed}"))
                for method in options.methods:
                    copy = Path(folder) / f"seed-{seed}-{method}"
                    shutil.copytree(home, copy)
                    say = partial(tell, f"seed {seed}, {method}")
                    rows.append(life.learn(copy, persona, taught, method, wanted, engine, before, say))
                    shutil.rmtree(copy)
                    write(persona, options, rows, facts)
                shutil.rmtree(home)
        except KeyboardInterrupt:
            facts["stopped"] = True
            tell("stopped", "what is done is kept")
        finally:
            engine.close()
    return rows, facts


def open_engine(folder: Path, model: Path | None) -> tuple[Engine, dict[str, Any]]:
    """A second engine on the assistant's model, for what is only measured, and what is to be known about it."""
    from claw_local.engine.llama_cpp import LlamaCppEngine

    with Assistant.open(folder / "facts", model=model) as assistant:
        path, settings = assistant.model_path, assistant.settings
    engine = LlamaCppEngine.open(path, settings.model, cache_dir=folder)
    facts = {
        "model": engine.info.name,
        "model_sha256": engine.info.sha256,
        "machine": machine(),
        "settings": shown(settings),
        "stopped": False,
    }
    return engine, facts


def shown(settings: Settings) -> dict[str, Any]:
    return settings.model_dump(mode="json", include={"sampling", "memory", "learning", "gate"})


def machine() -> str:
    """The processor and how many cores; no name."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{platform.system()} {platform.machine()}, {processor}, {os.cpu_count()} cores"


def tell(who: str, text: str) -> None:
    """Progress, apart from what is printed as a result."""
    print(f"{who}: {text}", file=sys.stderr, flush=True)


def gather(
    persona: Persona, options: argparse.Namespace, rows: Sequence[dict[str, Any]], facts: dict[str, Any]
) -> dict[str, Any]:
    """All that is known, as the JSON holds it."""
    summary = report.summarise(rows)
    return {
        "persona": persona.name,
        "who": persona.wish.who,
        "command": shlex.join(["python", "-m", "benchmarks.personalize", *sys.argv[1:]]),
        **facts,
        "tokens": options.tokens,
        "turns": options.corrections,
        "seeds": list(dict.fromkeys(row["seed"] for row in rows)),
        "held_out": len(persona.held_out),
        "answers_each": options.answers,
        "aim": persona.aim,
        "summary": summary,
        "hopes": report.hopes(summary, aim=persona.aim, about_length=persona.wish.about_length),
        "paper": report.PAPER,
        "runs": rows,
    }


def without_answers(whole: dict[str, Any]) -> dict[str, Any]:
    """The same without the texts, which are for reading in the file."""
    return {
        **whole,
        "runs": [{name: value for name, value in row.items() if name != "answers"} for row in whole["runs"]],
    }


def write(persona: Persona, options: argparse.Namespace, rows: Sequence[dict[str, Any]], facts: dict[str, Any]) -> None:
    """JSON, table and picture of the runs so far."""
    if options.out is None:
        return
    options.out.mkdir(parents=True, exist_ok=True)
    whole = gather(persona, options, rows, facts)
    stem = options.out / f"personalize-{persona.name}"
    stem.with_suffix(".json").write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", "utf-8")
    stem.with_suffix(".md").write_text(report.markdown(whole), "utf-8")
    try:
        report.draw(whole, stem.with_suffix(".png"))
    except ImportError:
        tell("learning curve", "left out, since matplotlib is not installed: pip install 'claw-local[dev]'")


def interrupt(*_: object) -> None:
    """What SIGTERM does: the same as Ctrl-C, so that the trainer is stopped and the temporary homes are removed."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupt)
    sys.exit(main())
