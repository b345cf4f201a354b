"""The branch that is shown, a page at a time, over a real store."""

from __future__ import annotations

from typing import Any

from claw_app.branch import Branch


def test_pages_hold_messages_with_their_signals_versions_and_what_was_said_next(scripted: Any) -> None:
    first = scripted.ask("one")
    second = scripted.ask("two", chat=first.chat_id)
    again = scripted.regenerate(second.message_id).answer
    branch = Branch(scripted, first.chat_id)
    assert len(branch) == 4
    page = branch.load(-5, 99)
    assert [shown.message.content for shown in page] == ["one", "Hello **there**.", "two", "Hello **there**."]
    assert page[1].because == "two" and page[3].because == ""
    assert page[3].versions == (second.message_id, again.message_id)
    assert page[1].versions == (first.message_id,)
    assert [shown.message.id for shown in branch.load(1, 2)] == [first.message_id]
    assert page[1].message.prompt_ids == ()  # Nothing on the screen needs them, and in a long chat they are most of it.
    scripted.feedback(first.message_id, "good")
    assert [signal.score for signal in branch.load(1, 2)[0].signals] == [1]


def test_two_first_questions_of_a_chat_are_versions_of_each_other(scripted: Any) -> None:
    answer = scripted.ask("one")
    question = Branch(scripted, answer.chat_id).ids[0]
    scripted.edit_question(question, "uno").answer  # noqa: B018
    scripted.ask("another chat")
    shown = Branch(scripted, answer.chat_id).load(0, 1)[0]
    assert shown.message.content == "uno"
    assert shown.versions == (question, shown.message.id)


def test_a_branch_knows_its_places_leaves_one_out_and_grows(scripted: Any) -> None:
    answer = scripted.ask("one")
    branch = Branch(scripted, answer.chat_id, leave_out=[answer.message_id])
    assert branch.place(answer.message_id) is None and len(branch) == 1
    whole = Branch(scripted, answer.chat_id)
    later = scripted.ask("two", chat=answer.chat_id)
    assert whole.place(later.message_id) is None
    whole.refresh()
    assert whole.place(later.message_id) == 3
    assert whole.load(4, 4) == []
