"""Archiving, deleting, copying, drafts, and what becomes of lessons."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from claw_local.errors import NotFoundError, UsageError
from claw_local.history import History
from claw_local.paths import Paths
from claw_local.signals.scores import over_time
from claw_local.signals.turns import pair
from claw_local.store import Store
from tests.store.test_chats import generation


def a_lesson(store: Store, title: str = "lesson") -> tuple[int, int]:
    """A chat whose reply has everything that can hang on one. Returns (chat, reply)."""
    chat = store.chats.create(title=title)
    _, reply = store.messages.begin_turn(chat.id, "how do kites fly", parent_id=None)
    store.messages.finish(reply, generation("by lift"), state="done", timings={})
    store.messages.add(chat.id, "user", "shorter", parent_id=reply)
    store.signals.add(reply, "thumb", -1, hint="shorter please")
    store.hints.add("shorter please", message_id=reply, chat_id=chat.id)
    store.samples.put(reply, "train", -1, "shorter please")
    return chat.id, reply


def everything(store: Store, history: History) -> dict[str, object]:
    return {
        "list": [chat.id for chat in store.chats.list()],
        "archive": [chat.id for chat in store.chats.list(archived=True)],
        "search": [found.message_id for found in history.search("lift")],
        "title": [found.chat_id for found in history.search("lesson")],
        "turns": [turn.reply.id for turn in pair(store)],
        "hints": [hint.id for hint in store.hints.list()],
        "all hints": [hint.id for hint in store.hints.list(state=None)],
        "samples": [sample.message_id for sample in store.samples.list()],
        "waiting": store.samples.count_waiting(),
        "unjudged": store.samples.count_unjudged(),
        "judged": store.signals.newest_judged(10),
        "of adapters": store.signals.last_judged("", 0),
    }


def test_a_deleted_chat_is_gone_from_every_list_search_and_lesson_and_comes_back_whole(
    store: Store, history: History
) -> None:
    store.messages.describe(a_lesson(store)[1], model_sha256="")
    chat_id, _ = a_lesson(store)
    store.chats.delete(1)
    before = everything(store, history)
    assert all(before[name] for name in before if name not in ("archive", "of adapters", "unjudged"))
    history.delete(chat_id)
    assert not any(everything(store, history).values())
    assert store.messages.let_past_teach() == 0
    history.undelete(chat_id)
    assert everything(store, history) == before


def test_purging_removes_only_what_was_deleted_long_enough_ago(store: Store, history: History) -> None:
    kept, _ = a_lesson(store)
    gone, _ = a_lesson(store)
    history.delete(gone)
    assert history.purge(older_than_s=60) == 0
    assert history.purge() == 1
    with pytest.raises(NotFoundError):
        store.chats.get(gone)
    assert store.chats.get(kept).id == kept
    assert store.database.db.table("search_docs").count_where("chat_id = ?", [gone]) == 0


def test_what_is_deleted_for_good_leaves_no_word_on_the_disk(home: Paths, store: Store, history: History) -> None:
    chat_id, _ = a_lesson(store)
    kept = store.chats.create(title="kept")
    store.messages.add(kept.id, "user", "unremarkable words", parent_id=None)
    store.messages.add(chat_id, "user", "an unforgettable secret", parent_id=None)
    history.delete_for_good(chat_id)
    store.close()
    files = [file.read_bytes() for file in store.database.path.parent.glob("claw-local.db*")]
    assert not any(b"unforgettable" in data or b"by lift" in data for data in files)
    assert any(b"unremarkable" in data for data in files)
    store = Store(home)
    rows = store.database.db.execute("select count(*) from search where search match 'lift OR lesson OR kites'")
    assert rows.fetchone() == (0,)


def test_archiving_takes_a_chat_out_of_the_list_but_not_out_of_searches(store: Store, history: History) -> None:
    chat_id, reply = a_lesson(store)
    stamp = store.chats.get(chat_id).updated_at
    history.archive(chat_id)
    assert store.chats.list() == []
    assert [chat.id for chat in store.chats.list(archived=True)] == [chat_id]
    assert [found.message_id for found in history.search("lift")] == [reply]
    history.unarchive(chat_id)
    assert [(chat.id, chat.updated_at) for chat in store.chats.list()] == [(chat_id, stamp)]


def test_a_draft_is_kept_without_making_the_chat_the_newest(store: Store, history: History) -> None:
    chat_id, _ = a_lesson(store)
    stamp = store.chats.get(chat_id).updated_at
    history.set_draft(chat_id, "half a thou\0ght")
    history.set_draft(None, "a new chat")
    assert history.draft(chat_id) == store.chats.get(chat_id).draft == "half a thought"
    assert history.draft(None) == "a new chat"
    assert store.chats.get(chat_id).updated_at == stamp


def test_what_is_typed_for_a_new_chat_is_one_text_for_each_open_program(home: Paths) -> None:
    first, second = Store(home), Store(home)
    one, two = History(first), History(second)
    one.set_draft(None, "typed here")
    assert two.draft(None) == ""
    two.set_draft(None, "and there")
    assert (one.draft(None), two.draft(None)) == ("typed here", "and there")
    one.close()
    two.close()
    later = [History(first), History(second), History(second)]
    assert sorted(history.draft(None) for history in later[:2]) == ["and there", "typed here"]
    assert later[2].draft(None) == ""
    later[0].set_draft(None, "")
    later[0].close()
    assert later[2].draft(None) == "", "what the other one has is not taken from it"


def test_what_was_typed_in_a_program_that_was_killed_or_an_older_version_is_there_again(
    store: Store, history: History
) -> None:
    store.flags.set("draft", "from before")
    store.flags.set("draft/abc/1:1", "typed and killed")
    assert history.draft(None) == "typed and killed"
    history.set_draft(None, "")
    assert history.draft(None) == "from before"
    assert History(store).draft(None) == ""


def test_a_copy_has_all_branches_and_shows_the_same_one(store: Store, history: History) -> None:
    chat_id, reply = a_lesson(store)
    question = store.messages.get(reply).parent_id
    store.messages.add(chat_id, "assistant", "another version", parent_id=question)
    adapter = store.adapters.add(parent_id=0, model_sha256="m", architecture="llama").id
    store.chats.update(chat_id, sampling={"temperature": 0.1}, system="Be kind.", adapter_id=adapter)
    copy = history.duplicate(chat_id)
    said = [(m.role, m.content) for m in store.messages.branch(copy.head_id)]
    assert said == [("user", "how do kites fly"), ("assistant", "another version")]
    assert (copy.title, copy.system, copy.sampling) == ("lesson (copy)", "Be kind.", {"temperature": 0.1})
    assert copy.adapter_id == adapter
    assert [m.content for m in history.messages(copy.id)] == [m.content for m in history.messages(chat_id)]
    copied_question, copied_reply, after, other = (m.id for m in history.messages(copy.id))
    assert [m.parent_id for m in history.messages(copy.id)] == [None, copied_question, copied_reply, copied_question]
    assert store.messages.versions_of([other])[other] == [copied_reply, other]
    assert store.messages.newest_below(copied_reply) == after
    assert len(history.search("another")) == 2
    store.chats.delete(chat_id)
    assert len(history.messages(copy.id)) == 4


def test_a_copy_shows_the_marks_and_teaches_nothing_twice(store: Store, history: History) -> None:
    chat_id, reply = a_lesson(store)
    with store.database.write() as db:
        db.execute("update messages set model_sha256 = 'm', adapter_id = 0 where id = ?", [reply])
    store.signals.add(reply, "judge", -1, hint="be short", votes=(-1, 0))
    before = everything(store, history), over_time(store, limit=9), store.signals.last_judged("m", 0)
    assert before[2] == [reply]
    copies = [history.duplicate(chat_id)]
    copies.append(history.duplicate(copies[0].id))
    for copy in copies:
        copied = history.messages(copy.id)[1].id
        marks = store.signals.of([copied])[copied]
        assert [(one.source, one.score, one.hint, one.votes) for one in marks] == [
            ("thumb", -1, "shorter please", ()),
            ("judge", -1, "be short", (-1, 0)),
        ]
        store.chats.update(copy.id, touch=False, archived=True)
    after = everything(store, history), over_time(store, limit=9), store.signals.last_judged("m", 0)
    for what in ("turns", "hints", "all hints", "samples", "waiting", "unjudged", "judged"):
        assert after[0][what] == before[0][what], what
    assert after[1:] == before[1:]
    assert store.signals.spoken_of(9) == [reply]


def test_a_hint_that_is_changed_or_removed_is_so_in_copies_too(store: Store, history: History) -> None:
    chat_id, reply = a_lesson(store)
    copied = history.messages(history.duplicate(chat_id).id)[1].id
    (hint,) = store.hints.of_message(reply)
    store.hints.set_text(hint.id, "two sentences")
    assert [one.hint for one in store.signals.of([copied])[copied]] == ["two sentences"]
    store.hints.remove(hint.id)
    assert [one.hint for one in store.signals.of([copied])[copied]] == [""]


def test_a_reply_that_is_being_written_is_not_copied(store: Store, history: History) -> None:
    chat = store.chats.create()
    store.messages.begin_turn(chat.id, "hi", parent_id=None)
    assert [m.content for m in store.messages.branch(history.duplicate(chat.id).head_id)] == ["hi"]


def test_says_which_adapters_learned_from_a_chat(store: Store, history: History) -> None:
    chat_id, reply = a_lesson(store)
    adapter = store.adapters.add(parent_id=0, model_sha256="m", architecture="llama", lineage=[reply])
    store.adapters.add(parent_id=0, model_sha256="m", architecture="llama", lineage=[reply + 100])
    assert [found.id for found in history.learned_from(chat_id)] == [adapter.id]


def test_a_title_has_at_least_one_word(store: Store, history: History) -> None:
    chat_id, _ = a_lesson(store)
    assert history.rename(chat_id, "  two \n words ").title == "two words"
    with pytest.raises(UsageError):
        history.rename(chat_id, " \n ")


def methods(history: History) -> list[Callable[[int], object]]:
    return [
        history.archive,
        history.delete,
        history.undelete,
        history.duplicate,
        history.markdown,
        history.delete_for_good,
        lambda chat_id: history.json([chat_id]),
    ]


def test_a_chat_that_is_not_there_is_said(history: History) -> None:
    for method in methods(history):
        with pytest.raises(NotFoundError, match="chat 7"):
            method(7)
