"""Places are shared out fairly, and nobody who went away keeps one."""

from __future__ import annotations

import asyncio

import pytest

from claw_local.server.errors import Busy
from claw_local.server.places import Places


async def test_clients_take_turns_however_many_requests_each_has() -> None:
    places = Places(1)
    order: list[str] = []

    async def ask(client: str) -> None:
        place = await places.take(client)
        order.append(client)
        await asyncio.sleep(0)
        place.free()

    first = await places.take("greedy")
    tasks = [asyncio.create_task(ask("greedy")) for _ in range(5)]
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(ask(client)) for client in ("ann", "bob", "ann")]
    await asyncio.sleep(0)
    first.free()
    await asyncio.gather(*tasks)
    assert order == ["greedy", "ann", "bob", "greedy", "ann", "greedy", "greedy", "greedy"]
    assert (places.taken, places.waiting) == (0, 0)


async def test_one_client_leaves_places_for_others_even_if_more_are_free() -> None:
    places = Places(4, each=2)
    greedy = [await places.take("greedy") for _ in range(2)]
    third = asyncio.create_task(places.take("greedy"))
    await asyncio.sleep(0)
    others = [await places.take("ann"), await places.take("bob")]
    cat = asyncio.create_task(places.take("cat"))
    await asyncio.sleep(0)
    others.pop().free()
    others.append(await cat)
    assert not third.done()
    greedy.pop().free()
    greedy.append(await third)
    for place in (*greedy, *others):
        place.free()
    assert (places.taken, places.waiting) == (0, 0) and not +places._held


async def test_who_goes_away_while_waiting_leaves_nothing_behind() -> None:
    places = Places(1)
    held = await places.take("a")
    waiting = asyncio.create_task(places.take("b"))
    last = asyncio.create_task(places.take("c"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    held.free()
    held.free()
    (await last).free()
    assert (places.taken, places.waiting) == (0, 0)


async def test_who_goes_away_just_as_the_place_comes_passes_it_on() -> None:
    places = Places(1)
    held = await places.take("a")
    waiting = asyncio.create_task(places.take("b"))
    await asyncio.sleep(0)
    held.free()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (places.taken, places.waiting) == (0, 0)


async def test_too_many_are_sent_away_with_a_time_to_come_back() -> None:
    places = Places(1, most_waiting=3, most_of_one=2)
    held = await places.take("a")
    tasks = [asyncio.create_task(places.take("a")) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Busy) as caught:
        await places.take("a")
    assert int(caught.value.headers["Retry-After"]) >= 1
    tasks.append(asyncio.create_task(places.take("b")))
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await places.take("c")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    held.free()
    assert (places.taken, places.waiting) == (0, 0)
