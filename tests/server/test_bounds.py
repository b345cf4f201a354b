"""What nobody may take: more time than there is for one answer, or a way in from elsewhere without a key."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from claw_local.assistant import Assistant
from claw_local.cli.serve import _door, _first_key
from claw_local.server import service as services
from claw_local.server.asking import Asked, Caller, Drawn, Ended, Said
from claw_local.server.errors import TimedOut
from claw_local.server.service import Serve
from claw_local.settings import Settings

LONG = '{"type": "array", "items": {"type": "integer"}, "minItems": 300}'


def asked(most: int = 1, shape: str = "") -> Asked:
    return Asked(Caller(), (Said("user", "Write numbers."),), drawn=Drawn(max_tokens=most), shape=shape)


async def whole(service: Serve, wanted: Asked) -> Ended:
    last = [part async for part in service.answer(wanted)][-1]
    assert isinstance(last, Ended)
    return last


async def test_an_answer_that_takes_too_long_is_ended_and_its_place_is_free(shared_assistant: Assistant) -> None:
    service = Serve(shared_assistant, time_s=0.5)
    with pytest.raises(TimedOut, match="Ask for less"):
        await whole(service, asked(900, LONG))
    service._time_s = 60.0
    began = time.perf_counter()
    assert (await whole(service, asked())).completion_tokens == 1
    assert time.perf_counter() - began < 10, "what nobody waits for any more is not written to its end"
    await service.close()


async def test_nobody_waits_for_a_place_for_ever(shared_assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "WAIT_S", 0.3)
    service = Serve(shared_assistant)
    first = asyncio.create_task(whole(service, asked(900, LONG)))
    while not service._places.taken:
        await asyncio.sleep(0.01)
    with pytest.raises(TimedOut, match="No place"):
        await whole(service, asked())
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await service.close()


@pytest.mark.parametrize(
    ("host", "needed"), [("127.0.0.1", False), ("localhost", False), ("::1", False), ("0.0.0.0", True), ("::", True)]
)
def test_any_address_but_this_machines_needs_a_key(tmp_path: Path, host: str, needed: bool) -> None:
    assert _door(host, [], [], learn=True, needed=False).key_needed is needed
    with Assistant.open(tmp_path, settings=Settings()) as assistant:
        made = _first_key(assistant, host, learn=False, needed=False)
        assert bool(made) is needed
        if made:
            key = assistant.store.keys.find(made)
            assert key is not None and not key.learn, "and it may not teach"
