"""From the shape of a JSON text (JSON Schema) to the grammar llama.cpp keeps to (GBNF). It must never know who asks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeGuard

from ..errors import EngineError
from . import pattern_grammar
from .choices import literal, one_of, whole_numbers
from .regex import PatternError

MOST_OPTIONAL = 100
"""Properties of one object that may be left out: at each comma every one of them is looked at."""
MOST_CHOICES = 200
"""Shapes of one `anyOf`."""
MOST_VALUES = 1000
"""Values of one `enum`."""
LONGEST = 200_000
"""Characters of a grammar."""
_NAME = re.compile(r"[^a-zA-Z0-9-]+")
_HEX = "[0-9a-fA-F]"
_DATE = '[0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [1-2] [0-9] | "3" [0-1])'
_TIME = (
    '([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{3})? '
    '("Z" | [-+] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])'
)
_FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f'{_DATE} "T" {_TIME}',
    "uuid": ' "-" '.join(f"{_HEX}{{{count}}}" for count in (8, 4, 4, 4, 12)),
}
_BASIC = {
    "space": '" "?',
    "char": rf'[^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" {_HEX}{{4}})',
    "string": r'"\"" char* "\"" space',
    "boolean": '("true" | "false") space',
    "null": '"null" space',
    "whole": "[0-9] | [1-9] [0-9]{0,15}",
    "fraction": '"." [0-9]{1,16}',
    "integer": '"-"? whole space',
    "number": '"-"? whole fraction? ([eE] [-+]? whole)? space',
    "value": "object | array | string | number | boolean | null",
    "object": '"{" space (string ":" space value ("," space string ":" space value)*)? "}" space',
    "array": '"[" space (value ("," space value)*)? "]" space',
}


class ShapeError(EngineError):
    """A text cannot be kept to the shape that was asked for."""


@lru_cache(maxsize=16)
def grammar_of(schema: str) -> str:
    """The GBNF of a JSON Schema, its rule `root` being the whole text.

    Raises:
        ShapeError: it is no schema that a grammar can be made of; the message says why.
    """
    try:
        return _Maker(json.loads(schema)).made()
    except PatternError as error:
        raise ShapeError(f"No grammar can be made of the shape that was asked for. {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ShapeError(
            "No grammar can be made of the shape that was asked for: it is no JSON Schema. Mend it."
        ) from error


class _Maker:
    """Makes the grammar of one schema. Rules are named after where they stand."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._rules: dict[str, str] = {}
        self._size = 0
        self._references: dict[str, str] = {}

    def made(self) -> str:
        whole = self._visit(self._schema, "shape")
        rules = {"root": whole, **_BASIC, **self._rules}
        return "\n".join(f"{name} ::= {rule}" for name, rule in rules.items())

    def _add(self, name: str, rule: str) -> str:
        """A new rule; returns how it is called."""
        name = f"r{len(self._rules)}-{_NAME.sub('-', name)[-24:]}"
        self._size += len(name) + len(rule)
        if self._size > LONGEST:
            raise ShapeError("The shape that was asked for makes too large a grammar. Ask for a simpler one.")
        self._rules[name] = rule
        return name

    def _visit(self, schema: Any, name: str, within: frozenset[str] = frozenset()) -> str:
        """The rule of a schema: its name. `within`: references that were followed since the last bracket."""
        if schema is True:
            return "value"
        if not isinstance(schema, dict):
            raise ValueError("no schema")
        if (reference := schema.get("$ref")) is not None:
            return self._referred(reference, within)
        if choices := schema.get("oneOf") or schema.get("anyOf"):
            return self._choice(choices, name, within)
        if "const" in schema:
            return self._add(name, f"{literal(_json(schema['const']))} space")
        if "enum" in schema:
            return self._enum(schema["enum"], name)
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._choice([{**schema, "type": one} for one in kind], name, within)
        more = schema.get("additionalProperties")
        if kind in (None, "object") and ("properties" in schema or more not in (None, True)):
            return self._object(schema.get("properties", {}), schema.get("required", []), more, name)
        if kind in (None, "object") and (parts := schema.get("allOf")):
            return self._visit(parts[0], name, within) if len(parts) == 1 else self._all(schema["allOf"], name)
        if kind in (None, "array") and ("items" in schema or "prefixItems" in schema):
            return self._array(schema, name)
        if kind == "string" or (kind is None and ("pattern" in schema or "format" in schema)):
            return self._string(schema, name)
        if kind == "integer":
            return self._integer(schema, name)
        if kind == "number":
            low = schema.get("minimum")
            return self._add(name, _BASIC["number"].removeprefix('"-"? ')) if _is_number(low) and low >= 0 else "number"
        if kind is None:
            return "value"
        if kind not in ("object", "array", "boolean", "null"):
            raise ShapeError(f"No grammar can be made of the shape that was asked for: {str(kind)[:60]!r} is no type.")
        return str(kind)

    def _referred(self, reference: Any, within: frozenset[str]) -> str:
        if reference in within:
            raise ShapeError("The shape that was asked for refers to itself without end. Let it lead somewhere.")
        if reference not in self._references:
            target = self._target(reference)
            self._references[reference] = name = self._add("ref", "")
            self._rules[name] = self._visit(target, name, within | {reference})
        return self._references[reference]

    def _target(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise ShapeError(f"The shape refers to {str(reference)[:80]!r}; only places within it, #/…, can be used.")
        found = self._schema
        for step in reference.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            found = found[int(step)] if isinstance(found, list) and step.isdecimal() else found
            if isinstance(found, dict):
                if step not in found:
                    raise ShapeError(f"The shape refers to {reference[:80]!r}, where nothing is.")
                found = found[step]
        return found

    def _choice(self, schemas: Sequence[Any], name: str, within: frozenset[str]) -> str:
        if len(schemas) > MOST_CHOICES:
            raise ShapeError(f"One anyOf has at most {MOST_CHOICES} shapes here. Ask for fewer.")
        return self._add(name, " | ".join(self._visit(one, f"{name}-{n}", within) for n, one in enumerate(schemas)))

    def _enum(self, values: list[Any], name: str) -> str:
        if len(values) > MOST_VALUES:
            raise ShapeError(f"One enum has at most {MOST_VALUES} values here. Ask for fewer.")
        if not values:
            raise ShapeError("An enum without values allows no text. Give it one.")
        return self._add(name, f"{one_of(map(_json, values))} space")

    def _object(self, properties: dict[str, Any], required: list[str], additional: Any, name: str) -> str:
        pairs = {
            key: self._add(f"{name}-kv", f'{literal(_json(key))} space ":" space {self._visit(one, f"{name}-{key}")}')
            for key, one in properties.items()
        }
        must = [pair for key, pair in pairs.items() if key in required]
        may = [pair for key, pair in pairs.items() if key not in required]
        if len(may) > MOST_OPTIONAL:
            raise ShapeError(
                f"{len(may)} properties of one object may be left out; {MOST_OPTIONAL} can be. Require more of them."
            )
        if additional is True or isinstance(additional, dict):
            value = self._visit(additional or True, f"{name}-more")
            pair = self._add(f"{name}-more", f'string ":" space {value}')
            may.append(self._add(f"{name}-more", f'{pair} ("," space {pair})*'))
        # From the last one: each knows what may follow it, so that the whole grows with their number alone.
        first = ""
        for pair in reversed(may):
            first = self._add(f"{name}-from", f'{pair} ("," space {first})? | {first}' if first else pair)
        rule = ' "," space '.join(must)
        if first:
            rule += f' ("," space {first})?' if must else f"{first}?"
        return self._add(name, f'"{{" space {rule} "}}" space')

    def _all(self, schemas: list[Any], name: str) -> str:
        """All of several objects' properties."""
        properties: dict[str, Any] = {}
        required: set[str] = set()
        for part in schemas:
            for one in part.get("anyOf", [part]):
                one = self._target(one["$ref"]) if "$ref" in one else one
                properties |= one.get("properties", {})
                required |= set() if "anyOf" in part else set(one.get("properties", {}))
        return self._object(properties, list(required), None, name)

    def _array(self, schema: dict[str, Any], name: str) -> str:
        items = schema.get("prefixItems") or schema["items"]
        if isinstance(items, list):
            inside = ' "," space '.join(self._visit(one, f"{name}-{n}") for n, one in enumerate(items))
            return self._add(name, f'"[" space {inside} "]" space')
        item = self._visit(items, f"{name}-item")
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if most == 0:
            return self._add(name, '"[" space "]" space')
        more = f'{item} ("," space {item}){_times(max(0, least - 1), None if most is None else most - 1)}'
        return self._add(name, f'"[" space ({more}){"?" if least == 0 else ""} "]" space')

    def _string(self, schema: dict[str, Any], name: str) -> str:
        if "pattern" in schema:
            text = self._add(name, "")
            rules = pattern_grammar.string_rules(schema["pattern"], text)
            self._size += sum(map(len, (*rules, *rules.values())))
            self._rules |= rules
            return self._add(name, f"{text} space")
        form = re.sub(r"^uuid[1-5]$", "uuid", str(schema.get("format", "")))
        if form in _FORMATS:
            return self._add(name, rf'"\"" {_FORMATS[form]} "\"" space')
        if "minLength" in schema or "maxLength" in schema:
            times = _times(schema.get("minLength", 0), schema.get("maxLength"))
            return self._add(name, rf'"\"" char{times} "\"" space')
        return "string"

    def _integer(self, schema: dict[str, Any], name: str) -> str:
        lows: list[int] = []
        highs: list[int] = []
        for bounds, bound, open_bound, step in (
            (lows, "minimum", "exclusiveMinimum", 1),
            (highs, "maximum", "exclusiveMaximum", -1),
        ):
            whole = math.ceil if step > 0 else math.floor
            one, beyond = schema.get(bound), schema.get(open_bound)
            if _is_number(one):  # In older drafts what is open is said beside it.
                bounds.append(whole(one) + (step if beyond is True and whole(one) == one else 0))
            if _is_number(beyond):
                bounds.append(whole(beyond) + (step if whole(beyond) == beyond else 0))
        if not lows and not highs:
            return "integer"
        found = whole_numbers(max(lows, default=None), min(highs, default=None))
        if found is None:
            raise ShapeError("The shape that was asked for allows no whole number: its limits exclude each other.")
        return self._add(name, f"({found}) space")


def _json(value: Any) -> str:
    """As a model would write it: letters beyond ASCII as they are."""
    return json.dumps(value, ensure_ascii=False)


def _times(least: Any, most: Any) -> str:
    if not isinstance(least, int) or not isinstance(most, (int, type(None))) or (most is not None and most < least):
        raise ShapeError("The shape that was asked for counts backwards, or not in whole numbers. Mend its limits.")
    return f"{{{least},{'' if most is None else most}}}"


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
