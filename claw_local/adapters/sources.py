"""Reading an adapter from a source, and checking all of it before any of it is kept. It must never open a pickle."""

from __future__ import annotations

import json
import re
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import AdapterError, UsageError
from ..language import _
from . import pack, sealing
from .gguf import BaseShape
from .manifest import Manifest
from .peft import CONFIG, WEIGHTS, PeftLora, read_peft
from .reading import read_gguf

Passphrase = Callable[[], str]
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


@dataclass(frozen=True)
class Given:
    """What was read of a source.

    Attributes:
        kind: "claw", "peft" or "gguf".
        name: what it calls itself.
        gate: the gate's report where it was made.
    """

    lora: PeftLora
    kind: str
    name: str = ""
    manifest: Manifest | None = None
    gate: dict[str, Any] = field(default_factory=dict)


def read_source(
    source: Path,
    base: BaseShape,
    model_sha256: str,
    scratch: Path,
    *,
    force: bool = False,
    passphrase: Passphrase | None = None,
) -> Given:
    """Read a claw pack, a PEFT folder or a GGUF LoRA that fits a base model.

    Args:
        scratch: a folder to make for what is unpacked; what is in it afterwards is the caller's to remove.
        force: take a pack that was made for another base, if its shapes fit.
        passphrase: asked for where a pack is sealed.

    Raises:
        AdapterError: it is refused; the message says why. UsageError: the passphrase is missing or empty.
        OSError: the disk is full or fails.
    """
    try:
        if source.is_dir():
            return _read_folder(source, base)
        if not stat.S_ISREG(source.stat().st_mode):
            raise AdapterError(_("it is no regular file; name a pack, a PEFT folder or a GGUF LoRA"))
        with source.open("rb") as file:
            beginning = file.read(16)
            file.seek(0)
            if beginning.startswith(b"GGUF"):
                return Given(read_gguf(source, base), "gguf")
            packed = sealing.is_sealed(beginning) or beginning.startswith(b"PK")
            if packed and source.suffix.lower() not in PICKLES:
                scratch.mkdir(mode=0o700)
                return _read_pack(file, base, model_sha256, scratch, force, passphrase)
        raise AdapterError(_what_it_is(source, beginning))
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise AdapterError(
            _(
                "{source} cannot be read: {reason}. Name a pack, a PEFT folder or a GGUF LoRA.",
                source=short_name(source),
                reason=error.strerror,
            )
        ) from error
    except AdapterError as error:
        raise AdapterError(_in_words(str(error), source, scratch)) from error
    except MemoryError as error:
        raise AdapterError(
            _(
                "{source} was not imported: it is larger than the memory that is free. Close other programs.",
                source=short_name(source),
            )
        ) from error


def _in_words(text: str, source: Path, scratch: Path) -> str:
    """Why, said of the file that the person named."""
    for path in (f"{scratch}/", f"{source}/"):
        text = text.replace(path, "")
    if source.name:
        text = re.sub(rf"(?<![\w./\\-]){re.escape(str(source))}(?!\w)", lambda _found: _("it"), text)
    text = text[0].lower() + text[1:] if text.startswith("The ") else text
    return _("{source} was not imported: {reason}.", source=short_name(source), reason=text.rstrip(".。"))


def _read_folder(folder: Path, base: BaseShape) -> Given:
    for file in (folder / CONFIG, folder / WEIGHTS):
        if file.exists() and not file.is_file():
            raise AdapterError(_("{name} in it is no regular file", name=file.name))
        if file.exists() and file.stat().st_size > pack.MOST_BYTES:
            raise AdapterError(
                _("it has more than {most} GiB, far more than an adapter needs", most=pack.MOST_BYTES >> 30)
            )
    pickled = any((folder / f"adapter_model{suffix}").exists() for suffix in PICKLES)
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).exists() and not (name == WEIGHTS and pickled):
            raise AdapterError(
                _("{name} is not in it, so it is no PEFT folder; name a pack, a PEFT folder or a GGUF LoRA", name=name)
            )
    return Given(_checked_peft(folder, base), "peft")


