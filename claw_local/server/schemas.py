"""Schemas in requests, as text. It must never know which API they came by."""

from __future__ import annotations

import json
from typing import Any

from ..talking.text import clean
from .errors import Invalid

DEEPEST = 64
"""Objects and lists inside each other. What is deeper could not be made into a grammar anyway."""


def as_text(value: Any, field: str) -> str:
    """JSON of a schema, or of what a call was made with.

    Raises:
        Invalid: it is nested too deeply.
    """
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [part for one in level for part in _parts(one)]
        if not level:
            return clean(json.dumps(value, ensure_ascii=False))
    raise Invalid(f"Objects and lists in it may be nested {DEEPEST} deep, and this is deeper.", field=field)


def _parts(value: Any) -> list[Any]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in inside if isinstance(part, (dict, list))]
