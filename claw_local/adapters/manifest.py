"""What a pack says about itself: its manifest, version 1, as docs/packs.md describes it. It must never touch a file."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import AdapterError
from ..language import _

FORMAT, VERSION = "claw-pack", 1
LONGEST = 1 << 20
"""Most bytes of a manifest."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Words = Annotated[str, Field(max_length=200)]
Name = Annotated[str, Field(pattern=r"^(?:[^\W\d_][\w.-]{0,39})?$")]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


class PackedFile(_Part):
    """One file of the pack: its size in bytes and its hash."""

    size: int = Field(ge=0)
    sha256: Sha256


class PackedBase(_Part):
    """The base model it belongs to: the hash of its GGUF file, and its architecture as GGUF names it."""

    sha256: Sha256
    architecture: Words


class PackedLora(_Part):
    """What the matrices are: rank, α, the modules that have an update, in how many blocks."""

    rank: int = Field(ge=1, le=1024)
    alpha: float = Field(gt=0, lt=1e6, strict=False)
    modules: list[Words] = Field(min_length=1, max_length=16)
    blocks: int = Field(ge=1, le=10_000)


class Manifest(_Part):
    """All of it.

    Attributes:
        name: what its owner calls it; "" if nothing.
        made_at: when it was trained, UTC, ISO 8601.
        parent: hash of the adapter.gguf it was trained on from; "" if from the base.
        recipe: the settings of its training, by name.
        turns: how many replies made it. Which ones, and what they say, is not in a pack.
        files: every other file of the pack, by name.
    """

    format: Literal["claw-pack"] = "claw-pack"
    version: Literal[1] = 1
    name: Name = ""
    made_at: Words = ""
    parent: Sha256 | Literal[""] = ""
    base: PackedBase
    lora: PackedLora
    recipe: dict[Words, bool | int | float | Words] = Field(default_factory=dict, max_length=64)
    turns: int = Field(0, ge=0)
    files: dict[Words, PackedFile] = Field(max_length=16)

    def to_json(self) -> bytes:
        """The same manifest gives the same bytes."""
        text = json.dumps(self.model_dump(), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
        return text.encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Manifest:
        """Raises AdapterError: it is none, or one of a newer version."""
        try:
            value = json.loads(data)
            version = value.get("version") if isinstance(value, dict) and value.get("format") == FORMAT else None
            if isinstance(version, int) and version > VERSION:
                raise AdapterError(
                    _(
                        "it is a pack of version {version}, and this claw-local knows {known}: update it",
                        version=version,
                        known=VERSION,
                    )
                )
            # As JSON once more: what JSON has no tuples for is taken in strict mode too.
            return cls.model_validate_json(data)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])[:80]
            raise AdapterError(
                _("its manifest is not one: {key}: {reason}", key=key or _("all of it"), reason=first["msg"][:120])
            ) from error
        except (ValueError, RecursionError) as error:
            raise AdapterError(_("its manifest is not JSON that can be read")) from error
