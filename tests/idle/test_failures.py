"""A run that goes wrong twice in the same way waits for the person."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from claw_local.idle.failures import person_asked, times_alike, waits_for_person
from claw_local.paths import Paths
from claw_local.store import Store


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


def failed(store: Store, kind: str = "killed", phase: str = "training", inputs: str = "a") -> int:
    run_id = store.runs.begin("idle")
    store.runs.set_inputs(run_id, inputs)
    store.runs.progress(run_id, phase, 0.5)
    store.runs.note_failure(run_id, kind, f"it was {kind}")
    store.runs.finish(run_id, "failed", result={})
    return run_id


def test_once_is_tried_again_and_twice_waits(store: Store) -> None:
    assert waits_for_person(store) is None
    failed(store)
    assert waits_for_person(store) is None
    last = failed(store)
    words = waits_for_person(store)
    assert words is not None and "it was killed" in words and f"learn log {last}" in words


@pytest.mark.parametrize("other", [{"kind": "MemoryError"}, {"phase": "gate"}, {"inputs": "b"}])
def test_another_error_phase_or_input_is_not_the_same_way(store: Store, other: dict[str, str]) -> None:
    failed(store)
    failed(store, **other)
    assert waits_for_person(store) is None
    failed(store, **other)
    assert waits_for_person(store) is not None


def test_twice_within_one_run_that_went_on_counts_too_unless_it_got_further_meanwhile(store: Store) -> None:
    run_id = store.runs.begin("idle")
    for step in (2, 3, 3):
        store.runs.set_checkpoint(run_id, "practising", step, 8)
        assert waits_for_person(store) is None
        assert store.runs.died(run_id, "killed", "it was killed")
        assert not store.runs.died(run_id, "killed", "it was killed"), "it is counted once"
        if step != 3 or waits_for_person(store) is None:
            store.runs.go_on(run_id, "idle")
    assert waits_for_person(store) is not None
    assert times_alike(store.runs.get(run_id)) == 2


def test_the_persons_word_lets_it_try_again_once(store: Store) -> None:
    failed(store)
    failed(store)
    person_asked(store)
    assert waits_for_person(store) is None
    failed(store)
    assert waits_for_person(store) is not None


def test_a_run_that_succeeded_ends_the_count(store: Store) -> None:
    failed(store)
    done = store.runs.begin()
    store.runs.finish(done, "done", result={})
    failed(store)
    assert waits_for_person(store) is None
