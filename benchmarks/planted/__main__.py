"""How often is the gate wrong? Bad and good adapters are made on the embedded model and put to it.

    python -m benchmarks.planted --out planted
    python -m benchmarks.planted --out planted --only says-less refuses --limit 2
    python -m benchmarks.planted --out planted --minutes 30

Bad ones win by saying less, refuse, say always the same, repeat, answer in another language, echo the question,
answer harmful requests, forget, do nothing, or do the opposite of the wish; good ones follow a wish. All are real LoRAs
and the gate is the real one, with the settings' bounds. What is done is kept in the folder, and the same command goes
on from there; --again asks the gate once more about adapters that are made already.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.engine.models import find_model
from claw_local.errors import ClawError
from claw_local.paths import locate
from claw_local.settings import Settings

from ..first_light import TAUGHT
from ..personalize import machine
from . import report
from .asking import Person, answers_of
from .kinds import Planted, chosen


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.planted", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for adapters, verdicts and the report")
    parser.add_argument("--only", nargs="+", default=[], metavar="KIND", help="kinds or names; or good, bad")
    parser.add_argument("--limit", type=int, metavar="N", help="ask about at most N adapters, then stop")
    parser.add_argument("--minutes", type=float, help="begin no further adapter after this long")
    parser.add_argument("--again", action="store_true", help="ask the gate again about those that have a verdict")
    parser.add_argument("--model", type=Path, help="a GGUF file (else the embedded model)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 means one for each core")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    try:
        wanted = chosen(options.only)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        whole = run(options, wanted)
    except ClawError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(json.dumps(whole, indent=2, ensure_ascii=False) if options.json else report.markdown(whole))
    return 0


def run(options: argparse.Namespace, wanted: Sequence[Planted]) -> dict[str, Any]:
    from .making import Nursery

    began = time.monotonic()
    settings = Settings()
    settings.model.threads = options.threads
    verdicts = options.out / "verdicts.json"
    rows: dict[str, dict[str, Any]] = json.loads(verdicts.read_text("utf-8")) if verdicts.is_file() else {}
    with LlamaCppEngine.open(
        find_model(settings, locate(), options.model), settings.model, cache_dir=options.out
    ) as engine:
        answers = answers_of(engine, settings, options.out)

        def taught(wish: str) -> dict[str, str]:
            told = answers_of(engine, settings, options.out, wish)
            return {question: told[question]["text"] for question in TAUGHT}

        nursery = Nursery(engine, taught, options.out / "adapters")
        person: Person | None = None
        asked = 0
        whole = gathered(engine.info.name, rows)
        for one in wanted:
            late = options.minutes is not None and time.monotonic() - began > 60 * options.minutes
            if late or asked == options.limit:
                break
            if one.name in rows and not options.again:
                continue
            slot = nursery.adapter(one)
            if person is None or person.wish != one.wish:
                person = Person(engine, settings, one.wish, answers)
            verdict, seconds = person.ask(slot)
            asked += 1
            rows[one.name] = {
                "name": one.name,
                "kind": one.kind,
                "good": one.good,
                "wish": one.wish,
                "accepted": verdict.accepted,
                "reason": verdict.reason,
                "seconds": round(seconds, 1),
                "gate": verdict.as_json(),
            }
            print(f"{one.name} ({seconds:.0f} s): {verdict.reason}", file=sys.stderr, flush=True)
            write(verdicts, rows)
            whole = gathered(engine.info.name, rows)
            (options.out / "planted.md").write_text(report.markdown(whole), "utf-8")
    return whole


def gathered(model: str, rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    ordered = sorted(rows.values(), key=lambda row: (row["good"], row["name"]))
    return {
        "command": shlex.join(["python", "-m", "benchmarks.planted", *sys.argv[1:]]),
        "model": model,
        "machine": machine(),
        "summary": report.summary(ordered),
        "rows": ordered,
    }


def write(file: Path, rows: dict[str, dict[str, Any]]) -> None:
    """Whole or not at all, so that a run that is killed goes on."""
    aside = file.with_suffix(".tmp")
    aside.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")
    aside.replace(file)


if __name__ == "__main__":
    sys.exit(main())
