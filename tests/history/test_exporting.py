"""Chats as text to be carried away."""

from __future__ import annotations

from claw_local.history import History
from claw_local.store import Store


def test_markdown_holds_the_shown_branch_as_it_was_said(store: Store, history: History) -> None:
    chat = store.chats.create(title="About\nkites", system="Be kind.\nBe short.")
    question = store.messages.add(chat.id, "user", "how?", parent_id=None)
    store.messages.add(chat.id, "assistant", "another version", parent_id=question, model="m.gguf")
    store.messages.add(chat.id, "assistant", "```\ncode\n```", parent_id=question, model="m.gguf", state="interrupted")
    text = history.markdown(chat.id)
    assert text.startswith("# About kites\n\n*20")
    assert text.endswith(
        "> Be kind.\n> Be short.\n\n## You\n\nhow?\n\n## Assistant (m.gguf)\n\n```\ncode\n```\n\n*(not finished)*\n"
    )


def test_json_holds_all_branches_but_no_side_turns_and_no_tokens(store: Store, history: History) -> None:
    chat = store.chats.create(title="t")
    question = store.messages.add(chat.id, "user", "how?", parent_id=None)
    store.messages.add(chat.id, "assistant", "one", parent_id=question, response_ids=[1, 2])
    store.messages.add(chat.id, "assistant", "two", parent_id=question)
    store.messages.add(chat.id, "assistant", "a title", parent_id=question, turn_type="side")
    (exported,) = history.json([chat.id])["chats"]
    assert [message["content"] for message in exported["messages"]] == ["how?", "one", "two"]
    assert exported["head"] == exported["messages"][2]["key"]
    assert exported["messages"][1]["parent"] == exported["messages"][0]["key"]
    assert not {"response_ids", "prompt_ids", "logprobs"} & set(exported["messages"][1])
