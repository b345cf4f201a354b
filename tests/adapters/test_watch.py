"""The live score: a clear fall is seen, chance is not taken for one."""

from __future__ import annotations

import numpy as np

from claw_local.adapters.watch import WINDOW, fallen, live_scores
from claw_local.paths import Paths
from claw_local.store import Store


def test_a_clear_fall_is_seen() -> None:
    fall = fallen([1, 1, 0, 1, 1, -1, 1, 1], [-1, -1, 1, -1, -1, 0, -1])
    assert fall is not None
    assert (fall.count_before, fall.count_since) == (8, 7)
    assert fall.chance < 0.05
    assert "+0.62" in fall.sentence(3) and "-0.57" in fall.sentence(3) and "adapters use 3" in fall.sentence(3)


def test_little_or_no_fall_is_none() -> None:
    assert fallen([1, 1, 1, 1, 1, 1], [-1, -1, -1, -1, -1]) is None, "five replies are too few"
    assert fallen([1, 1, 1], [-1] * 20) is None, "nothing to hold it against"
    assert fallen([1, -1, 1, -1, 1, 0], [1, 1, 1, 1, 1, 1]) is None, "it rose"
    assert fallen([1] * 20, [1] * 17 + [-1] * 3) is None, "a small fall"
    assert fallen([1, -1, 1, -1, 1, 0], [-1, 1, -1, 1, -1, -1]) is None, "a fall that chance explains"


def test_only_the_newest_count() -> None:
    long_ago = [-1] * 100
    assert fallen(long_ago + [1] * WINDOW, [-1] * 10) is not None
    assert fallen([1] * 100 + [-1] * WINDOW, [-1] * 10) is None


def test_equal_adapters_are_seldom_rolled_back() -> None:
    random = np.random.default_rng(1)
    wrong = sum(
        fallen(random.choice([-1, 0, 1], 20).tolist(), random.choice([-1, 0, 1], 12).tolist()) is not None
        for _ in range(200)
    )
    assert wrong <= 16  # 5% of 200, and a little


def test_what_a_tool_returned_is_no_reaction(home: Paths) -> None:
    store, model = Store(home), "a" * 64
    record = store.adapters.add(parent_id=0, model_sha256=model, architecture="llama")
    chat, replies = store.chats.create().id, []
    for adapter in (0, 0, record.id, record.id):
        replies.append(store.messages.add(chat, "assistant", "Done.", parent_id=None))
        store.messages.describe(replies[-1], model="m", model_sha256=model, adapter_id=adapter)
    store.signals.add(replies[0], "tool", -1)
    store.signals.add(replies[1], "tool", -1)
    store.signals.add(replies[1], "judge", 1)
    store.signals.add(replies[2], "tool", -1)
    store.signals.add(replies[3], "thumb", 1)
    assert live_scores(store, record) == ([1], [1])
    store.close()
