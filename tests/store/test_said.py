"""What the Up key brings back: the person's last messages, from every chat that is still there."""

from __future__ import annotations

from claw_local.paths import Paths
from claw_local.store import Store
from claw_local.store.messages import LONGEST_SAID
from claw_local.talking.text import first_words


def test_the_last_messages_come_newest_first_each_once(home: Paths) -> None:
    store = Store(home)
    for chat, said in (("a", ["one", "two"]), ("b", ["one", "three"])):
        chat_id = store.chats.create(title=chat).id
        for text in said:
            store.messages.go_on(chat_id, text, learn="off")
    assert store.messages.said(10) == ["three", "one", "two"]
    assert store.messages.said(2) == ["three", "one"]


def test_deleted_imported_side_and_very_long_messages_are_left_out(home: Paths) -> None:
    store = Store(home)
    kept, deleted, imported = (store.chats.create(title=title).id for title in ("kept", "deleted", "imported"))
    for chat_id in (kept, deleted, imported):
        store.messages.go_on(chat_id, f"in {chat_id}", learn="off")
    store.messages.add(kept, "user", "a side turn", parent_id=None, turn_type="side")
    store.messages.add(kept, "user", "x" * (LONGEST_SAID + 1), parent_id=None)
    store.chats.update(deleted, deleted_at="2026-01-01T00:00:00+00:00")
    store.chats.update(imported, origin="chatgpt", origin_id="1")
    assert store.messages.said(10) == [f"in {kept}"]


def test_a_title_is_made_of_the_persons_words_or_of_the_files_name() -> None:
    assert first_words("Sum up @a.md\n\n````attached a.md\nsecret\n````") == "Sum up @a.md"
    assert first_words("````attached a.md\nsecret\n````") == "a.md"
