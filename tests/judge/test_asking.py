"""How a judge is asked in words, piece by piece, and how its answers are read. No model and no server."""

from __future__ import annotations

import json

import pytest

from claw_local.judge.asking import (
    FOLLOWS_SHAPE,
    HINT_SENTENCES,
    HINT_SHAPE,
    SENTENCE_CHARACTERS,
    SYSTEM,
    VERDICT_SHAPE,
    Vote,
    _shape,
    follows_prompt,
    hint_prompt,
    read_follows,
    read_hint,
    read_vote,
    verdict_prompt,
)
from claw_local.judge.scoring import shorten
from claw_local.judge.trained import beginning, next_state_prompt
from claw_local.judge.trained import follows_prompt as trained_follows_prompt
from claw_local.judge.voting import _certain, majority, version


def test_a_question_shows_the_turn_between_marks_and_asks_behind_it() -> None:
    system, asked = verdict_prompt("How?", "1. So\n2. Then", "No  lists.")
    assert (system.role, system.content, asked.role) == ("system", SYSTEM, "user")
    shown = (
        "What the person had asked:\n<<<\nHow?\n>>>\n\n"
        "The assistant's reply:\n<<<\n1. So\n2. Then\n>>>\n\n"
        "What the person said next:\n<<<\nNo lists.\n>>>\n\n"
    )
    form = 'Answer with JSON of this form: {"verdict": "...", "hint": ["..."]}\nverdict: "good" if'
    assert asked.content.startswith(shown + form) and "\nhint: only if" in asked.content
    alone = hint_prompt("How?", "1. So\n2. Then", "No  lists.")[1].content
    assert alone.startswith(shown + 'Answer with JSON of this form: {"hint": ["..."]}\nhint: only if')


def test_the_second_question_shows_the_wish_and_the_reply() -> None:
    _, asked = follows_prompt("No  lists.", "")
    assert asked.content == (
        "A person's wish for all replies:\n<<<\nNo lists.\n>>>\n\nA reply:\n<<<\n-\n>>>\n\n"
        'Answer with JSON of this form: {"follows": "..."}\n'
        'follows: "yes" if the reply is as the person wished, else "no". How good it is otherwise does not matter.'
    )


def test_nothing_that_is_shown_can_end_its_mark() -> None:
    asked = verdict_prompt("Q >>> x", "R <<< y", "z")[1].content
    assert "Q ››› x" in asked and "R ‹‹‹ y" in asked and asked.count("<<<") == asked.count(">>>") == 3


def test_a_long_reply_loses_its_end() -> None:
    def shown(words: int) -> str:
        return follows_prompt("No lists.", " ".join(f"w{n}" for n in range(words)))[1].content

    assert " w299\n>>>" in shown(300) and " w299 ...\n>>>" in shown(301) and "w300" not in shown(301)


def test_each_part_may_be_so_long() -> None:
    def words(count: int) -> str:
        return " ".join(f"w{number}" for number in range(count))

    def parts(question: int, message: int) -> str:
        return verdict_prompt(words(question), "So.", words(message))[1].content

    assert " ... " not in parts(120, 300) and parts(121, 300).count(" ... ") == parts(120, 301).count(" ... ") == 1
    assert (
        " ... " not in follows_prompt(words(60), "")[1].content and " ... " in follows_prompt(words(61), "")[1].content
    )
    lines = "one\ntwo " * 200  # A line's end is no end of a word here: the reply keeps its form.
    assert "one\ntwo one\ntwo" in follows_prompt("No lists.", lines)[1].content
    asked = next_state_prompt(words(24), words(32), words(80))
    assert " ... " not in asked
    assert all(
        longer.count(" ... ") == 1
        for longer in (beginning(words(25), ""), beginning("", words(33)), next_state_prompt("", "", words(81)))
    )
    assert "w24" in trained_follows_prompt(words(25), "So.") and " ... " in trained_follows_prompt(words(25), "So.")


def test_the_shapes_allow_what_is_read_and_nothing_else() -> None:
    verdict, hint, follows = (json.loads(shape) for shape in (VERDICT_SHAPE, HINT_SHAPE, FOLLOWS_SHAPE))
    assert verdict["required"] == ["verdict", "hint"] and hint["required"] == ["hint"]
    assert all(one["type"] == "object" and one["additionalProperties"] is False for one in (verdict, hint, follows))
    assert verdict["properties"]["hint"] == hint["properties"]["hint"]
    assert hint["properties"]["hint"]["maxItems"] == HINT_SENTENCES
    assert hint["properties"]["hint"]["items"]["maxLength"] == SENTENCE_CHARACTERS
    assert follows["properties"] == {"follows": {"type": "string", "enum": ["yes", "no"]}}
    assert json.loads(_shape(x={})) == {
        "type": "object", "properties": {"x": {}}, "required": ["x"], "additionalProperties": False
    }  # fmt: skip


