"""A context that grows as texts do, and what is said of a text that is too long for any."""

from __future__ import annotations

from typing import Any

import pytest

from claw_local.engine._growing import GrowingContext
from claw_local.errors import EngineError


@pytest.mark.parametrize(
    ("larger", "remedy"), [(True, "set a larger model.context"), (False, "made for no more than 600. Shorten it")]
)
def test_a_text_that_is_too_long_is_told_what_helps(larger: bool, remedy: str) -> None:
    made: list[Any] = []
    rooms: list[int] = []

    def make(room: int) -> Any:
        rooms.append(room)
        return object()

    context = GrowingContext(make, made.append, least=100, most=600, purpose="judge", larger=larger)
    first = context.fit(10)
    assert context.fit(512) is first and rooms == [512]
    second = context.fit(513)
    assert rooms == [512, 600] and made == [first] and second is not first
    with pytest.raises(EngineError, match=remedy):
        context.fit(601)
