"""Checks: what they see in a text, and how they are inferred from everyday words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_local.signals.checks import KINDS, Check, infer_checks, score
from claw_local.signals.texts import count_sentences, count_words, language_of
from claw_local.signals.wishes import BRIEF_WORDS, LONG_WORDS

PROSE = {"no lists", "no bold", "no headings"}


def wishes(*hints: str) -> set[str]:
    return {check.describe() for check in infer_checks(hints)}


@pytest.mark.parametrize(
    "text",
    [
        "- one\n- two",
        "* one",
        "Intro:\n• one\n• two",
        "1. Peel them.\n2. Boil them.",
        "1) first",
        "Step 1: do this\nStep 2: do that",
        "1. Buy milk 2. Buy eggs 3. Buy bread",
        "a) red\nb) blue",
        "・お湯を沸かす\n・茶葉を入れる",
        "   - indented",
    ],
)
def test_lists_are_seen(text: str) -> None:
    assert not Check("no_lists").passes(text)
    assert Check("uses_list").passes(text)


@pytest.mark.parametrize(
    "text",
    [
        "It costs 3.5 euros. That is fine.",
        "In 2024. we moved",
        "A well-known fact - or so they say.",
        "1999 was hot.",
        "*Really* important.",
        "```\n- not a list\n1. nor this\n```\nSo it is.",
        "First, peel them. Then boil them.",
        "-5 degrees",
    ],
)
def test_prose_holds_no_list(text: str) -> None:
    assert Check("no_lists").passes(text)


@pytest.mark.parametrize("text", ["This is **bold**.", "__Bold__ too", "**cut off", "**Note**: x", "<b>x</b>"])
def test_bold_is_seen(text: str) -> None:
    assert not Check("no_bold").passes(text)


@pytest.mark.parametrize(
    "text", ["2**3 is 8", "a * b ** c", "*italic*", "`**kwargs`", "snake__case", "fill in ____ here"]
)
def test_what_only_looks_like_bold_passes(text: str) -> None:
    assert Check("no_bold").passes(text)


@pytest.mark.parametrize(
    "text", ["# Tides", "text\n## The moon\nmore", "Tides\n=====\n", "**The moon**\nIt pulls.", "<h2>x</h2>"]
)
def test_headings_are_seen(text: str) -> None:
    assert not Check("no_headings").passes(text)


@pytest.mark.parametrize("text", ["#hashtag", "We are number # 1.", "```\n# comment\n```", "Above\n\n---\n\nBelow"])
def test_what_only_looks_like_a_heading_passes(text: str) -> None:
    assert Check("no_headings").passes(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two! Three?", 3),
        ("Use fruit, e.g. apples. It costs 3.5 euros.", 2),
        ("Dr. Smith met Mr. Jones at 5 p.m. on Monday.", 1),
        ("We had milk, eggs, etc. Then we left.", 2),
        ("J. R. Tolkien wrote it.", 1),
        ('He said "stop." Then he left.', 2),
        ("No end", 1),
        ("A title\n\nOne sentence.", 2),
        ("See example.org for more... Really?!", 2),
        ("1. Peel them.\n2. Boil them.", 2),
        ("今天很好。我们去吧！", 2),
        ("A line that\nis wrapped here.", 1),
        ("", 0),
        ("...", 0),
    ],
)
def test_sentences_are_counted(text: str, count: int) -> None:
    assert count_sentences(text) == count


@pytest.mark.parametrize(
    ("text", "count"), [("one two three", 3), ("it's 3.5", 2), ("- **a** b", 2), ("你好吗", 3), ("", 0)]
)
def test_words_are_counted(text: str, count: int) -> None:
    assert count_words(text) == count


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cat is on the table and it sleeps.", "en"),
        ("Die Katze ist auf dem Tisch und schläft.", "de"),
        ("El gato está en la mesa y no se mueve.", "es"),
        ("Le chat est sur la table et il dort.", "fr"),
        ("猫在桌子上睡觉。", "zh"),
        ("猫はテーブルの上で寝ています。", "ja"),
        ("42", ""),
    ],
)
def test_languages_are_told_apart(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (Check("max_sentences", 2), "One. Two.", "One. Two. Three."),
        (Check("min_sentences", 2), "One. Two.", "One."),
        (Check("max_words", 3), "one two three", "one two three four"),
        (Check("min_words", 3), "one two three", "one two"),
        (Check("max_paragraphs", 1), "One.\nStill one.", "One.\n\nTwo."),
        (Check("min_paragraphs", 2), "One.\n\nTwo.", "One."),
        (Check("no_emoji"), "Fine: it works (really).", "Fine 😊"),
        (Check("uses_emoji"), "Fine 🎉", "Fine"),
        (Check("lowercase"), "all small, 3 of them.", "Not small"),
        (Check("uppercase"), "ALL BIG, 3!", "Not big"),
        (Check("no_question"), "That is all.", "That is all. Anything else?"),
        (Check("has_question"), "Shall we?", "We shall."),
        (Check("no_code"), "Call it.", "Call `it`."),
        (Check("uses_code"), "```\nx = 1\n```", "x is 1"),
        (Check("no_tables"), "a | b", "a | b\n--|--\n1 | 2"),
        (Check("uses_table"), "|a|b|\n|---|---|\n|1|2|", "a, b"),
        (Check("uses_bold"), "**so**", "so"),
        (Check("uses_headings"), "# So\n", "so"),
        (Check("starts_with", "Hey Sam"), "hey Sam, fine.", "Hi, fine."),
        (Check("not_starts_with", "Sure"), "It is.", "Sure! It is."),
        (Check("ends_with", "Cheers"), "It is. Cheers!", "Cheers, it is."),
        (Check("avoids", "As an AI"), "I can.", "As an AI, I can."),
        (Check("language", "de"), "Das ist nicht die Frage.", "That is not the question."),
    ],
)
def test_each_check_tells_good_from_bad(check: Check, good: str, bad: str) -> None:
    assert check.passes(good)
    assert not check.passes(bad)


@pytest.mark.parametrize(
    "hint",
    [
        "please no bullet points, just plain sentences",
        "again, but as flowing text",
        "Please don't use lists or bold text, just write plain sentences.",
        "No bullet points please, write it as normal text.",
        "Again, but as flowing prose without any list.",
        "I don't like the numbered list. Plain sentences please, without bold.",
        "Could you write that as an ordinary paragraph instead of a list?",
        "Stop using bullet points and bold, just talk to me in plain sentences.",
        "That looks like a manual. No lists, no headings, plain prose please.",
        "I'd prefer normal text over bullet points.",
        "Write it out as a paragraph, please.",
        "No lists, headings or bold.",
        "Schreib Fließtext statt Listen.",
        "Bitte keine Bullet Points, schreib in ganzen Sätzen.",
        "Escribe texto corrido, sin listas.",
        "Pas de liste, écris des phrases complètes s'il te plaît.",
        "不要用列表，也不要粗体，请写成连贯的段落。",
        "箇条書きはやめて、普通の文章で書いてください。",
    ],
)
def test_plain_prose_means_no_lists_no_bold_no_headings(hint: str) -> None:
    assert wishes(hint) == PROSE


@pytest.mark.parametrize(
    ("hint", "found"),
    [
        ("I asked you not to use bold", {"no bold"}),
        ("drop the headings", {"no headings"}),
        ("Enough with the bullets already.", {"no lists"}),
        ("the bullet points are annoying", {"no lists"}),
        ("Just talk to me normally, no headings or bold.", {"no headings", "no bold"}),
        ("no markdown", PROSE | {"no tables"}),
        ("too long, two sentences are enough", {"at most 2 sentences"}),
        ("a sentence or two is fine", {"at most 2 sentences"}),
        ("one or two sentences", {"at most 2 sentences"}),
        ("One sentence would have been plenty.", {"at most 1 sentence"}),
        ("way too long, make it 100 words", {"at most 100 words"}),
        ("keep it under 50 words", {"at most 50 words"}),
        ("at least 200 words", {"at least 200 words"}),
        ("Keep it to one paragraph.", {"at most 1 paragraph"}),
        ("Shorter please", {f"at most {BRIEF_WORDS} words"}),
        ("Be brief.", {f"at most {BRIEF_WORDS} words"}),
        ("more detail please", {f"at least {LONG_WORDS} words"}),
        ("skip the emojis", {"no emoji"}),
        ("no emojis please", {"no emoji"}),
        ("write everything in lowercase", {"all in lowercase"}),
        ("no capital letters", {"all in lowercase"}),
        ("all caps please", {"all in capitals"}),
        ("Don't end with a question", {"no questions"}),
        ("stop asking me follow-up questions", {"no questions"}),
        ("End with a question", {"a question"}),
        ('Start with "Hey Sam"', {"begins with “Hey Sam”"}),
        ("don't start with 'Sure'", {"does not begin with “Sure”"}),
        ('stop saying "As an AI"', {"does not say “As an AI”"}),
        ('End with "Cheers"', {"ends with “Cheers”"}),
        ("answer in Spanish", {"in Spanish"}),
        ("no code, just explain it", {"no code"}),
        ("Put it in a table", {"a table"}),
        ("no tables", {"no tables"}),
        ("As a bulleted list please", {"a list"}),
        ("I'd like bullet points", {"a list"}),
        ("Use lists, not paragraphs", {"a list"}),
        ("Bitte ohne Aufzählung und ohne Fettschrift.", {"no lists", "no bold"}),
        ("höchstens zwei Sätze", {"at most 2 sentences"}),
        ("auf Deutsch bitte", {"in German"}),
        ("sin listas ni negritas", {"no lists", "no bold"}),
        ("en una frase", {"at most 1 sentence"}),
        ("sans titres ni gras", {"no headings", "no bold"}),
        ("deux phrases maximum", {"at most 2 sentences"}),
        ("不要加粗，也不要标题", {"no bold", "no headings"}),
        ("最多两句话", {"at most 2 sentences"}),
        ("太长了", {f"at most {BRIEF_WORDS} words"}),
        ("太字や見出しは使わないでください", {"no bold", "no headings"}),
        ("二文以内で", {"at most 2 sentences"}),
        ("日本語で答えて", {"in Japanese"}),
    ],
)
def test_wishes_are_read_from_everyday_words(hint: str, found: set[str]) -> None:
    assert wishes(hint) == found


@pytest.mark.parametrize(
    "hint", ["Thanks!", "It's Canberra.", "add milk to the list", "Don't answer in English", "Make it rhyme", ""]
)
def test_what_cannot_be_verified_gives_no_check(hint: str) -> None:
    assert infer_checks([hint]) == []


def test_what_is_named_outweighs_what_is_meant_in_general() -> None:
    assert wishes("Plain prose, but with bold key words") == {"no lists", "no headings", "something in bold"}


def test_a_later_hint_replaces_what_it_clashes_with() -> None:
    assert wishes("no lists, no bold", "use lists again") == {"no bold", "a list"}
    assert wishes("at most 50 words", "two sentences are enough") == {"at most 2 sentences"}
    assert wishes("no lists please", "markdown is fine again") == set()


def test_the_same_wish_twice_is_one_check() -> None:
    assert infer_checks(["no lists", "please, no lists!"]) == [Check("no_lists")]


def test_a_text_as_wished_scores_one() -> None:
    assert score("Plain and short.", infer_checks(["plain prose", "two sentences"])) == 1.0


def test_a_text_that_breaks_any_wish_never_scores_above_minus_a_half() -> None:
    checks = [Check("no_lists"), Check("no_bold"), Check("no_headings")]
    one_broken, all_broken = score("- a list", checks), score("# A\n- **b**", checks)
    assert one_broken == pytest.approx(-1 + 0.5 * 2 / 3)
    assert all_broken == -1.0


def test_an_empty_text_is_worthless_and_without_checks_nothing_is_said() -> None:
    assert score(" \n", [Check("no_lists")]) == -1.0
    assert score("fine", []) is None


@pytest.mark.parametrize(
    ("kind", "value"), [("nonsense", None), ("no_lists", 3), ("max_words", None), ("max_words", "3"), ("avoids", 2)]
)
def test_a_check_that_makes_no_sense_is_refused(kind: str, value: int | str | None) -> None:
    with pytest.raises(ValueError, match=r"check"):
        Check(kind, value)


def _any_check() -> st.SearchStrategy[Check]:
    def build(kind: str, number: int, words: str) -> Check:
        for value in (None, number, words):
            try:
                return Check(kind, value)
            except ValueError:
                continue
        raise AssertionError(kind)

    return st.builds(build, st.sampled_from(KINDS), st.integers(1, 500), st.text(min_size=1, max_size=20))


@given(_any_check())
def test_a_check_survives_being_stored(check: Check) -> None:
    assert Check.from_dict(check.to_dict()) == check
    assert check.describe()


@given(st.text(max_size=300), st.lists(_any_check(), min_size=1, max_size=5), st.text(max_size=200))
def test_any_text_can_be_scored(text: str, checks: list[Check], question: str) -> None:
    value = score(text, checks, question)
    tells = [check.judge(text, question) for check in checks if check.judge(text, question) is not None]
    assert (value is None) == (not tells)
    assert value is None or value == 1.0 or -1.0 <= value < -0.5 + 1e-9


@given(st.text(max_size=300))
def test_any_text_can_be_read_as_a_wish(text: str) -> None:
    assert all(isinstance(check, Check) for check in infer_checks([text]))


@given(st.text(max_size=200))
def test_a_list_is_either_there_or_not(text: str) -> None:
    assert Check("no_lists").passes(text) != Check("uses_list").passes(text)


@pytest.mark.parametrize(
    ("hint", "wished"),
    [
        ("Two sentences are not enough any more. Give me four at least.", Check("min_sentences", 3)),
        ("Two sentences are not enough any more, write at least four sentences.", Check("min_sentences", 4)),
        ("One sentence isn't enough for this.", Check("min_sentences", 2)),
        ("I need longer answers now, five sentences or more.", Check("min_sentences", 5)),
        ("Not more than three sentences.", Check("max_sentences", 3)),
        ("zwei Sätze reichen nicht", Check("min_sentences", 3)),
        ("dos frases no bastan", Check("min_sentences", 3)),
        ("四句话以上", Check("min_sentences", 4)),
        ("I changed my mind: bullet points again, please.", Check("uses_list")),
    ],
)
def test_a_wish_that_takes_an_earlier_one_back_is_read_as_its_opposite(hint: str, wished: Check) -> None:
    assert infer_checks(["Two sentences max, no lists.", hint])[-1] == wished
    assert wished in infer_checks([hint])


def test_a_complaint_about_lists_is_no_wish_for_them() -> None:
    assert Check("uses_list") not in infer_checks(["You used bullet points again."])
