"""The server keeps to its own description: schemathesis makes requests of it, right and wrong ones, and looks for any
answer that is not described, any that takes what it should refuse, and any failure."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
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


@pytest.fixture(scope="module")
def description(served: Served) -> Any:
    return schemathesis.openapi.from_url(f"{served.url}/openapi.json")


described = schemathesis.pytest.from_fixture("description")


@described.parametrize()
@FEW
def test_every_answer_is_one_that_is_described(case: schemathesis.Case) -> None:
    if isinstance(case.body, dict):
        for name in ("max_tokens", "max_completion_tokens"):
            value = case.body.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and SHORT < value <= 1_000_000:
                case.body[name] = SHORT
    excluded = [positive_data_acceptance] if case.path in MORE_THAN_A_SCHEMA_SAYS else []
    case.call_and_validate(timeout=60, excluded_checks=excluded)
