"""The door and the line behind it, as a small server without a model shows them: crowds, keys, sizes, hanging up."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import uvicorn
from pydantic import ValidationError

from claw_local.paths import Paths
from claw_local.server import anthropic_api, app, ollama_api, openai_api, protocol
from claw_local.server.app import Last
from claw_local.server.guard import Door, Guard
from claw_local.server.keys import make
from claw_local.server.openai_wire import ChatRequest, FeedbackRequest
from claw_local.server.protocol import Punctual
from claw_local.server.running import _hanging_up, listen
from claw_local.store import Store

APIS = (openai_api.API, anthropic_api.API, ollama_api.API)


class Slow:
    """Answers "ok", at once or when it may."""

    def __init__(self) -> None:
        self.may, self.began = threading.Event(), threading.Event()
        self.may.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (kind := (await receive())["type"]) != "lifespan.shutdown":
                await send({"type": f"{kind}.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        self.began.set()
        while not self.may.is_set():
            await asyncio.sleep(0.005)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def url(slow: Slow, store: Store) -> Iterator[str]:
    listening = listen("127.0.0.1", 0)
    whole = Last(Guard(slow, Door(), store, APIS), APIS)
    server = uvicorn.Server(uvicorn.Config(whole, http=Punctual, log_config=None, access_log=False))
    thread = threading.Thread(target=lambda: server.run([listening]), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    slow.may.set()
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


def test_a_crowd_that_asks_nothing_keeps_nobody_out(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MOST_CONNECTIONS", 8)
    where = ("127.0.0.1", int(url.rpartition(":")[2]))
    crowd = [socket.create_connection(where, timeout=30) for _ in range(20)]
    try:
        crowd[-1].sendall(b"GET /v1/models HT")
        assert httpx2.get(f"{url}/v1/models", timeout=30).text == "ok"
        assert crowd[0].recv(1) == b"", "who has waited longest made room"
        crowd[-1].sendall(b"TP/1.1\r\nHost: localhost\r\n\r\n")
        assert crowd[-1].recv(100).startswith(b"HTTP/1.1 200"), "and who came last did not"
    finally:
        for one in crowd:
            one.close()


@pytest.mark.parametrize("path", ["/v1/models", "/v1/messages", "/api/tags"])
def test_who_asks_while_all_is_busy_is_told_when_to_ask_again(
    url: str, slow: Slow, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(app, "MOST_REQUESTS", 1)
    slow.may.clear()
    first: list[str] = []
    asking = threading.Thread(target=lambda: first.append(httpx2.get(f"{url}/v1/models", timeout=60).text))
    asking.start()
    assert slow.began.wait(10)
    second = httpx2.get(f"{url}{path}", timeout=30)
    assert second.status_code == 429
    assert second.headers["retry-after"] == "1" and "requests are under way" in second.text
    assert "error" in second.json()
    slow.may.set()
    asking.join(30)
    assert first == ["ok"]


def test_a_key_is_seen_wherever_it_is_shown(url: str, store: Store) -> None:
    _, secret = make(store, "laptop", learn=False)

    def asked(**headers: str) -> int:
        shown = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx2.get(f"{url}/v1/models", headers=shown, timeout=60).status_code

    assert asked(authorization="claw-bad") == asked(authorization="Bearer none", x_api_key="claw-bad") == 401
    assert asked(authorization=f"Bearer {secret}") == asked(authorization="Bearer none", x_api_key=secret) == 200
    assert asked(authorization=secret) == asked(authorization="Basic eDp5") == asked(x_api_key="none") == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_that_comes_at_once_gets_its_answer(url: str, chunked: bool) -> None:
    body = b"x" * (12 * 2**20)
    response = httpx2.post(f"{url}/v1/chat/completions", content=iter([body]) if chunked else body, timeout=60)
    assert response.status_code == 413 and "8 MB" in response.json()["error"]["message"]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there are no terminals to close")
def test_a_closed_terminal_stops_the_server_in_order() -> None:
    server = uvicorn.Server(uvicorn.Config(Slow(), log_config=None))
    before = signal.getsignal(signal.SIGHUP)
    with _hanging_up(server):
        os.kill(os.getpid(), signal.SIGHUP)
        assert server.should_exit and not server.force_exit
    assert signal.getsignal(signal.SIGHUP) == before
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _hanging_up(server):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, "as nohup wants it"
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_hint_is_words_or_none() -> None:
    assert FeedbackRequest(id="17", hint="  Be\x1b[2J\n brief.\u200b ").hint == "Be [2J brief."
    for blank in ("", " \n", "\x00\x07", "\u200b"):
        with pytest.raises(ValidationError, match="it says nothing"):
            FeedbackRequest(id="17", hint=blank)


@pytest.mark.parametrize("said", [{}, {"json_schema": None}, {"json_schema": {"name": "x"}}, {"schema": {}}])
def test_a_shape_without_its_schema_is_told_what_it_lacks(said: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    with pytest.raises(ValidationError, match="needs its schema") as found:
        ChatRequest.model_validate({"messages": messages, "response_format": {"type": "json_schema", **said}})
    assert len(found.value.errors()) == 1
