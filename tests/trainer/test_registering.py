"""The last moment of a run, when its adapter is registered and comes into use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from claw_local.adapters import checking
from claw_local.paths import Paths
from claw_local.store import Store
from claw_local.store.database import Database
from claw_trainer import run as runs
from claw_trainer.leaving import Left
from tests.trainer.leaving import settings_of, teach

SETTINGS = settings_of(1)


@pytest.fixture
def store(home: Paths, tiny_models: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A taught home, in which the gate asks few questions."""
    monkeypatch.setattr(checking, "PROBES", 2)
    teach(home.data, tiny_models["llama"], SETTINGS)
    opened = Store(home)
    yield opened
    opened.close()


def learn(store: Store, home: Paths, tiny_models: dict[str, Path]) -> None:
    runs.run(store, home, runs.Request(tiny_models["llama"], SETTINGS), store.runs.begin())


def test_asked_to_leave_just_when_the_adapter_is_registered_its_files_stay(
    store: Store, home: Paths, tiny_models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Database.write

    @contextmanager
    def write(database: Database) -> Iterator[Any]:
        with real(database) as db:
            yield db
        if not db.conn.in_transaction and db.table("adapters").count:
            raise Left  # As a signal does that comes while it is committed.

    monkeypatch.setattr(Database, "write", write)
    with pytest.raises(Left):
        learn(store, home, tiny_models)
    (record,) = store.adapters.list()
    assert Path(record.gguf_path).is_file()


def test_what_the_person_put_into_use_meanwhile_stays_in_use(
    store: Store, home: Paths, tiny_models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask_gate(settings: Any, engine: Any, *others: Any, **named: Any) -> Any:
        verdict, probes = checking.ask_gate(settings, engine, *others, **named)
        chosen = store.adapters.add(parent_id=0, model_sha256=engine.info.sha256, architecture="llama")
        store.adapters.activate(chosen.id, engine.info.sha256)
        return replace(verdict, accepted=True, reason="Taken: it is better."), probes

    monkeypatch.setattr(runs, "ask_gate", ask_gate)
    learn(store, home, tiny_models)
    made, chosen = store.adapters.list()
    assert (chosen.state, made.state) == ("active", "candidate")
    result = store.runs.list()[0].result
    assert result["accepted"] is False and "another adapter was put into use" in result["reason"]
    assert store.samples.count_waiting() > 0, "its lessons wait for the next run"
