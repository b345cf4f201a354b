"""From the shape of a JSON text (JSON Schema) to the grammar llama.cpp keeps to (GBNF). It must never know who asks."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from ..errors import EngineError


class ShapeError(EngineError):
    """A text cannot be kept to the shape that was asked for."""


@lru_cache(maxsize=16)
def grammar_of(schema: str) -> str:
    """The GBNF of a JSON Schema, its rule `root` being the whole text.

    Raises:
        ShapeError: it is no schema that a grammar can be made of.
    """
    kind = _converter()
    try:
        converter = kind(prop_order={}, allow_fetch=False, dotall=False, raw_pattern=False)
        converter.visit(converter.resolve_refs(json.loads(schema), "stdin"), "")
        made: str = converter.format_grammar()
    except Exception as error:
        raise ShapeError(f"No grammar can be made of the shape that was asked for ({error!r}).") from error
    return made


@lru_cache(maxsize=1)
def _converter() -> Any:
    """llama.cpp's converter, which leaves backslashes in names and fixed values as they are: `"C:\\temp"` broke it."""
    from llama_cpp.llama_grammar import SchemaConverter

    class Converter(SchemaConverter):  # type: ignore[misc]
        def _format_literal(self, literal: str) -> str:
            try:  # As a model would write it: letters beyond ASCII as they are.
                literal = json.dumps(json.loads(literal), ensure_ascii=False)
            except ValueError:
                pass  # Some other piece of text.
            for raw, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
                literal = literal.replace(raw, written)
            return f'"{literal}"'

    return Converter
