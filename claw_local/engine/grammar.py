"""From the shape of a JSON text (JSON Schema) to the grammar llama.cpp keeps to (GBNF). It must never know who asks."""

from __future__ import annotations

from functools import lru_cache

from ..errors import EngineError


class ShapeError(EngineError):
    """A text cannot be kept to the shape that was asked for."""


@lru_cache(maxsize=16)
def grammar_of(schema: str) -> str:
    """The GBNF of a JSON Schema, its rule `root` being the whole text.

    Raises:
        ShapeError: it is no schema that a grammar can be made of.
    """
    from llama_cpp.llama_grammar import json_schema_to_gbnf

    try:
        made: str = json_schema_to_gbnf(schema)
    except Exception as error:
        raise ShapeError(f"No grammar can be made of the shape that was asked for ({error!r}).") from error
    return made
