"""The judge's adapters: the one that comes with the package, and the person's own on top. It must never train one.

The person's own belongs to one model and to the judge it was trained on top of: where either is another by now, it is
not used.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

from ..adapters.registry import file_sha256
from ..engine.base import AdapterSlot
from ..errors import AdapterError
from ..language import _
from ..settings import JudgeSettings
from ..store import Store
from .changes import note_change
from .trained import FORMAT


@dataclass(frozen=True)
class PersonalAdapter:
    """What `judge train` made.

    Attributes:
        path, sha256: its GGUF LoRA.
        over: SHA-256 of the adapters below it; "" for none.
        lineage: the messages whose feedback made it.
        before, after: what the judge scored on the shipped dev split without and with it.
    """

    path: str
    sha256: str
    over: str
    lineage: tuple[int, ...]
    before: dict[str, float]
    after: dict[str, float]


@dataclass(frozen=True)
class JudgeAdapters:
    """What a judge judges with. `trained`: the lowest one was trained on the prompts in `trained`. `sha256`: of all
    together; "" for none."""

    slots: tuple[AdapterSlot, ...] = ()
    trained: bool = False
    sha256: str = ""


def shipped(model_sha256: str) -> Path | None:
    """The judge's adapter that the package has for this model file: a GGUF LoRA with its record beside it."""
    folder = resources.files("claw_local.data").joinpath("judge")
    for file in folder.iterdir():
        if not file.name.endswith(".json"):
            continue
        record = json.loads(file.read_text("utf-8"))
        lora = Path(str(file)).with_suffix(".gguf")
        if record.get("model_sha256") == model_sha256 and record.get("format") == FORMAT and lora.is_file():
            return lora
    return None


def adapters_of(model_sha256: str, settings: JudgeSettings, store: Store | None) -> JudgeAdapters:
    """The adapters for a model file: the settings' or the shipped one, and the person's own on top, if it is as it was.

    Raises:
        AdapterError: the settings name a file that is not there.
    """
    below = without_own(model_sha256, settings)
    own = personal(store, model_sha256) if store is not None else None
    if own is None or own.over != below.sha256 or not Path(own.path).is_file():
        return below
    if file_sha256(Path(own.path)) != own.sha256:
        return below  # It was changed since it was measured, so nothing is known about it.
    return on_top(below, Path(own.path), own.sha256)


def without_own(model_sha256: str, settings: JudgeSettings) -> JudgeAdapters:
    """The settings' or the shipped adapter alone. Raises as `adapters_of`."""
    named = Path(settings.adapter).expanduser() if settings.adapter else None
    if named is not None and not named.is_file():
        raise AdapterError(
            _("There is no judge's adapter {named}. Set judge.adapter to a GGUF LoRA, or leave it empty.", named=named)
        )
    base = named or shipped(model_sha256)
    return JudgeAdapters() if base is None else JudgeAdapters((AdapterSlot(base),), True, file_sha256(base))


def on_top(below: JudgeAdapters, path: Path, sha256: str) -> JudgeAdapters:
    """Another adapter on top of these; it is asked as they are."""
    hashes = f"{below.sha256}{sha256}"
    together = hashlib.sha256(hashes.encode()).hexdigest() if below.sha256 else sha256
    return JudgeAdapters((*below.slots, AdapterSlot(path)), below.trained, together)


def personal(store: Store, model_sha256: str) -> PersonalAdapter | None:
    """The person's own judge's adapter for this model."""
    kept = store.flags.get(_flag(model_sha256))
    if not kept:
        return None
    values = json.loads(kept)
    return PersonalAdapter(**{**values, "lineage": tuple(values["lineage"])})


def keep(store: Store, model_sha256: str, adapter: PersonalAdapter | None) -> None:
    """Put the person's own adapter into use, in every open program; None takes it out."""
    with store.database.write():
        store.flags.set(_flag(model_sha256), json.dumps(asdict(adapter)) if adapter else "")
        note_change(store)


def remove(adapter: PersonalAdapter, adapters: Path) -> None:
    """Delete its files, which lie in a folder of their own in the folder of all `adapters`."""
    folder = Path(adapter.path).parent
    if folder.parent == adapters:
        shutil.rmtree(folder, ignore_errors=True)


def _flag(model_sha256: str) -> str:
    return f"judge.own.{model_sha256}"
