"""Texts that are embedded for long: they end in time, or once nobody waits for them."""

from __future__ import annotations

import asyncio
import time

import pytest

from claw_local.assistant import Assistant
from claw_local.server.asking import Caller
from claw_local.server.errors import TimedOut
from claw_local.server.service import Serve

MANY = ["A sentence that is read as a text of its own. "] * 250


async def free_after(service: Serve) -> float:
    """Seconds until nothing computes any more."""
    began = time.perf_counter()
    while service._places.taken:
        await asyncio.sleep(0.02)
        assert time.perf_counter() - began < 10, "all texts are embedded, though nobody waits for them"
    return time.perf_counter() - began


async def test_many_texts_end_in_time_and_their_place_is_free_soon_after(shared_assistant: Assistant) -> None:
    service = Serve(shared_assistant, time_s=0.3)
    with pytest.raises(TimedOut):
        await service.embed(Caller(), "", MANY)
    await free_after(service)
    found = await service.embed(Caller(), "", ["Hi."])
    assert len(found.vectors) == 1
    await service.close()


async def test_texts_of_somebody_who_went_away_are_left(shared_assistant: Assistant) -> None:
    service = Serve(shared_assistant)
    asking = asyncio.create_task(service.embed(Caller(), "", MANY))
    await asyncio.sleep(0.3)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert service._places.taken == 1, "its place is not given to others while it still computes"
    await free_after(service)
    await service.close()
