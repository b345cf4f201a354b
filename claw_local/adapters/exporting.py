"""Writing an adapter for others: as a claw pack, a PEFT folder, a GGUF LoRA, or a folder for Ollama.

It must never let out a chat: of the report and the recipe only what holds no word of the person is written.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from ..errors import AdapterError, NotFoundError, UsageError
from ..files import would_replace, write_pieces
from ..language import _
from ..leftovers import aside
from ..settings import LearningSettings
from ..store import AdapterRecord, Store
from . import pack, sealing
from .manifest import Manifest, PackedBase, PackedFile, PackedLora
from .modelfile import modelfile
from .peft import read_peft, write_peft
from .registry import file_sha256, verify_all

Format = Literal["claw", "peft", "gguf", "ollama", "merged"]
FOLDERS: tuple[Format, ...] = ("peft", "ollama")
_BLOCK = 1 << 20


def export_pack(
    store: Store, record: AdapterRecord, target: Path, *, passphrase: str = "", force: bool = False
) -> Path:
    """Write a claw pack. Without a passphrase, the same adapter gives the same bytes.

    Args:
        passphrase: seals the pack; "" leaves it open.
        force: write over a file that exists.

    Raises:
        AdapterError: the adapter's files are gone or were changed, or the pack cannot be written.
        UsageError: the file exists, or the passphrase is empty.
    """
    _must_be_free(target, force)
    verify_all(record)
    with _errors(target), aside(Path(record.gguf_path)) as scratch:
        scratch.mkdir(mode=0o700)
        files = _packed(store, record, scratch)
        with tempfile.TemporaryFile(dir=scratch) as out:
            pack.write_pack(files, out)
            out.seek(0)
            write_pieces(target, sealing.seal(out, passphrase) if passphrase else iter(lambda: out.read(_BLOCK), b""))
    return target


def _packed(store: Store, record: AdapterRecord, scratch: Path) -> dict[str, bytes | Path]:
    """The pack's files by name."""
    lora = read_peft(Path(record.peft_dir))
    if len(lora.ranks) > 1:
        raise AdapterError(_("Adapter {id} has layers of different ranks, which a pack cannot hold.", id=record.id))
    write_peft(lora, scratch / "peft")
    files: dict[str, bytes | Path] = {
        pack.CONFIG: scratch / pack.CONFIG,
        pack.WEIGHTS: scratch / pack.WEIGHTS,
        pack.GGUF: Path(record.gguf_path),
    }
    origin = origin_of(record)
    if (report := _report(origin["gate"] if "gate" in origin else record.metrics.get("gate"))) is not None:
        files[pack.REPORT], files[pack.REPORT_TEXT] = report
    manifest = Manifest(
        name=record.name,
        made_at=str(origin.get("made_at") or record.created_at),
        parent=str(origin["parent"]) if "parent" in origin else _parent(store, record),
        base=PackedBase(sha256=str(origin.get("base") or record.model_sha256), architecture=record.architecture),
        lora=PackedLora(rank=lora.rank, alpha=lora.alpha, modules=lora.modules, blocks=lora.blocks),
        recipe=_recipe(record.recipe),
        turns=int(origin.get("turns", len(record.lineage))),
        files={name: _packed_file(content) for name, content in files.items()},
    )
    return {pack.MANIFEST: manifest.to_json(), **files}


def origin_of(record: AdapterRecord) -> dict[str, Any]:
    """Where an imported adapter came from; {} for one made here."""
    origin = record.recipe.get("origin")
    return origin if isinstance(origin, dict) else {}


def _packed_file(content: bytes | Path) -> PackedFile:
    import hashlib

    if isinstance(content, Path):
        return PackedFile(size=content.stat().st_size, sha256=file_sha256(content))
    return PackedFile(size=len(content), sha256=hashlib.sha256(content).hexdigest())


def _parent(store: Store, record: AdapterRecord) -> str:
    """The parent by the hash of its GGUF file, which means the same everywhere."""
    try:
        return store.adapters.get(record.parent_id).sha256.get("adapter.gguf", "") if record.parent_id else ""
    except NotFoundError:
        return ""


