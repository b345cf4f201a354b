"""A disk that is full or fails: what is said goes on in memory, and comes back into the file with all it needs.

A limit on the size of files stands for the disk: beyond it every write fails, as on a broken one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from claw_local.errors import ClawError, DiskError, StoreError
from claw_local.idle.activity import note
from claw_local.idle.learning import SWITCH
from claw_local.paths import Paths
from claw_local.store import Store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX")


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    chat = opened.chats.create(title="kites")
    _, _, reply = opened.messages.go_on(chat.id, "hello wind")
    opened.messages.fail(reply, "done")
    yield opened
    with suppress(ClawError):
        opened.close()


@pytest.fixture
def broken(store: Store) -> Iterator[Callable[[bool], None]]:
    """Break the disk (True), and mend it (False)."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def set_to(broken: bool) -> None:
        if broken:
            with store.database.read() as db:
                db.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 if broken else soft, hard))

    yield set_to
    set_to(False)


def turn(store: Store, title: str, question: str) -> tuple[int, int, int]:
    """A chat with one finished turn, however it can be kept: (chat, question, reply)."""

    def put() -> tuple[int, int, int]:
        with store.database.write():
            chat = store.chats.create(title=title).id
            _, user, reply = store.messages.go_on(chat, question)
            return chat, user, reply

    chat, user, reply = store.database.keeping(put)
    for piece in ("It ", "is."):
        store.database.keeping(lambda piece=piece: store.messages.append_piece(reply, piece))
    store.database.keeping(lambda: store.messages.fail(reply, "done"))
    return chat, user, reply


def said(store: Store, chat: int) -> list[str]:
    return [message.content for message in store.messages.branch(store.chats.get(chat).head_id)]


def test_it_goes_on_in_memory_and_comes_back_whole(store: Store, home: Paths, broken: Callable[[bool], None]) -> None:
    broken(True)
    chat, _, reply = turn(store, "storms", "is it stormy?")
    assert "in memory only" in store.database.adrift
    assert said(store, chat) == ["is it stormy?", "It is."]
    store.signals.add(reply, "thumb", 1)
    hint = store.hints.add("Short answers, please.", message_id=reply, chat_id=chat, scope="everywhere")
    store.messages.go_on(1, "more wind")
    store.chats.update(1, title="kites and wind")
    broken(False)
    store.close()
    again = Store(home)
    assert again.database.adrift == ""
    assert said(again, chat) == ["is it stormy?", "It is."]
    assert said(again, 1)[:3] == ["hello wind", "", "more wind"]
    assert again.signals.of([reply])[reply][0].score == 1
    assert (again.hints.get(hint.id).message_id, again.hints.get(hint.id).chat_id) == (reply, chat)
    assert [hit.chat_id for hit in again.search.find("stormy", limit=5)] == [chat]
    assert [hit.chat_id for hit in again.search.find("kites and wind", limit=5)] == [1]
    again.close()


