"""OpenAI's form of answers that do not end well."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from claw_local.server import openai_events as events
from claw_local.server.api import Whole
from claw_local.server.asking import Asked, Began, Caller, Ended, Piece
from claw_local.server.errors import Unavailable


async def test_an_answer_that_was_broken_off_is_an_error_and_no_end() -> None:
    async def pieces() -> AsyncIterator[Piece | Ended]:
        yield Piece(began=Began("m", 0, 1))
        yield Piece("Hal")
        yield Ended("cancelled")

    asked = Asked(Caller(), prompt="Say half.")
    with pytest.raises(Unavailable):
        events.chat(Whole("Hal", [], [], Ended("cancelled")), asked)
    chat = [line async for line in events.chat_events(pieces(), asked, counts=True)]
    text = [line async for line in events.text_events(pieces(), asked, "", counts=False)]
    for lines in (chat, text):
        assert "broken off" in lines[-1] and not any("[DONE]" in line or '"stop"' in line for line in lines)
