"""An engine on an Ollama server, through its own package. It must never start, pull or delete anything there.

HTTP API: https://docs.ollama.com/api (chat, tags, show).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .. import extras
from ..errors import ClawError, EngineError, ModelError
from ..language import _
from ..settings import OllamaSettings
from ._events import bounded
from ._line import CONNECT_S, Line, checked_url, client_options, whole
from ._served import ServedEngine, ServedModel, in_words, offered
from .base import FinishReason, Generation, Message, ModelInfo, Sampling, ShapedSampling

if TYPE_CHECKING:
    from httpx import Response, SyncByteStream
    from ollama import Client

DEFAULT_URL = "http://127.0.0.1:11434"
ASK_S = 10.0
"""Longest wait for an answer about models, in seconds."""


def server_url(settings: OllamaSettings) -> str:
    """Where the server listens, by the settings, OLLAMA_HOST, or its default.

    Raises:
        SettingsError: that is no address.
    """
    named = settings.url or os.environ.get("OLLAMA_HOST", "")
    if not named:
        return DEFAULT_URL
    url = checked_url(named, "ollama.url" if settings.url else "OLLAMA_HOST")
    # What a server listens on ("every address") is not where it is reached. Without a port, Ollama means its own.
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    host = host.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")
    if ":" not in host.rpartition("]")[2]:
        host += ":443" if scheme == "https" else ":11434" if "://" not in named else ":80"
    return f"{scheme}://{host}{slash}{path}"


def list_models(settings: OllamaSettings, *, timeout_s: float = ASK_S) -> list[ServedModel]:
    """The models the server has.

    Raises:
        EngineError: the server does not answer. ModelError: the package is not installed. SettingsError: no address.
    """
    url = server_url(settings)
    with _errors(url, ""), _asking(url, timeout_s) as client:
        found = client.list().models
    return [
        ServedModel(
            name=model.model or "",
            size_bytes=int(model.size or 0),
            parameters=(model.details.parameter_size or "") if model.details else "",
            quantisation=(model.details.quantization_level or "") if model.details else "",
        )
        for model in found
    ]


class OllamaEngine(ServedEngine):
    """A model that an Ollama server runs. Make one with `open`."""

    def __init__(self, info: ModelInfo, name: str, url: str, settings: OllamaSettings, *, thinks: bool) -> None:
        super().__init__(info)
        self._name = name
        self._url = url
        self._settings = settings
        self._thinks = thinks

    @classmethod
    def open(cls, name: str, settings: OllamaSettings, *, context: int) -> OllamaEngine:
        """Ask the server about a model; it is loaded there when the first reply begins.

        Args:
            name: as `ollama list` shows it.
            context: longest chat to send, in tokens; never more than the model was trained for.

        Raises:
            ModelError: the server has no such model, or the package is not installed.
            EngineError: the server does not answer. SettingsError: its address is none.
        """
        url = server_url(settings)
        with _errors(url, name, settings), _asking(url, min(ASK_S, settings.timeout_s)) as client:
            shown = client.show(name)
        about: dict[str, Any] = dict(shown.modelinfo or {})
        architecture = str(about.get("general.architecture") or (shown.details.family if shown.details else "") or "")
        trained = about.get(f"{architecture}.context_length")
        return cls(
            ModelInfo(
                name=f"ollama:{name}",
                path=Path(),
                sha256="",
                architecture=architecture,
                parameters=int(about.get("general.parameter_count") or 0),
                context=min(context, int(trained)) if trained else context,
            ),
            name,
            url,
            settings,
            thinks="thinking" in (shown.capabilities or ()),
        )

    def _read(self, generation: Generation, messages: Sequence[Message], line: Line) -> Generator[str, None, None]:
        done = False
        with (
            _errors(self._url, self._name, self._settings),
            _client(self._url, self._settings.timeout_s, line, self._bound) as client,
        ):
            stream = client.chat(
                self._name,
                [{"role": message.role, "content": message.content} for message in messages],
                stream=True,
                think=self._settings.think if self._thinks else None,
                options=self._options(generation),
                format=json.loads(shape) if (shape := _shape(generation.sampling)) else None,
            )
            for part in stream:
                if part.message.content:
                    yield part.message.content
                if part.done:
                    done = True
                    reason: FinishReason = "length" if part.done_reason == "length" else "stop"
                    generation.finish_reason = reason
                    generation.counted = (part.prompt_eval_count or 0, part.eval_count or 0)
            if not done and not line.was_cut:
                raise EngineError(_broke_off(self._url))

    def _bound(self, response: Response) -> None:
        """The reply may be as long as it likes, a line of it not; an error is read whole."""
        import httpx

        if response.status_code != 200:
            _read_whole(response, self._settings.timeout_s)
            return
        _refuse_packed(response)

        class Bounded(httpx.SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                return bounded(stream)

            def close(self) -> None:
                stream.close()

        stream = cast("SyncByteStream", response.stream)
        response.stream = Bounded()

    def _options(self, generation: Generation) -> dict[str, Any]:
        sampling = generation.sampling
        return {
            "num_ctx": self.info.context,
            "num_predict": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "min_p": sampling.min_p,
            "repeat_penalty": sampling.repeat_penalty,
            "seed": generation.seed,
            "stop": list(sampling.stop),
        }


def _shape(sampling: Sampling) -> str:
    return sampling.schema if isinstance(sampling, ShapedSampling) else ""


@contextmanager
def _asking(url: str, timeout_s: float) -> Iterator[Client]:
    """A client for answers that are read whole: none without an end, and none that takes longer than this in all."""
    line = Line()

    def read(response: Response) -> None:
        _read_whole(response, timeout_s)

    # The client first: importing its package is none of the server's time.
    with _client(url, timeout_s, line, read) as client, line.cut_after(timeout_s):
        yield client


def _read_whole(response: Response, timeout_s: float) -> None:
    import httpx

    _refuse_packed(response)
    with closing(cast("SyncByteStream", response.stream)) as stream:
        body = whole(stream, timeout_s)
    response.stream = httpx.ByteStream(body)


def _refuse_packed(response: Response) -> None:
    # A few packed bytes could unpack to any number of them.
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ValueError("the answer is packed, though none was asked for that way")


@contextmanager
def _client(url: str, timeout_s: float, line: Line, read: Callable[[Response], None] | None = None) -> Iterator[Client]:
    try:
        import httpx
        from ollama import Client
    except ImportError as missing:
        raise ModelError(
            _(
                "Ollama's models need its Python package, which is not installed: {command}",
                command=extras.to_type("ollama"),
            )
        ) from missing
    client = Client(
        url,
        timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
        headers={"Accept-Encoding": "identity"},
        event_hooks={**line.hooks, "response": [read] if read is not None else []},
        **client_options(url),
    )
    with client:
        yield client


@contextmanager
def _errors(url: str, name: str, settings: OllamaSettings | None = None) -> Iterator[None]:
    """Turn what can go wrong with the server into sentences."""
    try:
        yield
    except ClawError:
        raise
    except Exception as error:
        raise _in_sentence(error, url, name, settings) from error


def _in_sentence(error: Exception, url: str, name: str, settings: OllamaSettings | None) -> ClawError:
    import httpx
    from ollama import ResponseError

    if isinstance(error, ResponseError):
        if error.status_code == 404 and name and settings is not None:
            names = [model.name for model in list_models(settings)]
            return ModelError(
                " ".join(
                    (
                        _("Ollama at {url} has no model {name}.", url=url, name=name),
                        offered(names),
                        _("Fetch it with: ollama pull {name}", name=name),
                    )
                )
            )
        return EngineError(
            _("Ollama at {url} refused: {reason}. Its own log says more.", url=url, reason=in_words(error.error))
        )
    if isinstance(error, TimeoutError):
        return EngineError(
            _("Ollama at {url} takes too long to answer. See whether it still works: `ollama ps`.", url=url)
        )
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return EngineError(
            _(
                "Ollama at {url} has not said anything for too long. See whether it still "
                "works: `ollama ps`; a large model may need a longer ollama.timeout_s.",
                url=url,
            )
        )
    if isinstance(error, (ConnectionError, httpx.ConnectError, httpx.ConnectTimeout)):
        return EngineError(
            _(
                "Ollama does not answer at {url}. Start it with `ollama serve` (or its app); if "
                "it runs elsewhere, set ollama.url.",
                url=url,
            )
        )
    if isinstance(error, httpx.TransportError):
        return EngineError(_broke_off(url))
    return EngineError(
        _(
            "What answers at {url} does not speak as Ollama does ({error}). Check ollama.url.",
            url=url,
            error=in_words(repr(error)),
        )
    )


def _broke_off(url: str) -> str:
    return _(
        "Ollama at {url} broke off in the middle of the reply. What came is kept; ask again once it runs.", url=url
    )
