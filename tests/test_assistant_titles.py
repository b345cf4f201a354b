"""Titles that the model gives, on a small server that plays an OpenAI-compatible one: its words are a script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.settings import OpenAISettings, Settings
from claw_local.talking.titles import usable
from tests.engine.servers import OPENAI, Script, serving

SAID = ["How do I boil an egg?", "Put it in boiling water for six minutes."]


@pytest.fixture
def chatting(tmp_path: Path) -> Iterator[tuple[Assistant, Script, int]]:
    """An assistant, what its model says, and a chat with one exchange."""
    with serving(OPENAI) as (url, script):
        settings = Settings(openai=OpenAISettings(url=f"{url}/v1"))
        with Assistant.open(tmp_path, model="openai:qwen3:4b", settings=settings) as assistant:
            script.pieces = [SAID[1]]
            yield assistant, script, assistant.ask(SAID[0]).chat_id


def test_a_title_takes_the_place_of_the_questions_first_words(chatting: tuple[Assistant, Script, int]) -> None:
    assistant, script, chat_id = chatting
    script.pieces = ["Boiling ", "an Egg\n"]
    assert assistant.write_title(chat_id) == "Boiling an Egg"
    assert assistant.chat(chat_id).title == "Boiling an Egg"
    assert script.last("/v1/chat/completions")["messages"][0]["content"] == SAID[0], "the chat itself is its context"


def test_a_title_is_a_side_turn_that_is_stored_and_never_teaches(chatting: tuple[Assistant, Script, int]) -> None:
    assistant, script, chat_id = chatting
    assistant.learn.on()
    before = [message.id for message in assistant.messages(chat_id)]
    script.pieces = ["Boiling an Egg"]
    assistant.write_title(chat_id)
    assert [message.id for message in assistant.messages(chat_id)] == before, "the conversation does not show it"
    (kept,) = assistant.store.database.db.query(
        "select * from messages where role = 'assistant' and turn_type = 'side'"
    )
    assert (kept["content"], kept["learn"], kept["state"]) == ("Boiling an Egg", -1, "done")
    assert assistant.versions(before[0]) == before[:1], "and it is no version of the first question"
    assert assistant.store.samples.count_unjudged() == 0


def test_a_chat_that_the_person_named_keeps_its_name(chatting: tuple[Assistant, Script, int]) -> None:
    assistant, script, chat_id = chatting
    script.pieces = ["Boiling an Egg"]
    before = assistant.chat(chat_id).updated_at
    assistant.rename_chat(chat_id, "Breakfast")
    assert assistant.chat(chat_id).updated_at == before, "and its place in the list"
    script.asked.clear()
    assert assistant.write_title(chat_id) is None
    assert (assistant.chat(chat_id).title, script.asked) == ("Breakfast", []), "the model is not even asked"


def test_a_chat_that_is_renamed_meanwhile_keeps_its_name(chatting: tuple[Assistant, Script, int]) -> None:
    assistant, script, chat_id = chatting
    script.pieces = ["Boiling an Egg"]

    def rename(path: str) -> None:
        assistant.store.chats.update(chat_id, title="Breakfast")

    script.answer = rename
    assert assistant.write_title(chat_id) is None
    assert assistant.chat(chat_id).title == "Breakfast"


def test_words_that_are_no_title_leave_it_alone(chatting: tuple[Assistant, Script, int]) -> None:
    assistant, script, chat_id = chatting
    script.pieces = ["I am sorry, but I cannot do that."]
    assert assistant.write_title(chat_id) is None
    assert assistant.chat(chat_id).title == SAID[0]


def test_a_server_that_fails_leaves_the_title_alone(chatting: tuple[Assistant, Script, int]) -> None:
    assistant, script, chat_id = chatting
    script.answer = lambda path: (500, {"error": {"message": "broken"}})
    assert assistant.write_title(chat_id) is None


def test_without_an_answer_there_is_nothing_to_name(chatting: tuple[Assistant, Script, int]) -> None:
    assistant, script, _ = chatting
    script.asked.clear()
    assert assistant.write_title(assistant.new_chat().id) is None
    assert script.asked == []


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("Boiling an Egg", "Boiling an Egg"),
        ('"Egg Boiling Guide."', "Egg Boiling Guide"),
        ("**Title: Perfect boiled eggs**\n\nThis covers how to boil", "Perfect boiled eggs"),
        ('Here\'s a title for the conversation: "The Perfect Egg"', "The Perfect Egg"),
        ("Boiling an egg: a simple yet elegant way to prepare a delicious breakfast", "Boiling an egg"),
        ("Don't overcook your eggs", "Don't overcook your eggs"),
    ],
)
def test_a_good_title_is_found_in_what_the_model_wrote(words: str, title: str) -> None:
    assert usable(words, SAID) == title


@pytest.mark.parametrize(
    "words",
    [
        "",
        "\n\n",
        "...",
        "How do I boil an egg?",
        "Put it in boiling water",
        "Write a title for this conversation",
        "I cannot help with boiling eggs",
        "Sure! Boiling eggs",
        "A Journey of Perseverance and Wonder",
        "Here is a title about eggs",
        "The boiling egg was put into the water and then it was taken out of it again",
        "Boiling\x1b[31m eggs",
    ],
)
def test_what_says_nothing_or_only_repeats_is_no_title(words: str) -> None:
    assert usable(words, SAID) is None


def test_a_title_in_a_writing_without_spaces_counts_too() -> None:
    assert usable("「煮鸡蛋的方法」", ["怎么煮鸡蛋？", "把鸡蛋放进开水里煮六分钟。"]) == "煮鸡蛋的方法"
    assert usable("旅行计划", ["怎么煮鸡蛋？", "把鸡蛋放进开水里煮六分钟。"]) is None
