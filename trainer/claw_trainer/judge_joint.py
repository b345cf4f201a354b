"""Improves the judge from what the person made known outright, by RLAnything's rule (DESIGN §4). Reads top to bottom.

For each case with outcome O the judge votes m times; the step's reward is R = O + (λ/m) Σ_j S_j, a vote's R · S_j,
standardised over the m votes; each vote's log-probability goes up or down with it. The votes are drawn from the judge
as it is used: the calibration and the words of a message stand beside the model's logits and are not trained.

Each step also rehearses some of the package's own training examples, so that learning how one person speaks does not
forget how people do: with six thumbs and no rehearsal, accuracy on the shipped dev split fell from 0.61 to 0.51.

Left out on purpose: going on from an earlier run's adapter. All feedback is learned anew each time, which takes a few
minutes, so that what a person took back is gone.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from claw_local.adapters import gguf
from claw_local.adapters.registry import file_sha256
from claw_local.engine.base import Engine
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import LearnError
from claw_local.idle.judging import JudgeTraining
from claw_local.judge import personal, trained
from claw_local.judge.calibration import SCORES, VERDICTS
from claw_local.judge.evaluation import evaluate
from claw_local.judge.examples import Example, shipped
from claw_local.judge.feedback import Feedback, explicit_feedback
from claw_local.judge.judge import Judge
from claw_local.judge.opening import make_judge
from claw_local.paths import Paths
from claw_local.settings import Settings
from claw_local.signals import joint
from claw_local.store import Store

from .batches import pack
from .device import choose
from .judge_adapter import Case
from .lower_adapters import add_lora
from .policy import Policy
from .run import open_beside
from .weights import load_base

Report = Callable[[str, float, str], None]

TOLERANCE = 0.005
"""The AUC of a judge that is still taken may be lower by this: one pair of some hundreds more."""


@dataclass(frozen=True)
class Recipe:
    """How the judge is trained. `votes`: m. `lam`: λ. `batch`, `rehearsed`: the person's and shipped cases of a
    step."""

    rank: int = 8
    alpha: int = 16
    learning_rate: float = 1e-4
    steps: int = 8
    batch: int = 6
    rehearsed: int = 6
    votes: int = 8
    lam: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class JointCase:
    """One case as the judge meets it.

    Attributes:
        case: its prompt and the words of the answer; `target` is the right one where that is known.
        offset: [C] what is added to the words' log-probabilities before the judge decides, in nats.
        scores: [C] S of each word: +1, 0 or -1.
        outcome: O.
    """

    case: Case
    offset: tuple[float, ...]
    scores: tuple[int, ...]
    outcome: int


def joint_case(judge: Judge, engine: Engine, one: Feedback) -> JointCase:
    """A case of the person's feedback, asked as this judge asks."""
    if one.asked == "follows":
        prompt, words = engine.tokenize(trained.follows_prompt(one.text, one.reply)), trained.ANSWER_WORDS
        choices = tuple(engine.tokenize(word)[0] for word in words)
        return JointCase(Case(tuple(prompt), choices, 0), (0.0, 0.0), (1, -1), one.outcome)
    return _verdict_case(judge, one.question, one.reply, one.text, one.outcome)


def _verdict_case(judge: Judge, question: str, reply: str, message: str, outcome: int) -> JointCase:
    prompt, verdicts = judge.prompt_of(question, reply, message)
    reading = judge.read(question, reply, message)
    offset = tuple(float(nats) for nats in reading.evidence - reading.prior)
    scores = tuple(int(SCORES[name]) for name in VERDICTS)
    return JointCase(Case(tuple(prompt), tuple(verdicts), scores.index(outcome)), offset, scores, outcome)


def rehearsal(judge: Judge, count: int, seed: int) -> list[JointCase]:
    """Shipped training examples as this judge asks them, as many of each score."""
    dice = random.Random(seed)
    told = [example for example in shipped("train") if example.next_role == "user"]
    found: list[JointCase] = []
    for number in range(count):
        score = (1, 0, -1)[number % 3]
        one = dice.choice([example for example in told if example.score == score])
        found.append(_verdict_case(judge, one.question, one.reply, one.next, score))
    return found


def vote_losses(logprobs: torch.Tensor, case: JointCase, votes: int, lam: float, dice: torch.Generator) -> torch.Tensor:
    """Loss of one case: -(1/m) Σ_j A_j log π(v_j), A_j the standardised R · S_j.

    Args:
        logprobs: [C] log-probabilities of the judge's answers, in nats.
        votes: m, drawn from them here.

    Returns:
        [] the loss; 0 where all votes agree, since nothing tells them apart.
    """
    drawn = torch.multinomial(logprobs.detach().exp(), votes, replacement=True, generator=dice)  # [m]
    cast = [case.scores[n] for n in drawn.tolist()]
    advantages = joint.vote_advantages(joint.step_reward(case.outcome, cast, lam), cast)
    return -(torch.tensor(advantages) * logprobs[drawn]).mean()


def choice_logprobs(policy: Policy, case: Case) -> torch.Tensor:
    """[C] log-probabilities of a case's choices among themselves, in nats."""
    logits = policy.logits(policy.hidden(pack([(case.prompt_ids, case.choices[:1])], policy.device)))  # [1, V]
    return logits[0, list(case.choices)].log_softmax(0).cpu()  # so few numbers, and the dice are there


