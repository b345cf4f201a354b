"""What is typed in a stored chat, in several windows at once."""

from __future__ import annotations

import pytest

from claw_local.errors import NotFoundError
from claw_local.history import History
from claw_local.store import Store
from claw_local.store.forgetting import Request, counts, erase, find


def flags(store: Store) -> dict[str, str]:
    return store.flags.beginning("drafting/")


def test_no_window_writes_over_what_another_one_types(store: Store) -> None:
    chat = store.chats.create().id
    here, there = History(store), History(store)
    assert here.draft(chat) == there.draft(chat) == ""
    here.set_draft(chat, "here")
    there.set_draft(chat, "there")
    here.set_draft(chat, "here too")
    assert (here.draft(chat), there.draft(chat)) == ("here too", "there")
    assert store.chats.get(chat).draft == "here too"
    here.leave_draft(chat)
    there.leave_draft(chat)
    assert History(store).draft(chat) == "here too\nthere"


def test_who_shows_a_chat_in_which_another_window_types_begins_with_an_empty_field(store: Store) -> None:
    chat = store.chats.create().id
    here, there = History(store), History(store)
    here.set_draft(chat, "half a thought")
    assert there.draft(chat) == ""
    here.leave_draft(chat)
    assert there.draft(chat) == "half a thought"
    there.set_draft(chat, "a thought")
    assert store.chats.get(chat).draft == "a thought"


def test_what_is_beside_a_draft_takes_its_place_once_that_is_sent(store: Store) -> None:
    chat = store.chats.create().id
    here, there = History(store), History(store)
    here.set_draft(chat, "here")
    there.set_draft(chat, "there")
    there.close()
    assert store.chats.get(chat).draft == "here"
    here.set_draft(chat, "")
    assert store.chats.get(chat).draft == "there", "the list of chats marks it"
    here.set_draft(chat, "here again")
    assert store.chats.get(chat).draft == "there"
    here.set_draft(chat, "")
    assert here.draft(chat) == "there"
    here.set_draft(chat, "")
    assert store.chats.get(chat).draft == "" and not flags(store)


def test_what_a_window_that_was_killed_had_typed_is_there_again(store: Store) -> None:
    chat = store.chats.create().id
    store.chats.update(chat, draft="first")
    store.flags.set(f"drafting/{chat}", "abc/1:1")
    store.flags.set(f"drafting/{chat}/def/1:1", "second")
    window = History(store)
    assert window.draft(chat) == "first\nsecond"
    window.set_draft(chat, "third")
    assert store.chats.get(chat).draft == "third"
    assert list(flags(store)) == [str(chat)]


def test_a_chat_that_is_gone_keeps_no_texts(store: Store) -> None:
    chat, other = store.chats.create().id, store.chats.create().id
    here, there = History(store), History(store)
    for chat_id in (chat, other):
        here.set_draft(chat_id, "here")
        there.set_draft(chat_id, "there")
    here.delete_for_good(chat)
    assert set(flags(store)) == {name for name in flags(store) if name.split("/")[0] == str(other)}
    assert len(flags(store)) == 2
    with pytest.raises(NotFoundError):
        here.set_draft(chat, "late")
    there.leave_draft(chat)
    there.close()
    assert flags(store)[str(other)].split("/")[0] == here._chat_drafts._window


def test_a_text_that_is_forgotten_goes_from_beside_a_draft_too(store: Store) -> None:
    chat = store.chats.create().id
    here, there = History(store), History(store)
    here.set_draft(chat, "nothing")
    there.set_draft(chat, "the harbour at dawn")
    with store.database.write() as db:
        going = find(db, Request(containing="Harbour"))
        assert counts(db, going)["drafts"] == 1
        erase(db, going)
    assert there.draft(chat) == ""
    assert here.draft(chat) == "nothing"
