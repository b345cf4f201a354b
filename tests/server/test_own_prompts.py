"""What a program is told of the cache: only what its own key has put there."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from claw_local.server.guard import Door
from claw_local.server.keys import make
from claw_local.talking.own_prompts import MOST, OwnPrompts

from .conftest import Served, serving

SECRET = "The code of the safe in the cellar is four two one seven, and the key lies under the stone lion. Say yes."


@pytest.fixture
def guarded(served: Served) -> Iterator[Served]:
    with serving(served.assistant, Door(key_needed=True)) as found:
        yield found


def test_nobody_learns_from_the_cache_what_another_key_has_asked(guarded: Served) -> None:
    def cached(key: str) -> int:
        with openai.OpenAI(base_url=f"{guarded.url}/v1", api_key=key, max_retries=0) as client:
            answer = client.chat.completions.create(
                model="", messages=[{"role": "user", "content": SECRET}], max_tokens=2
            )
        assert answer.usage is not None and answer.usage.prompt_tokens_details is not None
        return answer.usage.prompt_tokens_details.cached_tokens or 0

    _, mine = make(guarded.assistant.store, "mine", learn=False)
    _, other = make(guarded.assistant.store, "other", learn=False)
    cached(mine)
    assert cached(other) == 0, "the engine has all of it, and says nothing"
    assert cached(mine) > 30 and cached(other) > 30, "each asked it before"


def test_what_is_remembered_has_an_end() -> None:
    own = OwnPrompts()
    assert own.ask(1, [5, 6, 7]) == 0 and own.ask(2, [5, 6, 7]) == 0
    own.answered(1, [5, 6, 7, 8])
    assert own.ask(1, [5, 6, 7, 8, 9]) == 4 and own.ask(2, [5, 6, 7, 8, 9]) == 3
    for number in range(MOST):
        own.answered(3, [number])
    assert own.ask(1, [5, 6, 7]) == 0
