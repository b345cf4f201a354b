"""Personas as data: those that ship are sound, slips are named, and what is said fits what was wrong."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.personas.eye import Prompt
from benchmarks.personas.persona import FOLDER, Voice, load, problems, shipped
from claw_local.errors import UsageError


@pytest.fixture(scope="module")
def brief() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "brief.toml").read_text("utf-8"))


def test_three_personas_ship_and_are_sound() -> None:
    assert shipped() == ["brief", "student", "teacher"]
    for name in shipped():
        persona = load(name)
        assert persona.name == name
        assert len(persona.prompts) >= 24 and len(persona.held_out) >= 24


def test_the_teacher_s_prompts_carry_the_pupil_s_name_and_work() -> None:
    for prompt in load("teacher").held_out:
        assert prompt.fields["name"] in prompt.text and prompt.fields["work"] in prompt.text
        assert "{" not in prompt.text


def test_a_teacher_s_comment_must_be_about_this_pupil_and_this_work() -> None:
    wish = load("teacher").wish
    prompt = Prompt("…", {"name": "Ben", "work": "A magnet attracts iron and steel."})
    comment = "Well done, Ben! You noticed that a magnet attracts iron."
    assert wish.broken(comment, prompt) == []
    other = Prompt("…", {"name": "Nora", "work": "The castle had a moat and a drawbridge."})
    assert wish.broken(comment, other) == ["names", "echoes"]


def slip(data: dict[str, Any], key: str, value: Any) -> str:
    changed = copy.deepcopy(data)
    changed[key] = value
    return "\n".join(problems(changed))


def test_slips_of_a_persona_are_named(brief: dict[str, Any]) -> None:
    assert problems(brief) == []
    assert "unknown key 'propmts'" in slip(brief, "propmts", [])
    assert "prompts has 3 entries" in slip(brief, "prompts", brief["prompts"][:3])
    assert "at least 10 corrections" in slip(brief, "corrections", brief["corrections"][:9])
    assert "at least 8 thanks" in slip(brief, "thanks", ["Thanks."])
    assert "no check called 'max_senteces'" in slip(brief, "wish", [{"check": "max_senteces", "n": 2}])
    assert "aim must be" in slip(brief, "aim", 90)
    assert "the wish is missing" in slip(brief, "wish", [])
    assert "needs the field 'name'" in slip(brief, "wish", [*brief["wish"], {"check": "names"}])
    assert "about 'lists', which is no check" in slip(
        brief, "corrections", [*brief["corrections"], {"text": "No dashes down the page!", "about": ["lists"]}]
    )
    assert "should keep the wish, but breaks max_sentences" in slip(
        brief, "example", [{"text": "One. Two. Three.", "keeps": True}]
    )


def test_held_out_prompts_close_to_those_learned_from_are_found(brief: dict[str, Any]) -> None:
    again = slip(brief, "held_out", [*brief["held_out"][:-1], "What tips are there to sleep better?"])
    assert "is too close to 'What are some tips for sleeping better?'" in again
    assert "asked twice" in slip(brief, "held_out", [*brief["held_out"], brief["prompts"][0]])


def test_corrections_in_nearly_the_same_words_are_found(brief: dict[str, Any]) -> None:
    twin = brief["corrections"][0].replace("please", "pleease")
    assert "in nearly the same words" in slip(brief, "corrections", [*brief["corrections"], twin])


def test_a_check_that_nothing_can_be_said_about_is_found(brief: dict[str, Any]) -> None:
    about = [{"text": text, "about": ["max_sentences"]} for text in brief["corrections"]]
    changed = copy.deepcopy(brief)
    changed["corrections"] = about
    changed["wish"].append({"check": "no_emoji"})
    assert any("when 'no_emoji' fails" in found for found in problems(changed))


def test_a_file_that_is_no_persona_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no persona 'nobody'"):
        load("nobody")
    file = tmp_path / "mine.toml"
    file.write_text("name = ")
    with pytest.raises(UsageError, match="not a TOML file"):
        load(str(file))
    file.write_text('name = "mine"\n')
    with pytest.raises(UsageError, match="not a persona yet:\n- 'who' is missing"):
        load(str(file))


def test_what_is_said_fits_what_was_broken() -> None:
    wish = load("student").wish
    about = {correction.text: correction.about for correction in wish.corrections}
    voice = Voice(wish, seed=0)
    said = [voice.correct(["no_bold"]) for _ in range(40)]
    assert all(not about[text] or "no_bold" in about[text] for text in said)
    assert {text for text in said if about[text]}, "the corrections about bold are never said"
    assert len(set(said[:8])) == 8, "words come again before the others were used"


def test_a_voice_s_order_is_its_seed_s() -> None:
    wish = load("brief").wish
    orders = [[Voice(wish, seed).correct(["max_sentences"]) for seed in (1, 1)] for _ in range(2)]
    assert orders[0] == orders[1] and orders[0][0] == orders[0][1]
    assert len({Voice(wish, seed).correct(["max_sentences"]) for seed in range(20)}) > 3
