"""What stands in memory only, because the disk is full, is not thrown away by a key."""

from __future__ import annotations

from typing import Any

import pytest

from claw_app.app import ClawApp
from claw_app.screens.ask import Confirm
from claw_local.store.adrift import Adrift
from tests.app import drawing
from tests.app.driving import Until


async def test_quitting_asks_before_what_a_full_disk_did_not_take_is_lost(
    app: ClawApp, scripted: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = scripted.store.database
    with monkeypatch.context() as full:
        full.setattr(Adrift, "come_back", lambda self, at_once=False: False)  # Stands for the disk.
        assert database._cast_off()
        scripted.new_chat(title="in memory only")
        async with app.run_test() as pilot:
            await until(pilot, app.main._ready.is_set)
            await pilot.press("ctrl+q")
            await until(pilot, lambda: isinstance(app.screen, Confirm) and "in memory only" in drawing.text(app))
            await pilot.press("n")
            await until(pilot, lambda: app.screen is app.main)
            assert not app.leaving
            full.undo()  # There is room again.
            await pilot.press("ctrl+q")
            await until(pilot, lambda: app.leaving)
    assert not database.adrift
