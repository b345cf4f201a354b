"""Files of chats that are damaged, strange or made to harm: said in a sentence, and nothing is half written."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from claw_local.errors import HistoryError
from claw_local.history import History
from claw_local.store import Store

from .conftest import ChatGPT, shown
from .files import kites, write


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"   \n", "no file of chats"),
        (b"<html>", "no file of chats"),
        (b'[app]\ntheme = "claw-dark"\n', "no file of chats"),
        (b"\x00\x01\x02binary", "no file of chats"),
        (b'[{"mapping": {', "cut short"),
        (b'[{"mapping": {}}', "cut short"),
        (b"[nonsense]", "no valid JSON"),
        (b'[{"title": "a", "create_time": ' + b"9" * 400 + b', "mapping": {}}]', "a number that is too large"),
        (b'{"format": "claw-local-chats", "version": 1e999, "chats": []}', "a number that is too large"),
        (b'{"a": 1}', "no chats in"),
        (b"null\n", "no chats in"),
        (b'"a text"', "no chats in"),
        (b'{"format": "claw-local-chats", "version": 9, "chats": []}', "newer claw-local"),
        (b'[{"a": 1}, 2, null]', "no chats in"),
        (b"PK\x03\x04 cut off", "cut short"),
        (b"SQLite format 3\0 cut off", "damaged"),
    ],
)
def test_what_cannot_be_read_is_said_and_nothing_is_written(
    store: Store, history: History, tmp_path: Path, content: bytes, said: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(HistoryError, match=said):
        history.import_file(file)
    assert store.database.db.table("chats").count == 0


def test_times_that_no_clock_will_see_stop_nothing(store: Store, history: History, tmp_path: Path) -> None:
    odd = {"create_time": 9e9, "update_time": 253402300799}
    report = history.import_file(
        write(tmp_path / "x.json", [kites().export(), {**kites().export(), "conversation_id": "b", **odd}])
    )
    assert report.chats == 2


def test_of_two_messages_with_one_name_both_are_kept(store: Store, history: History, tmp_path: Path) -> None:
    own = [
        {"key": "a", "role": "user", "content": "one"},
        {"key": "a", "role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
        {"role": "user", "content": "four"},
    ]
    claude = [{"uuid": "u", "sender": "human", "text": "one"}, {"uuid": "u", "sender": "assistant", "text": "two"}]
    file = write(
        tmp_path / "x.json", {"chats": [{"origin_id": "o", "messages": own}, {"uuid": "c", "chat_messages": claude}]}
    )
    assert history.import_file(file).messages == 6
    assert sorted(m.content for chat in store.chats.list() for m in store.trees.messages(chat.id)) == [
        "four",
        "one",
        "one",
        "three",
        "two",
        "two",
    ]
    assert history.import_file(file).messages == 0


def test_damage_in_the_middle_leaves_whole_chats_and_says_so(store: Store, history: History, tmp_path: Path) -> None:
    good = json.dumps(ChatGPT("good").say("u", "user", "hi").export())
    (tmp_path / "x.json").write_text(f'[{good}, {{"mapping": {{"a": oops}}}}]')
    with pytest.raises(HistoryError, match="The 1 chat before that is imported"):
        history.import_file(tmp_path / "x.json")
    assert shown(store, 1) == [("user", "hi")]


def test_strange_shapes_do_no_harm(store: Store, history: History, tmp_path: Path) -> None:
    loop = {"a": {"parent": "b", "message": None}, "b": {"parent": "a", "message": {"author": {"role": "user"}}}}
    odd: list[Any] = [
        {"mapping": {"x": None, "y": 3, "z": {"message": [], "children": "no", "parent": {}}}},
        {"mapping": loop, "create_time": 1e300, "title": {"no": 1}},
        {
            "mapping": {
                "m": {"message": {"author": {"role": "user"}, "content": {"parts": [None, 5, "kept \ud800 \0"]}}}
            }
        },
        {"chat_messages": [None, 3, {"sender": 5}, {"sender": "human", "text": "also kept", "content": "x"}]},
        {"messages": [{"role": "user", "content": 7}], "origin_id": "o"},
    ]
    report = history.import_file(write(tmp_path / "x.json", odd))
    assert report.chats == 2
    assert sorted(text for chat in store.chats.list() for _, text in shown(store, chat.id)) == ["also kept", "kept ?"]


def test_a_zip_bomb_is_refused(history: History, tmp_path: Path) -> None:
    file = tmp_path / "bomb.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * (40 << 20) + b"]")
    with pytest.raises(HistoryError, match="no export of chats"):
        history.import_file(file)


@pytest.mark.parametrize("packed", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_an_archive_whose_packed_bytes_are_damaged_is_said(history: History, tmp_path: Path, packed: int) -> None:
    file = tmp_path / "x.zip"
    with zipfile.ZipFile(file, "w", packed) as archive:
        archive.writestr("conversations.json", json.dumps([kites().export()]))
    data = bytearray(file.read_bytes())
    data[70:110] = b"\xff" * 40
    file.write_bytes(data)
    with pytest.raises(HistoryError, match="damaged"):
        history.import_file(file)


def test_a_document_nested_without_end_is_left_out_and_the_chat_kept(
    store: Store, history: History, tmp_path: Path
) -> None:
    chat = ChatGPT().say("u", "user", "write").say("d", "assistant", "[" * 100_000, recipient="canmore.create_textdoc")
    assert history.import_file(write(tmp_path / "x.json", [chat.export()])).chats == 1
    assert shown(store, 1) == [("user", "write")]


def test_an_archive_without_chats_is_refused(history: History, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("other.json", "[]")
    with pytest.raises(HistoryError, match=r"no conversations\.json"):
        history.import_file(tmp_path / "x.zip")
    with pytest.raises(HistoryError, match="There is no file"):
        history.import_file(tmp_path / "missing")


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_nested_without_end_is_refused_before_it_fills_the_memory(
    store: Store, history: History, tmp_path: Path, opening: str
) -> None:
    closing = "]" if opening == "[" else "}"
    deep = opening * 200_000 + "1" + closing * 200_000
    for name, text in (("list.json", f"[{deep}]"), ("own.json", f'{{"x": {deep}, "chats": []}}')):
        (tmp_path / name).write_text(text)
        tracemalloc.start()
        try:
            with pytest.raises(HistoryError, match="200 deep"):
                history.import_file(tmp_path / name)
            assert tracemalloc.get_traced_memory()[1] < 4 << 20
        finally:
            tracemalloc.stop()
    assert store.chats.list() == []


def test_brackets_in_what_was_said_do_not_count_as_depth(store: Store, history: History, tmp_path: Path) -> None:
    said = ['[{"' * 30_000, "\\" * 65_537 + '"[' * 300, '\\"' * 40_000 + "[" * 300]
    chats = [ChatGPT(f"c{n}").say("u", "user", text).export() for n, text in enumerate(said)]
    # Whatever stands at the end of a piece that is read, a backslash too, is counted right.
    for shift in range(2):
        (tmp_path / "x.json").write_text(" " * shift + json.dumps(chats))
        history.import_file(tmp_path / "x.json")
    assert sorted(shown(store, chat.id)[0][1] for chat in store.chats.list()) == sorted(said)


def test_depth_is_the_same_however_the_bytes_are_cut() -> None:
    from claw_local.history.json_files import _Depth

    value: Any = ["a\\", '"[[[', {'k\\"': [[], '\\"{', [["\\\\"]]]}]
    data = json.dumps(value).encode()
    for width in range(1, len(data) + 1):
        pieces = [data[at : at + width] for at in range(0, len(data), width)]
        depth, strict = _Depth(), _Depth()
        assert not any(depth.passes(5, piece) for piece in pieces), width
        assert not depth.passes(1, b" [") and depth.passes(1, b"{"), width
        assert any(strict.passes(4, piece) for piece in pieces), width


def test_as_many_levels_as_are_let_through_and_not_one_more() -> None:
    from claw_local.history.json_files import _Depth

    for limit in (1, 127, 128, 129, 200):
        flat = b"[]" * 500
        assert not _Depth().passes(limit, flat + b"[" * limit + b"]" * limit + flat)
        assert _Depth().passes(limit, flat + b"[" * limit + b"{")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("mark", "encoding"), [(b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")]
)
def test_what_windows_programs_write_is_read(
    store: Store, history: History, tmp_path: Path, mark: bytes, encoding: str, packed: bool
) -> None:
    chat = {**kites().export(), "title": "Drachen über Köln 🪁"}
    data = mark + (json.dumps([chat] * 40, ensure_ascii=False) + "\r\n").encode(encoding)
    file = tmp_path / "conversations.json"
    file.write_bytes(data)
    if packed:
        file = tmp_path / "export.zip"
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("conversations.json", data)
    assert history.import_file(file).chats == 1
    assert [record.title for record in store.chats.list()] == ["Drachen über Köln 🪁"]


def test_utf_16_that_is_cut_short_is_said(history: History, tmp_path: Path) -> None:
    file = tmp_path / "cut.json"
    file.write_bytes(json.dumps([kites().export()]).encode("utf-16")[:-5])
    with pytest.raises(HistoryError, match="cut short"):
        history.import_file(file)
