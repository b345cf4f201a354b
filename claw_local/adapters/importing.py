"""Taking an adapter in from a file: a claw pack, a PEFT folder, or a GGUF LoRA. It must never open a pickle.

What is kept is never what came in: the matrices are read, checked against the base model, and written anew. Whatever is
refused leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import AdapterError, UsageError
from ..files import write_whole
from ..language import _
from ..paths import Paths
from ..settings import LearningSettings
from ..store import AdapterRecord, Store
from ..store.processes import process_identity, process_lives
from .gguf import BaseShape, write_gguf
from .manifest import Manifest
from .naming import checked_name, is_free, is_usable
from .peft import write_peft
from .registry import file_sha256
from .sources import Given, Passphrase, read_source, short_name

STAGING = ".import-"


@dataclass(frozen=True)
class Imported:
    """What became of an import. `already`: this very adapter was there, and nothing was changed."""

    record: AdapterRecord
    already: bool = False


def take(
    store: Store,
    paths: Paths,
    source: Path,
    base: BaseShape,
    model_sha256: str,
    *,
    name: str = "",
    force: bool = False,
    passphrase: Passphrase | None = None,
) -> Imported:
    """Check an adapter and register it as a candidate for this base model. It is not put into use.

    Args:
        base, model_sha256: the model it is to belong to.
        name: what to call it; "" takes the pack's own name where that is free.
        force: take a pack that was made for another base, if its shapes fit.
        passphrase: asked for where the pack is sealed.

    Raises:
        AdapterError: it is refused; nothing of it is left. UsageError: a name or passphrase that cannot be.
        NotFoundError, StoreError: as the store raises them.
    """
    taken = [record.name for record in store.adapters.list()]
    if name and not is_free(checked_name(name), taken):
        raise UsageError(_("There is an adapter called {name} already. Choose another name with --as.", name=name))
    sweep(paths)
    paths.adapters.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark = process_identity().replace(":", "-")
    staging = Path(tempfile.mkdtemp(prefix=f"{STAGING}{mark}-", dir=paths.adapters))
    try:
        given = read_source(source, base, model_sha256, staging / "given", force=force, passphrase=passphrase)
        shutil.rmtree(staging / "given", ignore_errors=True)
        write_peft(given.lora, staging / "peft")
        write_gguf(given.lora, base, staging / "adapter.gguf")
        sha256 = file_sha256(staging / "adapter.gguf")
        if (known := _known(store, model_sha256, sha256)) is not None:
            return Imported(known, already=True)
        wanted = name or (given.name if is_usable(given.name, taken) else "")
        return Imported(
            _register(store, paths, staging, given, model_sha256, base.architecture, sha256, wanted, source)
        )
    except OSError as error:
        raise AdapterError(
            _(
                "{source} was not imported: {error}. Free some space, or check the disk.",
                source=short_name(source),
                error=error.strerror or error,
            )
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def sweep(paths: Paths) -> None:
    """Remove what imports whose process was killed left behind."""
    for folder in paths.adapters.glob(f"{STAGING}*"):
        pid, _, rest = folder.name.removeprefix(STAGING).partition("-")
        if not process_lives(f"{pid}:{rest.partition('-')[0]}"):
            shutil.rmtree(folder, ignore_errors=True)


def _known(store: Store, model_sha256: str, sha256: str) -> AdapterRecord | None:
    for record in store.adapters.list():
        same = record.model_sha256 == model_sha256 and record.sha256.get("adapter.gguf") == sha256
        if same and Path(record.gguf_path).is_file():
            return record
    return None


def _register(
    store: Store,
    paths: Paths,
    staging: Path,
    given: Given,
    model_sha256: str,
    architecture: str,
    sha256: str,
    name: str,
    source: Path,
) -> AdapterRecord:
    """The staged files in a folder of their own, and their row: both or neither."""
    manifest = given.manifest
    parent = _known(store, model_sha256, manifest.parent) if manifest is not None and manifest.parent else None
    if given.gate:
        write_whole(staging / "gate.json", json.dumps(given.gate, indent=2).encode())
    folder = paths.adapters / f"import-{sha256[:16]}"
    while folder.exists():
        folder = folder.with_name(f"{folder.name}-")
    os.rename(staging, folder)
    origin: dict[str, Any] = {"kind": given.kind, "from": short_name(source)}
    if manifest is not None:
        origin |= {
            "base": manifest.base.sha256,
            "made_at": manifest.made_at,
            "turns": manifest.turns,
            "parent": manifest.parent,
            "gate": given.gate,
        }
    weights = file_sha256(folder / "peft" / "adapter_model.safetensors")
    try:
        with store.database.write():
            # Looked up again under the write lock: another import may have been quicker.
            if name and not is_free(name, [record.name for record in store.adapters.list()]):
                name = ""
            return store.adapters.add(
                parent_id=parent.id if parent is not None else 0,
                name=name,
                model_sha256=model_sha256,
                architecture=architecture,
                peft_dir=str(folder / "peft"),
                gguf_path=str(folder / "adapter.gguf"),
                sha256={"adapter.gguf": sha256, "peft/adapter_model.safetensors": weights},
                recipe={**_settings(manifest), "origin": origin},
                state="candidate",
                reason=f"Imported from {short_name(source)}; the gate has not looked at it here.",
            )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _settings(manifest: Manifest | None) -> dict[str, Any]:
    """The settings of its training, and no other key: "mix" or "hints" of a pack would pass for what is known here."""
    told = manifest.recipe if manifest is not None else {}
    return {name: value for name, value in told.items() if name in LearningSettings.model_fields}