def decided(policy: Policy, cases: Sequence[JointCase]) -> list[torch.Tensor]:
    """For each case [C] log-probabilities of the judge's answers, calibration and words included."""
    found: list[torch.Tensor] = []
    for one in cases:  # One after the other: prompts are long, and memory is small.
        logprobs = choice_logprobs(policy, one.case)  # [C]
        found.append((logprobs + torch.tensor(one.offset)).log_softmax(0))
    return found


def train(
    policy: Policy, cases: Sequence[JointCase], known: Sequence[JointCase], recipe: Recipe, report: Report
) -> int:
    """Train the policy's LoRA on the person's cases, and on known ones whose answer is `target`. Returns the steps."""
    dice = torch.Generator().manual_seed(recipe.seed)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.0)
    for step in range(recipe.steps):
        report("training", 0.3 + 0.5 * step / recipe.steps, f"step {step + 1} of {recipe.steps}")
        chosen = torch.randperm(len(cases), generator=dice)[: recipe.batch].tolist()
        optimiser.zero_grad(set_to_none=True)
        for n in chosen:
            loss = vote_losses(decided(policy, [cases[n]])[0], cases[n], recipe.votes, recipe.lam, dice) / len(chosen)
            loss.backward()  # type: ignore[no-untyped-call]
        for one in known[step * recipe.rehearsed : (step + 1) * recipe.rehearsed]:
            loss = -decided(policy, [one])[0][one.case.target] / recipe.rehearsed
            loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimiser.step()
    return recipe.steps


def run(
    store: Store,
    paths: Paths,
    settings: Settings,
    model: Path,
    run_id: int,
    *,
    check: Callable[[], None] = lambda: None,
    recipe: Recipe = Recipe(),
    held: Sequence[Example] | None = None,
) -> None:
    """Train the judge on the person's thumbs and edits; put it into use unless it got worse on `held`.

    Args:
        held: labelled examples; None: the shipped dev split.

    Raises:
        LearnError: nothing to learn from. The judge stays as it was.
    """
    started = time.perf_counter()

    def report(phase: str, fraction: float, detail: str = "") -> None:
        check()
        store.runs.progress(run_id, phase, fraction, detail)

    report("loading", 0.0, "the model")
    feedback = explicit_feedback(store)
    if not feedback:
        raise LearnError("There is no thumb and no edit to learn from. Mark some replies as good or bad, and chat on.")
    examples = list(shipped("dev") if held is None else held)
    engine = open_beside(model, settings.model, paths)
    folder = Path(tempfile.mkdtemp(prefix="judge-", dir=paths.adapters))
    try:
        result = _run(store, settings, engine, feedback, examples, folder, recipe, report, started)
        store.runs.finish(run_id, "done", result=asdict(result), detail="" if result.accepted else result.reason)
        if not result.accepted:
            shutil.rmtree(folder, ignore_errors=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        engine.close()


def _run(
    store: Store,
    settings: Settings,
    engine: LlamaCppEngine,
    feedback: Sequence[Feedback],
    examples: Sequence[Example],
    folder: Path,
    recipe: Recipe,
    report: Report,
    started: float,
) -> JudgeTraining:
    # The judge without what it learned before, and what it scores.
    below = personal.without_own(engine.info.sha256, settings.judge)
    by_probabilities = settings.judge.model_copy(update={"votes": 0, "writes_hints": "off"})
    judge = make_judge(engine, by_probabilities, None, adapters=below)
    assert isinstance(judge, Judge)
    report("measuring", 0.1, "the judge as it is")
    before = _measure(judge, examples)
    cases = [joint_case(judge, engine, one) for one in feedback]
    known = rehearsal(judge, recipe.steps * recipe.rehearsed, recipe.seed)

    report("loading", 0.25, "the trainer")
    place = choose(settings.learning, engine.info.path)
    place.prepare()
    base = load_base(engine.info.path)
    for slot in below.slots:
        add_lora(base, slot.path)
    policy = Policy(place.put(base), rank=recipe.rank, alpha=recipe.alpha, seed=recipe.seed)
    policy.computing = place.computing
    steps = train(policy, cases, known, recipe, report)

    report("measuring", 0.85, "the judge that was trained")
    lora = gguf.convert_lora(policy.save(folder / "peft"), engine.info.path, folder / "adapter.gguf", precision="f16")
    own = file_sha256(lora)
    stacked = personal.on_top(below, lora, own)
    after = _measure(make_judge(engine, by_probabilities, None, adapters=stacked), examples)
    worse = [name for name in before if after[name] < before[name] - (TOLERANCE if name == "auc" else 0.0)]
    if worse:
        shown = ", ".join(f"{name} {before[name]:.3f} → {after[name]:.3f}" for name in worse)
        reason = f"On the shipped examples it judged worse than before: {shown}. The judge stays as it was."
    else:
        lineage = tuple(sorted({one.message_id for one in feedback}))
        kept = personal.PersonalAdapter(str(lora), own, below.sha256, lineage, before, after)
        old = personal.personal(store, engine.info.sha256)
        personal.keep(store, engine.info.sha256, kept)
        if old is not None:
            personal.remove(old, folder.parent)
        reason = "On the shipped examples it judges no worse than before, so it is in use from the next turn on."
    seconds = round(time.perf_counter() - started, 1)
    return JudgeTraining(not worse, reason, len(cases), steps, seconds, before, after)


def _measure(judge: object, examples: Sequence[Example]) -> dict[str, float]:
    assert isinstance(judge, Judge)
    overall = evaluate(judge, examples).overall
    return {"accuracy": round(overall.accuracy, 4), "auc": round(overall.auc or 0.0, 4)}
