"""`claw-local forget` as it is typed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from claw_local.cli.forget import moment
from claw_local.cli.main import app
from claw_local.errors import UsageError
from claw_local.paths import Paths
from claw_local.store import Store


def claw(*words: str) -> Result:
    return CliRunner().invoke(app, ["forget", *words])


def as_json(*words: str) -> Any:
    result = claw(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def chat(home: Paths) -> int:
    store = Store(home)
    made = store.chats.create(title="About kites")
    question = store.messages.add(made.id, "user", "how do kites fly \x1b[31m", parent_id=None)
    store.messages.add(made.id, "assistant", "by lift", parent_id=question)
    store.close()
    return made.id


def test_shows_what_will_go_and_does_nothing_without_a_yes(chat: int, home: Paths) -> None:
    shown = claw(str(chat))
    assert shown.exit_code == 2
    assert "This goes: 1 chat, 2 messages." in shown.output
    assert "About kites: the whole chat" in shown.output
    assert "how do kites fly" in shown.output and "\x1b" not in shown.output
    assert "add --yes" in shown.output
    planned = claw(str(chat), "--json")
    assert planned.exit_code == 2 and '"messages": 2' in planned.output
    assert len(Store(home).chats.list()) == 1


def test_counts_what_a_person_sees_and_says_that_selectors_add_up(chat: int, home: Paths) -> None:
    store = Store(home)
    asked = store.messages.add(chat, "user", "a title, please", parent_id=None, turn_type="side")
    store.messages.add(chat, "assistant", "Kites", parent_id=asked, turn_type="side")
    store.close()
    shown = claw(str(chat))
    assert "This goes: 1 chat, 2 messages." in shown.output
    assert "any of them" not in shown.output
    assert "everything goes that fits any of them" in claw(str(chat), "--since", "1m").output
    assert "any of them" in " ".join(claw("--help").output.split())


def test_forgets_and_lists_the_receipt_without_a_word_of_it(chat: int, home: Paths) -> None:
    assert as_json("--receipts") == {"receipts": []}
    said = claw("--containing", "KITES", "--yes")
    assert said.exit_code == 0, said.output
    assert "Forgotten: 1 chat, 2 messages." in said.output
    assert "Nothing of it is left in this home." in said.output
    (receipt,) = as_json("--receipts")["receipts"]
    assert receipt["asked"] == {"containing": True} and "kites" not in json.dumps(receipt).lower()
    assert "1 chat, 2 messages" in claw("--receipts").output
    assert claw("--sweep").exit_code == 0
    assert Store(home).chats.list() == []


def test_wrong_use_is_said_in_a_sentence(chat: int) -> None:
    for words in (
        ("--yes",),
        ("--since", "whenever", "--yes"),
        ("--since", "2999-01-01", "--yes"),
    ):
        result = claw(*words)
        assert result.exit_code == 2, words
        assert "Traceback" not in result.output and result.output.strip().endswith((".", "'."))


def test_where_there_is_nothing_to_forget_it_could_not(chat: int) -> None:
    for words in (("--containing", "nobody said this", "--yes"), ("--sweep",), ("99", "--yes")):
        result = claw(*words)
        assert result.exit_code == 1, words
        assert "Traceback" not in result.output and result.output.strip().endswith((".", "'."))


def test_times_are_understood_as_people_say_them() -> None:
    now = datetime(2026, 3, 14, 15, 0, tzinfo=timezone(timedelta(hours=1)))
    assert moment("30m", now) == "2026-03-14T13:30:00.000000+00:00"
    assert moment("2 d", now) == "2026-03-12T14:00:00.000000+00:00"
    assert moment("today", now) == "2026-03-13T23:00:00.000000+00:00"
    assert moment("Yesterday", now) == "2026-03-12T23:00:00.000000+00:00"
    assert moment("2026-03-01", now) == "2026-02-28T23:00:00.000000+00:00"
    assert moment("2026-03-01T18:00Z", now) == datetime(2026, 3, 1, 18, tzinfo=UTC).isoformat(timespec="microseconds")
    for wrong in ("tomorrow", "5", "", "99999999d", "2026-03-15"):
        with pytest.raises(UsageError, match="no time that has been"):
            moment(wrong, now)


def test_an_option_that_only_looks_is_never_taken_for_forgetting(chat: int, home: Paths) -> None:
    for option in ("--sweep", "--receipts"):
        said = claw(str(chat), option, "--yes")
        assert said.exit_code == 2 and "nothing was forgotten" in said.output
    assert claw("--sweep", "--receipts").exit_code == 2
    assert len(Store(home).chats.list()) == 1


@pytest.mark.parametrize("what", [("--containing", "zzz"), ("--since", "0h"), ("--sweep",)])
def test_nothing_of_that_kind_is_no_wrong_use(chat: int, what: tuple[str, ...]) -> None:
    said = claw(*what)
    assert said.exit_code == 1 and ("nothing was forgotten" in said.output or "Nothing was forgotten" in said.output)


def test_feedback_on_a_question_is_no_wrong_use(home: Paths) -> None:
    store = Store(home)
    store.messages.add(store.chats.create().id, "user", "hello", parent_id=None)
    store.close()
    refused = CliRunner().invoke(app, ["feedback", "1", "good"])
    assert refused.exit_code == 1 and "not a reply" in refused.output