def _checked_peft(folder: Path, base: BaseShape) -> PeftLora:
    """A PEFT LoRA that fits the base, and whose config tells the rank its matrices have."""
    lora = read_peft(folder)
    base.check(lora)
    if len(lora.ranks) > 1:
        raise AdapterError(
            _("its layers have different ranks ({ranks}), which its config cannot say", ranks=sorted(lora.ranks))
        )
    told = json.loads((folder / CONFIG).read_text("utf-8")).get("r")
    if told != lora.rank or isinstance(told, bool):
        raise AdapterError(
            _("its config gives rank {given}, and its matrices have {rank}", given=str(told)[:20], rank=lora.rank)
        )
    return lora


def _read_pack(
    file: BinaryIO, base: BaseShape, model_sha256: str, scratch: Path, force: bool, passphrase: Passphrase | None
) -> Given:
    if not sealing.is_sealed(file.read(len(sealing.MAGIC))):
        return _read_opened(file, base, model_sha256, scratch, force)
    if passphrase is None:
        raise UsageError(_("This pack is sealed with a passphrase. Add --passphrase, and type it when asked."))
    words = passphrase()
    file.seek(0)
    with tempfile.TemporaryFile(dir=scratch) as opened:
        for piece in sealing.unseal(file, words):
            opened.write(piece)
        return _read_opened(opened, base, model_sha256, scratch, force)


def _read_opened(file: BinaryIO, base: BaseShape, model_sha256: str, folder: Path, force: bool) -> Given:
    manifest = pack.unpack(file, folder)
    if manifest.base.sha256 != model_sha256 and not force:
        raise AdapterError(
            _(
                "it was made for another base model ({architecture}, hash {sha256}…) than "
                "{name}; open claw-local with that one (--model), or, if both are one model in "
                "two quantisations, add --force",
                architecture=manifest.base.architecture,
                sha256=manifest.base.sha256[:12],
                name=base.path.name,
            )
        )
    lora = _checked_peft(folder / "peft", base)
    told = manifest.lora
    if (lora.rank, lora.alpha, lora.modules, lora.blocks) != (told.rank, told.alpha, told.modules, told.blocks):
        raise AdapterError(_("its manifest describes other matrices than it holds"))
    if not _equal(lora, read_gguf(folder / pack.GGUF, base)):
        raise AdapterError(_("its PEFT files and its GGUF file are not the same adapter"))
    return Given(lora, "claw", manifest.name, manifest, _gate_of(folder / pack.REPORT))


def _equal(one: PeftLora, other: PeftLora) -> bool:
    import numpy as np

    if one.weights.keys() != other.weights.keys() or not np.isclose(one.alpha, other.alpha, rtol=1e-6):
        return False
    return all(
        np.array_equal(mine, theirs)
        for place, pair in one.weights.items()
        for mine, theirs in zip(pair, other.weights[place], strict=True)
    )


def _gate_of(path: Path) -> dict[str, Any]:
    """The gate's report of the machine where it was made."""
    if not path.is_file():
        return {}
    from pydantic import TypeAdapter, ValidationError

    from .gate import GateReport

    try:
        return TypeAdapter(GateReport).validate_json(path.read_bytes()).as_json()
    except (ValidationError, ValueError, RecursionError) as error:
        raise AdapterError(_("gate.json in it is not a gate's report")) from error


def _what_it_is(source: Path, beginning: bytes) -> str:
    suffix = source.suffix.lower()
    if suffix == ".safetensors":
        return _("it is one file of a PEFT adapter; name the folder that also holds its adapter_config.json")
    # torch's own files are a zip with a pickle in it, or, from long ago, one alone.
    if beginning[:2] == b"PK" or (beginning[:1] == b"\x80" and b"\x01" < beginning[1:2] <= b"\x05"):
        return _(
            "it is a pickle, which may run a program when it is opened, and so never is here; save the adapter as "
            "safetensors"
        )
    return _("it is neither a pack, nor a PEFT folder, nor a GGUF LoRA; name one of these")


def short_name(source: Path) -> str:
    """A file's or folder's name for a sentence."""
    return "".join(c for c in source.name if c.isprintable())[:80] or str(source)[:80]
