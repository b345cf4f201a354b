"""The judge learns from thumbs and edits, and one that got worse is not taken. Small runs on the embedded model."""

from __future__ import annotations

import claw_trainer  # isort: skip  # noqa: F401  before torch: see claw_trainer.cpu

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from claw_local.adapters import gguf
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.judge import personal
from claw_local.judge.examples import Example
from claw_local.judge.feedback import Feedback, explicit_feedback
from claw_local.judge.judge import Judge
from claw_local.judge.opening import make_judge
from claw_local.paths import Paths
from claw_local.settings import JudgeSettings, ModelSettings, Settings
from claw_local.store import Store
from claw_trainer import judge_joint
from claw_trainer.judge_adapter import Case
from claw_trainer.judge_joint import JointCase, Recipe, decided, joint_case, vote_losses
from claw_trainer.lower_adapters import add_lora
from claw_trainer.policy import Policy
from claw_trainer.weights import load_base

EASY = [
    Example("a", "en", "12", "user", "Perfect, thanks!", 1, False),
    Example("b", "en", "12", "user", "That's wrong.", -1, False),
    Example("c", "en", "12", "user", "Great, that helped a lot.", 1, False),
    Example("d", "en", "12", "user", "That is not what I asked for, try again.", -1, False),
]
SAID = [("well well, look at you", 1), ("look at you again", 1), ("oh boy, the oracle speaks", -1)]


def a_store(home: Paths) -> Store:
    """Thumbs on replies with messages that no judge reads the way this person means them, and one edit with a hint."""
    store = Store(home.make())
    for number, (message, thumb) in enumerate(SAID):
        chat = store.chats.create()
        question = store.messages.add(chat.id, "user", f"Question {number}?", parent_id=None)
        reply = store.messages.add(chat.id, "assistant", "So.", parent_id=question, response_ids=[5])
        store.messages.add(chat.id, "user", message, parent_id=reply)
        store.signals.add(reply, "judge", 0)
        store.signals.add(reply, "thumb", thumb)
    return store


def test_feedback_is_what_was_said_outright(home: Paths) -> None:
    store = a_store(home)
    chat = store.chats.create()
    question = store.messages.add(chat.id, "user", "What is fog?", parent_id=None)
    reply = store.messages.add(chat.id, "assistant", "- A cloud", parent_id=question, response_ids=[5])
    store.messages.add(chat.id, "assistant", "It is a cloud.", parent_id=question, learn="never")
    store.signals.add(reply, "edit", -1, hint="No lists, please.")
    silent = store.messages.add(chat.id, "assistant", "A mist.", parent_id=question, response_ids=[6])
    store.signals.add(silent, "judge", -1, hint="Nobody said this outright.")
    found = explicit_feedback(store)
    assert [(one.asked, one.text, one.outcome) for one in found] == [
        *(("next", message, thumb) for message, thumb in SAID),
        ("follows", "No lists, please.", -1),
        ("follows", "No lists, please.", 1),
    ]
    assert [one.reply for one in found[-2:]] == ["- A cloud", "It is a cloud."]
    store.chats.delete(chat.id)
    assert len(explicit_feedback(store)) == 3
    store.close()


def test_a_vote_that_agrees_with_the_outcome_becomes_likelier() -> None:
    case = JointCase(Case((1,), (2, 3, 4), 0), (0.0, 0.0, 0.0), (1, 0, -1), outcome=1)
    logits = torch.zeros(3, requires_grad=True)
    dice = torch.Generator().manual_seed(0)
    loss = sum(vote_losses(logits.log_softmax(0), case, 8, 1.0, dice) for _ in range(50))
    loss.backward()  # type: ignore[union-attr]
    assert logits.grad is not None
    good, _, bad = (-logits.grad).tolist()
    assert good > 0 > bad
    sure = torch.tensor([0.0, -60.0, -60.0])
    assert float(vote_losses(sure, case, 8, 1.0, dice)) == 0.0, "votes that all agree say nothing"


@pytest.fixture(scope="module")
def engine(model_path: Path) -> Iterator[LlamaCppEngine]:
    with LlamaCppEngine.open(model_path, ModelSettings(threads=1, context=1024), cache_dir=None) as opened:
        yield opened


