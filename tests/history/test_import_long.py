"""Long imports: how far they are, stopping them, and how much memory they take."""

from __future__ import annotations

import json
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from claw_local.errors import HistoryError
from claw_local.history import History, Progress
from claw_local.paths import locate
from claw_local.store import Store

from .conftest import ChatGPT
from .files import many, write


def test_shows_how_far_it_is(history: History, tmp_path: Path) -> None:
    seen: list[Progress] = []
    history.import_file(write(tmp_path / "x.json", many(250)), on_progress=seen.append)
    fractions = [progress.fraction for progress in seen]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0 and len(seen) == 3
    assert seen[-1].chats == 250 and seen[-1].messages == 500


def test_stopped_half_way_it_leaves_whole_chats_and_can_go_on(store: Store, history: History, tmp_path: Path) -> None:
    file, cancel = write(tmp_path / "x.json", many(250)), threading.Event()
    report = history.import_file(file, cancel=cancel, on_progress=lambda progress: cancel.set())
    assert report.stopped and 0 < report.chats < 250
    assert report.messages == 2 * report.chats
    rest = history.import_file(file)
    assert (rest.already, rest.chats) == (report.chats, 250 - report.chats)


def test_interrupted_while_writing_it_leaves_whole_chats(
    store: Store, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, calls = store.trees._put, iter(range(1000))

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == 150:
            raise KeyboardInterrupt
        return put(*args, **kwargs)

    monkeypatch.setattr(store.trees, "_put", interrupted)
    with pytest.raises(KeyboardInterrupt):
        history.import_file(write(tmp_path / "x.json", many(250)))
    assert len(store.chats.list(limit=-1)) == 100
    assert store.database.db.table("messages").count == 200
    assert merged_in_pieces_of(store) == 4


def merged_in_pieces_of(store: Store) -> int:
    query = "select v from search_config where k = 'automerge'"
    return int(store.database.db.execute(query).fetchone()[0])


def test_the_newest_first_or_last_the_index_is_the_same_and_as_quick_as_before(
    tmp_path: Path,
) -> None:
    exports = many(1200)
    found, pieces = [], []
    for name, order in (("up", exports), ("down", exports[::-1])):
        store = Store(locate(tmp_path / name))
        History(store).import_file(write(tmp_path / f"{name}.json", order))
        hits = store.search.look_up(store.search.find("question", limit=5000))
        found.append([(hit.text, hit.created_at) for hit in hits])
        assert merged_in_pieces_of(store) == 4
        pieces.append(store.database.db.execute("select count(distinct segid) from search_idx").fetchone()[0])
        store.close()
    assert len(found[0]) == 1200 and sorted(found[0]) == sorted(found[1])
    assert max(pieces) <= 8


def test_only_one_chat_of_a_long_export_is_in_memory(tmp_path: Path) -> None:
    from claw_local.history.json_files import JsonExport

    chat = ChatGPT()
    for n in range(20):
        chat.say(f"m{n}", "user", "words " * 200)
    text = json.dumps(chat.export())
    (tmp_path / "x.json").write_text("[" + ",".join([text] * 200) + "]")
    next(JsonExport(tmp_path / "x.json").chats())  # What is imported at the first time is not of the export.
    tracemalloc.start()
    try:
        count = sum(1 for _ in JsonExport(tmp_path / "x.json").chats())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 200
    assert peak < 20 * len(text) < 200 * len(text)


def test_a_chat_without_end_is_stopped_before_it_fills_the_memory(
    store: Store, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claw_local.history.json_files.LONGEST_CHAT", 1 << 18)
    good = ChatGPT("good").say("u", "user", "hi").export()
    endless = ChatGPT("endless").say("u", "user", "x" * (1 << 20)).export()
    with pytest.raises(HistoryError, match="that is no chat"):
        history.import_file(write(tmp_path / "x.json", [good, endless]))
    assert len(store.chats.list()) == 1


def test_an_import_stops_in_the_middle_of_a_long_chat(store: Store, history: History, tmp_path: Path) -> None:
    class LooksTwice(threading.Event):
        looks = 0

        def is_set(self) -> bool:
            self.looks += 1
            return self.looks > 8

    short, endless = ChatGPT("short").say("u", "user", "hi"), ChatGPT("long").say("u", "user", "words " * 400_000)
    file = write(tmp_path / "x.json", [short.export(), endless.export()])
    report = history.import_file(file, cancel=LooksTwice())
    assert report.stopped and report.chats == 1
    assert [chat.origin_id for chat in store.chats.list()] == ["short"]
