"""The gate lets good candidates pass and stops bad ones. Measurements are made up here: deciding is all it does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claw_local.adapters.gate import GateReport, Guard, Probe, decide
from claw_local.adapters.interval import bootstrap
from claw_local.settings import GateSettings

LONG = "one two three four five six seven eight nine ten"


def probes(count: int = 12, **changes: object) -> list[Probe]:
    base = Probe(
        question="q",
        held_out=False,
        before=LONG,
        after=LONG,
        divergence_before=0.5,
        divergence_after=0.2,
        score_before=-1.0,
        score_after=1.0,
    )
    made = [replace(base, **changes) for _ in range(count)]  # type: ignore[arg-type]
    # A little spread, so that the interval is one.
    return [
        replace(p, divergence_before=p.divergence_before and p.divergence_before + n / 100) for n, p in enumerate(made)
    ]


def apart(after: str) -> list[Probe]:
    """Different questions, answered differently before, and with `after` (the question's word in it) now."""
    words = "apple bridge cloud drum engine flute garden harbour island jacket kettle lemon".split()
    return [
        replace(
            p,
            question=f"What is the {w} of my house for, and is it good?",
            before=f"The {w} has {w}s and {w}ness, which is {w} all over.",
            after=after.format(w),
        )
        for w, p in zip(words, probes(), strict=True)
    ]


def verdict(made: list[Probe], *, length_wished: bool = False, **guard: float) -> GateReport:
    measured = Guard(**{"kl_base": 0.1, "declined_before": 0.5, "declined_after": 0.5, **guard})
    return decide(made, guard=measured, wished={"length"} if length_wished else (), bounds=GateSettings())


def test_a_better_candidate_is_taken() -> None:
    report = verdict(probes())
    assert report.accepted
    assert report.reason.startswith("Taken: ")
    assert report.gains["divergence"].low > 0


@pytest.mark.parametrize(
    ("made", "options", "word"),
    [
        (probes(after="one two"), {}, "2 words on average, fewer than 6"),
        (probes(after="one", hinted="one two three four"), {"length_wished": True}, "fewer than 2"),
        (apart("I'm sorry, but I cannot help with {} today."), {}, "declines ordinary"),
        (apart("It depends on many things, so think it over well and ask a friend."), {}, "says the same"),
        (probes(), {"known_before": 0.9, "known_after": 0.6}, "forgot simple facts (60% known, 90% before)"),
        (probes(), {"declined_after": 0.1}, "harmful requests"),
        (probes(after=""), {"length_wished": True}, "empty"),
        (probes(after=" ".join(["again and again"] * 20)), {}, "repeats"),
        (
            apart("La casa de {} es muy bonita y el jardín está en la calle con un árbol y no es para mí."),
            {},
            "language",
        ),
        (probes(), {"lean_before": 1.0, "lean_after": -9.0}, "leans towards"),
        (probes(), {"kl_base": 3.0}, "too far"),
        (probes(), {"kl_base": float("nan")}, "too far"),
        (probes(divergence_after=0.9), {}, "further"),
        (probes(score_after=-1.0, divergence_before=None, divergence_after=None), {}, "no better"),
        (probes(score_before=1.0, score_after=0.5), {}, "worse"),
        (probes(divergence_before=None, score_before=None), {}, "nothing yet to measure"),
        ([], {}, "nothing yet to measure"),
        (probes(count=1), {}, "no better"),
    ],
)
def test_a_candidate_that_broke_something_is_not(made: list[Probe], options: dict[str, float], word: str) -> None:
    report = verdict(made, **options)  # type: ignore[arg-type]
    assert not report.accepted
    assert word in report.reason


def test_giving_the_question_back_is_no_answer() -> None:
    echoes = [replace(p, after=f"You asked: {p.question}") for p in apart("{}")]
    assert "gives the question back" in verdict(echoes).reason
    assert verdict([replace(p, after=p.before) for p in echoes]).accepted


def test_another_language_is_no_fault_where_it_was_wished_for() -> None:
    spanish = apart("La casa de {0} es muy bonita y el jardín de {0} está en la calle con el árbol de {0}.")
    told = decide(spanish, guard=Guard(), wished={"language"}, bounds=GateSettings(max_sameness=1.0))
    assert told.accepted, told.reason


def test_a_change_too_small_to_see_is_no_reason_to_accept() -> None:
    tiny = [replace(p, divergence_before=0.5, divergence_after=0.499 - n / 1e5) for n, p in enumerate(probes())]
    report = verdict([replace(p, score_before=1.0) for p in tiny])
    assert report.gains["divergence"].low > 0
    assert not report.accepted and "no better" in report.reason


def test_one_that_outdoes_its_teacher_need_not_be_like_it() -> None:
    further = probes(divergence_after=0.9, kept_before=0.0, kept_after=1.0, kept_hinted=0.5)
    assert verdict(further).accepted
    assert "| 0% | further away |" in verdict(further).as_markdown()
    behind = [replace(p, kept_hinted=1.0, kept_after=0.9) for p in further]
    assert "further than before" in verdict(behind).reason
    unseen = [replace(p, score_before=None, kept_after=None) for p in further]
    assert not verdict(unseen).accepted, "where no check can tell, the teacher is all there is"


def test_looking_twice_asks_for_a_wider_interval() -> None:
    unsure = [replace(p, score_after=-1.0 + n**2 % 7 / 3.5) for n, p in enumerate(probes())]

    def looked(looks: int) -> GateReport:
        return decide(unsure, guard=Guard(), bounds=GateSettings(), looks=looks)

    once, twice = looked(1).gains["checks"], looked(2).gains["checks"]
    assert twice.low < once.low and twice.high > once.high


def test_it_is_settled_only_when_more_answers_could_hardly_change_the_word() -> None:
    assert verdict(probes()).settled, "clearly better"
    assert verdict(probes(), kl_base=3.0).settled, "clearly broken"
    wavering = [replace(p, score_after=1.0 if n == 3 else -1.0) for n, p in enumerate(probes())]
    report = verdict(wavering)
    assert report.accepted and not report.settled, "by divergence alone, the checks being unsure"
    same = probes(divergence_before=None, divergence_after=None, score_after=-1.0)
    assert not verdict(same).settled
    perhaps = [replace(p, score_after=-1.0 if n % 4 else 1.0, score_before=-0.1) for n, p in enumerate(probes())]
    assert "worse" in verdict(perhaps).reason and not verdict(perhaps).settled, "a second answer may show otherwise"


def test_what_was_cut_short_names_what_was_lost_and_nothing_else() -> None:
    few = probes(count=3, divergence_before=None, score_before=None, score_after=None)
    report = decide(few, guard=Guard(kl_base=2.0), bounds=GateSettings(), cut_short=True)
    assert not report.accepted and "too far" in report.reason and "better" not in report.reason
    brief = [replace(p, after="One.") for p in few]
    asked_for = decide(brief, guard=Guard(kl_base=2.0), bounds=GateSettings(), wished={"length"}, cut_short=True)
    assert "words" not in asked_for.reason, "a short answer may be what was wished for"
    assert "asked only 3 questions" in report.as_markdown() and len(report.examples) == 3


def test_short_answers_pass_when_they_were_wished_for() -> None:
    assert verdict(probes(after="one two", hinted="one two three"), length_wished=True).accepted
    assert not verdict(probes(after="one two", hinted="one two three")).accepted


def test_how_short_is_too_short_is_taken_from_the_answers_that_keep_the_wish() -> None:
    """Told "two sentences", a small model keeps to it half of the time: what it says else is no measure."""
    long, short = "a long one " * 20, "these are ten words " * 2 + "and two"
    told = [
        replace(
            p, before=long, hinted=short if n % 2 else long, kept_hinted=float(n % 2), kept_before=0.0, kept_after=1.0
        )
        for n, p in enumerate(probes(after="of it are only seven words left"))
    ]
    assert verdict(told, length_wished=True).accepted
    cut = [replace(p, after="No. Yes.") for p in told]
    assert "fewer than 6" in verdict(cut, length_wished=True).reason
    rarely = [replace(p, kept_hinted=float(n < 2)) for n, p in enumerate(told)]
    assert "fewer than" in verdict(rarely, length_wished=True).reason, "two answers are too few to go by"


def test_without_hints_the_judged_replies_decide() -> None:
    plain = {"divergence_before": None, "score_before": None, "score_after": None}
    liked = [replace(p, margin=0.2 + n / 50) for n, p in enumerate(probes(**plain))]
    assert verdict(liked).accepted
    assert not verdict([replace(p, margin=-(p.margin or 0)) for p in liked]).accepted


def test_bootstrap_interval_holds_the_mean_and_narrows_with_more_turns() -> None:
    few, many = bootstrap([0.0, 1.0] * 3, 0.9), bootstrap([0.0, 1.0] * 300, 0.9)
    assert few.low <= 0.5 <= few.high
    assert few.mean == many.mean == 0.5
    assert many.high - many.low < 0.3 * (few.high - few.low)


def test_the_report_reads_as_text_and_json() -> None:
    made = probes(kept_before=0.25, kept_after=1.0, kept_hinted=0.75)
    report = decide(
        made,
        guard=Guard(kl_base=0.1),
        bounds=GateSettings(),
        wished={"list"},
        wishes=["no lists", "at most 2 sentences"],
    )
    assert report.reason == (
        "Taken: it is 64% closer to how it answers when told your wishes (12 questions); "
        "without being told, 100% of its answers keep your wishes, 25% before (12 questions)."
    )
    text = report.as_markdown()
    assert "Your wishes: no lists, at most 2 sentences." in text
    assert "| Answers that keep your wishes by themselves | 25% | 100% | 75% when told them |" in text
    assert "| Words in an answer | 10 | 10 | at least 6 |" in text
    assert "| Distance from the base model |  | 0.10 | at most 0.50 |" in text
    assert "nats" not in text, "a person's words"
    assert text.count("Before:") == text.count("Now:") == 3
    assert report.as_json()["gains"]["checks"]["count"] == 12
    assert len(report.examples) == 3


def test_a_wish_that_moves_every_word_may_take_it_as_far_as_it_goes_when_told() -> None:
    assert verdict(probes(), kl_base=0.9, kl_told=1.0).accepted
    assert "distance 1.10, at most 1.00" in verdict(probes(), kl_base=1.1, kl_told=1.0).reason
    assert not verdict(probes(), kl_base=0.6, kl_told=0.1).accepted, "it is never less than the setting"


def test_the_bounds_are_settings() -> None:
    far = Guard(kl_base=0.6)
    assert not decide(probes(), guard=far, bounds=GateSettings()).accepted
    assert decide(probes(), guard=far, bounds=GateSettings(max_kl_base=0.7)).accepted
