"""An engine on an OpenAI-compatible server: llama-server, vLLM, SGLang, LM Studio.

HTTP API: https://platform.openai.com/docs/api-reference/chat (chat completions, streamed, and models). It must never
know how the server is spoken to: `_openai_server` does.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import EngineError, ModelError
from ..settings import OpenAISettings
from ._events import Patience, events
from ._line import Line
from ._openai_server import ASK_S, OpenAIServer
from ._remote_lora import RemoteLoras
from ._served import ServedEngine, ServedModel
from .base import Generation, Message, ModelInfo, Prompt, Sampling, ShapedSampling

if TYPE_CHECKING:
    from httpx2 import Response

MOST_STOPS = 4


def list_models(settings: OpenAISettings, *, timeout_s: float = ASK_S) -> list[ServedModel]:
    """The models the server has.

    Raises:
        EngineError: the server does not answer, or wants a key. ModelError: the package is not installed.
        SettingsError: no address.
    """
    return OpenAIServer(settings).models(timeout_s)


class OpenAIEngine(ServedEngine):
    """A model behind an OpenAI-compatible server. Make one with `open`."""

    def __init__(self, info: ModelInfo, name: str, server: OpenAIServer) -> None:
        super().__init__(info)
        self._name = name
        self._server = server
        self._lora: Path | None = None
        self._loras = RemoteLoras(server.lora, server.tell)

    @classmethod
    def open(cls, name: str, settings: OpenAISettings, *, context: int, twin: str = "") -> OpenAIEngine:
        """Ask the server what it has. A name it does not list is tried all the same: some servers take any.

        Args:
            name: the model's, as the server lists it.
            context: longest chat to send, in tokens; never more than the server says it holds.
            twin: see `ModelInfo`.

        Raises:
            EngineError: the server does not answer, or wants a key. ModelError: the package is not installed.
            SettingsError: its address is none.
        """
        server = OpenAIServer(settings)
        known = {model.name: model.context for model in server.models(min(ASK_S, settings.timeout_s))}
        holds = known.get(name, 0)
        most = min(context, holds) if holds else context
        return cls(ModelInfo(f"openai:{name}", Path(), "", "", 0, most, twin if settings.lora else ""), name, server)

    def set_lora(self, folder: Path | None) -> None:
        """Answer with the LoRA in this PEFT folder (None: without one) from the next call on. It is loaded there when
        the reply is read, once."""
        self._lora = folder

    def generate(
        self, prompt: Prompt, sampling: Sampling, *, cancel: threading.Event | None = None
    ) -> tuple[Generation, Iterator[str]]:
        """Begin a reply; see `ServedEngine.generate`. It is EngineError, too, if the server does not take the LoRA."""
        generation, pieces = super().generate(prompt, sampling, cancel=cancel)
        generation.lora = self._lora
        return generation, pieces

    @contextmanager
    def _asked(self, generation: Generation, messages: Sequence[Message], line: Line) -> Iterator[Response]:
        request = self._request(generation, messages)
        if generation.lora is None:
            with self._server.asked(request, line) as response:
                yield response
            return
        began = False
        try:
            model = self._loras.model(self._name, generation.lora)
            with self._server.asked({**request, "model": model}, line) as response:
                began = True
                yield response
        except ModelError:
            if began:
                raise
            self._loras.forget()  # It was started anew meanwhile: then it has to be told again.
            model = self._loras.model(self._name, generation.lora)
            with self._server.asked({**request, "model": model}, line) as response:
                yield response

    def _read(self, generation: Generation, messages: Sequence[Message], line: Line) -> Generator[str, None, None]:
        ended = False
        with self._asked(generation, messages, line) as response:
            patience = Patience(self._server.timeout_s)
            for data in events(patience.watch(response.iter_bytes())):
                if data.strip() == "[DONE]":
                    ended = True
                    break
                part = json.loads(data)
                if part.get("error"):
                    raise EngineError(self._server.refused(part["error"]))
                if usage := part.get("usage"):
                    generation.counted = (_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))
                for choice in part.get("choices") or ():
                    delta = choice.get("delta") or {}
                    # Thoughts, which are not shown, come under other names: they are signs of work all the same.
                    if any(said and isinstance(said, str) for name, said in delta.items() if name != "role"):
                        patience.renew()
                    text = delta.get("content")
                    if text is not None and not isinstance(text, str):
                        raise EngineError(self._server.strange("a piece of the reply is no text"))
                    if text:
                        yield text
                        patience.renew()  # Whoever reads may have taken their time.
                    if reason := choice.get("finish_reason"):
                        ended = True
                        generation.finish_reason = "length" if reason == "length" else "stop"
        if not ended and not line.was_cut:
            raise EngineError(self._server.broke_off())

    def _request(self, generation: Generation, messages: Sequence[Message]) -> dict[str, Any]:
        sampling = generation.sampling
        request: dict[str, Any] = {
            "model": self._name,
            # A tool's message is only allowed after a call in that API's own form, which chats do not keep.
            "messages": [
                {"role": "user" if message.role == "tool" else message.role, "content": message.content}
                for message in messages
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": generation.seed,
            "top_k": sampling.top_k,
            "min_p": sampling.min_p,
            "repeat_penalty": sampling.repeat_penalty,  # llama-server, LM Studio
            "repetition_penalty": sampling.repeat_penalty,  # vLLM, SGLang
        }
        if isinstance(sampling, ShapedSampling) and sampling.schema:
            shape = {"name": "answer", "strict": True, "schema": json.loads(sampling.schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": shape}
        if sampling.stop:
            request["stop"] = list(sampling.stop[:MOST_STOPS])
        return request


def _count(said: object) -> int:
    return said if isinstance(said, int) and 0 <= said < 2**31 else 0