def test_a_vote_is_read() -> None:
    vote = read_vote('{"verdict": "bad", "hint": ["No  lists.", " ", "Be brief."]}')
    assert vote == Vote("bad", "No lists. Be brief.") and vote.score == -1
    assert read_vote('{"verdict": "good", "hint": []}') == Vote("good", "")
    assert read_vote('{"verdict": "fine", "hint": []}') is None
    assert read_vote('{"verdict": "bad"}') is None and read_vote("bad") is None and read_vote('["bad"]') is None


def test_an_answer_may_stand_in_a_block_of_code_and_nowhere_else() -> None:
    assert read_hint('```json\n{"hint": ["So."]}\n```') == "So."
    assert read_hint('  ```{"hint": ["So."]}```  ') == "So."
    assert read_hint('```json\n{"hint": ["So."]}') is None and read_hint('{"hint": ["So."]}\n```') is None
    assert read_hint('Here: {"hint": ["So."]}') is None


@pytest.mark.parametrize(
    ("hint", "read"),
    [
        (["a", "b", "c"], "a b c"),
        (["a", "b", "c", "d"], None),
        (["x" * 160], "x" * 160),
        (["x" * 161], None),
        (["a", "x" * 161], None),
        (["a", 1], None),
        ("a", None),
        ([], ""),
    ],
)
def test_a_hint_has_three_short_sentences_at_most(hint: object, read: str | None) -> None:
    assert read_hint(json.dumps({"hint": hint})) == read


def test_yes_and_no() -> None:
    assert read_follows('{"follows": "yes"}') is True and read_follows('{"follows": "no"}') is False
    for text in ('{"follows": "maybe"}', '{"follows": true}', '{"follows": ["yes"]}', "{}", "yes"):
        assert read_follows(text) is None


def test_the_majority_and_its_shares() -> None:
    assert majority(["good", "good", "bad", "neutral"]) == ("good", {"good": 0.5, "neutral": 0.25, "bad": 0.25})
    assert majority(["good", "bad"]) == ("neutral", {"good": 0.5, "neutral": 0.0, "bad": 0.5})
    assert majority(["bad"]) == ("bad", {"good": 0.0, "neutral": 0.0, "bad": 1.0})
    assert _certain(1) == {"good": 1.0, "neutral": 0.0, "bad": 0.0}
    with pytest.raises(ValueError, match=r"^no votes$"):
        majority([])


def test_the_version_names_the_number_of_votes_and_holds_still() -> None:
    assert version(3) == version(3) and version(3).startswith("votes-1x3-") and len(version(3)) == len("votes-1x3-") + 8
    assert version(5).removeprefix("votes-1x5-") == version(3).removeprefix("votes-1x3-")


def test_what_is_long_loses_its_middle() -> None:
    words = [f"w{n}" for n in range(9)]
    assert shorten(" ".join(words[:6]), 6) == "w0 w1 w2 w3 w4 w5"
    assert shorten(" ".join(words), 6) == "w0 w1 w2 w3 ... w7 w8"
    assert shorten("a\n b\tc", 6) == "a b c"
    text = "".join(chr(0x4E00 + n) for n in range(80))  # No blanks: 12 characters count as a word here.
    assert shorten(text[:72], 6) == text[:72]
    assert shorten(text, 6) == f"{text[:48]} ... {text[-24:]}"


def test_a_trained_judges_questions() -> None:
    asked = next_state_prompt("How?", "So.", "No lists.")
    assert asked == "Question: How?\nReply: So.\nThen: No lists.\nThe reply was:"
    assert beginning("", "So.") == "Reply: So.\n" and beginning("", "") == ""
    assert trained_follows_prompt("No  lists.", " 1. So\n2. Then ") == (
        "Reply:\n1. So\n2. Then\n\nWish: No lists.\nDoes the reply follow the wish?"
    )
    assert trained_follows_prompt("No lists.", "").startswith("Reply:\n-\n\n")
    full, more = (" ".join(f"w{n}" for n in range(count)) for count in (160, 161))
    assert f"\n{full}\n" in trained_follows_prompt("No lists.", full)
    assert f"\n{full} ...\n" in trained_follows_prompt("No lists.", more)
