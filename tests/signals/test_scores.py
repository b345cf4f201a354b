"""What replies were worth over time, over a real store."""

from __future__ import annotations

from pathlib import Path

from claw_local.paths import locate
from claw_local.signals.scores import over_time
from claw_local.store import Store


def test_the_source_that_counts_most_decides_and_what_no_person_reacted_to_is_left_out(tmp_path: Path) -> None:
    store = Store(locate(tmp_path))
    chat = store.chats.create(title="x")
    parent, replies = None, []
    for number in range(4):
        asked = store.messages.add(chat.id, "user", f"question {number}", parent_id=parent)
        parent = store.messages.add(chat.id, "assistant", "answer", parent_id=asked, adapter_id=number // 2)
        replies.append(parent)
    store.signals.add(replies[0], "judge", -1)
    store.signals.add(replies[0], "thumb", 1)
    store.signals.add(replies[1], "judge", 0)
    store.signals.add(replies[2], "judge", 1)
    store.signals.add(replies[2], "judge", -1)
    store.signals.add(replies[2], "tool", 1)
    store.signals.add(replies[3], "tool", -1)
    scored = over_time(store, limit=10)
    assert [(one.message_id, one.score, one.adapter_id) for one in scored] == [
        (replies[0], 1, 0),
        (replies[1], 0, 0),
        (replies[2], -1, 1),
    ]
    assert [one.message_id for one in over_time(store, limit=1)] == [replies[2]]
    store.close()
