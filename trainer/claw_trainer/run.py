"""One learning run, from the person's chats to an adapter that the gate has looked at. Reads top to bottom.

Left out on purpose: pausing and resuming, and any choice of when to run: the run is short, and who starts it decides.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from claw_local.adapters import gguf, retiring
from claw_local.adapters.checking import ask_gate, fresh_sampling
from claw_local.adapters.lessons import Lesson, lasting_hints, lessons_of
from claw_local.adapters.registry import file_sha256, put_into_use, slots
from claw_local.engine.base import AdapterSlot, Engine
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import LearnError
from claw_local.files import write_whole
from claw_local.idle.job import LearnResult
from claw_local.judge.background import judge_waiting
from claw_local.judge.verdict import AnyJudge
from claw_local.memory import likes
from claw_local.paths import Paths
from claw_local.settings import Settings
from claw_local.signals import turns
from claw_local.store import AdapterRecord, Store

from .judging import judging
from .rewards import Rewards, judged
from .rollouts import Practice, balanced, stored_samples
from .variants import adapted

Report = Callable[[str, float, str], None]

LEAST_STEPS = 4
"""Steps that are taken however good the first fresh answers were."""


def read_request(path: Path) -> tuple[Path, Settings]:
    """The model and the settings, as the core wrote them down for this run."""
    request = json.loads(path.read_text("utf-8"))
    return Path(request["model"]), Settings.model_validate(request["settings"])


def run(
    store: Store,
    paths: Paths,
    settings: Settings,
    model: Path,
    run_id: int,
    *,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Judge, practise, train, ask the gate, and put the adapter into use if it lets it.

    `check` is called at each report of progress; it may raise to end the run.

    Raises:
        LearnError: nothing to learn, or a number stopped being finite. The adapter in use stays in use.
    """
    started = time.perf_counter()

    def report(phase: str, fraction: float, detail: str = "") -> None:
        check()
        store.runs.progress(run_id, phase, fraction, detail)

    report("loading", 0.0, "the model")
    engine = LlamaCppEngine.open(model, settings.model, cache_dir=paths.data)
    try:
        with judging(settings, paths, store, engine, lambda n, of: report("exam", 0.01, f"{n} of {of}")) as judge:
            result = _run(store, paths, settings, engine, judge, run_id, report)
    finally:
        engine.close()
    result = replace(result, seconds=round(time.perf_counter() - started, 2))
    detail = "" if result.accepted else result.reason
    store.runs.finish(run_id, "done", result=asdict(result), adapter_id=result.adapter or None, detail=detail)


def _run(
    store: Store,
    paths: Paths,
    settings: Settings,
    engine: Engine,
    judge: AnyJudge | None,
    run_id: int,
    report: Report,
) -> LearnResult:
    learning = settings.learning

    # What was said since the last run, judged.
    waiting = turns.waiting(store)
    if judge is not None:
        judge_waiting(store, judge, waiting, lambda n: report("judging", 0.02, f"{n} of {len(waiting)}"))

    # What there is to learn from: lessons to train on, lessons held out for the gate, and the wishes of now.
    used = {sample.message_id for sample in store.samples.list() if sample.times_used}
    # What another model wrote in a chat of its own is not this one's to learn from: its tokens mean something else.
    mine = [turn for turn in turns.pair(store) if turn.reply.model_sha256 == engine.info.sha256]
    everything = [turn for turn in mine if turn.is_lesson or turn.only_turn]
    fresh = [turn for turn in everything if turn.is_lesson and turn.reply.id not in used]
    if not fresh:
        raise LearnError(
            "There is nothing new to learn yet. Chat on, and say what you would like different or what pleased you."
        )
    for turn in everything:
        store.samples.put(turn.reply.id, turn.split, turn.score, turn.hint, step=turn.step, advantage=turn.advantage)
    lasting = lasting_hints(store, engine, settings.memory.budget_tokens) if settings.memory.enabled else []
    hints = [hint.text for hint in lasting]
    liked = likes.likes_of(everything, hints, denied=likes.denied(store))
    checks = [preference.check for preference in liked]
    lessons = lessons_of(store, engine, everything, hints)
    train = [lesson for lesson in lessons if lesson.turn.split == "train"]
    held_out = [lesson for lesson in lessons if lesson.turn.split == "held-out" and lesson.turn.is_lesson]
    if not any(lesson.turn.is_lesson for lesson in train):
        train, held_out = lessons, []  # Too few to hold any out: the shipped prompts decide alone.

    parent = store.adapters.active(engine.info.sha256)
    _sweep(store, paths)
    folder = Path(tempfile.mkdtemp(prefix=f"run-{run_id}-", dir=paths.adapters))
    try:
        rewards = judged(store, judge, train, checks, hints, lambda n, _: report("exam", 0.04, f"case {n}"))
        varied = adapted(store, engine, train, rewards, hints, slots(parent), settings, report)
        trained = _train(settings, engine, [*train, *varied.lessons], rewards, parent, folder, report)
        candidate = AdapterSlot(folder / "adapter.gguf")
        report("gate", 0.85, "asking questions it never trained on")
        verdict, probes = ask_gate(
            settings,
            engine,
            held_out,
            hints,
            checks,
            current=slots(parent),
            candidate=[candidate],
            report=lambda fraction, words: report("gate", 0.85 + 0.14 * fraction, words),
        )
        write_whole(folder / "gate.json", json.dumps(verdict.as_json(), indent=2).encode())
        write_whole(folder / "gate.md", verdict.as_markdown().encode())
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise

    # Registered and, if it passed, in use, in one transaction.
    kept = retiring.retention(lasting, probes)
    lineage = sorted({lesson.turn.reply.id for lesson in train} | set(parent.lineage if parent else ()))
    with store.database.write():
        record = store.adapters.add(
            parent_id=parent.id if parent else 0,
            model_sha256=engine.info.sha256,
            architecture=engine.info.architecture,
            peft_dir=str(folder / "peft"),
            gguf_path=str(folder / "adapter.gguf"),
            sha256={name: file_sha256(folder / name) for name in ("adapter.gguf", "peft/adapter_model.safetensors")},
            recipe={**learning.model_dump(), "hints": hints, "likes": {p.words: p.evidence for p in liked}},
            metrics={
                "steps": trained["history"],
                "variants": varied.counts,
                "gate": verdict.as_json(),
                "hints": [asdict(hint) for hint in kept],
                "learned_hints": [hint.hint_id for hint in kept if hint.learned],
            },
            lineage=lineage,
            state="candidate" if verdict.accepted else "rejected",
            reason=verdict.reason,
        )
        if verdict.accepted:
            put_into_use(store, record, engine.info.sha256)
            store.samples.count_use(lesson.turn.reply.id for lesson in lessons)
    return LearnResult(
        adapter=record.id,
        accepted=verdict.accepted,
        reason=verdict.reason,
        samples=trained["samples"],
        steps=trained["steps"],
        seconds=0.0,
        gate=verdict.as_json(),
    )


