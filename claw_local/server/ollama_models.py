"""Models as Ollama's clients list and inspect them. It must never know about HTTP.

Source: https://docs.ollama.com/api (tags, show, ps).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ..engine.described import quant_in
from .asking import Offered

FAR = "2318-01-01T00:00:00Z"
"""When a model leaves memory that stays there; Ollama writes a year as far off as this one."""


def tags(models: Sequence[Offered]) -> dict[str, Any]:
    """Answer of GET /api/tags."""
    base = _base(models)
    return {"models": [_entry(model, base) for model in models]}


def running(models: Sequence[Offered]) -> dict[str, Any]:
    """Answer of GET /api/ps: what is in use. It stays in memory."""
    base = _base(models)
    return {
        "models": [
            {**_entry(model, base), "expires_at": FAR, "size_vram": 0, "context_length": model.context}
            for model in models
            if model.in_use
        ]
    }


def shown(model: Offered, models: Sequence[Offered]) -> dict[str, Any]:
    """Answer of POST /api/show."""
    base = _base(models)
    info: dict[str, Any] = {"general.basename": base.name}
    if model.parameters:
        info["general.parameter_count"] = model.parameters
    if model.architecture:
        info["general.architecture"] = model.architecture
        info[f"{model.architecture}.context_length"] = model.context
    return {
        "modelfile": f"# claw-local made this; there is no file of Ollama's behind it.\nFROM {base.name}\n",
        "parameters": f"num_ctx                        {model.context}",
        "template": model.template,
        "license": "",
        "details": _details(model, base),
        "model_info": info,
        "capabilities": ["completion", "tools"],
        "modified_at": _time(model.created),
    }


def _entry(model: Offered, base: Offered) -> dict[str, Any]:
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": _time(model.created),
        "size": model.size,
        "digest": _digest(model),
        "details": _details(model, base),
    }


def _details(model: Offered, base: Offered) -> dict[str, Any]:
    return {
        "parent_model": base.name if model.adapter else "",
        "format": "gguf" if model.sha256 else "",
        "family": model.architecture,
        "families": [model.architecture] if model.architecture else [],
        "parameter_size": _size(model.parameters),
        "quantization_level": quant_in(base.name),
    }


def _base(models: Sequence[Offered]) -> Offered:
    """What the adapters stand on. What is in use comes first, under a name of its own, and may be the base as well."""
    return next((model for model in reversed(models) if not model.adapter), Offered("", 0))


def _digest(model: Offered) -> str:
    """The file's hash; of an adapter, one of the file and the adapter's number, so that no two are taken for one."""
    if not model.adapter:
        return model.sha256
    return hashlib.sha256(f"{model.sha256}:{model.adapter}".encode()).hexdigest()


def _size(parameters: int) -> str:
    """As Ollama writes it: 134.52M, 8.0B."""
    if parameters >= 1_000_000_000:
        return f"{parameters / 1e9:.1f}B"
    return f"{parameters / 1e6:.2f}M" if parameters else ""


def _time(created: int) -> str:
    return datetime.fromtimestamp(created, UTC).isoformat().replace("+00:00", "Z")
