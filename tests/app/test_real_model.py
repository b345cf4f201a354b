"""The app with the whole product behind it: the embedded model, the judge, the database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from claw_app.app import ClawApp
from claw_app.widgets.bubbles import Question
from claw_local.assistant import Assistant
from claw_local.settings import Settings
from tests.app.driving import Until, send


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assistant]:
    settings = Settings()
    settings.sampling.max_tokens = 24
    settings.sampling.temperature = 0.0  # the same replies each time
    settings.model.threads = 1
    with Assistant.open(tmp_path_factory.mktemp("home"), settings=settings) as opened:
        yield opened


async def test_a_question_asked_before_the_model_is_loaded_gets_its_reply(assistant: Assistant, until: Until) -> None:
    app = ClawApp(lambda: assistant)
    async with app.run_test() as pilot:
        await send(pilot, app, "Say hello.")
        await until(pilot, lambda: not app.main.sending and app.main.transcript.replies(), 60)
        bubble = app.main.transcript.replies()[0]
        await until(pilot, lambda: "SmolLM2" in app.main.status.model, 60)
        stored = assistant.messages(app.main.chat_id or 0)
        assert [message.role for message in stored] == ["user", "assistant"]
        assert stored[1].content == bubble.raw != ""
        assert len(stored[1].response_ids) == len(stored[1].logprobs) > 0
        await pilot.press("ctrl+g")
        await until(pilot, lambda: bubble.score == 1)


async def test_esc_stops_a_real_reply(assistant: Assistant, until: Until) -> None:
    assistant.settings.sampling.max_tokens = 400
    app = ClawApp(lambda: assistant)
    async with app.run_test() as pilot:
        await send(pilot, app, "Tell me a very long story about the sea.")
        await until(pilot, lambda: app.main.live and app.main.live.text, 60)
        await pilot.press("escape")
        await until(pilot, lambda: not app.main.sending, 5)
        stored = assistant.messages(app.main.chat_id or 0)[1]
        assert stored.state == "interrupted"
        assert 0 < len(stored.response_ids) < 400
        assert stored.content == app.main.transcript.replies()[0].raw
    assistant.settings.sampling.max_tokens = 24


async def test_a_chat_is_there_again_after_reopening_with_its_marks(assistant: Assistant, until: Until) -> None:
    first = assistant.ask("Name one colour.")
    assistant.feedback(first.message_id, "bad", hint="Answer with a single word")
    app = ClawApp(lambda: assistant, chat_id=first.chat_id)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, app.main.transcript.replies)
        assert str(app.main.query_one(Question).render()) == "Name one colour."
        bubble = app.main.transcript.replies()[0]
        assert bubble.raw == first.text
        assert (bubble.score, bubble.hint) == (-1, "Answer with a single word")
        await until(pilot, lambda: any(str(foot.render()).startswith("▼") for foot in bubble.query(".foot")))


async def test_with_learning_on_the_next_message_judges_the_reply_before_it(assistant: Assistant, until: Until) -> None:
    app = ClawApp(lambda: assistant)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.state, 60)
        await pilot.press("ctrl+l")
        await until(pilot, lambda: assistant.learn.enabled)
        await send(pilot, app, "How do I boil an egg?")
        await until(pilot, lambda: not app.main.sending and app.main.transcript.replies(), 60)
        bubble = app.main.transcript.replies()[0]
        await send(pilot, app, "No, that is wrong. Please answer in one short sentence.")
        await until(pilot, lambda: bubble.score is not None, 60)
        await pilot.press("ctrl+l")
        await until(pilot, lambda: not assistant.learn.enabled)
