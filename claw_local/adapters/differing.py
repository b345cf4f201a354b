"""What differs between two adapters: how they were made, what made them, what the gate said, and their weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..store import AdapterRecord
from .peft import PeftLora, Place, read_peft

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

APART = ("hints", "likes", "origin", "mix")
"""Parts of a recipe that are no settings."""


@dataclass(frozen=True)
class Layer:
    """One layer: the norm of the difference of its updates, and the cosine of the angle between them."""

    block: int
    module: str
    distance: float
    cosine: float


@dataclass(frozen=True)
class Difference:
    """Two adapters side by side; `first` and `second` are ids, 0 the base.

    Attributes:
        same_base: whether they are for the same base model. If not, their weights are not compared.
        relation: how they descend from each other, in words.
        recipe: settings of the training that differ: name -> (first, second); None where it has none.
        hints: wishes that only one was trained with: ("first" or "second", the wish).
        turns: replies that made only the first, only the second, both.
        gate: figures of the gate's reports: name -> (first, second); None where it was not measured.
        norms: Frobenius norms of the whole updates, ‖ΔW‖.
        distance: ‖ΔW₁ - ΔW₂‖.
        cosine: of the angle between the updates; 1 the same direction, 0 unrelated; 0 if one is nothing.
        layers: those that differ most, most first.
    """

    first: int
    second: int
    same_base: bool
    relation: str
    recipe: dict[str, tuple[Any, Any]]
    hints: list[tuple[str, str]]
    turns: tuple[int, int, int]
    gate: dict[str, tuple[float | None, float | None]]
    norms: tuple[float, float]
    distance: float
    cosine: float
    layers: list[Layer]


def differ(first: AdapterRecord | None, second: AdapterRecord | None, *, most_layers: int = 5) -> Difference:
    """Compare two adapters (None: the base, whose update is nothing).

    Raises:
        AdapterError: the files of one are gone or damaged.
    """
    same = first is None or second is None or first.model_sha256 == second.model_sha256
    norms, distance, cosine, layers = _weights(first, second) if same else ((0.0, 0.0), 0.0, 0.0, [])
    mine, theirs = (set(record.lineage) if record else set() for record in (first, second))
    one, other = (record.recipe if record else {} for record in (first, second))
    names = sorted((one.keys() | other.keys()) - set(APART))
    gates = [_figures(record) for record in (first, second)]
    return Difference(
        first=first.id if first else 0,
        second=second.id if second else 0,
        same_base=same,
        relation=_relation(first, second),
        recipe={name: (one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)},
        hints=[("first", hint) for hint in one.get("hints", ()) if hint not in other.get("hints", ())]
        + [("second", hint) for hint in other.get("hints", ()) if hint not in one.get("hints", ())],
        turns=(len(mine - theirs), len(theirs - mine), len(mine & theirs)),
        gate={name: (gates[0].get(name), gates[1].get(name)) for name in dict.fromkeys([*gates[0], *gates[1]])},
        norms=norms,
        distance=distance,
        cosine=cosine,
        layers=layers[:most_layers],
    )


def _relation(first: AdapterRecord | None, second: AdapterRecord | None) -> str:
    if first is None or second is None:
        return "one is the base model itself"
    if first.id == second.id:
        return "they are the same"
    if second.parent_id == first.id:
        return f"{second.id} was made from {first.id}"
    if first.parent_id == second.id:
        return f"{first.id} was made from {second.id}"
    if first.parent_id == second.parent_id:
        return f"both were made from {first.parent_id}" if first.parent_id else "both were made from the base model"
    return "neither was made from the other"


def _figures(record: AdapterRecord | None) -> dict[str, float]:
    """The gate's figures by name."""
    gate = record.metrics.get("gate") if record is not None else None
    if not isinstance(gate, Mapping):
        return {}
    gains = {f"gain in {name}": gain.get("mean") for name, gain in (gate.get("gains") or {}).items()}
    guard = gate.get("guard") or {}
    others = {
        "length ratio": gate.get("length_ratio"),
        "distance from the base": guard.get("kl_base"),
        "simple facts known": guard.get("known_after"),
        "harmful requests declined": guard.get("declined_after"),
    }
    return {name: float(value) for name, value in {**gains, **others}.items() if isinstance(value, (int, float))}


def _weights(
    first: AdapterRecord | None, second: AdapterRecord | None
) -> tuple[tuple[float, float], float, float, list[Layer]]:
    one, other = (read_peft(Path(record.peft_dir)) if record else PeftLora(1.0, {}) for record in (first, second))
    squares, other_squares, products, layers = 0.0, 0.0, 0.0, []
    for place in sorted(one.weights.keys() | other.weights.keys()):
        mine, theirs = inner(one, one, place), inner(other, other, place)
        both = inner(one, other, place)
        squares, other_squares, products = squares + mine, other_squares + theirs, products + both
        apart = math.sqrt(max(0.0, mine + theirs - 2 * both))
        layers.append(Layer(place[0], place[1], apart, _cosine(mine, theirs, both)))
    layers.sort(key=lambda layer: -layer.distance)
    distance = math.sqrt(max(0.0, squares + other_squares - 2 * products))
    return (math.sqrt(squares), math.sqrt(other_squares)), distance, _cosine(squares, other_squares, products), layers


def _cosine(one: float, other: float, product: float) -> float:
    return max(-1.0, min(1.0, product / math.sqrt(one * other))) if one > 0 and other > 0 else 0.0


def inner(one: PeftLora, other: PeftLora, place: Place) -> float:
    """⟨ΔW₁, ΔW₂⟩ = s₁ s₂ · tr((B₂ᵀ B₁)(A₁ A₂ᵀ)) of one layer: no [out, in] matrix is made."""
    if place not in one.weights or place not in other.weights:
        return 0.0
    (a1, b1), (a2, b2) = one.weights[place], other.weights[place]
    scale = one.alpha / a1.shape[0] * other.alpha / a2.shape[0]
    return float(scale * ((b1.T @ b2).astype("f8") * (a1 @ a2.T).astype("f8")).sum())
