"""KV caches on the disk: what is taken back is what was put, or nothing."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from claw_local.engine import shelf as shelves
from claw_local.engine._remembered import Prefix
from claw_local.engine.base import AdapterSlot
from claw_local.engine.shelf import LEAST_TOKENS, Shelf


def prefix(tokens: int = LEAST_TOKENS, size: int = 1000) -> Prefix:
    slots = (AdapterSlot(Path("/adapters/a.gguf"), 0.5),)
    return Prefix(tuple(range(tokens)), slots, np.arange(size, dtype=np.uint8))


def test_what_is_put_is_taken_back_and_only_the_owner_can_read_it(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "caches", 10_000)
    assert shelf.put(7, "m", prefix())
    found = shelf.take(7, "m")
    assert found is not None
    assert (found.tokens, found.adapters) == (prefix().tokens, prefix().adapters)
    assert np.array_equal(found.state, prefix().state)
    assert stat.S_IMODE((tmp_path / "caches").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "caches" / "7.kv").stat().st_mode) == 0o600
    assert [entry.name for entry in (tmp_path / "caches").iterdir()] == ["7.kv"], "nothing half made is left"
    assert shelf.take(8, "m") is None


def test_another_model_or_another_build_finds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(tmp_path, 10_000)
    shelf.put(7, "m", prefix())
    assert shelf.take(7, "other") is None
    assert shelf.numbers() == [], "it is of no use any more"
    shelf.put(7, "m", prefix())
    monkeypatch.setattr(shelves, "build", lambda: "newer")
    assert shelf.take(7, "m") is None


@pytest.mark.parametrize("at", [0, 20, 300, -1])
def test_a_damaged_file_is_no_cache(tmp_path: Path, at: int) -> None:
    shelf = Shelf(tmp_path, 10_000)
    shelf.put(7, "m", prefix())
    data = bytearray((tmp_path / "7.kv").read_bytes())
    data[at] ^= 1
    (tmp_path / "7.kv").write_bytes(data)
    assert shelf.take(7, "m") is None
    assert shelf.numbers() == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}\n",
        b"[]\n",
        b"\xff\n",
        b'{"tokens": -1, "bytes": 5}\n',
        b"{" * 50_000,
        b"[" * 200_000,
        b"\0" * 2_000_000,
    ],
)
def test_what_is_no_cache_at_all_is_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "7.kv").write_bytes(data)
    assert Shelf(tmp_path, 10_000).take(7, "m") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")
def test_nothing_is_waited_for_where_a_pipe_lies_in_its_place(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "7.kv")
    assert Shelf(tmp_path, 10_000).take(7, "m") is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "8.kv").mkdir()
    assert Shelf(tmp_path, 10_000).take(8, "m") is None


def test_a_file_cut_short_is_no_cache(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, 10_000)
    shelf.put(7, "m", prefix())
    whole = (tmp_path / "7.kv").read_bytes()
    (tmp_path / "7.kv").write_bytes(whole[:-1])
    assert shelf.take(7, "m") is None


def test_the_oldest_go_when_there_is_no_room(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, 7_500)  # Each takes some 2,200 bytes.
    for number in (3, 1, 2, 4):
        assert shelf.put(number, "m", prefix())
        path = tmp_path / f"{number}.kv"
        path.touch()
    assert shelf.numbers() == [1, 2, 4]
    assert not shelf.put(1, "m", prefix(size=9_000)), "longer than all there is room for"
    assert shelf.numbers() == [2, 4], "and what it was before is gone too"


def test_short_ones_are_not_worth_it(tmp_path: Path) -> None:
    assert not Shelf(tmp_path, 10_000).put(7, "m", prefix(LEAST_TOKENS - 1))
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "caches").write_text("a file where the folder should be")
    assert not Shelf(tmp_path / "caches", 10_000).put(7, "m", prefix())


def test_others_are_dropped_and_strangers_files_stay(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, 10_000)
    for number in (1, 2, 3):
        shelf.put(number, "m", prefix())
    (tmp_path / "notes.txt").write_text("mine")
    shelf.keep_only({2})
    assert shelf.numbers() == [2]
    assert (tmp_path / "notes.txt").exists()
