"""One learning run, from the person's chats to an adapter that the gate has looked at. Reads top to bottom.

A run may be left at any moment and goes on where it was: what it learns from is settled once (`plan`), the steps keep
what they need after each (`training`), answers are kept as they are drawn (`drawn`), also those of the gate, which is
asked anew otherwise. Left out on purpose: any choice of when to run.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from claw_local.adapters import retiring
from claw_local.adapters.checking import ask_gate
from claw_local.adapters.registry import file_sha256, put_into_use, slots
from claw_local.engine._native import can_use_gpu
from claw_local.engine.base import AdapterSlot, Engine
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import EngineError, ModelError
from claw_local.files import write_whole
from claw_local.idle.job import LearnResult
from claw_local.idle.kept import BEGAN, DRAWN, PLAN, VARIANTS, clear_work, folder_of
from claw_local.judge.background import judge_waiting
from claw_local.judge.verdict import AnyJudge
from claw_local.language import _
from claw_local.paths import Paths
from claw_local.settings import ModelSettings, Settings
from claw_local.signals import turns
from claw_local.store import Store

from .drawn import remembering
from .everyday import everyday
from .judging import judging
from .plan import Plan, make_plan, read_plan, write_plan
from .rewards import judged
from .variants import kept_or_adapted

Report = Callable[[str, float, str], None]

FILES = ("adapter.gguf", "peft/adapter_model.safetensors")
CHANGED = (
    "The gate would take it, but another adapter was put into use, or the one in use taken out, while it was learned. "
    "`claw-local adapters list` shows it."
)
LEAST_SHARE = 0.02
"""Share of a run that must be done before an estimate of the rest means anything."""


@dataclass(frozen=True)
class Request:
    """What the core asks for. `memory_bytes`: most memory the run may hold, 0 for no bound."""

    model: Path
    settings: Settings
    threads: int = 1
    memory_bytes: int = 0


def read_request(path: Path) -> Request:
    """The model, the settings and the run's share of the machine, as the core wrote them down."""
    request = json.loads(path.read_text("utf-8"))
    settings = Settings.model_validate(request["settings"])
    return Request(Path(request["model"]), settings, int(request["threads"]), int(request["memory_bytes"]))


def run(store: Store, paths: Paths, request: Request, run_id: int) -> None:
    """Judge, practise, train, ask the gate, and put the adapter into use if it lets it.

    Raises:
        LearnError: nothing to learn, not enough memory, or a number stopped being finite. The adapter in use stays in
            use. OSError: what the run must keep cannot be written.
    """
    report = _reporter(store, run_id)
    report("loading", 0.0, _("the model"))
    engine = open_beside(request.model, _engine_settings(request), paths)
    try:
        exam = lambda n, of: report("exam", 0.01, _("{n} of {of}", n=n, of=of))  # noqa: E731
        with judging(request.settings, paths, store, engine, exam) as judge:
            _run(store, paths, request, engine, judge, run_id, report)
    finally:
        engine.close()


def open_beside(model: Path, settings: ModelSettings, paths: Paths) -> LlamaCppEngine:
    """The run's own engine; on the processor where a GPU has no room for it beside the one that chats.

    Raises:
        ModelError, EngineError: see `LlamaCppEngine.open`.
    """
    try:
        return LlamaCppEngine.open(model, settings, cache_dir=paths.data)
    except (EngineError, ModelError) as error:
        if settings.gpu_layers == 0 or not can_use_gpu():
            raise
        print(f"The GPU has no room for the run's engine, so it answers on the processor: {error}", flush=True)
        return LlamaCppEngine.open(model, settings.model_copy(update={"gpu_layers": 0}), cache_dir=paths.data)


def _engine_settings(request: Request) -> ModelSettings:
    """As the person's, but with the run's own number of threads where one is set."""
    fixed = request.settings.learning.threads
    return request.settings.model.model_copy(update={"threads": fixed}) if fixed else request.settings.model


def _reporter(store: Store, run_id: int) -> Report:
    """Writes progress, with an estimate of the time left, which assumes that the rest goes as fast as this part did."""
    first: list[tuple[float, float]] = []

    def report(phase: str, fraction: float, detail: str = "") -> None:
        if phase not in ("loading", "exam", "judging") and not first:
            first.append((fraction, time.monotonic()))
        begun, since = first[0] if first else (fraction, 0.0)
        done = fraction - begun
        left = (time.monotonic() - since) / done * (1.0 - fraction) if done > LEAST_SHARE else None
        store.runs.progress(run_id, phase, fraction, detail, left)

    return report


