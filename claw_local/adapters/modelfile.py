"""Ollama's Modelfile for a base with an adapter. It must never ask a server.

Format: https://docs.ollama.com/modelfile. The chat template is left to Ollama, which finds it in the base's own file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..language import _
from ..settings import Settings


def parameters(settings: Settings) -> dict[str, Any]:
    """What the settings say of sampling and context, as Ollama names it."""
    sampling = settings.sampling
    return {
        "num_ctx": settings.model.context,
        "num_predict": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "repeat_penalty": sampling.repeat_penalty,
    }


def modelfile(base: Path, settings: Mapping[str, Any]) -> str:
    """The text of a Modelfile that stands beside adapter.gguf.

    Args:
        base: the base model's file: absolute, or a name beside the Modelfile.
        settings: PARAMETER lines by name.

    Raises:
        UsageError: the base's path cannot be written in a Modelfile.
    """
    place = str(base) if base.is_absolute() else f"./{base}"
    if '"' in place or not place.isprintable():
        raise UsageError(
            _("A Modelfile cannot name the model file {name}: rename it, without quotes in it.", name=base.name)
        )
    lines = [
        "# A personal adapter of claw-local on its base model.",
        "# In this folder: ollama create NAME -f Modelfile",
        f'FROM "{place}"' if " " in place else f"FROM {place}",
        "ADAPTER ./adapter.gguf",
        *(f"PARAMETER {name} {value}" for name, value in settings.items()),
    ]
    return "\n".join(lines) + "\n"
