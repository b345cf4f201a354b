"""A scripted life on the embedded model: same prompts as the product's, and nothing of a survey teaches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import personalize, quiz
from benchmarks.personas import life, report, survey
from benchmarks.personas.eye import Check, Prompt
from benchmarks.personas.persona import Persona, Wish, load
from claw_local import Assistant
from claw_local.engine.base import Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import LearnError
from claw_local.paths import Paths
from claw_local.settings import ModelSettings

from .conftest import small_lora

SAMPLING = Sampling(max_tokens=6, temperature=0.7, seed=3)
QUESTIONS = (Prompt("What is the capital of France?"), Prompt("Why is the sky blue?"))
OPTIONS = life.Options(turns=2, tokens=6)


@pytest.fixture(scope="module")
def engine(model_path: Path) -> Iterator[LlamaCppEngine]:
    with LlamaCppEngine.open(model_path, ModelSettings(context=1024, threads=1), cache_dir=None) as engine:
        yield engine


@pytest.fixture(autouse=True)
def one_thread(home: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that runs other tests beside these, two would wait for each other at every step."""
    monkeypatch.setenv("CLAW_LOCAL_MODEL__THREADS", "1")


@pytest.fixture
def persona() -> Persona:
    """Brief, but two questions only and a wish that six tokens never keep."""
    whole = load("brief")
    wish = replace(whole.wish, checks=(Check("min_words", {"n": 50}, "max_sentences"),))
    return replace(whole, wish=wish, prompts=whole.prompts[:2], held_out=whole.held_out[:2])


def nobody(text: str) -> None:
    """Progress that nobody reads."""


def test_a_survey_asks_what_the_product_would_ask_with_and_without_hints(engine: LlamaCppEngine) -> None:
    with Assistant.open() as assistant:
        assistant.hints.add("Answer with at most two sentences, please.")
        for memory in (False, True):
            glance = replace(SAMPLING, max_tokens=1)
            asked = [assistant.ask(p.text, sampling=glance, learn=False, memory=memory) for p in QUESTIONS]
            token_ids = [assistant.store.messages.get(answer.message_id).prompt_ids for answer in asked]
            answers = survey.ask_all(assistant, engine, QUESTIONS, SAMPLING, memory=memory)
            assert answers == [found.text for found in engine.generate_many(token_ids, SAMPLING)]
            assert ("at most two sentences" in engine.detokenize(token_ids[0])) == memory


def test_nothing_of_a_survey_is_kept_or_teaches(home: Paths, engine: LlamaCppEngine) -> None:
    with Assistant.open() as assistant:
        assistant.learn.on()
        survey.ask_all(assistant, engine, QUESTIONS, SAMPLING, memory=True, times=2)
        assert assistant.chats() == []
        with pytest.raises(LearnError, match="nothing new to learn"):
            assistant.learn.now()


def test_a_survey_counts_the_answers_that_keep_the_whole_wish() -> None:
    wish = Wish("…", (Check("max_words", {"n": 3}), Check("no_bold")), (), ())
    found = survey.look_at(["one two", "**one**", "a b c d a b c d", "fine"], QUESTIONS, wish)
    assert found.rate == 0.5
    assert found.by_check == {"max_words": 0.75, "no_bold": 0.75}
    assert found.words == 3.0
    assert found.repetition == pytest.approx(0.2 / 4)


@pytest.mark.slow
def test_a_broken_wish_is_corrected_and_what_was_said_becomes_hints(
    home: Paths, engine: LlamaCppEngine, persona: Persona
) -> None:
    taught = life.teach(home.data, persona, 0, OPTIONS, engine, nobody)
    assert (taught["turns"], taught["corrected"]) == (2, 2)
    assert taught["rate_before"] == 0.0
    assert taught["judge_right"] == 1.0 and taught["judge_opposite"] == 0.0
    assert "two" in " ".join(taught["hints"])
    assert len(taught["answers"]["before"]) == 2
    assert set(taught["seconds"]) == {"load", "survey_before", "talk", "survey_with_hints"}


