"""Small real HTTP servers on loopback that play what cannot be had here: Ollama, and an OpenAI-compatible server.

They speak the APIs as documented (https://docs.ollama.com/api: /api/chat as NDJSON, /api/tags, /api/show;
https://platform.openai.com/docs/api-reference: /chat/completions as server-sent events, /models). The real client
packages talk to them. What they say is a script.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


class Script:
    """What a server says, and what it was asked.

    Attributes:
        pieces: the reply, piece by piece; `pause_s` apart, the first after `first_s`.
        says: the reply to one request, in the place of `pieces`, by the request's body.
        asked: each request's path, headers and body.
        loras: what was loaded, as vLLM does: name -> path; None if the server takes none.
        left: set once a client has gone before the end of a reply.
    """

    def __init__(self) -> None:
        self.pieces: Sequence[str] = ("Tea ", "is a ", "drink.")
        self.says: Callable[[dict[str, Any]], str] | None = None
        self.pause_s = 0.0
        self.first_s = 0.0
        self.finish = "stop"
        self.break_off = False
        self.models = ["llama3.2:latest", "qwen3:4b"]
        self.key = ""
        self.plain = False
        self.redirect = ""
        self.loras: dict[str, str] | None = None
        self.answer: Callable[[str], tuple[int, Any] | None] = lambda path: None
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.left = threading.Event()

    def last(self, path: str) -> dict[str, Any]:
        return next(body for asked, _, body in reversed(self.asked) if asked == path)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: ClassVar[Script]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _begin(self) -> dict[str, Any]:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = json.loads(body) if body else {}
        self.script.asked.append((self.path, dict(self.headers), found))
        return found if isinstance(found, dict) else {}

    def _send(self, status: int, value: Any) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if self.script.redirect:
            self.send_header("Location", self.script.redirect)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _canned(self) -> bool:
        canned = self.script.answer(self.path)
        if canned is not None:
            self._send(*canned)
        return canned is not None

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _stream(self, kind: str, parts: Iterator[bytes]) -> None:
        """Send a reply in HTTP chunks, pauses between them, and notice when nobody listens any more."""
        script = self.script
        try:
            # A model that is loading, or reading a long prompt, sends nothing, not even headers.
            if self._gone_within(script.first_s):
                return
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in parts:
                self._chunk(part)
                if self._gone_within(script.pause_s):
                    return
            if script.break_off:
                self.close_connection = True
                return
            self._chunk(b"")
        except OSError:
            script.left.set()

    def _gone_within(self, wait_s: float) -> bool:
        end = time.monotonic() + wait_s
        while (left := end - time.monotonic()) > 0:
            self.connection.settimeout(min(left, 0.05))
            try:
                if self.connection.recv(1) == b"":
                    self.script.left.set()
                    self.close_connection = True
                    return True
            except TimeoutError:
                pass
            finally:
                self.connection.settimeout(None)
        return False


class _Ollama(_Handler):
    def do_GET(self) -> None:
        self._begin()
        if self._canned():
            return
        details = {"parameter_size": "3.2B", "quantization_level": "Q4_K_M", "family": "llama"}
        self._send(200, {"models": [{"model": name, "size": 2_000, "details": details} for name in self.script.models]})

    def do_POST(self) -> None:
        body = self._begin()
        if self._canned():
            return
        name = str(body.get("model", ""))
        if (name if ":" in name else f"{name}:latest") not in self.script.models:
            self._send(404, {"error": f"model '{name}' not found"})
        elif self.path == "/api/show":
            about = {
                "general.architecture": "llama",
                "general.parameter_count": 3_212_749_888,
                "llama.context_length": 131_072,
            }
            capabilities = ["completion", *(["thinking"] if name.startswith("qwen3") else [])]
            self._send(200, {"details": {"family": "llama"}, "model_info": about, "capabilities": capabilities})
        else:
            self._stream("application/x-ndjson", self._parts(name))

    def _parts(self, name: str) -> Iterator[bytes]:
        for piece in self.script.pieces:
            yield _line({"model": name, "message": {"role": "assistant", "content": piece}, "done": False})
        if not self.script.break_off:
            end = {"done": True, "done_reason": self.script.finish, "prompt_eval_count": 21, "eval_count": 4}
            yield _line({"model": name, "message": {"role": "assistant", "content": ""}, **end})


class _OpenAI(_Handler):
    def _allowed(self) -> bool:
        key = self.script.key
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self._send(401, {"error": {"message": "Invalid API key"}})
            return False
        return True

    def do_GET(self) -> None:
        self._begin()
        if not self._canned() and self._allowed():
            models = [{"id": name, "object": "model", "max_model_len": 2048} for name in self.script.models]
            self._send(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        body = self._begin()
        if self._canned() or not self._allowed():
            return
        if self.path.endswith("_lora_adapter"):
            self._lora(body)
        elif body["model"] not in (*self.script.models, *(self.script.loras or ())):
            self._send(404, {"error": {"message": f"The model `{body['model']}` does not exist."}})
        elif self.script.plain and "min_p" in body:
            self._send(400, {"error": {"message": "Unrecognized request argument supplied: min_p"}})
        else:
            self._stream("text/event-stream", self._parts(body))

    def _lora(self, body: dict[str, Any]) -> None:
        loras, name = self.script.loras, body["lora_name"]
        if loras is None:
            self._send(404, {"detail": "Not Found"})
        elif self.path == "/v1/unload_lora_adapter":
            self._send(200 if loras.pop(name, "") else 404, b"Success")
        elif name in loras:
            self._send(400, {"error": {"message": f"The lora adapter '{name}' has already been loaded."}})
        else:
            loras[name] = body["lora_path"]
            self._send(200, f"Success: LoRA adapter '{name}' added successfully.".encode())

    def _parts(self, body: dict[str, Any]) -> Iterator[bytes]:
        yield b": a comment, to keep the line open\n\n"
        for piece in self.script.pieces if self.script.says is None else [self.script.says(body)]:
            yield _event({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
        if not self.script.break_off:
            yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": self.script.finish}]})
            yield _event({"choices": [], "usage": {"prompt_tokens": 21, "completion_tokens": 4}})
            yield b"data: [DONE]\n\n"


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\r\n\r\n"


@contextmanager
def serving(kind: type[_Handler]) -> Iterator[tuple[str, Script]]:
    """A server of that kind, its address and its script."""
    script = Script()
    handler = type("Handler", (kind,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", script
    finally:
        server.shutdown()
        server.server_close()


OLLAMA, OPENAI = _Ollama, _OpenAI