def _sweep(store: Store, paths: Paths) -> None:
    """Remove what runs that were killed left behind: folders that no adapter is in."""
    # By name: in a home that was moved, or is reached through a link, the paths begin otherwise.
    kept = {Path(record.gguf_path).parent.name for record in store.adapters.list() if record.gguf_path}
    for folder in paths.adapters.glob("run-*"):
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)


def _train(
    settings: Settings,
    engine: Engine,
    lessons: Sequence[Lesson],
    rewards: Rewards,
    parent: AdapterRecord | None,
    folder: Path,
    report: Report,
) -> dict[str, Any]:
    """Several small steps, each on fresh answers and on stored turns. Leaves `peft/` and `adapter.gguf` behind."""
    report("loading", 0.05, "the trainer")
    from .policy import Policy
    from .step import Objective, Trainer
    from .weights import load_base

    learning = settings.learning
    base = engine.info.path
    policy = Policy(
        load_base(base),
        rank=learning.rank,
        alpha=learning.alpha,
        seed=learning.seed,
        parent=Path(parent.peft_dir) if parent else None,
    )
    objective = Objective(
        method=learning.method,
        top_k=learning.top_k,
        w_rl=learning.w_rl,
        w_opd=learning.w_opd,
        clip_low=learning.clip_low,
        clip_high=learning.clip_high,
        kl_base=learning.kl_base,
        importance_cap=learning.importance_cap,
        opd_only=learning.opd_only,
    )
    trainer = Trainer(policy, objective, learning_rate=learning.learning_rate, max_norm=learning.max_norm)
    practice = Practice(lessons, rewards, fresh_sampling(settings), seed=learning.seed)
    stored = stored_samples(lessons)
    random = np.random.default_rng(learning.seed + 1)
    current: Path | None = Path(parent.gguf_path) if parent else None
    history: list[dict[str, float]] = []
    seen = 0
    for step in range(learning.steps):
        where = f"step {step + 1} of {learning.steps}"
        fraction = 0.08 + 0.77 * step / learning.steps
        report("practising", fraction, f"{where}: fresh answers")
        samples = practice.round(engine, current, learning.rollouts)
        samples += balanced([stored[n] for n in random.permutation(len(stored))], learning.replay)
        if not samples:
            raise LearnError(
                "Nothing of what was said tells how an answer should have been. Say what you would like different."
            )
        report("training", fraction + 0.3 / learning.steps, f"{where}: {len(samples)} samples")
        metrics = trainer.step(samples)
        seen += len(samples)
        history.append({**metrics, **({"score": practice.scores[-1]} if practice.scores else {})})
        current = _export(policy, folder, base)
        if len(practice.scores) >= LEAST_STEPS and min(practice.scores[-2:]) >= learning.enough:
            break
    return {"samples": seen, "steps": len(history), "history": history}


def _export(policy: Any, folder: Path, base: Path) -> Path:
    """The policy of now as PEFT files and as a GGUF LoRA."""
    peft_dir = policy.save(folder / "peft")
    return gguf.convert_lora(peft_dir, base, folder / "adapter.gguf")
