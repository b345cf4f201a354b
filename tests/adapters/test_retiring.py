"""Hints leave the prompt once an adapter has learned them, and come back when it goes out of use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claw_local.adapters.gate import Probe
from claw_local.adapters.registry import Registry, file_sha256
from claw_local.adapters.retiring import retention, settle
from claw_local.memory import fast
from claw_local.paths import Paths
from claw_local.store import Hint, Store

LIST = "- one\n- two"
PROSE = "One and two."


@pytest.fixture
def store(home: Paths) -> Store:
    return Store(home)


def probes(told: str, untold: list[str]) -> list[Probe]:
    base = Probe("q", held_out=False, before=LIST, after=PROSE, hinted=told)
    return [replace(base, answers_after=(text,)) for text in untold]


def states(store: Store) -> dict[str, str]:
    return {hint.text: hint.state for hint in store.hints.list(state=None)}


def adapter(store: Store, home: Paths, name: str, parent: int, learned: list[Hint]) -> int:
    path = home.adapters / f"{name}.gguf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(name.encode())
    return store.adapters.add(
        parent_id=parent,
        model_sha256="m",
        architecture="llama",
        gguf_path=str(path),
        sha256={path.name: file_sha256(path)},
        metrics={"learned_hints": [hint.id for hint in learned]},
    ).id


def test_a_hint_is_learned_when_it_is_kept_without_being_told(store: Store) -> None:
    hint = store.hints.add("No lists, please.")
    (kept,) = retention([hint], probes(PROSE, [PROSE] * 19 + [LIST]))
    assert (kept.learned, kept.untold, kept.told) == (True, 0.95, 1.0)
    (not_yet,) = retention([hint], probes(PROSE, [PROSE] * 17 + [LIST] * 3))
    assert (not_yet.learned, not_yet.untold) == (False, 0.85)


def test_an_empty_answer_keeps_no_wish(store: Store) -> None:
    (kept,) = retention([store.hints.add("No lists, please.")], probes(PROSE, [""] * 20))
    assert (kept.untold, kept.learned) == (0.0, False)


def test_a_wish_that_no_check_can_see_stays_in_the_prompt(store: Store) -> None:
    assert retention([store.hints.add("Be warm to me.")], probes(PROSE, [PROSE] * 20)) == []


def test_switching_adapters_takes_learned_hints_out_and_brings_them_back(store: Store, home: Paths) -> None:
    prose, brief = store.hints.add("No lists, please."), store.hints.add("At most two sentences.")
    first = adapter(store, home, "first", 0, [prose])
    second = adapter(store, home, "second", first, [prose, brief])
    registry = Registry(store)
    registry.use(first, "m")
    assert states(store) == {"No lists, please.": "consolidated", "At most two sentences.": "active"}
    assert [hint.text for hint in fast.choose(store, chat_id=None, budget_tokens=99, count=len)] == [brief.text]
    registry.use(second, "m")
    assert set(states(store).values()) == {"consolidated"}
    registry.rollback("m")
    assert states(store) == {"No lists, please.": "consolidated", "At most two sentences.": "active"}
    registry.use("base", "m")
    assert set(states(store).values()) == {"active"}


def test_a_dropped_hint_stays_dropped(store: Store, home: Paths) -> None:
    hint = store.hints.add("No lists, please.")
    record = store.adapters.get(adapter(store, home, "one", 0, [hint]))
    store.hints.set_state(hint.id, "dropped")
    settle(store, record)
    settle(store, None)
    assert states(store) == {"No lists, please.": "dropped"}


def test_the_opposite_wish_replaces_one_that_was_learned(store: Store, home: Paths) -> None:
    old = store.hints.add("No lists, please.")
    Registry(store).use(adapter(store, home, "one", 0, [old]), "m")
    fast.remember(store, new := store.hints.add("Use lists again."))
    assert states(store) == {"No lists, please.": "dropped", "Use lists again.": "active"}
    assert [h.id for h in fast.choose(store, chat_id=None, budget_tokens=99, count=len, learned=True)] == [new.id]


def test_a_learned_wish_said_again_is_in_the_prompt_again(store: Store, home: Paths) -> None:
    old = store.hints.add("No lists, please.")
    Registry(store).use(adapter(store, home, "one", 0, [old]), "m")
    fast.remember(store, store.hints.add("Please no lists!"))
    assert states(store)["Please no lists!"] == "active"
