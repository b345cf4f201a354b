"""`python -m benchmarks.follows FOLDER`: makes examples of wishes kept and broken, and writes follows-*.jsonl there.

Replies are drawn from the embedded model (a few minutes), once plain and once with each of some wishes in the prompt.
Checks label them, and edits of them; what no check can tell was written by hand (`written.toml`). Wishes and questions
of the test are not in train. The same seed gives the same files on the same build of llama.cpp.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import tomllib
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.engine.models import embedded_model
from claw_local.settings import ModelSettings
from claw_local.signals.checks import Check, infer_checks

from .editing import EDITS
from .sampling import Drawn, draw
from .written import written

HERE = Path(__file__).parent
SPLITS = ("train", "dev", "test")
PER_WISH = {"train": 40, "dev": 6, "test": 5}
"""Pairs of each wish and answer: as many that follow as that do not."""


@dataclass(frozen=True)
class Pair:
    """One line of the files; the fields are described in data/judge/README.md."""

    id: str
    split: str
    wish: str
    seen: bool
    source: str
    question: str
    hint: str
    reply: str
    follows: bool


def wishes() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((HERE / "wishes.toml").read_text("utf-8"))["wish"]
    return found


def sample(engine: LlamaCppEngine, seed: int) -> dict[str, list[Drawn]]:
    """Replies by split: each question twice plain, and with some wishes told."""
    questions: dict[str, list[str]] = json.loads((HERE / "questions.json").read_text("utf-8"))
    dice = random.Random(seed)
    drawn = {}
    for split in SPLITS:
        here = [wish for wish in wishes() if split == "test" or not wish.get("unseen")]
        tasks = []
        for question in questions[split]:
            told = dice.sample(here, 4)
            hints = [(w["name"], dice.choice(w["tested"] if split == "test" else w["hints"])) for w in told]
            tasks += [(question, name, hint) for name, hint in [("", ""), ("", ""), *hints]]
        drawn[split] = draw(engine, tasks, seed=seed)
    return drawn


def pairs(split: str, drawn: list[Drawn], seed: int) -> list[Pair]:
    """Pairs of one split, as many of each wish that follow as that do not."""
    dice = random.Random(f"{seed}{split}")
    found: list[Pair] = []
    for wish in wishes():
        if wish.get("unseen") and split != "test":
            continue
        check = Check(*wish["check"])
        for hint in (*wish.get("hints", ()), *wish["tested"]):
            assert check in infer_checks([hint]), f"{hint!r} is not read as {check}"
        texts: dict[bool, list[tuple[str, Drawn, str]]] = defaultdict(list)
        for one in dice.sample(drawn, len(drawn)):
            if one.wish == wish["name"]:
                texts[check.passes(one.reply)].append(("sampled", one, one.reply))
            for keeps, edits in zip((True, False), EDITS[wish["name"]], strict=True):
                text = dice.choice(edits)(one.reply, dice)
                if len(text.split()) >= 4 and check.passes(text) == keeps:
                    texts[keeps].append(("edited", one, text))
        wordings = wish["tested"] if split == "test" else wish["hints"]
        for follows, some in texts.items():
            kept = {text: (source, one) for source, one, text in sorted(some, key=lambda t: t[0] != "sampled")}
            for text, (source, one) in list(kept.items())[: PER_WISH[split]]:
                name = f"{split}-{wish['name']}-{'yes' if follows else 'no'}-{len(found)}"
                seen = not wish.get("unseen")
                found.append(
                    Pair(name, split, wish["name"], seen, source, one.question, dice.choice(wordings), text, follows)
                )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.follows", description=__doc__)
    parser.add_argument("folder", type=Path, help="where to write follows-train.jsonl, -dev.jsonl and -test.jsonl")
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--drawn", type=Path, help="keep the drawn replies here, or take them from here if it exists")
    options = parser.parse_args()
    started = time.perf_counter()
    if options.drawn and options.drawn.is_file():
        kept = json.loads(options.drawn.read_text("utf-8"))
        drawn = {split: [Drawn(**one) for one in some] for split, some in kept.items()}
    else:
        model = embedded_model()
        if model is None:
            parser.error("the embedded model is not installed: pip install 'claw-local[tiny]'")
        with LlamaCppEngine.open(model, ModelSettings(), cache_dir=None) as engine:
            drawn = sample(engine, options.seed)
        if options.drawn:
            kept = {split: [asdict(one) for one in some] for split, some in drawn.items()}
            options.drawn.write_text(json.dumps(kept, ensure_ascii=False), "utf-8")
    for split in SPLITS:
        rows = [asdict(pair) for pair in pairs(split, drawn[split], options.seed)]
        rows += written(split)
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (options.folder / f"follows-{split}.jsonl").write_text(lines, "utf-8")
        print(f"{split}: {len(rows)} pairs, {sum(row['follows'] for row in rows)} of them follow")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