def test_a_run_that_learns_nothing_is_a_result_too(home: Paths, engine: LlamaCppEngine, persona: Persona) -> None:
    with Assistant.open(home.data) as assistant:
        assistant.learn.on()
    taught = {
        "seed": 0,
        "rate_before": 0.0,
        "rate_with_hints": 0.0,
        "words_before": 4.0,
        "repetition_before": 0.0,
        "turns": 2,
        "corrected": 2,
        "judge_right": 1.0,
        "seconds": {"load": 0.1},
        "answers": {},
    }
    row = life.learn(home.data, persona, taught, "opd", OPTIONS, engine, None, nobody)
    assert not row["accepted"] and "nothing new to learn" in row["reason"]
    assert row["rate_after"] == 0.0 and row["practice"] == []
    assert len(row["answers"]["after"]) == 2

    options = personalize.parse(["--persona", "brief", "--seeds", "0"])
    facts = {"model": "tiny", "machine": personalize.machine(), "stopped": False}
    whole = personalize.gather(persona, options, [row], facts)
    assert "| opd | 0 | 0.00 | 0.00 | 0.00 | 2 of 2 | 1.00 | There is nothing new" in report.markdown(whole)
    assert "answers" not in personalize.without_answers(whole)["runs"][0]


def test_the_adapter_in_use_is_what_is_surveyed_and_quizzed(
    home: Paths, engine: LlamaCppEngine, persona: Persona, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = quiz.questions()[:2]
    monkeypatch.setattr(quiz, "questions", lambda: few)
    base = quiz.take(engine, few)
    with Assistant.open(home.data) as assistant:
        before = survey.ask_all(assistant, engine, persona.held_out, SAMPLING, memory=False)
        lora = small_lora(tmp_path / "small.gguf")
        sha256 = assistant.model_sha256
        record = assistant.store.adapters.add(
            parent_id=0,
            model_sha256=sha256,
            architecture="llama",
            gguf_path=str(lora),
            metrics={"steps": [{"score": -0.5}, {"loss": 1.0}]},
        )
        assistant.store.adapters.activate(record.id, sha256)
        after = survey.ask_all(assistant, engine, persona.held_out, SAMPLING, memory=False)
        assert survey.ask_all(assistant, engine, persona.held_out, SAMPLING, memory=False, adapter=0) == before
        row = life.quiz_again(assistant, engine, base)
        assert life.practice_scores(record) == [-0.5, None]
    assert after != before
    assert row["quiz_margin_change"] != 0.0
    engine.set_adapters([])


def test_method_and_seed_reach_the_settings_and_are_taken_back(home: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAW_LOCAL_LEARNING__SEED", "7")
    with life.set_for_run("binary-rl", 3), Assistant.open() as assistant:
        assert assistant.settings.learning.method == "binary-rl"
        assert assistant.settings.learning.seed == 3
    assert os.environ["CLAW_LOCAL_LEARNING__SEED"] == "7"
    assert "CLAW_LOCAL_LEARNING__METHOD" not in os.environ


def test_personas_are_checked_and_checks_listed_on_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert personalize.main(["--check-persona", "teacher"]) == 0
    assert "26 prompts, 26 held out" in capsys.readouterr().out
    assert personalize.main(["--list-checks"]) == 0
    assert "max_sentences(n): At most n sentences." in capsys.readouterr().out
    assert personalize.main(["--check-persona", str(tmp_path / "none.toml")]) == 2
    assert "There is no persona" in capsys.readouterr().err
    assert personalize.main(["--persona", "teacher", "--reverse"]) == 2
    assert "has no [reverse]" in capsys.readouterr().err


def test_all_methods_are_each_run_once() -> None:
    assert personalize.parse(["--methods", "opd", "all"]).methods == list(personalize.METHODS)
    assert personalize.parse(["--method", "opd"]).methods == ["opd"]
