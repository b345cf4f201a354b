"""How the judge's model is asked and read, in numbers worked out by hand."""

from __future__ import annotations

import math
import threading

import pytest

from claw_local.judge.scoring import FewShot
from claw_local.judge.trained import Trained

from .known import Known

LEANS_GOOD = [-0.4076, -1.4076, -2.4076]  # log softmax of 2, 1, 0
LEANS_BAD = LEANS_GOOD[::-1]


def feelings(text: str) -> dict[str, float]:
    """Leans to bad after every message but the empty one."""
    logits = (2.0, 1.0, 0.0) if text.endswith("Message: \nFeeling:") else (0.0, 1.0, 2.0)
    return dict(zip((" positive", " neutral", " negative"), logits, strict=True))


def test_the_prompt_shows_the_examples_and_ends_with_the_message() -> None:
    engine = Known()
    token_ids, choices = FewShot(engine).prompt("No  lists.")  # type: ignore[arg-type]
    shown = engine.text(token_ids)
    assert shown.startswith(
        "How does the person take the assistant's answer? good: pleased, thanks, it worked. bad: wrong, asks for a "
        "change or again, complains. neutral: does not say, another topic.\n\n"
        "Message: Wonderful, that helped a lot!\nFeeling: positive\n\n"
        "Message: I'd rather read a short paragraph than bullets.\nFeeling: negative\n\n"
        "Message: How do I tie a bow tie?\nFeeling: neutral\n\n"
    )
    end = "Message: Exactly right, I like it.\nFeeling: positive\n\n"
    assert shown.endswith(f"{end}Message: No lists.\nFeeling:") and shown.count("\nFeeling:") == 19
    assert [engine.text([token]) for token in choices] == [" positive", " neutral", " negative"]


def test_the_verdicts_are_read_after_the_message_and_the_lean_is_measured_once() -> None:
    engine, stop = Known(feelings), threading.Event()
    prompt = FewShot(engine)  # type: ignore[arg-type]
    assert prompt.logprobs("Hm.", cancel=stop) == pytest.approx(LEANS_BAD, abs=1e-3)
    ((before, shown, cancel),) = engine.asked
    assert before.endswith("Feeling: positive\n\n") and (shown, cancel) == ("Message: Hm.\nFeeling:", stop)
    lean = [(good + 7 * bad) / 8 for good, bad in zip(LEANS_GOOD, LEANS_BAD, strict=True)]
    assert prompt.prior(cancel=stop) == pytest.approx(lean, abs=1e-3)
    assert [shown for _, shown, _ in engine.asked[1:4]] == [
        "Message: \nFeeling:", "Message: [text]\nFeeling:", "Message: [message]\nFeeling:"
    ]  # fmt: skip
    assert len(engine.asked) == 9 and {id(cancel) for _, _, cancel in engine.asked} == {id(stop)}
    assert prompt.prior() is prompt.prior() and len(engine.asked) == 9


def test_a_trained_judge_is_read_among_its_verdicts_alone() -> None:
    engine = Known(lambda text: {" good": 2.0, " neutral": 1.0, " bad": 0.0}, others=50.0)
    trained, stop = Trained(engine), threading.Event()  # type: ignore[arg-type]
    asked = "Question: How?\nReply: So.\nThen: Hm.\nThe reply was:"
    assert trained.logprobs("How?", "So.", "Hm.", cancel=stop) == pytest.approx(LEANS_GOOD, abs=1e-3)
    assert engine.asked == [("", asked, stop)]
    token_ids, choices = trained.verdict_prompt("How?", "So.", "Hm.")
    assert engine.text(token_ids) == asked
    assert [engine.text([token]) for token in choices] == [" good", " neutral", " bad"]


def test_a_trained_judge_reads_ahead_what_is_known() -> None:
    engine, stop = Known(), threading.Event()
    Trained(engine).read_ahead("How?", "So.", cancel=stop)  # type: ignore[arg-type]
    assert engine.asked == [("", "Question: How?\nReply: So.\nThen:", stop)]


def test_whether_a_reply_follows_is_the_share_of_yes() -> None:
    engine, stop = Known(lambda text: {" yes": math.log(3.0), " no": 0.0}, others=50.0), threading.Event()
    assert Trained(engine).follows("No lists.", "So.", cancel=stop) == pytest.approx(0.75, abs=1e-4)  # type: ignore[arg-type]
    assert engine.asked == [("", "Reply:\nSo.\n\nWish: No lists.\nDoes the reply follow the wish?", stop)]