def _run(
    store: Store,
    paths: Paths,
    request: Request,
    engine: Engine,
    judge: AnyJudge | None,
    run_id: int,
    report: Report,
) -> None:
    started = time.perf_counter()
    settings = request.settings
    own = folder_of(paths, run_id)
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    plan = read_plan(own / PLAN, store) or _plan(store, request, engine, judge, own, run_id, report)
    if store.runs.get(run_id).begins_anew:
        store.runs.set_checkpoint(run_id, "planned", 0, settings.learning.steps)
    engine, drawn = remembering(engine, own / DRAWN)

    parent = store.adapters.get(plan.parent) if plan.parent else None
    _sweep(store, paths)
    folder = Path(tempfile.mkdtemp(prefix=f"run-{run_id}-", dir=paths.adapters))
    try:
        from .checkpoint import device_of
        from .device import PROCESSOR, choose
        from .economy import Economy, hold_of
        from .ranks import ranks
        from .training import Course, train

        steps = settings.learning.steps
        rewards = judged(
            store, judge, plan.train, plan.checks, plan.hints, lambda n, __: report("exam", 0.04, _("case {n}", n=n))
        )
        varied = kept_or_adapted(
            own / VARIANTS, store, engine, plan.train, rewards, plan.hints, slots(parent), settings, report
        )
        learning = settings.learning
        more = everyday(store, engine, plan.train, plan.hints, count=learning.everyday, seed=learning.seed)

        def passed(phase: str, step: int) -> None:
            store.runs.set_checkpoint(run_id, phase, step, steps)
            drawn.forget()  # What it drew so far is in the checkpoint.

        course = Course(
            settings=settings,
            engine=engine,
            plan=plan,
            variants=[*varied.lessons, *more],
            rewards=rewards,
            parent=parent,
            kept=own,
            work=folder,
            economy=Economy(
                store.runs.get(run_id).economy,
                request.memory_bytes,
                lambda level, why: store.runs.save_memory(run_id, level, why),
                hold=hold_of(settings.learning),
            ),
            report=report,
            passed=passed,
            # Several processes add up their gradients in main memory.
            place=choose(settings.learning, engine.info.path, began=device_of(own))
            if ranks().count == 1
            else PROCESSOR,
        )
        trained = train(course)
        candidate = AdapterSlot(folder / "adapter.gguf")
        report("gate", 0.85, _("asking questions it never trained on"))
        verdict, probes = ask_gate(
            settings,
            engine,
            plan.held_out,
            plan.hints,
            plan.checks,
            current=slots(parent),
            candidate=[candidate],
            report=lambda fraction, words: report("gate", 0.85 + 0.14 * fraction, words),
        )
        write_whole(folder / "gate.json", json.dumps(verdict.as_json(), indent=2).encode())
        write_whole(folder / "gate.md", verdict.as_markdown().encode())

        # Registered, in use if it passed, and the run at its end, in one transaction.
        fallbacks = list(store.runs.get(run_id).fallbacks)
        kept = retiring.retention(plan.lasting, probes)
        lineage = {lesson.turn.reply.id for lesson in plan.train} | set(parent.lineage if parent else ())
        with store.database.write():
            active = store.adapters.active(engine.info.sha256)
            # The gate compared it with what was in use then. The person's choice since, or a rollback, stands.
            taken = verdict.accepted and (active.id if active else 0) == plan.parent
            reason = verdict.reason if taken or not verdict.accepted else CHANGED
            record = store.adapters.add(
                parent_id=plan.parent,
                model_sha256=engine.info.sha256,
                architecture=engine.info.architecture,
                peft_dir=str(folder / "peft"),
                gguf_path=str(folder / "adapter.gguf"),
                sha256={
                    name: file_sha256(folder / name) for name in ("adapter.gguf", "peft/adapter_model.safetensors")
                },
                recipe={
                    **settings.learning.model_dump(),
                    "hints": plan.hints,
                    "likes": {like.words: like.evidence for like in plan.liked},
                },
                metrics={
                    "steps": trained.history,
                    "variants": varied.counts,
                    "everyday": len(more),
                    "gate": verdict.as_json(),
                    "hints": [asdict(hint) for hint in kept],
                    "learned_hints": [hint.hint_id for hint in kept if hint.learned],
                    "fallbacks": fallbacks,
                },
                lineage=sorted(lineage),
                state="candidate" if verdict.accepted else "rejected",
                reason=reason,
            )
            if taken:
                put_into_use(store, record, engine.info.sha256)
                store.samples.count_use(lesson.turn.reply.id for lesson in plan.lessons)
            spent = sum(step["seconds"] for step in trained.history)
            result = LearnResult(
                adapter=record.id,
                accepted=taken,
                reason=reason,
                samples=trained.seen,
                steps=trained.step,
                seconds=round(max(spent, time.perf_counter() - started), 2),
                gate=verdict.as_json(),
            )
            detail = "" if result.accepted else result.reason
            store.runs.finish(run_id, "done", result=asdict(result), adapter_id=result.adapter, detail=detail)
    except BaseException:
        clear_work(store, paths, run_id)  # Not by force: it may be asked to leave just when the adapter is registered.
        raise


def _plan(
    store: Store,
    request: Request,
    engine: Engine,
    judge: AnyJudge | None,
    own: Path,
    run_id: int,
    report: Report,
) -> Plan:
    """Judge what was said since the last run, and settle what this one learns from."""
    waiting = turns.waiting(store)
    if judge is not None:
        judge_waiting(store, judge, waiting, lambda n: report("judging", 0.02, _("{n} of {of}", n=n, of=len(waiting))))
    plan = make_plan(store, request.settings, engine, request.threads)
    fingerprint = write_plan(own / PLAN, plan)
    began = (own / BEGAN).read_bytes() if (own / BEGAN).is_file() else b""
    store.runs.set_inputs(run_id, hashlib.sha256(began + fingerprint.encode()).hexdigest(), plan.lineage)
    return plan


def _sweep(store: Store, paths: Paths) -> None:
    """Remove what runs that were killed left behind: folders that no adapter is in."""
    # By name: in a home that was moved, or is reached through a link, the paths begin otherwise.
    kept = {Path(record.gguf_path).parent.name for record in store.adapters.list() if record.gguf_path}
    for folder in paths.adapters.glob("run-*"):
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)
