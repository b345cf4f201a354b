"""Homework with a scripted student and a scripted teacher, over HTTP alone: does the server learn what they like?

A person says "Read homework/3.txt and do what it asks". The model reads the file with a tool, answers, is corrected if
the answer breaks the person's wish, and writes its answer into the file with another tool. The student does not want
to be taken for an AI; the teacher wants comments that name the pupil and are kind (the scenario of OpenClaw-RL,
arXiv 2603.10165). Before and after, other tasks are given in sessions of their own, where nobody says a wish: what
holds there was remembered.

    python -m benchmarks.homework --seeds 0
    python -m benchmarks.homework --people student teacher --learn --json

Each person has a home folder and a server of their own. Everything goes through `claw-local serve`, its judge too. The
wishes, and the eye that looks at answers, are those of `personas/student.toml` and `personas/teacher.toml`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openai import OpenAI

from claw_local.errors import ClawError
from claw_local.paths import HOME_VARIABLE, locate
from claw_local.store import Store

from .personas.eye import Prompt
from .personas.persona import Persona, Voice, Wish, load
from .served import Desk, Session, serving

JUDGED_S = 120.0
"""Longest wait for the judge after each task. A person reads meanwhile; here nobody does."""

ASKS = {
    "student": "Read {file} and do the homework in it. Your answer is what I hand in.",
    "teacher": "Read {file}, the homework of one of my pupils, and write the comment that goes underneath.",
}
APPENDS = {
    "student": "Write that answer at the end of {file}.",
    "teacher": "Write that comment at the end of {file}.",
}


@dataclass(frozen=True)
class Options:
    """How it is run.

    Attributes:
        tasks: homework that is done with the person watching.
        later: homework that is done only to measure.
        tokens: longest answer.
        learn: whether `claw-local learn now` follows, and another measurement.
    """

    tasks: int = 6
    later: int = 8
    tokens: int = 200
    learn: bool = False


@dataclass
class Served:
    """A running server with the person's desk before it."""

    client: OpenAI
    model: str
    home: Path
    desk: Desk
    tokens: int
    seed: int

    def session(self, name: str, number: int) -> Session:
        seed = 1000 * (self.seed + 1) + 20 * number
        return Session(self.client, self.desk, f"{name}-{number}", self.model, self.tokens, seed)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    wanted = Options(options.tasks, options.later, options.tokens, options.learn)
    rows = []
    try:
        for name in options.people:
            for seed in options.seeds:
                with tempfile.TemporaryDirectory(prefix="claw-homework-") as folder:
                    rows.append(live(Path(folder), load(name), seed, wanted, options.serve))
                    if not options.json:
                        print(in_words(rows[-1]), flush=True)
    except (ClawError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if options.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.homework", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", nargs="+", choices=sorted(ASKS), default=sorted(ASKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--tasks", type=int, default=6, metavar="N", help="homework done together (default: 6)")
    parser.add_argument("--later", type=int, default=8, metavar="N", help="homework to measure with (default: 8)")
    parser.add_argument("--tokens", type=int, default=200, help="longest answer (default: 200)")
    parser.add_argument("--learn", action="store_true", help="then train, and measure once more")
    parser.add_argument("--serve", nargs=argparse.REMAINDER, default=[], help="further options of `claw-local serve`")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    options = parser.parse_args(arguments)
    if min(options.tasks, options.later, options.tokens) < 1:
        parser.error("--tasks, --later and --tokens are at least 1")
    return options


def live(folder: Path, persona: Persona, seed: int, options: Options, serve: Sequence[str] = ()) -> dict[str, Any]:
    """One person with one server: measured, taught, measured again."""
    started = time.perf_counter()
    prompts, later = persona.prompts[: options.tasks], persona.held_out[: options.later]
    home = folder / "home"
    run(home, "learn", "on")
    with serving(home, ["--learn", *serve]) as url:
        client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=2, timeout=600)
        model = next(iter(client.models.list())).id
        desk = Desk(folder / "desk", [text_of(prompt) for prompt in (*prompts, *later)])
        served = Served(client, model, home, desk, options.tokens, seed)
        row: dict[str, Any] = {"person": persona.name, "seed": seed, "model": model}
        row["before"] = measure(served, persona, later, "before", at=len(prompts))
        row |= teach(served, persona, prompts)
        row["taught"] = measure(served, persona, later, "taught", at=len(prompts))
        row["hints"] = [hint["text"] for hint in json.loads(run(home, "hints", "list", "--json"))["hints"]]
        row["lessons"] = waiting_lessons(home)
        if options.learn:
            row["run"] = json.loads(run(home, "learn", "now", "--json"))
            row["learned"] = measure(served, persona, later, "learned", at=len(prompts))
    row["seconds"] = round(time.perf_counter() - started, 1)
    return row


def text_of(prompt: Prompt) -> str:
    """What stands in a file: the homework, or the pupil's work with the name above."""
    if "work" in prompt.fields:
        return f"Name: {prompt.fields['name']}\n\n{prompt.fields['work']}"
    return prompt.text


def teach(served: Served, persona: Persona, prompts: Sequence[Prompt]) -> dict[str, Any]:
    """The homework done together, each in a session of its own."""
    voice = Voice(persona.wish, served.seed)
    done = []
    for n, prompt in enumerate(prompts):
        done.append(one_task(served.session("task", n), persona, prompt, voice, served.desk.names[n]))
        judged(served.home)
    return {
        "tasks": len(done),
        "read_right": sum(task["read"] for task in done),
        "corrected": sum(task["corrected"] for task in done),
        "better_at_once": sum(task["better"] for task in done),
        "appended": sum(task["appended"] for task in done),
    }


def one_task(session: Session, persona: Persona, prompt: Prompt, voice: Voice, file: str) -> dict[str, bool]:
    """Read, answer, be corrected or thanked, restyle, append."""
    read, answer = solve(session, persona.name, file)
    broken = persona.wish.broken(answer, prompt)
    better = False
    if broken:
        session.says(voice.correct(broken))
        better = not persona.wish.broken(session.answer(), prompt)
        thanks = ""
    else:
        thanks = voice.thank() + " "
    session.says(thanks + APPENDS[persona.name].format(file=file))
    written = session.call("append_file")
    session.answer(done=True)
    return {
        "read": read,
        "corrected": bool(broken),
        "better": better,
        "appended": written.worked and written.arguments.get("path") == file,
    }


def solve(session: Session, who: str, file: str) -> tuple[bool, str]:
    """The first half of a task: whether the right file was read, and the answer."""
    session.says(ASKS[who].format(file=file))
    called = session.call("read_file")
    right = called.worked and called.arguments.get("path") == file
    if not right:
        session.says(f"That is another file. In {file} it says: {session.desk.read(file)}")
    return right, session.answer()


def measure(served: Served, persona: Persona, later: Sequence[Prompt], when: str, *, at: int) -> dict[str, Any]:
    """How often the wish is kept where nobody says it. `at`: number of files before those of these tasks."""
    solved = []
    for n, prompt in enumerate(later):
        session = served.session(when, n)
        session.name += "-measure"
        right, answer = solve(session, persona.name, served.desk.names[at + n])
        solved.append((right, answer, prompt, session.prompt_tokens))
    return {
        "rate": round(kept(persona.wish, [(answer, prompt) for _, answer, prompt, _ in solved]), 3),
        "read_right": sum(right for right, *_ in solved),
        "tasks": len(solved),
        "words": round(statistics.mean(len(answer.split()) for _, answer, *_ in solved), 1),
        "prompt_tokens": round(statistics.mean(tokens for *_, tokens in solved), 1),
    }


def kept(wish: Wish, answers: Sequence[tuple[str, Prompt]]) -> float:
    """Share of answers that keep the wish."""
    return statistics.mean(not wish.broken(answer, prompt) for answer, prompt in answers)


def judged(home: Path) -> None:
    """Wait until the server's judge has read what was said."""
    store = Store(locate(home))
    try:
        until = time.monotonic() + JUDGED_S
        while store.samples.count_unjudged() and time.monotonic() < until:
            time.sleep(0.2)
    finally:
        store.close()


def waiting_lessons(home: Path) -> int:
    store = Store(locate(home))
    try:
        return store.samples.count_waiting()
    finally:
        store.close()


def run(home: Path, *arguments: str) -> str:
    """A command of the product, on this home. Raises RuntimeError: it failed."""
    done = subprocess.run(
        [sys.executable, "-m", "claw_local", *arguments],
        env={**os.environ, HOME_VARIABLE: str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"claw-local {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def in_words(row: dict[str, Any]) -> str:
    """One row for a person to read."""
    rates = [f"{when} {row[when]['rate']:.2f}" for when in ("before", "taught", "learned") if when in row]
    return (
        f"{row['person']}, seed {row['seed']}: wish kept {', '.join(rates)}; "
        f"of {row['tasks']} tasks {row['read_right']} read the right file, {row['corrected']} were corrected, "
        f"{row['better_at_once']} of these right at once, {row['appended']} appended; "
        f"{row['lessons']} lessons, hints: {row['hints']} ({row['seconds']} s)"
    )


if __name__ == "__main__":
    sys.exit(main())
