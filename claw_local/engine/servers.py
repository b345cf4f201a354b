"""The models of the servers that run on this machine, for lists. It must never wait long, and never start anything."""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal
from urllib.parse import urlsplit

from ..errors import ClawError
from ..settings import Settings
from ._line import is_loopback
from ._served import ServedModel

Server = Literal["ollama", "openai"]

WAIT_S = 0.7
_SIZES = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def serving(settings: Settings) -> list[tuple[str, Server, dict[str, Any]]]:
    """(name, server, what it tells: size_bytes, parameters, quantisation) of each model that is served here now."""
    with ThreadPoolExecutor(2) as pool:
        lists = pool.map(lambda ask: ask(settings), (_ollama, _openai))
    servers: tuple[Server, Server] = ("ollama", "openai")
    return [
        (model.name, server, _told(model)) for server, models in zip(servers, lists, strict=True) for model in models
    ]


def _ollama(settings: Settings) -> list[ServedModel]:
    from . import ollama

    try:
        if not _listens(ollama.server_url(settings.ollama), named=bool(settings.ollama.url)):
            return []
        return ollama.list_models(settings.ollama, timeout_s=WAIT_S)
    except ClawError:  # A list shows what is there; `use` says what is wrong with a server.
        return []


def _openai(settings: Settings) -> list[ServedModel]:
    from . import openai_api

    try:
        if not _listens(settings.openai.url, named="url" in settings.openai.model_fields_set):
            return []
        return openai_api.list_models(settings.openai, timeout_s=WAIT_S)
    except ClawError:
        return []


def _listens(url: str, *, named: bool) -> bool:
    """Whether something answers there. Other machines are only asked where the person named them in the settings."""
    if not named and not is_loopback(url):
        return False
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname or "", port), timeout=WAIT_S).close()
    except (OSError, ValueError):
        return False
    return True


def _told(model: ServedModel) -> dict[str, Any]:
    return {
        "size_bytes": model.size_bytes,
        "parameters": _count(model.parameters),
        "quantisation": model.quantisation,
    }


def _count(words: str) -> int:
    """ "7.6B" -> 7,600,000,000; 0 for what is no count."""
    found = re.fullmatch(r"([\d.]+)\s*([KMBT])", words.strip(), re.I)
    return round(float(found[1]) * _SIZES[found[2].upper()]) if found else 0
