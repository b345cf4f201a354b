"""Long chats and fast replies: what is read stays where it is, no key is lost. The model is a script: see conftest."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

import pytest
from textual import events

from claw_app.app import ClawApp
from claw_app.widgets.bubbles import Question
from claw_app.widgets.transcript import Transcript
from tests.app.driving import Until, send

WHEELS = 60


@pytest.fixture(autouse=True)
def only_its_own_rubbish() -> Iterator[None]:
    """What other tests left in memory is not walked by the collector here: that can take seconds."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def long_chat(assistant: Any, number: int, *, after: int = 0) -> Any:
    """A chat of so many messages, written straight into the database: asking for them would take minutes.

    Args:
        after: the ids of its messages begin after this one.
    """
    chat = assistant.new_chat(title="long")
    rows = [
        {
            "id": after + place,
            "chat_id": chat.id,
            "parent_id": after + place - 1 if place > 1 else None,
            "role": "user" if place % 2 else "assistant",
            "content": f"question {place}"
            if place % 2
            else f"Answer {place}.\n\n- one\n- two\n\n" + "word " * (place % 60),
            "state": "done",
            "turn_type": "main",
            "learn": 0,
            "prompt_ids": bytes(4000),
            "created_at": "2026-01-01T00:00:00+00:00",
        }
        for place in range(1, number + 1)
    ]
    with assistant.store.database.write() as db:
        db.table("messages").insert_all(rows, batch_size=500)
        db.table("chats").update(chat.id, {"head_id": after + number})
    return chat


async def settled(pilot: Any, app: ClawApp, until: Until) -> None:
    await until(pilot, lambda: not app.main.transcript._paging)
    await pilot.pause(0.02)
    await until(pilot, lambda: not app.main.transcript._paging)


async def test_ten_thousand_messages_open_at_their_end_within_a_second(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    chat = long_chat(scripted, 10_000)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        started = time.thread_time()  # What this thread works: other programs on the machine do not count.
        await app.main.open_chat(chat.id)
        assert time.thread_time() - started < 1.0
        assert app.main.transcript.replies()[-1].raw.startswith("Answer 10000.")
        await settled(pilot, app, until)
        assert len(app.main.transcript.query("Question, Bubble")) <= 60
        assert "earlier messages" in str(app.main.transcript.query_one("#earlier").render())


def wheel(transcript: Transcript) -> None:
    """One turn of the mouse wheel upwards."""
    transcript.post_message(events.MouseScrollUp(transcript, 5, 5, 0, -1, 0, False, False, False))


async def test_ten_thousand_messages_scroll_as_smoothly_as_sixty(app: ClawApp, scripted: Any, until: Until) -> None:
    short, long = long_chat(scripted, 60), long_chat(scripted, 10_000, after=60)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        transcript, took = app.main.transcript, dict[int, list[float]]()
        for chat in (short, long):
            await app.main.open_chat(chat.id)
            await settled(pilot, app, until)
            steps = took[chat.id] = []
            first = transcript._messages()[0].message_id
            for _ in range(WHEELS):
                started = time.thread_time()  # What this thread works: other programs on the machine do not count.
                wheel(transcript)
                await pilot.pause(0.01)
                steps.append(time.thread_time() - started)
            assert transcript._messages()[0].message_id < first, "pages came in meanwhile"
        ordered = {one: sorted(times) for one, times in took.items()}
        typical, worst = ({one: ordered[one][int(part * WHEELS)] for one in ordered} for part in (0.5, 0.95))
        print(f"typical {typical}, worst {worst}")
        assert typical[long.id] < 2 * typical[short.id]
        assert worst[long.id] < 2 * worst[short.id] + 0.05
        assert typical[long.id] < 1 / 30


def places_now(transcript: Transcript) -> dict[int, int]:
    """The row of each message that is laid out."""
    return {widget.message_id: widget.region.y for widget in transcript._messages()}


async def test_pages_come_in_above_and_below_without_moving_what_is_read(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    chat = long_chat(scripted, 400)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await app.main.open_chat(chat.id)
        await settled(pilot, app, until)
        transcript = app.main.transcript
        for step in (-11, 11):
            for _ in range(24):
                places = places_now(transcript)
                seen = [one for one, y in places.items() if 0 < y < 20]
                before, moves = transcript.scroll_y, step < 0 or transcript.scroll_y < transcript.max_scroll_y
                transcript.scroll_relative(y=step)
                if moves:  # Textual scrolls after its next refresh, whenever that is.
                    await until(pilot, lambda places=places: places_now(transcript) != places)
                await settled(pilot, app, until)
                now = places_now(transcript)
                if step < 0 or transcript._later():  # at the very end there is less than a step left
                    assert before and {now[one] - places[one] for one in seen} == {-step}
                assert len(now) <= 80
        await transcript.home()
        await settled(pilot, app, until)
        assert str(transcript.query(Question).first().render()) == "question 1"
        assert not transcript.query_one("#earlier").display
        assert transcript.query_one("#later").display
        await transcript.end()
        await settled(pilot, app, until)
        assert transcript.replies()[-1].raw.startswith("Answer 400.")


async def test_a_message_far_up_is_brought_into_view(app: ClawApp, scripted: Any, until: Until) -> None:
    chat = long_chat(scripted, 400)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await app.main.open_chat(chat.id)
        assert await app.main.transcript.reveal(101)
        await settled(pilot, app, until)
        (found,) = app.main.transcript.query(".-found")
        assert str(found.render()) == "question 101"
        assert 0 < found.region.y < 20
        assert not await app.main.transcript.reveal(9999)


async def test_what_is_sent_from_far_up_appears_at_the_end(app: ClawApp, scripted: Any, until: Until) -> None:
    chat = long_chat(scripted, 400)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await app.main.open_chat(chat.id)
        await app.main.transcript.home()
        await settled(pilot, app, until)
        await send(pilot, app, "new")
        await until(pilot, lambda: not app.main.sending)
        await settled(pilot, app, until)
        raws = [widget.raw for widget in app.main.transcript._messages()]
        assert raws[-3].startswith("Answer 400.") and raws[-2:] == ["new", "Hello **there**."]


async def test_keys_typed_while_a_hundred_tokens_a_second_stream_all_arrive(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    text = (
        "## A list\n\n" + "- an item with **bold** words\n" * 30 + "\n```python\n" + "x = f(1)  # why\n" * 20 + "```\n"
    )
    scripted.engine.script = [text[place : place + 4] for place in range(0, len(text), 4)]
    scripted.engine.pause_s = 0.01
    async with app.run_test(size=(80, 24)) as pilot:
        await send(pilot, app, "hi")
        await until(pilot, lambda: app.main.live and app.main.live.text)
        typed, took = "", list[float]()
        while app.main.sending:
            letter = "abcdefghij"[len(typed) % 10]
            typed += letter
            started = time.thread_time()
            app.post_message(events.Key(letter, letter))
            await pilot.pause(0.02)
            took.append(time.thread_time() - started)
        await pilot.pause()
        assert len(typed) > 20
        assert app.main.composer.text == typed
        # The first line of code loads what colours it: one key may wait for that, the others must not.
        slow = {place: one for place, one in enumerate(took) if one > 0.1}
        assert sorted(took)[int(0.95 * len(took))] < 0.2 and max(took) < 2.0, slow
        bubble = app.main.transcript.replies()[0]
        assert bubble.body.source == bubble.raw == text
        assert len(bubble.body.codes) == 1
