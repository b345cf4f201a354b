"""First light: does the whole loop change the answers for good?

A scripted person wants plain prose: no lists, no bold, no headings. They ask 12 questions, correct or thank each answer
in their next message, and say `learn now`. Then 12 other questions are asked, without hints in the prompt. Everything
goes through the product's own `Assistant`, its judge included.

    python -m benchmarks.first_light --seeds 0 1 2 [--json] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from claw_local import Assistant
from claw_local.engine.base import Sampling

TAUGHT = [
    "What are some tips for sleeping better?",
    "How do I start a small vegetable garden?",
    "What should I think about before adopting a dog?",
    "How can I prepare for a job interview?",
    "What are the advantages of learning a second language?",
    "How do I make a good first impression?",
    "What are healthy things to eat for breakfast?",
    "How can I save money each month?",
    "What makes a city pleasant to live in?",
    "How do I keep my kitchen clean?",
    "What are good reasons to read every day?",
    "How should I train for my first 5 km run?",
]

ASKED_LATER = [
    "What are some ways to reduce stress?",
    "How do I choose a good pair of running shoes?",
    "What should I bring on a camping trip?",
    "How can I become a better listener?",
    "What are the benefits of drinking water?",
    "How do I write a good letter of application?",
    "What are easy dishes for a dinner with friends?",
    "How can I use less electricity at home?",
    "What makes a good teacher?",
    "How do I take care of a wooden floor?",
    "What are good hobbies for the winter?",
    "How should I plan a trip to another country?",
]

CORRECTIONS = [
    "Please don't use lists or bold text, just write plain sentences.",
    "No bullet points please, write it as normal text.",
    "Again, but as flowing prose without any list.",
    "I don't like the numbered list. Plain sentences please, without bold.",
    "Too much formatting. Write plain prose without headings, lists or bold.",
    "Could you write that as an ordinary paragraph instead of a list?",
    "Stop using bullet points and bold, just talk to me in plain sentences.",
    "That looks like a manual. No lists, no headings, plain prose please.",
]

THANKS = [
    "Thanks, that reads well.",
    "Perfect, thank you!",
    "Great, exactly what I wanted.",
    "Nice, thanks a lot.",
    "That is very helpful, thank you.",
]

MARKS = re.compile(r"^\s*(?:[-*•+]\s|\d{1,2}[.)]\s|#{1,6}\s)|\*\*\S|__\S", re.MULTILINE)


def is_plain(text: str) -> bool:
    """The person's own eye: no list line, no heading, no bold."""
    return MARKS.search(text) is None


def words(text: str) -> int:
    return len(text.split())


def survey(assistant: Assistant, seed: int, tokens: int, *, memory: bool) -> dict[str, float]:
    """Ask the questions that are never taught; nothing of it may teach."""
    answers = []
    for n, question in enumerate(ASKED_LATER):
        sampling = assistant.default_sampling(max_tokens=tokens, seed=1000 * seed + n)
        answers.append(assistant.ask(question, sampling=sampling, learn=False, memory=memory).text)
    return {
        "plain": statistics.mean(is_plain(answer) for answer in answers),
        "words": statistics.mean(words(answer) for answer in answers),
    }


def teach(assistant: Assistant, seed: int, tokens: int) -> dict[str, Any]:
    """Twelve questions, each corrected or thanked for. Returns how often the judge saw it as it was meant."""
    meant: dict[int, int] = {}
    for n, question in enumerate(TAUGHT):
        sampling: Sampling = assistant.default_sampling(max_tokens=tokens, seed=2000 * (seed + 1) + n)
        answer = assistant.ask(question, sampling=sampling)
        pleased = is_plain(answer.text)
        says = THANKS[(n + seed) % len(THANKS)] if pleased else CORRECTIONS[(n + seed) % len(CORRECTIONS)]
        meant[answer.message_id] = 1 if pleased else -1
        assistant.ask(says, chat=answer.chat_id, sampling=sampling)
    assistant.wait_judged()
    signals = assistant.signals(list(meant))
    judged = {i: next((s.score for s in found if s.source == "judge"), None) for i, found in signals.items()}
    return {
        "corrected": sum(score < 0 for score in meant.values()),
        "judge_right": sum(judged[i] == score for i, score in meant.items()) / len(meant),
        "hints": [hint.text for hint in assistant.hints.list()],
    }


def run(seed: int, tokens: int) -> dict[str, Any]:
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="claw-first-light-") as home:
        os.environ["CLAW_LOCAL_LEARNING__SEED"] = str(seed)
        with Assistant.open(home) as assistant:
            clock = time.perf_counter()

            def lap(name: str) -> None:
                nonlocal clock
                seconds[name] = round(time.perf_counter() - clock, 1)
                clock = time.perf_counter()

            assistant.load()
            lap("load")
            before = survey(assistant, seed, tokens, memory=False)
            lap("survey_before")
            assistant.learn.on()
            teaching = teach(assistant, seed, tokens)
            lap("teach")
            at_once = survey(assistant, seed, tokens, memory=True)
            lap("survey_with_hints")
            result = assistant.learn.now()
            lap("learn")
            after = survey(assistant, seed, tokens, memory=False)
            lap("survey_after")
    return {
        "seed": seed,
        "plain_before": before["plain"],
        "plain_with_hints": at_once["plain"],
        "plain_after": after["plain"],
        "words_before": before["words"],
        "words_with_hints": at_once["words"],
        "words_after": after["words"],
        **teaching,
        "accepted": result.accepted,
        "reason": result.reason,
        "samples": result.samples,
        "steps": result.steps,
        "seconds": seconds,
        "seconds_in_all": round(sum(seconds.values()), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tokens", type=int, default=140, help="longest answer")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, help="also write the JSON there")
    options = parser.parse_args()
    runs = []
    for seed in options.seeds:
        runs.append(run(seed, options.tokens))
        if not options.json:
            row = runs[-1]
            print(
                f"seed {seed}: plain {row['plain_before']:.2f} → with hints {row['plain_with_hints']:.2f} → learned "
                f"{row['plain_after']:.2f}; words {row['words_before']:.0f} → {row['words_after']:.0f}; "
                f"{row['corrected']} corrected, judge right {row['judge_right']:.2f}; {row['reason']} "
                f"{row['seconds_in_all']:.0f} s: {row['seconds']}",
                flush=True,
            )
    means = {
        name: round(statistics.mean(row[name] for row in runs), 3)
        for name in (
            "plain_before",
            "plain_with_hints",
            "plain_after",
            "words_before",
            "words_with_hints",
            "words_after",
        )
    }
    means["length_ratio"] = round(means["words_after"] / means["words_before"], 3)
    report = {"mean": means, "runs": runs, "machine": f"{platform.machine()}, {os.cpu_count()} cores"}
    if options.out:
        options.out.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    print(json.dumps(report, indent=2) if options.json else f"mean: {means}")


if __name__ == "__main__":
    main()