def _recipe(recipe: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    """The settings of the training. Hints and likes are the person's own words: they stay here."""
    known = LearningSettings.model_fields
    return {
        name: value for name, value in recipe.items() if name in known and isinstance(value, (bool, int, float, str))
    }


def _report(gate: object) -> tuple[bytes, bytes] | None:
    """The gate's report as JSON and to read, with no question but those that the package ships; None: there is none."""
    from dataclasses import replace

    from pydantic import TypeAdapter, ValidationError

    from .gate import GateReport
    from .measuring import shipped_prompts

    try:
        report = TypeAdapter(GateReport).validate_python(gate)
    except ValidationError:
        return None
    shipped = set(shipped_prompts("neutral"))
    report = replace(
        report,
        examples=[example for example in report.examples if example.get("question") in shipped],
        wishes=[],  # They may hold the person's own words.
        # Where one question alone was measured, the interval has no end, and JSON no word for that.
        gains={name: gain for name, gain in sorted(report.gains.items()) if math.isfinite(gain.low + gain.high)},
    )
    try:
        text = json.dumps(report.as_json(), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return None
    return text.encode() + b"\n", report.as_markdown().encode()


def export_peft(record: AdapterRecord, target: Path) -> Path:
    """Write the folder that PEFT, vLLM and SGLang load. Raises as `export_pack`."""

    def fill(folder: Path) -> None:
        write_peft(read_peft(Path(record.peft_dir)), folder)

    return _new_folder(record, target, fill)


def export_gguf(record: AdapterRecord, target: Path, *, force: bool = False) -> Path:
    """Write the GGUF LoRA that llama.cpp loads. Raises as `export_pack`."""
    _must_be_free(target, force)
    verify_all(record)
    with _errors(target):
        _copy(Path(record.gguf_path), target)
    return target


def export_ollama(
    record: AdapterRecord, target: Path, base: Path, parameters: Mapping[str, Any], *, with_base: bool = False
) -> Path:
    """Write the folder from which `ollama create NAME -f Modelfile` makes the model. Raises as `export_pack`.

    Args:
        base: the base model's file, which the Modelfile names.
        parameters: of sampling, as Ollama names them.
        with_base: copy the base into the folder, so that it can be carried.
    """

    def fill(folder: Path) -> None:
        if with_base:
            if base.stat().st_size > shutil.disk_usage(folder).free:
                raise AdapterError(_("There is not enough free disk space for a copy of {name}.", name=base.name))
            _copy(base, folder / base.name)
        _copy(Path(record.gguf_path), folder / "adapter.gguf")
        text = modelfile(Path(base.name) if with_base else base, parameters)
        (folder / "Modelfile").write_text(text, "utf-8")

    return _new_folder(record, target, fill)


def _new_folder(record: AdapterRecord, target: Path, fill: Callable[[Path], None]) -> Path:
    """Fill a folder aside, and put it in place whole or not at all."""
    verify_all(record)
    with _errors(target):
        if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
            raise UsageError(_("{target} exists and is no empty folder. Name another one.", target=target))
        whole = Path(os.path.realpath(target))
        with aside(whole) as made:
            made.mkdir(mode=0o700)
            fill(made)
            os.replace(made, whole)
    return target


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as file:
        write_pieces(target, iter(lambda: file.read(_BLOCK), b""))


def _must_be_free(target: Path, force: bool) -> None:
    with _errors(target):
        if os.path.isdir(target):
            raise UsageError(_("{target} is a folder. Give the name of a file in it.", target=target))
        if not force and would_replace(target):
            raise UsageError(_("{target} exists. Choose another name, or add --force to write over it.", target=target))


@contextmanager
def _errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AdapterError(
            _(
                "{target} cannot be written ({error}). Choose another place, or free some space.",
                target=target,
                error=error.strerror or error,
            )
        ) from error
