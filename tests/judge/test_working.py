"""A person whose assistant has tools asks for the next piece of work: that is no complaint about the last one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.judge import words
from claw_local.judge.opening import make_judge
from claw_local.settings import JudgeSettings, ModelSettings, Settings
from claw_local.signals.turns import pair_some
from claw_local.talking.working import kept
from claw_local.tools.toolbox import OWN

QUESTION = "Read homework/1.txt and do the homework in it. Your answer is what I hand in."
REPLY = "Photosynthesis is how plants turn sunlight, water and carbon dioxide into sugar and oxygen."
WORK = (
    "Write that answer at the end of homework/1.txt.",
    "Write that comment at the end of homework/2.txt.",
    "Put it into report.txt, please.",
    "Now translate it and write it to fr.txt",
    "Schreib das in die Notizen.",
)
COMPLAINTS = (
    "No, write it in one sentence.",
    "That is wrong. Read the file again.",
    "Write it again, shorter.",
    "Not that file. Read homework/2.txt.",
)


@pytest.fixture(scope="module")
def engine(model_path: Path) -> Iterator[LlamaCppEngine]:
    with LlamaCppEngine.open(model_path, ModelSettings(threads=1, context=1024), cache_dir=None) as opened:
        yield opened


@pytest.mark.parametrize("message", WORK)
def test_the_next_piece_of_work_is_no_wish_about_the_reply(message: str) -> None:
    found = words.features(QUESTION, REPLY, message, working=True)
    assert not any(found[name] for name in ("wish", "complaint", "correction", "repeat"))
    assert words.features(QUESTION, REPLY, message)["wish"], "without tools it can only mean the reply"


@pytest.mark.parametrize("message", COMPLAINTS)
def test_a_complaint_stays_one_there(message: str) -> None:
    found = words.features(QUESTION, REPLY, message, working=True)
    assert any(found[name] for name in ("wish", "complaint", "correction"))


def test_the_judge_takes_the_next_piece_of_work_for_going_on(engine: LlamaCppEngine) -> None:
    judge = make_judge(engine, JudgeSettings(), None)
    scores = [judge.judge(QUESTION, REPLY, message, working=True).score for message in WORK]
    assert -1 not in scores, dict(zip(WORK, scores, strict=True))
    assert all(judge.judge(QUESTION, REPLY, message, working=True).score == -1 for message in COMPLAINTS)


def test_a_turn_knows_whether_there_were_tools(tmp_path: Path, model_path: Path) -> None:
    with Assistant.open(tmp_path, model=model_path, settings=Settings()) as assistant:
        store, chat = assistant.store, assistant.new_chat()
        assistant.learn.on()

        def said(parent: int | None, role: str, text: str, **more: int) -> int:
            return store.messages.add(chat.id, role, text, parent_id=parent, learn="yes", **more)  # type: ignore[arg-type]

        plain = said(said(None, "user", QUESTION), "assistant", REPLY)
        told = said(said(plain, "user", "And now?"), "assistant", REPLY, toolset_id=kept(store, OWN))
        call = said(said(told, "user", "Go on."), "assistant", json.dumps({"name": "read"}))
        after = said(said(call, "tool", "text"), "assistant", REPLY)
        turns = {turn.reply.id: turn.working for turn in pair_some(store, [plain, told, after])}
        assert turns == {plain: False, told: True, after: True}
