"""Whether a run that was left may go on, and what becomes of its files."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from claw_local.engine.base import Generation, Sampling
from claw_local.idle import kept
from claw_local.idle.share import Seen
from claw_local.paths import Paths
from claw_local.settings import Settings
from claw_local.store import Store

MODEL = "a" * 64


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


def a_reply(store: Store) -> int:
    chat = store.chats.create()
    _, reply = store.messages.begin_turn(chat.id, "What is rain?", parent_id=None)
    made = Generation(prompt_ids=(1, 2), sampling=Sampling())
    made.text, made.response_ids, made.logprobs = "Water.", [3, 4], [-1.0, -1.0]
    store.messages.finish(reply, made, state="done", timings={})
    return reply


def left(store: Store, home: Paths, reply: int, hint: int | None = None) -> int:
    """A run that was left at its third step."""
    run_id = store.runs.begin()
    kept.write_beginning(home, run_id, kept.beginning(store, Settings(), MODEL))
    lasting = [{"id": hint, "text": store.hints.get(hint).text}] if hint else []
    own = [{"reply": reply, "score": signal.score, "hint": signal.hint} for signal in store.signals.of([reply])[reply]]
    (kept.folder_of(home, run_id) / kept.PLAN).write_text(json.dumps({"lasting": lasting, "lessons": own}))
    store.runs.set_inputs(run_id, "x", (reply,))
    store.runs.set_checkpoint(run_id, "practising", 2, 8)
    store.runs.pause(run_id, "It was left.")
    return run_id


def test_what_was_left_goes_on_while_nothing_that_counts_has_changed(store: Store, home: Paths) -> None:
    reply = a_reply(store)
    store.signals.add(reply, "thumb", -1, hint="Name the clouds.")
    run_id = left(store, home, reply)
    store.signals.add(reply, "thumb", 1)  # Said meanwhile: it waits.
    other = a_reply(store)
    store.signals.withdraw([store.signals.add(other, "thumb", 1)])  # Of none that it learns from.
    changed = Settings()
    changed.learning.min_lessons, changed.learning.threads, changed.learning.memory_gib = 9, 3, 2.0
    changed.app.theme = "claw-light"
    found = kept.find(store, home, changed, MODEL)
    assert found.run is not None
    assert (found.run.id, found.dropped) == (run_id, ())
    assert kept.folder_of(home, run_id).is_dir()


@pytest.mark.parametrize(
    "change",
    ["model", "adapter", "setting", "deleted", "silenced", "hint", "reworded", "lesson", "taken", "files", "failures"],
)
def test_what_no_longer_fits_is_dropped_with_the_reason_and_its_files_go(
    store: Store, home: Paths, change: str
) -> None:
    reply = a_reply(store)
    hint = store.hints.add("Answer in one sentence.", message_id=None, chat_id=None, scope="everywhere")
    store.signals.add(reply, "thumb", -1, hint="Name the clouds.")
    own = store.hints.add("Name the clouds.", message_id=reply, chat_id=1, scope="turn")
    run_id = left(store, home, reply, hint.id)
    settings, model = Settings(), MODEL
    if change == "model":
        model, reason = "b" * 64, "the model has changed"
    elif change == "adapter":
        adapter = store.adapters.add(parent_id=0, model_sha256=MODEL, architecture="llama")
        store.adapters.activate(adapter.id, MODEL)
        reason = "another adapter is in use"
    elif change == "setting":
        settings.gate.max_kl_base = 0.1
        reason = "the setting gate.max_kl_base has changed"
    elif change == "deleted":
        with store.database.write() as db:
            db.execute("update chats set deleted_at = '2026-01-01'")
        reason = "something it learns from was deleted"
    elif change == "silenced":
        with store.database.write() as db:
            db.execute("update messages set learn = -1 where id = ?", [reply])
        reason = "may no longer teach"
    elif change == "hint":
        with store.database.write() as db:
            db.execute("delete from hints where scope = 'everywhere'")
        reason = "a hint it learns from was removed"
    elif change == "reworded":
        store.hints.set_text(hint.id, "Answer in two sentences.")
        reason = "a hint it learns from was removed or changed"
    elif change == "lesson":
        store.hints.remove(own.id)
        reason = "a hint it learns from was removed or changed"
    elif change == "taken":
        store.signals.withdraw(store.signals.of([reply])[reply])
        reason = "you took back what you said of a reply"
    elif change == "files":
        (kept.folder_of(home, run_id) / kept.BEGAN).write_text("{")
        reason = "its files are gone"
    else:
        for _ in range(kept.OFTEN):
            store.runs.note_failure(run_id, "EngineError", "it failed to compute")
        reason = "it failed to compute"
    found = kept.find(store, home, settings, model)
    assert found.run is None
    (words,) = found.dropped
    assert reason in words and "Its lessons stay." in words
    run = store.runs.get(run_id)
    assert (run.state, run.detail) == ("dropped", words)
    assert not kept.folder_of(home, run_id).exists()


def test_of_two_the_newer_goes_on_and_files_of_no_run_are_deleted(store: Store, home: Paths) -> None:
    reply = a_reply(store)
    older, newer = left(store, home, reply), left(store, home, reply)
    for name in ("77", "notes"):
        (home.runs / name).mkdir()
    found = kept.find(store, home, Settings(), MODEL)
    assert found.run is not None and found.run.id == newer
    assert f"run {older} does not go on: run {newer} was begun after it" in found.dropped[0]
    assert {folder.name for folder in home.runs.iterdir()} == {str(newer), "notes"}


def test_being_killed_again_and_again_is_not_held_against_a_runs_files(store: Store, home: Paths) -> None:
    run_id = left(store, home, a_reply(store))
    for _ in range(5):
        store.runs.note_failure(run_id, "killed", "it was killed")
    assert kept.find(store, home, Settings(), MODEL).run is not None


def test_runs_that_learn_from_what_is_named_are_found_by_reply_and_by_what_their_files_hold(
    store: Store, home: Paths
) -> None:
    reply = a_reply(store)
    run_id = left(store, home, reply)
    assert [run.id for run in kept.using(store, home, {reply}, lambda file: False)] == [run_id]
    assert kept.using(store, home, {reply + 1}, lambda file: False) == []
    assert [run.id for run in kept.using(store, home, (), lambda file: file.name == kept.PLAN)] == [run_id]
    store.runs.set_inputs(run_id, "x")
    (kept.folder_of(home, run_id) / kept.PLAN).write_text(json.dumps({"lessons": [{"reply": reply}]}))
    assert [run.id for run in kept.using(store, home, {reply}, lambda file: False)] == [run_id], "left just then"


def test_memory_was_short_if_the_run_was_near_its_bound_or_little_was_free_for_all() -> None:
    assert Seen(bound=100, most=90).short
    assert not Seen(bound=100, most=50).short
    assert Seen(bound=100, most=0, least_free=1).short
