"""One OpenAI-compatible server: its address, its key, how to speak to it, and what goes wrong there in words.

It must never send anything, least of all the key, to any other address than the one the person named, nor know what is
asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .. import extras
from ..errors import ClawError, EngineError, ModelError
from ..language import N_, _
from ..settings import OpenAISettings
from ._keys import how_to_give, key_of_environment, key_of_keyring
from ._line import CONNECT_S, Line, checked_url, client_options, whole
from ._served import ServedModel, in_words, offered

if TYPE_CHECKING:
    from httpx2 import Client, Response

ASK_S = 10.0
"""Longest wait for an answer about models, in seconds."""
BEYOND = ("top_k", "min_p", "repeat_penalty", "repetition_penalty", "stream_options", "response_format")
"""What not every server understands: beyond OpenAI's own API, or newer than the server. Left out if it is refused."""
SHORTEST_SECRET = 4
"""A shorter key is none (servers that want any key get "x"); to hide it would only garble what they say."""
_CONTEXT_NAMES = ("max_model_len", "context_length", "max_context_length", "n_ctx", "n_ctx_train")


class OpenAIServer:
    """One address, how to speak to it, and what goes wrong there in words."""

    def __init__(self, settings: OpenAISettings) -> None:
        self.url = checked_url(settings.url, "openai.url")
        self.timeout_s = settings.timeout_s
        self._settings = settings
        self.lora = settings.lora
        self._key = key_of_environment(self.url, settings)
        self._takes_beyond = True

    def models(self, timeout_s: float) -> list[ServedModel]:
        """What it lists; nothing if it has no such list."""
        with self._errors():
            response = self._with_key(lambda: self._list(timeout_s))
            if response.status_code == 404:
                return []
            self._check(response, "")
            entries = response.json().get("data") or []
        return [
            ServedModel(str(entry["id"]), context=_context(entry))
            for entry in entries
            if isinstance(entry, dict) and entry.get("id")
        ]

    def _list(self, timeout_s: float) -> Response:
        """The answer about models, read whole. Each has its own time: a person may unlock a keyring between two."""
        import httpx2

        line = Line()
        with (
            line.cut_after(timeout_s),
            self._client(timeout_s, line) as client,
            client.stream("GET", f"{self.url}/models", headers=self._headers()) as response,
        ):
            return httpx2.Response(response.status_code, content=whole(response.iter_bytes(), timeout_s))

    @contextmanager
    def asked(self, request: dict[str, Any], line: Line) -> Iterator[Response]:
        """The answer to a chat request, once it has begun well."""
        with self._errors(), self._client(self._settings.timeout_s, line) as client:
            response = self._with_key(lambda: self._post(client, request))
            if response.status_code in (400, 422) and self._takes_beyond:
                # Perhaps it knows OpenAI's own parameters alone.
                whole(response.iter_bytes(), ASK_S)
                response.close()
                less = {name: value for name, value in request.items() if name not in BEYOND}
                response = self._post(client, less)
                self._takes_beyond = response.status_code != 200
            try:
                self._check(response, request["model"])
                yield response
            finally:
                response.close()

    def tell(self, path: str, body: dict[str, Any]) -> tuple[int, str]:
        """POST to a path below the server's root: the status, and what it said if that is not 200."""
        import httpx2

        line = Line()
        with self._errors(), line.cut_after(self.timeout_s), self._client(self.timeout_s, line) as client:
            url = f"{self.url.removesuffix('/v1')}{path}"
            with client.stream("POST", url, json=body, headers=self._headers()) as response:
                answer = httpx2.Response(response.status_code, content=whole(response.iter_bytes(), self.timeout_s))
            return answer.status_code, "" if answer.status_code == 200 else self._said(answer)

    def _post(self, client: Client, request: Mapping[str, Any]) -> Response:
        body = request if self._takes_beyond else {n: v for n, v in request.items() if n not in BEYOND}
        return client.send(
            client.build_request("POST", f"{self.url}/chat/completions", json=body, headers=self._headers()),
            stream=True,
        )

    def _with_key(self, ask: Any) -> Response:
        """Ask; and if the server wants a key and the environment has none, once more with the keyring's."""
        response: Response = ask()
        if response.status_code == 401 and not self._key:
            self._key = key_of_keyring(self.url)
            if self._key:
                whole(response.iter_bytes(), ASK_S)
                response.close()
                response = ask()
        return response

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def _client(self, timeout_s: float, line: Line) -> Client:
        import httpx2

        return httpx2.Client(
            timeout=httpx2.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
            event_hooks=line.hooks,
            **client_options(self.url),
        )

    def _check(self, response: Response, model: str) -> None:
        """Raise what an answer that is not 200 means, in words."""
        status = response.status_code
        if status == 200:
            return
        said = self._said(response)
        if status in (401, 403):
            refuses, wants = N_("The server at {url} refuses the key."), N_("The server at {url} wants a key.")
            told = _(refuses if self._key else wants, url=self.url)
            raise EngineError(told + " " + how_to_give(self.url, self._settings))
        if status in (400, 404) and model and ("model" in said.lower() or status == 404):
            names = [known.name for known in self.models(ASK_S)]
            if names and model not in names:
                has = offered([self._hidden(name) for name in names])
                raise ModelError(_("The server at {url} has no model {model}.", url=self.url, model=model) + " " + has)
        if 300 <= status < 400:
            raise EngineError(
                _(
                    "The server at {url} sends us on to another address, and nothing is sent to "
                    "an address you did not name. Set openai.url to the right one.",
                    url=self.url,
                )
            )
        if status == 404:
            raise EngineError(
                _(
                    "There is no chat API at {url} (404). Check openai.url: most servers want it to end in /v1.",
                    url=self.url,
                )
            )
        raise EngineError(self.refused(said or f"status {status}"))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            import httpx2
        except ImportError as missing:
            raise ModelError(
                _(
                    "Models behind a server need a package that is not installed: {command}",
                    command=extras.to_type("openai"),
                )
            ) from missing
        try:
            yield
        except ClawError:
            raise
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise EngineError(
                _(
                    "No server answers at {url}. Start it (llama-server -m MODEL.gguf, vllm "
                    "serve …, or LM Studio's server), or set openai.url to where it is.",
                    url=self.url,
                )
            ) from error
        except httpx2.TimeoutException as error:
            raise EngineError(
                _(
                    "The server at {url} has not said anything for too long. See whether it "
                    "still works; a large model may need a longer openai.timeout_s.",
                    url=self.url,
                )
            ) from error
        except TimeoutError as error:
            raise EngineError(
                _(
                    "The server at {url} keeps us waiting: it takes too long to say what was "
                    "asked. See whether it still works; a large model may need a longer "
                    "openai.timeout_s.",
                    url=self.url,
                )
            ) from error
        except httpx2.TransportError as error:
            raise EngineError(self.broke_off()) from error
        except Exception as error:
            raise EngineError(self.strange(repr(error))) from error

    def refused(self, said: Any) -> str:
        words = said.get("message") or said if isinstance(said, dict) else said
        return _(
            "The server at {url} refused: {reason}. Its own log says more.", url=self.url, reason=self._in_words(words)
        )

    def strange(self, why: str) -> str:
        return _(
            "What answers at {url} does not speak the OpenAI API ({reason}). Check openai.url.",
            url=self.url,
            reason=self._in_words(why),
        )

    def broke_off(self) -> str:
        return _(
            "The server at {url} broke off in the middle of the reply. What came is kept; ask again once it runs.",
            url=self.url,
        )

    def _said(self, response: Response) -> str:
        """The message in an error's body, in whichever form this server gives it."""
        said = whole(response.iter_bytes(), ASK_S)
        try:
            body = json.loads(said)
        except ValueError:
            return self._in_words(said.decode("utf-8", "replace"))
        error = body.get("error", body) if isinstance(body, dict) else body
        if isinstance(error, dict):
            error = error.get("message") or error.get("detail") or error
        return self._in_words(error)

    def _in_words(self, said: object) -> str:
        # The key goes out before the text is cut short: half a key would be one too many.
        return in_words(self._hidden(str(said)))

    def _hidden(self, said: str) -> str:
        """What the server said, without the key: some repeat the one they were sent."""
        if len(self._key) < SHORTEST_SECRET:
            return said
        for form in (self._key, repr(self._key)[1:-1], json.dumps(self._key)[1:-1], quote(self._key, safe="")):
            said = said.replace(form, "…")
        return said


def _context(entry: Mapping[str, Any]) -> int:
    """How many tokens a listed model holds, under the names servers give that number; 0 if it is not said."""
    places = [entry, entry.get("meta") or {}]
    for place in places:
        for name in _CONTEXT_NAMES:
            if isinstance(place, dict) and isinstance(place.get(name), int) and place[name] > 0:
                return int(place[name])
    return 0
