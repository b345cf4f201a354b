"""Creating a model on an Ollama server from files of this machine, through Ollama's own package.

It must never delete or start anything there. HTTP API: https://docs.ollama.com/api (blobs, create).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import EngineError, UsageError
from ..language import _
from ..settings import OllamaSettings
from ._line import LONGEST_ANSWER, Line, is_loopback
from ._served import in_words
from .ollama import _client, _errors, list_models, server_url

if TYPE_CHECKING:
    from httpx import Response, SyncByteStream

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*){0,2}(?::[\w.-]+)?", re.ASCII)


def publish(
    name: str,
    base: Path,
    adapter: Path,
    parameters: Mapping[str, Any],
    settings: OllamaSettings,
    report: Callable[[str], None] = lambda words: None,
    *,
    force: bool = False,
    elsewhere: bool = False,
) -> None:
    """Give the server both files, and let it make a model of them.

    Args:
        name: what `ollama run` is to call it.
        base, adapter: a model's GGUF file, and a GGUF LoRA for it.
        parameters: of sampling, as Ollama names them.
        report: told in a few words what is being done.
        force: make a model that is there anew.
        elsewhere: also if the server is on another machine, to which the adapter would go.

    Raises:
        UsageError: that is no name, the model is there already, or the server is elsewhere.
        EngineError: the server does not answer, or refuses. ModelError: its package is not installed.
        SettingsError: the server's address is none.
    """
    if not _NAME.fullmatch(name) or len(name) > 200:
        raise UsageError(
            _(
                "{name!r} cannot be a model's name in Ollama. Use letters, digits, hyphens and dots.",
                name=in_words(name),
            )
        )
    url = server_url(settings)
    if not is_loopback(url) and not elsewhere:
        raise UsageError(
            _(
                "Ollama at {url} is on another machine, and what the adapter learned from you "
                "would go there. Add --elsewhere if that is what you want.",
                url=url,
            )
        )
    whole = name if ":" in name else f"{name}:latest"
    if not force and whole in [model.name for model in list_models(settings)]:
        raise UsageError(
            _("Ollama has a model {name} already. Choose another name, or add --force to make it anew.", name=whole)
        )
    with _errors(url, "", settings), _client(url, settings.timeout_s, Line(), _bound) as client:
        report(f"giving {base.name} to Ollama")
        files = {base.name: client.create_blob(base)}
        report("giving it the adapter")
        adapters = {adapter.name: client.create_blob(adapter)}
        last = ""
        steps = client.create(name, files=files, adapters=adapters, parameters=dict(parameters), stream=True)
        for step in steps:
            last = step.status or ""
            report(in_words(last))
    if last != "success":
        raise EngineError(
            _(
                "Ollama at {url} did not finish ({reason}). Its own log says more.",
                url=url,
                reason=in_words(last) or _("it said nothing"),
            )
        )


def _bound(response: Response) -> None:
    """What the server says comes as it is said, but not without an end."""
    import httpx

    stream = cast("SyncByteStream", response.stream)

    class Bounded(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            heard = 0
            for chunk in stream:
                heard += len(chunk)
                if heard > LONGEST_ANSWER:
                    raise ValueError("the answer has no end")
                yield chunk

        def close(self) -> None:
            stream.close()

    response.stream = Bounded()
