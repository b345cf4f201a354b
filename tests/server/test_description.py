"""The server keeps to its own description: schemathesis makes requests of it, right and wrong ones, and looks for any
answer that is not described, any that takes what it should refuse, and any failure."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from .conftest import Served

FEW = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
MORE_THAN_A_SCHEMA_SAYS = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings")
"""What they refuse with 400 can depend on more than a description can hold: whether the tool that has to be called is
among those given, whether a grammar can be made of a shape, which tokens the model has."""
SHORT = 2
"""Tokens of an answer: what is said does not matter here."""
LONGEST = 1_000_000


@pytest.fixture(scope="module")
def operations(served: Served) -> list[Any]:
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    return [found.ok() for found in schema.get_all_operations()]


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_every_answer_is_one_that_is_described(operations: list[Any], mode: schemathesis.GenerationMode) -> None:
    assert len(operations) >= 7
    for operation in operations:
        if mode is schemathesis.GenerationMode.POSITIVE or operation.body:
            look_at(operation, mode)


def look_at(operation: Any, mode: schemathesis.GenerationMode) -> None:
    excluded = [positive_data_acceptance] if operation.path in MORE_THAN_A_SCHEMA_SAYS else []

    @given(operation.as_strategy(generation_mode=mode))
    @FEW
    def ask(case: schemathesis.Case) -> None:
        if isinstance(case.body, dict):
            options = case.body.get("options")
            for part in (case.body, options if isinstance(options, dict) else {}):
                for name in ("max_tokens", "max_completion_tokens", "num_predict"):
                    value = part.get(name)
                    if isinstance(value, (int, float)) and not isinstance(value, bool) and SHORT < value <= LONGEST:
                        part[name] = SHORT
        case.call_and_validate(timeout=60, excluded_checks=excluded)

    ask()
