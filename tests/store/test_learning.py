"""Signals, hints, samples, adapters and runs."""

from __future__ import annotations

import pytest

from claw_local.engine.base import Generation, Sampling
from claw_local.errors import LearnError
from claw_local.paths import Paths
from claw_local.store import Store


def a_reply(store: Store) -> int:
    chat = store.chats.create()
    _, reply = store.messages.begin_turn(chat.id, "q", parent_id=None)
    made = Generation(prompt_ids=(1,), sampling=Sampling())
    made.text, made.response_ids, made.logprobs = "a", [2], [-1.0]
    store.messages.finish(reply, made, state="done", timings={})
    return reply


def test_of_one_source_the_newest_signal_counts(home: Paths) -> None:
    store = Store(home)
    reply = a_reply(store)
    store.signals.add(reply, "thumb", 1)
    store.signals.add(reply, "judge", 0, probabilities={"good": 0.2})
    store.signals.add(reply, "thumb", -1)
    counting = store.signals.of([reply])[reply]
    assert {(signal.source, signal.score) for signal in counting} == {("thumb", -1), ("judge", 0)}


def test_lessons_wait_until_an_accepted_run_has_used_them(home: Paths) -> None:
    store = Store(home)
    reply = a_reply(store)
    assert store.samples.count_waiting() == 0
    store.signals.add(reply, "judge", -1, hint="no lists")
    assert store.samples.count_waiting() == 1
    store.samples.put(reply, "train", -1, "no lists")
    assert store.samples.count_waiting() == 1
    store.samples.count_use([reply])
    assert store.samples.count_waiting() == 0
    store.samples.put(reply, "train", 1, "")
    assert store.samples.list()[0].times_used == 1


def test_only_unjudged_turns_with_a_next_state_wait_for_the_judge(home: Paths) -> None:
    store = Store(home)
    reply = a_reply(store)
    assert store.samples.count_unjudged() == 0
    store.messages.add(store.messages.get(reply).chat_id, "user", "thanks", parent_id=reply)
    assert store.samples.count_unjudged() == 1
    store.signals.add(reply, "judge", 1)
    assert store.samples.count_unjudged() == 0


def test_a_reply_with_a_lesson_is_counted_once(home: Paths) -> None:
    store = Store(home)
    edited, asked_again = a_reply(store), a_reply(store)
    for reply in (edited, asked_again):
        store.messages.add(store.messages.get(reply).chat_id, "user", "and then?", parent_id=reply)
    assert (store.samples.count_waiting(), store.samples.count_unjudged()) == (0, 2)
    store.signals.add(edited, "edit", -1)
    store.signals.add(asked_again, "regenerate", -1)
    assert (store.samples.count_waiting(), store.samples.count_unjudged()) == (1, 1)


def test_one_adapter_is_active_for_each_model(home: Paths) -> None:
    store = Store(home)
    first = store.adapters.add(parent_id=0, model_sha256="m", architecture="llama")
    second = store.adapters.add(parent_id=first.id, model_sha256="m", architecture="llama")
    other = store.adapters.add(parent_id=0, model_sha256="n", architecture="qwen2")
    for record in (first, second, other):
        store.adapters.activate(record.id, record.model_sha256)
    assert store.adapters.get(first.id).state == "retired"
    active, also = store.adapters.active("m"), store.adapters.active("n")
    assert active is not None and active.id == second.id
    assert also is not None and also.id == other.id
    store.adapters.activate(None, "m")
    assert store.adapters.active("m") is None


def test_only_one_run_goes_on_at_a_time(home: Paths) -> None:
    store = Store(home)
    run = store.runs.begin()
    with pytest.raises(LearnError, match="already going on"):
        Store(home).runs.begin()
    store.runs.finish(run, "done", result={"adapter": 1})
    assert store.runs.running() is None
    assert store.runs.begin() != run


def test_a_run_whose_process_ended_does_not_block_the_next(home: Paths) -> None:
    store = Store(home)
    dead = store.runs.begin()
    store.database.db.table("runs").update(dead, {"process": "999999999:1.00"})
    assert store.runs.running() is None
    store.runs.begin()
    assert store.runs.get(dead).state == "failed"


def test_switches_are_seen_by_every_open_store(home: Paths) -> None:
    one, two = Store(home), Store(home)
    assert two.flags.get("learning") == ""
    one.flags.set("learning", "on")
    assert two.flags.get("learning") == "on"
