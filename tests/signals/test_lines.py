"""Housekeeping of web interfaces is told from what people say."""

from __future__ import annotations

import pytest

from claw_local.signals.lines import looks_aside

ASIDE = [
    "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Guidelines: …",
    "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history.",
    "### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might naturally ask next.",
    "Please write a short title for the following conversation: User: hi",
    "Provide a concise, 5-word-or-less title for the conversation, using title case conventions.",
    "Generate a short title for this chat session.",
    "Summarize this conversation in under 50 characters.",
    "Summarise the conversation so far, keeping all decisions.",
    "Your task is to choose and return the correct tool(s) from the list of available tools based on the query.",
    "Based on the chat history, give this conversation a name.",
]
SAID = [
    "How do I boil an egg?",
    "Write a title for my novel about a fisherman.",
    "Summarize this article for me: The council met on Monday.",
    "What should I call my cat?",
    "Shorter, please. And no lists.",
    "Which tools do I need to hang a shelf?",
    "Can you suggest a good name for a band?",
    "Please generate three tags for this blog post about bread.",
]


@pytest.mark.parametrize("text", ASIDE)
def test_housekeeping_is_aside(text: str) -> None:
    assert looks_aside("", [("user", text)])
    assert looks_aside("You are helpful.", [("user", "hi"), ("assistant", "Hello!"), ("user", text)])


@pytest.mark.parametrize("text", SAID)
def test_what_people_say_is_not(text: str) -> None:
    assert not looks_aside("You are a helpful assistant.", [("user", text)])


def test_a_system_prompt_alone_can_ask_for_a_title_of_what_is_said() -> None:
    system = "You write a short title for the conversation that the user gives."
    assert looks_aside(system, [("user", "User: How do I boil an egg?\nAssistant: …")])
    assert not looks_aside(system, [("user", "hi"), ("assistant", "Hello!"), ("user", "And now?")])


def test_a_tools_result_and_what_stands_deep_in_a_text_are_not() -> None:
    assert not looks_aside("", [("user", "x"), ("assistant", ""), ("tool", ASIDE[0])])
    assert not looks_aside("", [("user", "Read this log.\n" + "line\n" * 400 + ASIDE[1])])
