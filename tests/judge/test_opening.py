"""From the settings to the judge that is used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.adapters.registry import file_sha256
from claw_local.engine.base import Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import AdapterError
from claw_local.judge import personal
from claw_local.judge.judge import Judge
from claw_local.judge.opening import make_judge
from claw_local.judge.voting import VotingJudge
from claw_local.paths import Paths
from claw_local.settings import JudgeSettings, ModelSettings
from claw_local.store import Store
from tests.engine.conftest import write_lora

from .capable import served_judge, wise

SHORT = Sampling(max_tokens=4, seed=1)


@pytest.fixture(scope="module")
def engine(model_path: Path) -> Iterator[LlamaCppEngine]:
    with LlamaCppEngine.open(model_path, ModelSettings(threads=1, context=1024), cache_dir=None) as opened:
        yield opened


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


def test_a_small_model_is_read_by_probabilities_and_writes_no_hints(engine: LlamaCppEngine, store: Store) -> None:
    judge = make_judge(engine, JudgeSettings(), store)
    assert isinstance(judge, Judge)
    verdict = judge.judge("How?", "1. So", "No lists please.")
    assert (verdict.hint, verdict.written, verdict.votes) == ("No lists please.", False, ())


def test_it_votes_where_the_settings_say_so(engine: LlamaCppEngine, store: Store) -> None:
    judge = make_judge(engine, JudgeSettings(votes=3), store)
    assert isinstance(judge, VotingJudge)
    assert len(judge.judge("How?", "1. So", "No lists please.").votes) in (2, 3)


def test_a_hint_it_may_write_is_kept_only_if_it_passes(engine: LlamaCppEngine, store: Store) -> None:
    judge = make_judge(engine, JudgeSettings(writes_hints="on"), store)
    verdict = judge.judge("How?", "1. So", "No lists please, just plain sentences.")
    if verdict.written:
        assert "list" in verdict.hint
    else:
        assert verdict.hint == "No lists please, just plain sentences."


def test_an_adapter_of_the_settings_changes_who_judges(engine: LlamaCppEngine, store: Store, tmp_path: Path) -> None:
    lora = write_lora(tmp_path / "judge.gguf")
    bare = make_judge(engine, JudgeSettings(), store).identity
    judge = make_judge(engine, JudgeSettings(adapter=str(lora)), store)
    assert judge.identity.adapter == file_sha256(lora) and judge.identity.version.startswith("trained-")
    shipped = personal.shipped(engine.info.sha256)
    assert shipped is not None and bare.adapter == file_sha256(shipped) and bare.version.startswith("trained-")
    few_shot = make_judge(engine, JudgeSettings(), store, adapters=personal.JudgeAdapters()).identity
    assert few_shot.adapter == "" and few_shot.version.startswith("few-shot-")
    with pytest.raises(AdapterError, match=r"judge\.adapter"):
        make_judge(engine, JudgeSettings(adapter="nowhere.gguf"), store)
    make_judge(engine, JudgeSettings(), None)


def test_the_persons_own_adapter_lies_on_top_and_only_where_it_was_trained(
    engine: LlamaCppEngine, store: Store, tmp_path: Path
) -> None:
    lora, sha256 = write_lora(tmp_path / "own.gguf", seed=4), engine.info.sha256
    below = personal.without_own(sha256, JudgeSettings())
    own = personal.PersonalAdapter(str(lora), file_sha256(lora), below.sha256, (1, 2), {"auc": 0.9}, {"auc": 0.9})
    personal.keep(store, sha256, own)
    assert personal.personal(store, sha256) == own
    judge = make_judge(engine, JudgeSettings(), store)
    assert judge.identity.adapter == personal.on_top(below, lora, own.sha256).sha256 != below.sha256
    assert judge.identity.version.startswith("trained-"), "it is asked as it was when it was trained"
    other = write_lora(tmp_path / "other.gguf", seed=5)
    above = personal.adapters_of(sha256, JudgeSettings(adapter=str(other)), store)
    assert [slot.path for slot in above.slots] == [other], "it was not trained on top of this one"
    whole = lora.read_bytes()
    lora.write_bytes(whole[:-1] + b"x")
    assert make_judge(engine, JudgeSettings(), store).identity.adapter == below.sha256, "it was changed"
    lora.write_bytes(whole)
    personal.keep(store, sha256, None)
    assert make_judge(engine, JudgeSettings(), store).identity.adapter == below.sha256


def test_a_judge_behind_a_server_judges_chats_and_its_word_and_votes_are_kept(tmp_path: Path, model_path: Path) -> None:
    def says(body: dict[str, object]) -> str:
        return json.dumps({"verdict": "bad", "hint": ["Please write without lists."]})

    with served_judge(says) as (_, script, settings):
        settings.model = ModelSettings(threads=1, context=1024)
        with Assistant.open(tmp_path, model=model_path, settings=settings) as assistant:
            assistant.learn.on()
            first = assistant.ask("What is tea?", sampling=SHORT)
            assistant.ask("no lists please", chat=first.chat_id, sampling=SHORT)
            assert assistant.wait_judged(30)
            (signal,) = assistant.signals([first.message_id])[first.message_id]
            assert (signal.score, signal.votes) == (-1, (-1, -1, -1))
            assert signal.hint == "Please write without lists."
            assert assistant.hints.list()[0].text == "Please write without lists."
        asked = [body for path, _, body in script.asked if path.endswith("completions")]
        assert len(asked) == 3 and "no lists please" in asked[0]["messages"][-1]["content"]


def test_a_judge_behind_a_server_that_is_gone_leaves_turns_waiting(tmp_path: Path, model_path: Path) -> None:
    with served_judge(wise) as (_, _, settings):
        settings.model = ModelSettings(threads=1, context=1024)
    with Assistant.open(tmp_path, model=model_path, settings=settings) as assistant:
        assistant.learn.on()
        first = assistant.ask("What is tea?", sampling=SHORT)
        assistant.ask("no lists please", chat=first.chat_id, sampling=SHORT)
        assert assistant.wait_judged(30)
        assert assistant.signals([first.message_id])[first.message_id] == []
        assert assistant.learn.status().waiting == 1
