"""Sixty questions of general knowledge, to see whether learning a manner cost any knowledge.

Each question is plain text to go on with, outside the chat template: knowledge is asked for, not manner. Its four
answers are not shown. The one whose words the model finds likeliest after the question counts, by the log-probability
of the whole answer over its length in bytes. So no liking for a letter or for short answers plays a part, and nothing
is sampled: the same model always gets the same points. (Of three ways tried on the embedded model this is the one in
which it shows most of what it knows, 78 points, and the quickest; through the chat template it was 68 to 75.)

    python -m benchmarks.quiz [--model GGUF] [--adapter GGUF] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from claw_local.engine.base import AdapterSlot, Engine
from claw_local.errors import ClawError

QUESTIONS = Path(__file__).parent / "data" / "quiz.json"
LETTERS = "ABCD"
ASK = "Question: {question}\nAnswer:"


@dataclass(frozen=True)
class Question:
    """A question with four answers. `right`: place of the right one."""

    text: str
    options: tuple[str, str, str, str]
    right: int


@dataclass(frozen=True)
class Result:
    """How a model did.

    Attributes:
        right: [N] for each question, whether the right answer was the likeliest.
        margins: [N] log-probability per byte of the right answer over that of the best wrong one, in nats.
    """

    right: tuple[bool, ...]
    margins: tuple[float, ...]

    @property
    def points(self) -> float:
        """Share of right answers, times 100."""
        return 100 * statistics.mean(self.right)

    @property
    def margin(self) -> float:
        """Mean margin: falls before points do."""
        return statistics.mean(self.margins)


def questions() -> list[Question]:
    """The fixed sixty."""
    return [
        Question(entry["question"], tuple(entry["options"]), LETTERS.index(entry["answer"]))
        for entry in json.loads(QUESTIONS.read_text("utf-8"))
    ]


def take(
    engine: Engine, asked: Sequence[Question], *, on_progress: Callable[[int], None] = lambda done: None
) -> Result:
    """Put questions to the model as it is now, its adapters included."""
    right, margins = [], []
    for n, question in enumerate(asked):
        prompt = engine.tokenize(ASK.format(question=question.text))
        logprobs = logprobs_of(engine, prompt, [engine.tokenize(f" {option}") for option in question.options])
        liked = [total / len(option.encode()) for total, option in zip(logprobs, question.options, strict=True)]
        best_wrong = max(value for place, value in enumerate(liked) if place != question.right)
        margins.append(liked[question.right] - best_wrong)
        right.append(margins[-1] > 0)
        on_progress(n + 1)
    return Result(tuple(right), tuple(margins))


def logprobs_of(engine: Engine, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> list[float]:
    """Log-probability of each whole reply [R_n] after `prompt` [T], in nats."""
    found: dict[int, float] = {}
    first: npt.NDArray[np.float64] | None = None
    for n in sorted(range(len(replies)), key=lambda n: -len(replies[n])):
        reply = replies[n]
        if first is not None and len(reply) == 1:
            found[n] = float(first[reply[0]])  # What the prompt alone makes likely is known by now.
            continue
        logits = engine.logits([*prompt, *reply[:-1]], start=len(prompt) - 1).astype(np.float64)  # [R, V]
        top = logits.max(axis=1, keepdims=True)
        logprobs = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
        found[n] = float(logprobs[np.arange(len(reply)), list(reply)].sum())
        first = logprobs[0]
    return [found[n] for n in range(len(replies))]


def main() -> int:
    from claw_local.engine.llama_cpp import LlamaCppEngine
    from claw_local.engine.models import find_model
    from claw_local.paths import locate
    from claw_local.settings import load

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a GGUF file (else the one in the settings)")
    parser.add_argument("--adapter", type=Path, help="a GGUF LoRA to apply")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    started = time.perf_counter()
    try:
        paths, asked = locate(None), questions()
        settings = load(paths)
        model = find_model(settings, paths, options.model)
        with LlamaCppEngine.open(model, settings.model, cache_dir=None) as engine:
            engine.set_adapters([AdapterSlot(options.adapter)] if options.adapter else [])
            result = take(engine, asked)
    except ClawError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    seconds = time.perf_counter() - started
    wrong = [question.text for question, right in zip(asked, result.right, strict=True) if not right]
    if options.json:
        report = {"points": result.points, "margin": result.margin, "wrong": wrong, "seconds": round(seconds, 1)}
        print(json.dumps(report, indent=2))
    else:
        print(f"{result.points:.1f} points of 100, mean margin {result.margin:+.3f} nats a byte, {seconds:.0f} s")
        print("\n".join(f"wrong: {text}" for text in wrong))
    return 0


if __name__ == "__main__":
    sys.exit(main())
