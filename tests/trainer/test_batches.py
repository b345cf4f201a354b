"""Samples, packing and splitting."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_local.errors import LearnError
from claw_trainer.batches import Sample, pack, split_by_tokens


def test_packing_lays_turns_end_to_end_without_the_last_response_token() -> None:
    packed = pack([([1, 2, 3], [4, 5]), ([6], [7, 8, 9])])
    assert packed.token_ids.tolist() == [1, 2, 3, 4, 6, 7, 8]
    assert packed.position_ids.tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert packed.rows.tolist() == [2, 3, 4, 5, 6]
    assert packed.targets.tolist() == [4, 5, 7, 8, 9]
    assert packed.lengths == (4, 3)
    assert packed.response_lengths == (2, 3)


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 60))
def test_splitting_keeps_every_item_once_in_order_and_within_the_bound(sizes: list[int], most: int) -> None:
    groups = list(split_by_tokens(sizes, most))
    assert [index for group in groups for index in group] == list(range(len(sizes)))
    assert all(len(group) == 1 or sum(sizes[index] for index in group) <= most for group in groups)


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompt_ids": ()},
        {"response_ids": ()},
        {"teacher_prompt_ids": ()},
        {"behaviour_logprobs": (-1.0,)},
        {"behaviour_logprobs": (-1.0, math.nan)},
        {"score": math.inf},
        {"weight": -1.0},
    ],
)
def test_a_sample_that_cannot_teach_is_refused_by_name(wrong: dict[str, object]) -> None:
    right: dict[str, object] = {"prompt_ids": (1,), "response_ids": (2, 3), "message_id": 17}
    with pytest.raises(LearnError, match="message 17"):
        Sample(**{**right, **wrong})  # type: ignore[arg-type]
