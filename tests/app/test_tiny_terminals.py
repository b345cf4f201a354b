"""A terminal may be pulled to any size at any moment: what does not fit is not shown, and nothing ends."""

from __future__ import annotations

import pytest

from claw_app.app import ClawApp
from tests.app.driving import Until

SIZES = [(1, 1), (300, 100), (2, 2), (1, 40), (40, 2), (80, 24)]


@pytest.mark.parametrize("keys", ["", "f6", "ctrl+o", "ctrl+t", "/"])
async def test_any_size_is_survived(app: ClawApp, until: Until, keys: str) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.loaded)
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: app.main.transcript.children)
        if keys:
            await pilot.press(keys)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await pilot.pause(0.05)
        assert app.is_running and app._exception is None
        assert app.size == (80, 24)