def test_the_trainers_judge_decides_as_the_judge_does(engine: LlamaCppEngine) -> None:
    judge = make_judge(engine, JudgeSettings(), None)
    assert isinstance(judge, Judge)
    case = joint_case(judge, engine, Feedback(1, "next", "Why?", "So.", "No lists please.", -1))
    base = load_base(engine.info.path)
    for slot in personal.without_own(engine.info.sha256, JudgeSettings()).slots:
        add_lora(base, slot.path)
    policy = Policy(base, rank=2, alpha=4)
    with torch.no_grad():
        (mine,) = decided(policy, [case])
    theirs = judge.read("Why?", "So.", "No lists please.").probabilities
    assert np.abs(mine.exp().numpy() - theirs).max() < 0.05


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_an_adapter_below_is_part_of_the_base(
    tiny_models: dict[str, Path],
    make_random: Callable[[Policy, float], None],
    tmp_path: Path,
    architecture: str,
) -> None:
    model = tiny_models[architecture]
    below = Policy(load_base(model, exact=True), rank=2, alpha=4)
    make_random(below, 0.2)
    lora = gguf.convert_lora(below.save(tmp_path / "peft"), model, tmp_path / "below.gguf")
    case = Case((5, 80, 7, 120, 33), (40, 41), 0)
    with torch.no_grad():
        adapted = judge_joint.choice_logprobs(below, case)
        with below.view("base"):
            plain = judge_joint.choice_logprobs(below, case)
    base = load_base(model, exact=True)
    add_lora(base, lora)
    with torch.no_grad():
        merged = judge_joint.choice_logprobs(Policy(base, rank=2, alpha=4), case)
    assert (adapted - merged).abs().max() < 1e-4 < 0.05 < (adapted - plain).abs().max()


def trained(store: Store, home: Paths, engine: LlamaCppEngine, recipe: Recipe, held: list[Example]) -> dict[str, Any]:
    run_id = store.runs.begin()
    settings = Settings(model=ModelSettings(threads=1, context=1024))
    judge_joint.run(store, home, settings, engine.info.path, run_id, recipe=recipe, held=held)
    return store.runs.get(run_id).result


def test_a_run_trains_the_judge_which_is_used_from_then_on(home: Paths, engine: LlamaCppEngine) -> None:
    store = a_store(home)
    result = trained(store, home, engine, Recipe(steps=2, batch=2, rehearsed=1), EASY)
    assert result["accepted"], result
    assert (result["samples"], result["steps"]) == (3, 2)
    assert result["before"] == {"accuracy": 1.0, "auc": 1.0} == result["after"]
    own = personal.personal(store, engine.info.sha256)
    assert own is not None and len(own.lineage) == 3
    assert [folder / "adapter.gguf" for folder in home.adapters.glob("judge-*")] == [Path(own.path)]
    bare = make_judge(engine, JudgeSettings(), None)
    assert isinstance(bare, Judge)
    before = bare.read("Question 0?", "So.", SAID[0][0]).logprobs
    mine = make_judge(engine, JudgeSettings(), store)
    below = personal.without_own(engine.info.sha256, JudgeSettings())
    both = personal.on_top(below, Path(own.path), own.sha256)
    assert isinstance(mine, Judge) and mine.identity.adapter == both.sha256 and own.over == below.sha256
    assert not np.allclose(mine.read("Question 0?", "So.", SAID[0][0]).logprobs, before)
    engine.set_judge_adapters([])
    store.close()


def test_a_judge_that_got_worse_is_not_taken(home: Paths, engine: LlamaCppEngine) -> None:
    store = a_store(home)
    judge = make_judge(engine, JudgeSettings(), None)
    # What the judge says now is right by definition; steps that are far too large change some of it.
    held = [
        Example(text, "en", "12", "user", text, judge.judge("", "12", text).score, False)
        for text in (
            "It runs like a dream.", "You saved my day!", "Now my cake is burnt.", "My boss laughed at it.", "Hooray!",
            "That broke everything.", "I am so relieved.", "What a mess.", "It froze again.", "This made my mum cry.",
            "Bingo!", "Neither of these exists.",
        )
    ]  # fmt: skip
    assert len({one.score for one in held}) > 1
    result = trained(store, home, engine, Recipe(steps=1, batch=2, rehearsed=0, learning_rate=0.05), held)
    assert result["before"]["accuracy"] == 1.0 > result["after"]["accuracy"]
    assert not result["accepted"] and "worse" in result["reason"]
    assert personal.personal(store, engine.info.sha256) is None
    assert list(home.adapters.glob("judge-*")) == []
    store.close()
