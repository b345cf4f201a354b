"""Which conversation a request belongs to, by name or by the history it repeats."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from claw_local.paths import Paths
from claw_local.signals import sessions
from claw_local.signals.sessions import Line, Place
from claw_local.store import Store
from claw_local.store.database import now

ASKED = Line("user", "How do I boil an egg?")
ANSWER = Line("assistant", "Eight minutes.")
NEXT = Line("user", "Shorter.")


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


def keep(store: Store, lines: list[Line], *, key: int = 0, name: str = "", scope: str = "") -> tuple[int, list[int]]:
    """A conversation as it is kept. Returns the chat, and its messages."""
    chat_id = store.chats.create().id
    store.sessions.begin(chat_id, key, name)
    parent, ids = None, []
    for line, print_ in zip(lines, sessions.fingerprints(lines), strict=True):
        parent = store.messages.add(chat_id, line.role, line.text, parent_id=parent)
        sessions.note(store, key, print_, parent, scope=scope)
        ids.append(parent)
    return chat_id, ids


def test_a_history_goes_on_after_its_longest_known_beginning(store: Store) -> None:
    chat_id, ids = keep(store, [ASKED, ANSWER])
    assert sessions.find(store, 0, [ASKED, ANSWER, NEXT]) == Place(chat_id, ids[1], 2, tuple(ids))
    other = Line("assistant", "Ten minutes.")
    assert sessions.find(store, 0, [ASKED, other, NEXT]) == Place(chat_id, ids[0], 1, (ids[0],))
    assert sessions.find(store, 0, [NEXT]) == sessions.NOWHERE


def test_white_space_and_the_way_calls_are_written_do_not_count(store: Store) -> None:
    called = Line("assistant", "", (("look", '{"a": 1, "b": 2}'),))
    chat_id, ids = keep(store, [ASKED, called])
    again = [Line("user", " How do I  boil an egg?\n"), Line("assistant", "", (("look", '{"b":2,"a":1}'),)), NEXT]
    assert sessions.find(store, 0, again) == Place(chat_id, ids[1], 2, tuple(ids))


def test_what_another_key_or_another_user_said_is_never_found(store: Store) -> None:
    keep(store, [ASKED, ANSWER], key=1)
    keep(store, [ASKED, ANSWER], key=2, scope="ann", name="work")
    history = [ASKED, ANSWER, NEXT]
    assert sessions.find(store, 0, history) == sessions.NOWHERE
    assert sessions.find(store, 2, history) == sessions.NOWHERE
    assert sessions.find(store, 2, history, scope="bob") == sessions.NOWHERE
    assert sessions.find(store, 2, history, scope="ann").known == 2
    assert sessions.find(store, 1, history, name="work") == sessions.NOWHERE


def test_the_same_again_is_another_version_but_not_of_first_words(store: Store) -> None:
    _, ids = keep(store, [ASKED, ANSWER, NEXT])
    assert sessions.find(store, 0, [ASKED, ANSWER, NEXT]).again
    assert sessions.find(store, 0, [ASKED, ANSWER, NEXT]).parent_id == ids[2]
    assert sessions.find(store, 0, [ASKED]) == sessions.NOWHERE


def test_a_named_session_goes_on_whatever_is_repeated_until_it_ends(store: Store) -> None:
    chat_id, ids = keep(store, [ASKED, ANSWER], name="work")
    assert sessions.find(store, 0, [NEXT], name="work") == Place(chat_id, ids[1], 0)
    assert sessions.find(store, 0, [ASKED, ANSWER, NEXT], name="home") == sessions.NOWHERE
    store.sessions.touch(chat_id, ended=True)
    assert sessions.find(store, 0, [NEXT], name="work") == sessions.NOWHERE
    assert sessions.find(store, 0, [ASKED, ANSWER, NEXT]) == sessions.NOWHERE


def test_a_named_session_ends_by_time(store: Store) -> None:
    chat_id, _ = keep(store, [ASKED, ANSWER], name="work")
    with store.database.write() as db:
        db.execute("update sessions set last_at = '2020-01-01T00:00:00' where chat_id = ?", [chat_id])
    assert sessions.find(store, 0, [NEXT], name="work") == sessions.NOWHERE


def test_of_a_deleted_chat_nothing_is_known_any_more_and_its_rows_go_with_it(store: Store) -> None:
    chat_id, _ = keep(store, [ASKED, ANSWER], name="work")
    store.chats.delete(chat_id)
    assert sessions.find(store, 0, [ASKED, ANSWER, NEXT]) == sessions.NOWHERE
    with store.database.read() as db:
        assert db.table("sessions").count == db.table("session_prints").count == 0


def test_neither_names_nor_words_stand_in_what_sessions_are_known_by(store: Store) -> None:
    keep(store, [Line("user", "my secret")], name="secret-session")
    with store.database.read() as db:
        for table in ("sessions", "session_prints"):
            assert "secret" not in str(list(db.table(table).rows))


def test_fingerprints_are_bounded_the_oldest_go_first(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claw_local.store.served.MOST_PRINTS", 10)
    monkeypatch.setattr("claw_local.store.served._TRIM_EVERY", 2)
    keep(store, [Line("user", f"question {number}") for number in range(40)])
    with store.database.read() as db:
        kept = [row["message_id"] for row in db.table("session_prints").rows]
    assert 10 <= len(kept) <= 12 and min(kept) > 28


def test_what_programs_say_is_no_line_of_the_persons_to_call_back(store: Store) -> None:
    store.messages.add(store.chats.create().id, "user", "Mine.", parent_id=None)
    keep(store, [ASKED, ANSWER])
    assert store.messages.said(10) == ["Mine."]


def test_a_chat_that_was_deleted_is_nobodys_session_until_it_is_brought_back(store: Store) -> None:
    chat_id, _ = keep(store, [ASKED, ANSWER], key=7)
    store.chats.update(chat_id, deleted_at=now())
    assert store.sessions.key_of(chat_id) is None, "or a program could still teach by it"
    store.chats.update(chat_id, deleted_at="")
    assert store.sessions.key_of(chat_id) == 7
