"""Forgetting: nothing of it is left in any file, clean adapters take over, and what is left is learned again."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from claw_local.assistant import Assistant
from claw_local.errors import AdapterError, NotFoundError, UsageError
from claw_local.forgetting import Request
from claw_local.history import History
from claw_local.signals.turns import pair
from claw_local.store.processes import _identity, process_identity

from .conftest import SECRET, Told, exchange, files_with


def test_no_byte_of_a_forgotten_text_is_left_in_any_file(told: Told) -> None:
    paths = told.assistant.paths
    assert len(files_with(paths, SECRET)) >= 5, "database, log, report, backup"
    receipt = told.assistant.forgetting.forget(Request(containing=SECRET.upper()))
    assert receipt.left == ()
    # While the program is still open, and after it is closed.
    assert files_with(paths, SECRET) == []
    told.assistant.close()
    assert files_with(paths, SECRET) == []
    assert receipt.counts == {
        "chats": 1, "messages": 3, "signals": 1, "hints": 1, "samples": 1, "drafts": 1, "titles": 0, "settings": 0
    }  # fmt: skip


@pytest.mark.parametrize("how", ["chat", "question", "reply"])
def test_a_chat_or_a_message_goes_with_all_that_hangs_on_it(told: Told, how: str) -> None:
    store = told.assistant.store
    request = {
        "chat": Request(chats=(told.secret,)),
        "question": Request(messages=(told.question, told.correction)),
        "reply": Request(messages=(told.reply, told.correction)),
    }[how]
    told.assistant.history.set_draft(None, "")
    receipt = told.assistant.forgetting.forget(request)
    assert files_with(told.assistant.paths, SECRET) == []
    with pytest.raises(NotFoundError):
        store.chats.get(told.secret)
    assert [chat.id for chat in store.chats.list()] == [told.other]
    assert told.assistant.history.search("Zwolle") == []
    assert [hint.text for hint in store.hints.list()] == ["no lists, just plain sentences"]
    assert receipt.adapters == (told.stained, told.child)
    assert [found.message_id for found in told.assistant.history.search("rain")][:1], "the rest can still be found"


def test_what_learned_it_is_gone_and_the_newest_clean_ancestor_takes_over_for_every_open_program(told: Told) -> None:
    store = told.assistant.store
    other = Assistant.open()  # As another program has it open.
    assert other.store.adapters.active("m").id == told.child  # type: ignore[union-attr]
    plan = told.assistant.forgetting.plan(Request(chats=(told.secret,)))
    assert (plan.adapters, plan.in_use) == ((told.stained, told.child), (told.clean,))
    receipt = told.assistant.forgetting.forget(Request(chats=(told.secret,)))
    assert (receipt.adapters, receipt.in_use) == (plan.adapters, plan.in_use)
    active = other.store.adapters.active("m")
    assert active is not None and active.id == told.clean
    assert other.store.chats.list() == store.chats.list()
    folders = {entry.name for entry in told.assistant.paths.adapters.iterdir()}
    assert folders == {"run-1-clean"}
    for identity in receipt.adapters:
        record = store.adapters.get(identity)
        assert record.state == "forgotten"
        assert (record.recipe, record.metrics, record.gguf_path) == ({}, {}, "")
        assert told.reply not in record.lineage
        with pytest.raises(AdapterError, match="had forgotten"):
            other.adapters._registry.use(identity, "m")
    # What was learned from beside it waits to be learned again; the clean adapter already has it.
    assert receipt.again == 0
    assert [sample.times_used for sample in store.samples.list()] == [1]
    other.close()


def test_what_is_left_of_the_lessons_waits_to_be_learned_again(told: Told) -> None:
    _, later, _ = exchange(told.assistant, told.other, "What is hail?", "Ice.", "at most two sentences")
    folder = told.assistant.paths.adapters / "run-4"
    folder.mkdir()
    (folder / "adapter.gguf").write_bytes(b"x")
    newest = told.assistant.store.adapters.add(
        parent_id=told.child,
        model_sha256="m",
        architecture="llama",
        gguf_path=str(folder / "adapter.gguf"),
        lineage=[told.kept, told.reply, later],
    )
    told.assistant.store.adapters.activate(newest.id, "m")
    receipt = told.assistant.forgetting.forget(Request(chats=(told.secret,)))
    assert receipt.in_use == (told.clean,)
    assert receipt.again == 1
    used = {sample.message_id: sample.times_used for sample in told.assistant.store.samples.list()}
    assert used == {told.kept: 1, later: 0}
    assert told.assistant.store.samples.count_waiting() == 1


def test_without_a_clean_ancestor_the_base_takes_over(told: Told) -> None:
    (told.assistant.paths.adapters / "run-1-clean" / "adapter.gguf").write_bytes(b"changed")
    receipt = told.assistant.forgetting.forget(Request(chats=(told.secret,)))
    assert receipt.in_use == (0,)
    assert told.assistant.store.adapters.active("m") is None


def test_an_adapter_whose_teacher_had_the_hint_in_its_prompt_goes_too(told: Told) -> None:
    store = told.assistant.store
    hint = told.assistant.hints.add("call me by the name of Zwolle-Nord")
    made = store.adapters.add(parent_id=0, model_sha256="m", architecture="llama", recipe={"hints": [hint.text]})
    mixed = store.adapters.add(parent_id=0, model_sha256="m", architecture="llama", recipe={"mix": [[made.id, 0.5]]})
    receipt = told.assistant.forgetting.forget(Request(containing="name of Zwolle"))
    assert {made.id, mixed.id} <= set(receipt.adapters)
    assert hint.id not in [kept.id for kept in store.hints.every()]


def test_the_judges_own_adapter_goes_too_if_it_learned_from_it(told: Told) -> None:
    store, adapters = told.assistant.store, told.assistant.paths.adapters
    for name, lineage in (("m", [told.reply]), ("other", [told.kept])):
        (adapters / f"judge-{name}").mkdir()
        (adapters / f"judge-{name}" / "adapter.gguf").write_bytes(b"judge")
        kept = {"path": str(adapters / f"judge-{name}" / "adapter.gguf"), "lineage": lineage}
        store.flags.set(f"judge.own.{name}", json.dumps(kept))
    assert told.assistant.forgetting.forget(Request(chats=(told.secret,))).judges == 1
    assert store.flags.get("judge.own.m") == "" and store.flags.get("judge.own.other") != ""
    assert not (adapters / "judge-m").exists() and (adapters / "judge-other").exists()


def test_settings_of_a_chat_with_the_text_in_them_are_cleared(told: Told) -> None:
    store = told.assistant.store
    store.chats.update(told.other, system="You live in Utrecht-West.", sampling={"stop": ["Utrecht-West"]})
    store.messages.describe(told.kept, system="You live in Utrecht-West.")
    plan = told.assistant.forgetting.plan(Request(containing="utrecht-west"))
    assert plan.counts["settings"] == 3 and not plan.nothing
    assert told.assistant.forgetting.forget(Request(containing="utrecht-west")).left == ()
    chat = store.chats.get(told.other)
    assert (chat.system, chat.sampling) == ("", {})
    assert store.messages.get(told.kept).content == "Water that falls."


def test_what_cannot_be_cleaned_is_named(told: Told) -> None:
    told.assistant.paths.settings.write_text(f'[model]\nsystem = "You live at {SECRET}."\n')
    receipt = told.assistant.forgetting.forget(Request(containing=SECRET))
    assert receipt.left == (f"{told.assistant.paths.settings} holds it",)


def test_reports_of_clean_adapters_lose_the_examples_and_keep_the_figures(told: Told) -> None:
    told.assistant.forgetting.forget(Request(containing=SECRET))
    record = told.assistant.store.adapters.get(told.clean)
    assert record.metrics["gate"] == {"examples": [], "length_ratio": 1.0}
    folder = Path(record.gguf_path).parent
    assert sorted(file.name for file in folder.iterdir()) == ["adapter.gguf", "gate.json", "peft"]
    assert json.loads((folder / "gate.json").read_text()) == {"examples": [], "length_ratio": 1.0}


def test_what_was_said_after_it_stays_joined_and_teaches_no_longer(told: Told) -> None:
    store = told.assistant.store
    first, reply, _ = exchange(told.assistant, told.other, f"Say {SECRET}.", "No.", "why not")
    asked, last, _ = exchange(told.assistant, told.other, "What is fog?", "A cloud.", "good")
    receipt = told.assistant.forgetting.forget(Request(messages=(first,)))
    branch = store.messages.branch(store.chats.get(told.other).head_id)
    assert reply not in [message.id for message in branch]
    assert [m.content for m in branch if m.role == "assistant"] == ["Water that falls.", "A cloud."]
    assert last in [message.id for message in branch]
    kept = store.messages.get(last)
    assert kept.prompt_ids == () and not kept.learn
    assert asked in [message.id for message in branch]
    assert told.kept not in [turn.reply.id for turn in pair(store)], "its next state is another one now"
    assert told.child in receipt.adapters, "the lesson before had it as its next state"


def test_copies_of_a_chat_go_along(told: Told) -> None:
    copy = told.assistant.history.duplicate(told.secret)
    told.assistant.history.set_draft(None, "")
    receipt = told.assistant.forgetting.forget(Request(chats=(told.secret,)))
    assert receipt.counts["chats"] == 2
    with pytest.raises(NotFoundError):
        told.assistant.store.chats.get(copy.id)
    assert files_with(told.assistant.paths, SECRET) == []


def test_everything_since_a_moment_goes(told: Told) -> None:
    since = told.assistant.store.messages.get(told.question).created_at
    hint = told.assistant.hints.add("be kind")
    told.assistant.forgetting.forget(Request(since=since))
    assert [chat.id for chat in told.assistant.store.chats.list()] == [told.other]
    assert hint.id not in [kept.id for kept in told.assistant.store.hints.every()]
    assert told.assistant.store.messages.get(told.kept).content == "Water that falls."


def test_a_receipt_says_what_went_but_no_word_of_it(told: Told) -> None:
    told.assistant.forgetting.forget(Request(containing=SECRET))
    (receipt,) = told.assistant.forgetting.receipts()
    assert receipt.asked == {"containing": True}
    kept = told.assistant.store.flags.get("forgotten")
    assert "wolle" not in kept and "harbour" not in kept
    assert receipt.counts["messages"] == 3


def test_a_learning_run_is_stopped_first(told: Told) -> None:
    store = told.assistant.store
    trainer = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "claw_trainer"])
    try:
        run = store.runs.begin()
        with store.database.write() as db:
            db.table("runs").update(run, {"process": _identity(trainer.pid)})
        assert told.assistant.forgetting.plan(Request(chats=(told.secret,))).learning
        told.assistant.forgetting.forget(Request(chats=(told.secret,)))
        assert trainer.wait(5) != 0
        assert store.runs.get(run).state == "stopped"
    finally:
        trainer.kill()


def test_a_program_that_only_begins_a_run_is_never_ended(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    from claw_local.errors import LearnError
    from claw_local.forgetting import forgetting

    monkeypatch.setattr(forgetting, "STOP_S", 0.3)
    run = told.assistant.store.runs.begin()
    assert told.assistant.store.runs.get(run).process == process_identity()
    with pytest.raises(LearnError, match="does not stop"):
        told.assistant.forgetting.forget(Request(chats=(told.secret,)))
    assert told.assistant.store.chats.get(told.secret)


def test_a_reader_in_the_way_is_said_and_the_disk_is_cleaned_later(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    from claw_local.forgetting import sweeping

    monkeypatch.setattr(sweeping, "PATIENCE_S", 0.3)
    monkeypatch.setattr("claw_local.store.database.BUSY_TIMEOUT_S", 0.2)
    reader = sqlite3.connect(told.assistant.paths.database)
    reader.execute("begin")
    reader.execute("select count(*) from messages").fetchone()
    told.assistant.store.database.db.conn.execute("PRAGMA busy_timeout = 200")
    receipt = told.assistant.forgetting.forget(Request(containing=SECRET))
    assert any("--sweep" in words for words in receipt.left)
    reader.close()
    assert told.assistant.forgetting.sweep().left == ()
    assert files_with(told.assistant.paths, SECRET) == []


def test_what_is_not_there_is_said(told: Told) -> None:
    forgetting = told.assistant.forgetting
    with pytest.raises(NotFoundError, match="chat 99"):
        forgetting.plan(Request(chats=(99,)))
    with pytest.raises(NotFoundError, match="message 99"):
        forgetting.forget(Request(messages=(99,)))
    with pytest.raises(UsageError, match="Say what to forget"):
        forgetting.plan(Request(containing=" "))
    assert forgetting.plan(Request(containing="nobody said this")).nothing
    with pytest.raises(UsageError, match="nothing was forgotten"):
        forgetting.forget(Request(containing="nobody said this"))
    with pytest.raises(UsageError, match="nothing to clean up"):
        forgetting.sweep()
    assert forgetting.receipts() == []
    assert told.assistant.store.adapters.get(told.child).state == "active"


def test_what_was_broken_off_half_way_is_said_and_swept_later(told: Told) -> None:
    def killed(words: str) -> None:
        if words == "deleting files":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        told.assistant.forgetting.forget(Request(containing=SECRET), killed)
    assert any("--sweep" in words for words in told.assistant.forgetting.receipts()[-1].left)
    told.assistant.close()
    again = Assistant.open()
    assert files_with(again.paths, SECRET) != []
    assert again.forgetting.sweep().left == ()
    assert files_with(again.paths, SECRET) == []
    assert not (again.paths.adapters / "run-2-stained").exists()
    assert (again.paths.adapters / "run-1-clean").is_dir()


def test_what_could_not_be_deleted_is_tried_again_and_never_called_clean(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    from claw_local import leftovers

    def refusing(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    with monkeypatch.context() as patch:
        patch.setattr(leftovers.shutil, "rmtree", refusing)
        assert any(
            "cannot be deleted" in words for words in told.assistant.forgetting.forget(Request((told.secret,))).left
        )
        assert any("cannot be deleted" in words for words in told.assistant.forgetting.sweep().left)
    assert told.assistant.forgetting.sweep().left == ()
    assert not (told.assistant.paths.adapters / "run-2-stained").exists()


def test_no_name_in_the_database_leads_a_sweep_out_of_the_home(told: Told, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    told.assistant.forgetting.forget(Request(chats=(told.secret,)))
    names = [str(outside), "adapters/../../outside.txt", "claw-local.db", "adapters", "adapters/run-1-clean"]
    told.assistant.store.flags.set("forgotten.files", json.dumps(names))
    told.assistant.forgetting.sweep()
    assert outside.exists() and told.assistant.paths.database.exists()
    assert (told.assistant.paths.adapters / "run-1-clean" / "adapter.gguf").exists()


def test_a_file_of_ones_own_that_holds_it_is_still_named_after_a_sweep(told: Told) -> None:
    settings = told.assistant.paths.settings
    settings.write_text(f'[model]\nsystem = "You live at {SECRET}."\n')
    told.assistant.forgetting.forget(Request(containing=SECRET))
    assert told.assistant.forgetting.sweep().left == (f"{settings} holds it",)
    settings.write_text("")
    os.utime(settings, (time.time() + 1, time.time() + 1))
    assert told.assistant.forgetting.sweep().left == ()


def test_letters_beyond_ascii_are_found_in_files_too(told: Told) -> None:
    paths, store = told.assistant.paths, told.assistant.store
    said = "ÜBER die Große Straße nach Ørsted"
    chat = store.chats.create(title="x").id
    store.messages.add(chat, "user", said, parent_id=None)
    (paths.runs / "7.log").write_text(f"practising on: {said}\n")
    (paths.runs / "8.json").write_text(json.dumps({"question": said}))
    receipt = told.assistant.forgetting.forget(Request(containing="über die grosse strasse"))
    assert receipt.left == ()
    assert not (paths.runs / "7.log").exists() and not (paths.runs / "8.json").exists()


def test_a_copy_of_the_database_goes_for_a_draft_alone(told: Told) -> None:
    store, paths = told.assistant.store, told.assistant.paths
    store.chats.update(told.other, draft="a word like quixotry")
    store.database._back_up("before-m998")
    receipt = told.assistant.forgetting.forget(Request(containing="quixotry"))
    assert receipt.left == ()
    assert [file for file in paths.data.rglob("*") if file.is_file() and b"quixotry" in file.read_bytes()] == []


def test_only_the_window_that_has_the_text_loses_what_is_typed_there(told: Told) -> None:
    mine = told.assistant.history
    mine.set_draft(None, "a word like quixotry")
    elsewhere = History(told.assistant.store)
    elsewhere.set_draft(None, "something else")
    receipt = told.assistant.forgetting.forget(Request(containing="quixotry"))
    assert receipt.counts["drafts"] == 1
    assert receipt.left == ()
    assert (mine.draft(None), elsewhere.draft(None)) == ("", "something else")


def test_a_blank_is_no_text_to_forget(told: Told) -> None:
    with pytest.raises(UsageError, match="blank"):
        told.assistant.forgetting.forget(Request(chats=(told.secret,), containing=" "))
    assert told.assistant.store.chats.get(told.secret)


def test_what_a_killed_restore_unpacked_goes_too(told: Told) -> None:
    staging = told.assistant.paths.data / ".restore-1-1.00-abc"
    staging.mkdir()
    (staging / "claw-local.db").write_text(SECRET)
    told.assistant.forgetting.forget(Request(chats=(told.secret,)))
    assert not staging.exists()


def test_folders_of_adapters_that_no_row_names_go_too(told: Told) -> None:
    adapters = told.assistant.paths.adapters
    for name, text in (
        ("run-9-killed", "x"),
        ("mix-killed", f"Where is {SECRET}?"),
        ("mix-other", "rain"),
        ("mine", SECRET),
    ):
        (adapters / name).mkdir()
        (adapters / name / "gate.md").write_text(f"# {text}\n")
    told.assistant.forgetting.forget(Request(chats=(told.secret,)))
    assert {entry.name for entry in adapters.iterdir()} == {"run-1-clean", "mix-other", "mine"}


def test_a_home_that_was_moved_keeps_its_adapters(told: Told, tmp_path: Path) -> None:
    told.assistant.close()
    moved = told.assistant.paths.data.rename(tmp_path / "moved")
    again = Assistant.open(moved)
    again.forgetting.forget(Request(messages=(told.question, told.correction)))
    assert (moved / "adapters" / "run-1-clean" / "adapter.gguf").exists()
    again.close()


def test_forgetting_in_a_copy_of_a_home_leaves_the_home_alone(told: Told, tmp_path: Path) -> None:
    told.assistant.close()
    original = told.assistant.paths.adapters / "run-2-stained" / "adapter.gguf"
    copy = Path(shutil.copytree(told.assistant.paths.data, tmp_path / "copy"))
    again = Assistant.open(copy)
    receipt = again.forgetting.forget(Request(containing=SECRET))
    assert receipt.adapters == (told.stained, told.child)
    assert original.exists() and not (copy / "adapters" / "run-2-stained").exists()
    again.close()


def test_caches_of_chats_go_with_whatever_is_forgotten(told: Told) -> None:
    caches = told.assistant.paths.caches
    caches.mkdir()
    (caches / "1.kv").write_bytes(b"what a chat said, as numbers")
    told.assistant.forgetting.forget(Request((told.secret,)))
    assert not caches.exists()
