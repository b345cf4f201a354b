"""Homework over HTTP: a scripted student with one task, against `claw-local serve` in a process of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import homework
from benchmarks.personas.eye import Check
from benchmarks.personas.persona import Correction, Wish, load
from benchmarks.served import Desk
from claw_local.paths import locate
from claw_local.store import Store

CAPITALS = "No, that is not what I wanted. Please write in capital letters only."


def test_tools_reach_the_files_on_the_desk_and_no_others(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "desk", ["What is 2 + 3?", "What is 3 + 4?"])
    assert desk.run("read_file", {"path": "homework/2.txt"}) == "What is 3 + 4?\n"
    assert desk.run("append_file", {"path": "homework/1.txt", "text": "It is 5."}).startswith("Wrote 8 characters")
    assert desk.read("homework/1.txt") == "What is 2 + 3?\nIt is 5.\n"
    (tmp_path / "secret.txt").write_text("secret")
    for wrong in ({"path": "../secret.txt"}, {"path": "homework/3.txt"}, {}):
        assert desk.run("read_file", wrong).startswith("Error")
    assert desk.run("append_file", {"path": "homework/1.txt", "text": " "}).startswith("Error")


def test_a_teachers_file_names_the_pupil_above_the_work() -> None:
    prompt = load("teacher").prompts[0]
    text = homework.text_of(prompt)
    assert text.startswith(f"Name: {prompt.fields['name']}\n") and prompt.fields["work"] in text
    assert homework.text_of(load("student").prompts[0]) == load("student").prompts[0].text


@pytest.mark.usefixtures("home")
def test_what_a_student_says_in_one_task_holds_in_the_next(tmp_path: Path) -> None:
    """The wish is one that the model breaks every time, so that the student always has something to say."""
    wish = Wish("in capital letters", (Check("uppercase"),), (Correction(CAPITALS),), ("Thanks!",))
    student = replace(load("student"), wish=wish)
    row = homework.live(tmp_path, student, 0, homework.Options(tasks=1, later=1, tokens=24))
    assert row["tasks"] == row["corrected"] == 1 and row["before"]["rate"] == 0
    assert len(row["hints"]) == 1 and "capital letters" in row["hints"][0] and row["lessons"] >= 1
    store = Store(locate(tmp_path / "home"))
    try:
        before, task, taught = (
            store.messages.branch(store.chats.get(chat.id).head_id) for chat in reversed(store.chats.list(limit=9))
        )
        verdicts = [signal for found in store.signals.of([m.id for m in task]).values() for signal in found]
    finally:
        store.close()
    assert [message.role for message in task][:3] == ["user", "assistant", "tool"]
    assert sum(message.role == "tool" for message in task) >= 1 and task[-1].role == "assistant"
    assert any(signal.source == "judge" and signal.score == -1 for signal in verdicts)
    assert not before[-1].hint_ids and taught[-1].hint_ids, "it stands in the prompt of a session that came later"
    grown = (tmp_path / "desk" / "homework" / "1.txt").read_text("utf-8") != homework.text_of(student.prompts[0]) + "\n"
    assert grown or not row["appended"]
