"""Reading ChatGPT's and Claude's exports, and our own."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from claw_local.history import History
from claw_local.paths import locate
from claw_local.signals.turns import pair
from claw_local.store import Store
from claw_local.talking.drawing import checked

from .conftest import ChatGPT, shown
from .files import kites, write


def test_a_chatgpt_tree_keeps_its_branches_and_leaves_out_what_was_not_said(
    store: Store, history: History, tmp_path: Path
) -> None:
    report = history.import_file(write(tmp_path / "conversations.json", [kites().export()]))
    assert (report.source, report.chats, report.messages, report.already) == ("ChatGPT", 1, 4, 0)
    assert {what for what, _ in report.skipped} == {"1 hidden message", "2 tool messages", "1 thought"}
    (chat,) = store.chats.list()
    assert shown(store, chat.id) == [
        ("user", "how do kites fly"),
        ("assistant", "Let me look.\n\nBy lift and tension."),
        ("user", "thanks"),
    ]
    assert (chat.title, chat.origin, chat.origin_id, chat.learn) == ("Kites", "ChatGPT", "c1", False)
    assert (chat.created_at, chat.updated_at) == (
        "2023-11-14T22:13:20.250000+00:00",
        "2023-11-14T22:21:40.000000+00:00",
    )
    tree = history.messages(chat.id)
    assert next((m.content, m.model) for m in tree if m.role == "assistant") == ("Badly.", "gpt-4")
    assert pair(store) == []


def test_a_chat_shows_the_branch_it_was_at(store: Store, history: History, tmp_path: Path) -> None:
    history.import_file(write(tmp_path / "x.json", [kites().export("a1")]))
    assert shown(store, 1) == [("user", "how do kites fly"), ("assistant", "Badly.")]


def test_to_import_again_doubles_nothing_and_adds_what_has_grown(
    store: Store, history: History, tmp_path: Path
) -> None:
    chat = kites()
    history.import_file(write(tmp_path / "x.json", [chat.export()]))
    again = history.import_file(tmp_path / "x.json")
    assert (again.chats, again.messages, again.already) == (0, 0, 1)
    chat.say("a4", "assistant", "You are welcome.").say("a5", "assistant", "Any time.", after="u2")
    grown = history.import_file(write(tmp_path / "x.json", [chat.export("a4")]))
    assert (grown.chats, grown.messages, grown.already, grown.grown) == (0, 2, 0, 1)
    assert shown(store, 1)[-1] == ("assistant", "You are welcome.")
    assert len(history.messages(1)) == 6
    assert [found.role for found in history.search("welcome")] == ["assistant"]


def test_where_the_person_has_gone_on_here_their_branch_stays_in_view(
    store: Store, history: History, tmp_path: Path
) -> None:
    chat = kites()
    history.import_file(write(tmp_path / "x.json", [chat.export()]))
    mine = store.messages.add(1, "assistant", "said here", parent_id=store.chats.get(1).head_id)
    chat.say("a4", "assistant", "said there")
    assert history.import_file(write(tmp_path / "x.json", [chat.export()])).messages == 1
    assert store.chats.get(1).head_id == mine


def test_a_deleted_chat_is_not_brought_back(store: Store, history: History, tmp_path: Path) -> None:
    file = write(tmp_path / "x.json", [kites().export()])
    history.import_file(file)
    history.delete(1)
    report = history.import_file(file)
    assert (report.chats, report.messages) == (0, 0)
    assert ("1 deleted chat", "deleted here, and not brought back") in report.skipped
    history.purge()
    assert history.import_file(file).chats == 1


def test_imported_chats_teach_only_when_asked_and_never_with_what_was_said_before(
    store: Store, history: History, tmp_path: Path
) -> None:
    history.import_file(write(tmp_path / "x.json", [kites().export()]), learn=True)
    assert store.chats.get(1).learn
    assert store.messages.teaching_replies(with_tokens=False) == []
    assert store.samples.count_unjudged() == 0
    assert store.messages.count_silent() == 0


def test_parts_that_are_not_text_are_marked_and_counted(store: Store, history: History, tmp_path: Path) -> None:
    chat = ChatGPT().say(
        "u",
        "user",
        "",
        content={
            "content_type": "multimodal_text",
            "parts": [
                {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
                "what is this",
                {"content_type": "audio_transcription", "text": "said aloud"},
            ],
        },
        metadata={"attachments": [{"name": "plan.pdf"}]},
    )
    chat.say("a", "assistant", "", content={"content_type": "code", "language": "python", "text": "print(1)"})
    document = json.dumps({"name": "poem", "type": "document", "content": "Roses are red."})
    chat.say("c", "assistant", document, recipient="canmore.create_textdoc")
    report = history.import_file(write(tmp_path / "x.json", [chat.export()]))
    assert shown(store, 1) == [
        ("user", "[image] [plan.pdf]\n\nwhat is this\nsaid aloud"),
        ("assistant", "```python\nprint(1)\n```\n\nRoses are red."),
    ]
    assert report.skipped == (("2 pictures, sounds and files", "only text is kept; their places are marked"),)


@pytest.mark.parametrize("names", [["conversations.json"], ["conversations-000.json", "conversations-001.json"]])
def test_reads_the_zip_file_and_the_folder_as_they_come(
    store: Store, history: History, tmp_path: Path, names: list[str]
) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("chat.html", "<html>")
        archive.writestr("__MACOSX/conversations.json", "junk")
        for number, name in enumerate(names):
            text = json.dumps([ChatGPT(f"c{number}").say("u", "user", f"question {number}").export()])
            archive.writestr(f"export/{name}", text)
            (folder / name).write_text(text)
    assert history.import_file(tmp_path / "export.zip").chats == len(names)
    assert history.import_file(folder).already == len(names)


def claude(**fields: Any) -> dict[str, Any]:
    return {
        "uuid": "k1",
        "name": "Boats",
        "created_at": "2024-05-01T10:00:00.5Z",
        "updated_at": "2024-05-01T11:00:00Z",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "how do boats float",
                "created_at": "2024-05-01T10:00:01Z",
                "attachments": [{"file_name": "notes.txt", "extracted_content": "about ````water````"}],
                "files": [{"file_name": "notes.txt"}, {"file_name": "boat.png"}],
            },
            {
                "uuid": "m2",
                "sender": "assistant",
                "text": "By water.\n```\nThis block is not supported on your current device yet.\n```",
                "created_at": "2024-05-01T10:00:02Z",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "By water."},
                    {"type": "tool_use", "name": "web_search", "input": {"query": "boats"}},
                    {"type": "tool_result", "content": "ten results"},
                    {
                        "type": "tool_use",
                        "name": "artifacts",
                        "input": {"content": "print(1)", "type": "application/vnd.ant.code", "language": "python"},
                    },
                ],
            },
        ],
        **fields,
    }


def test_a_claude_chat_keeps_what_was_said_attached_and_written(store: Store, history: History, tmp_path: Path) -> None:
    report = history.import_file(write(tmp_path / "conversations.json", [claude(), claude(uuid="e", chat_messages=[])]))
    assert (report.source, report.chats, report.messages) == ("Claude", 1, 2)
    assert {what for what, _ in report.skipped} == {
        "1 picture, sound or file",
        "1 thought",
        "2 tool messages",
        "1 empty chat",
    }
    question, answer = shown(store, 1)
    assert question[1].startswith("how do boats float") and "about ````water````" in question[1]
    assert question[1].endswith("[boat.png]")
    assert answer == ("assistant", "By water.\n\n```python\nprint(1)\n```")
    from claw_local.signals.attached import own_words

    assert own_words(question[1]).startswith("how do boats float"), "what was attached is not taken for their words"


def test_claude_branches_are_branches(store: Store, history: History, tmp_path: Path) -> None:
    root = "00000000-0000-4000-8000-000000000000"
    said = [("m1", root, "human", "hi"), ("m2", "m1", "assistant", "one"), ("m3", "m1", "assistant", "two")]
    messages = [{"uuid": u, "parent_message_uuid": p, "sender": s, "text": t} for u, p, s, t in said]
    history.import_file(write(tmp_path / "x.json", [claude(chat_messages=messages, current_leaf_message_uuid="m2")]))
    assert shown(store, 1) == [("user", "hi"), ("assistant", "one")]
    assert len(history.messages(1)) == 3


def test_without_parents_claude_messages_follow_each_other(store: Store, history: History, tmp_path: Path) -> None:
    history.import_file(write(tmp_path / "x.json", {"conversations": [claude()]}))
    assert [role for role, _ in shown(store, 1)] == ["user", "assistant"]


def test_our_own_json_comes_back_whole_in_another_store(
    store: Store, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = store.chats.create(title="mine", system="Be kind.")
    store.chats.update(chat.id, sampling={"temperature": 0.5}, learn=False)
    question = store.messages.add(chat.id, "user", "hi", parent_id=None)
    first = store.messages.add(chat.id, "assistant", "one", parent_id=question, model="m")
    store.messages.add(chat.id, "assistant", "one, edited", parent_id=question)
    store.messages.show(chat.id, first)
    store.signals.add(first, "thumb", 1, hint="good")
    history.import_file(write(tmp_path / "gpt.json", [kites().export()]))
    exported = history.json([1, 2])
    file = write(tmp_path / "own.json", exported)
    assert json.loads("".join(history.json_pieces([1, 2])))["chats"] == exported["chats"]

    again = history.import_file(file)
    assert (again.chats, again.messages, again.already) == (0, 0, 2), "they are here already"
    there = Store(locate(tmp_path / "other"))
    other = History(there)
    report = other.import_file(file, learn=True)
    assert (report.chats, report.messages, report.source) == (2, 7, "claw-local")
    copy = next(c for c in there.chats.list() if c.title == "mine")
    assert (copy.system, copy.sampling, copy.learn) == ("Be kind.", {"temperature": 0.5}, False)
    assert shown(there, copy.id) == [("user", "hi"), ("assistant", "one")]
    head = there.messages.get(copy.head_id or 0)
    assert [(s.source, s.score, s.hint) for s in there.signals.of([head.id])[head.id]] == [("thumb", 1, "good")]
    assert other.import_file(file).already == 2
    assert other.import_file(tmp_path / "gpt.json").already == 1, "known by where it came from first"


def test_a_number_that_an_older_version_gave_again_is_another_chat(
    store: Store, history: History, tmp_path: Path
) -> None:
    chat = store.chats.create(title="old")
    store.messages.add(chat.id, "user", "old words", parent_id=None)
    file = write(tmp_path / "own.json", history.json([chat.id]))
    store.chats.delete(chat.id)
    again = store.chats.create(title="new")
    with store.database.write() as db:
        db.execute("update chats set id = ? where id = ?", [chat.id, again.id])
    assert history.import_file(file).chats == 1
    assert sorted(c.title for c in store.chats.list()) == ["new", "old"]


def test_a_sampling_that_cannot_be_is_left_out_and_the_chat_answers(
    store: Store, history: History, tmp_path: Path
) -> None:
    said = {"origin_id": "a", "messages": [{"key": "q", "role": "user", "content": "hi"}]}
    wrong = {"temperature": "hot", "max_tokens": -5, "top_p": [1], "stop": 5, "seed": True, "min_k": 3}
    right = {"top_k": 7, "repeat_penalty": 1.5, "stop": ["END"], "seed": 4}
    given = {**wrong, **right, "stop": ["END", "\0"]}
    history.import_file(write(tmp_path / "own.json", {"chats": [{**said, "sampling": given}]}))
    assert checked(store.chats.list()[0].sampling) == right


def test_our_own_json_without_keys_is_one_line_of_messages(store: Store, history: History, tmp_path: Path) -> None:
    said = [{"role": role, "content": text} for role, text in (("user", "a"), ("assistant", "b"), ("user", "c"))]
    chat = {
        "origin": "notes",
        "origin_id": "n1",
        "messages": [*said, {"role": "assistant", "content": "d", "key": "k"}],
    }
    whole = {"format": "claw-local-chats", "version": 1, "chats": [chat]}
    history.import_file(write(tmp_path / "x.json", whole))
    assert [text for _, text in shown(store, 1)] == ["a", "b", "c", "d"]
    history.import_file(write(tmp_path / "x.json", whole))
    assert len(store.trees.messages(1)) == 4 and len(store.chats.list()) == 1, "again doubles nothing"
