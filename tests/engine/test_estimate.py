"""What of a long chat is sent to a server whose tokens nobody here knows."""

from __future__ import annotations

import pytest

from claw_local.engine.base import Message
from claw_local.engine.estimate import fit, tokens_in
from claw_local.errors import EngineError


def chat(turns: int) -> list[Message]:
    messages = [Message("system", "Be kind.")]
    for n in range(turns):
        messages += [Message("user", f"Question {n} " + "wind " * 20), Message("assistant", "Noted.")]
    return [*messages, Message("user", "And now?")]


def test_a_short_chat_goes_whole() -> None:
    assert list(fit(chat(3), 4096).messages) == chat(3)


def test_the_oldest_turns_give_way_and_are_counted() -> None:
    prompt = fit(chat(40), 512)
    assert sum(tokens_in(message.content) for message in prompt.messages) < 512
    assert prompt.messages[0].role == "system" and prompt.messages[1].role == "user"
    assert prompt.messages[-1].content == "And now?"
    assert prompt.dropped == len(chat(40)) - len(prompt.messages) > 0


def test_the_beginning_stays_the_same_for_some_turns() -> None:
    firsts = [fit(chat(n), 1024).messages[1].content for n in range(40, 46)]
    assert len(set(firsts)) <= 3, "so that the server can keep its cache"


def test_a_last_message_that_is_too_long_is_left_to_the_server() -> None:
    prompt = fit([*chat(2), Message("user", "long " * 5000)], 512)
    assert [message.role for message in prompt.messages] == ["system", "user"]
    with pytest.raises(EngineError, match="no messages"):
        fit([], 512)
