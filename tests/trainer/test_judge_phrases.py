"""Making the judge's model of wordings, on a handful of messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from claw_local.judge.examples import Example, shipped
from claw_local.judge.phrases import Phrases, features
from claw_trainer import judge_phrases
from claw_trainer.judge_phrases import common, measure, train

GOOD = ["lovely, thanks", "thanks, that worked", "lovely work", "it worked, thanks"]
BAD = ["no, wrong", "that is wrong", "wrong again, no", "no, it broke"]
OTHER = ["my dog barks", "the dog sleeps", "rain today", "the rain, today"]


def message(text: str, score: int) -> Example:
    return Example(id=text, lang="en", reply="Here.", next_role="user", next=text, score=score, directive=False)  # type: ignore[arg-type]


CASES = [message(text, score) for texts, score in ((GOOD, 1), (BAD, -1), (OTHER, 0)) for text in texts]


def taught(seed: int = 0, least: int = 2) -> Phrases:
    return train(CASES, least=least, epochs=30, learning_rate=0.05, batch=4, seed=seed)


def test_it_learns_what_it_is_taught_and_applies_it_elsewhere() -> None:
    made = taught()
    assert measure(made, CASES)["accuracy"] == 1.0
    new = [message("thanks, lovely", 1), message("no, that broke", -1), message("the dog today", 0)]
    assert measure(made, new)["accuracy"] == 1.0


def test_the_same_seed_makes_the_same() -> None:
    one, other, third = taught(), taught(), taught(seed=1)
    assert np.array_equal(one.weights, other.weights) and one.step == other.step
    assert not np.array_equal(one.weights, third.weights)


def test_rare_features_are_left_out() -> None:
    found = [features("", "", text) for text in GOOD]
    kept = common(found, 4)
    assert len(kept) and all(sum(key in one for one in found) >= 4 for key in kept)
    assert len(kept) < len(common(found, 2)) < len(common(found, 1))


def test_what_is_written_is_read_again_and_measured(tmp_path: Path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    asked: list[str] = []
    monkeypatch.setattr(judge_phrases, "shipped", lambda split: asked.append(split) or CASES)
    monkeypatch.setattr(judge_phrases, "scored", lambda split: CASES[:6])
    path = tmp_path / "made.npz"
    judge_phrases.main([str(path), "--least", "2", "--epochs", "30", "--learning-rate", "0.05", "--batch", "4"])
    with np.load(path, allow_pickle=False) as arrays:
        read = Phrases(arrays["keys"], arrays["weights"], float(arrays["step"]), arrays["bias"].astype(np.float64))
    assert measure(read, CASES)["accuracy"] == 1.0
    assert '"examples": "dev"' in capsys.readouterr().out
    assert "test" not in asked


def test_the_shipped_one_knows_nothing_that_only_the_test_split_says() -> None:
    keys = set(common([features(one.question, one.reply, one.next) for one in shipped("test")], 1).tolist())
    from claw_local.judge.examples import scored
    from claw_local.judge.phrases import shipped as shipped_phrases

    everyone = [*shipped("train"), *scored("train")]
    train_keys = set(common([features(one.question, one.reply, one.next) for one in everyone], 3).tolist())
    known = set(shipped_phrases().keys.tolist())
    assert known <= train_keys and keys - known