def test_it_comes_back_by_itself_while_it_is_open(
    store: Store, broken: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claw_local.store.adrift.RETRY_S", 0.0)
    broken(True)
    chat, _, _ = turn(store, "storms", "is it stormy?")
    assert store.database.adrift
    broken(False)
    other, _, _ = turn(store, "fog", "is it foggy?")
    assert store.database.adrift == ""
    assert said(store, chat) == ["is it stormy?", "It is."] and said(store, other) == ["is it foggy?", "It is."]


def test_numbers_that_another_program_gave_meanwhile_stay_its_own(
    store: Store, home: Paths, broken: Callable[[bool], None]
) -> None:
    broken(True)
    chat, _, _ = turn(store, "storms", "is it stormy?")
    broken(False)
    other = Store(home)
    theirs, _, _ = turn(other, "theirs", "their words")
    assert theirs == chat
    other.close()
    store.close()
    again = Store(home)
    titles = {record.title: record.id for record in again.chats.list()}
    assert said(again, titles["theirs"]) == ["their words", "It is."]
    assert said(again, titles["storms"]) == ["is it stormy?", "It is."]
    again.close()


def test_a_chat_that_was_deleted_elsewhere_keeps_what_was_said_since(
    store: Store, home: Paths, broken: Callable[[bool], None]
) -> None:
    broken(True)
    store.database.keeping(lambda: store.messages.go_on(1, "still there?"))
    broken(False)
    other = Store(home)
    other.chats.delete(1)
    other.close()
    store.close()
    again = Store(home)
    assert "still there?" in said(again, 1)
    again.close()


def test_what_cannot_be_saved_to_the_end_is_said(store: Store, home: Paths, broken: Callable[[bool], None]) -> None:
    broken(True)
    turn(store, "storms", "is it stormy?")
    assert "in memory" not in store.database.only_read and "only read" in store.database.only_read
    with pytest.raises(DiskError, match=r"what was said or imported .* is not kept"):
        store.close()
    broken(False)
    again = Store(home)
    assert [record.title for record in again.chats.list()] == ["kites"]
    again.close()


def test_a_switch_that_cannot_be_kept_is_said(store: Store, home: Paths, broken: Callable[[bool], None]) -> None:
    broken(True)
    store.database.keeping(lambda: store.flags.set(SWITCH, "on"))
    with pytest.raises(DiskError, match="what was to be changed stays as it was"):
        store.close()
    broken(False)
    again = Store(home)
    assert again.flags.get(SWITCH) == ""
    again.close()


def test_what_programs_note_by_themselves_is_no_loss(store: Store, broken: Callable[[bool], None]) -> None:
    broken(True)
    store.database.keeping(lambda: note(store))
    assert store.database.adrift
    store.close()


def test_keys_are_neither_added_nor_removed_in_memory_only(store: Store, broken: Callable[[bool], None]) -> None:
    store.keys.add("laptop", "secret-1", learn=False)
    broken(True)
    turn(store, "storms", "is it stormy?")
    with pytest.raises(StoreError, match="disk is full"):
        store.keys.add("phone", "secret-2", learn=False)
    with pytest.raises(StoreError, match="disk is full"):
        store.keys.remove("laptop")
    assert [key.name for key in store.keys.list()] == ["laptop"]
    broken(False)
    store.close()


def test_switches_come_back_with_the_rest(store: Store, home: Paths, broken: Callable[[bool], None]) -> None:
    store.flags.set("draft/1", "half a thought")
    broken(True)

    def change() -> None:
        store.flags.set(SWITCH, "on")
        with store.database.write() as db:
            db.conn.execute("delete from flags where name = 'draft/1'")

    store.database.keeping(change)
    assert store.database.adrift
    broken(False)
    store.close()
    again = Store(home)
    assert again.flags.get(SWITCH) == "on" and again.flags.get("draft/1", "none") == "none"
    again.close()


def test_the_tools_a_reply_was_told_of_come_back_with_it(
    store: Store, home: Paths, broken: Callable[[bool], None]
) -> None:
    """Under the number they have in the file by then: another program may have kept a set of its own, or the same."""
    known = store.tool_calls.toolset_id('["known"]')
    broken(True)
    replies = {}
    for specs in ('["known"]', '["mine"]', '["both"]'):

        def put(specs: str = specs) -> int:
            with store.database.write():
                toolset = store.tool_calls.toolset_id(specs)
                return store.messages.add(1, "assistant", specs, parent_id=None, toolset_id=toolset)

        replies[specs] = store.database.keeping(put)
    broken(False)
    other = Store(home)
    theirs = [other.tool_calls.toolset_id(specs) for specs in ('["both"]', '["theirs"]')]
    other.close()
    store.close()
    again = Store(home)
    for specs, reply in replies.items():
        assert again.tool_calls.toolset(again.messages.get(reply).toolset_id) == specs
    with again.database.read() as db:
        sets = dict(db.execute("select id, specs from toolsets").fetchall())
    assert sets[known] == '["known"]' and [sets[one] for one in theirs] == ['["both"]', '["theirs"]']
    assert sorted(sets.values()) == ['["both"]', '["known"]', '["mine"]', '["theirs"]']
    again.close()


def test_half_of_a_transaction_is_never_done_again(store: Store, broken: Callable[[bool], None]) -> None:
    """What fails inside a transaction is undone with all of it; whoever began it may do it again."""
    broken(True)
    calls = []

    def outer() -> None:
        with store.database.write():
            calls.append(1)
            chat = store.chats.create(title="storms").id
            store.database.keeping(lambda: store.messages.go_on(chat, "x" * 20_000))

    store.database.keeping(outer)
    assert calls == [1, 1]
    assert [record.title for record in store.chats.list()] == ["storms", "kites"]
