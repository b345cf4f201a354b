"""Who may come in: names, pages, keys, sizes; and what a refusal looks like."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psutil
import pytest

from claw_local.server import guard, protocol
from claw_local.server.guard import Door
from claw_local.server.keys import make

from .conftest import Served

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}


def post(served: Served, *, body: Any = CHAT, **headers: str) -> httpx2.Response:
    return httpx2.post(f"{served.url}/v1/chat/completions", json=body, headers=headers, timeout=60)


def refused(response: httpx2.Response, status: int) -> str:
    assert response.status_code == status
    error = response.json()["error"]
    assert error["message"].endswith((".", "NAME` makes one.")) and "/" not in error["message"].replace("/v1", "")
    return str(error["message"])


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8484", "localhost.evil.example", "", "192.168.1.7"])
def test_a_name_that_leads_here_from_elsewhere_is_refused(served: Served, host: str) -> None:
    refused(post(served, host=host), 403)
    assert httpx2.get(f"{served.url}/healthz", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:80", "LOCALHOST"])
def test_names_of_this_machine_are_known(served: Served, host: str) -> None:
    assert httpx2.get(f"{served.url}/healthz", headers={"host": host}).json() == {"status": "ok"}


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "file://", "http://["])
def test_other_pages_are_refused(served: Served, origin: str) -> None:
    refused(post(served, origin=origin), 403)


def test_a_page_that_sends_no_origin_is_refused_by_what_browsers_say_beside_it(served: Served) -> None:
    response = httpx2.get(f"{served.url}/v1/models", headers={"sec-fetch-site": "cross-site"})
    refused(response, 403)
    assert httpx2.get(f"{served.url}/v1/models", headers={"sec-fetch-site": "none"}).status_code == 200
    assert post(served, origin=served.url).status_code == 200


def test_a_page_that_is_allowed_may_ask(serve: Callable[[Door], Served]) -> None:
    page = "http://localhost:3000"
    served = serve(Door(origins=frozenset({page})))
    asking = {"origin": page, "access-control-request-method": "POST", "access-control-request-headers": "x-a"}
    before = httpx2.options(f"{served.url}/v1/chat/completions", headers=asking)
    assert before.status_code == 204 and before.headers["access-control-allow-origin"] == page
    assert post(served, origin=page).headers["access-control-allow-origin"] == page
    refused(post(served, origin="http://localhost:3001"), 403)


def test_keys_are_needed_where_they_are_and_only_their_hashes_are_kept(
    serve: Callable[[Door], Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve(Door(key_needed=True))
    store = served.assistant.store
    _, secret = make(store, "laptop", learn=False)
    refused(post(served), 401)
    refused(post(served, authorization="Bearer wrong"), 401)
    assert post(served, authorization=f"Bearer {secret}").status_code == 200
    assert httpx2.get(f"{served.url}/healthz").status_code == 200
    with store.database.read() as db:
        assert secret not in json.dumps(list(db.table("served_keys").rows))
    assert (used := store.keys.get("laptop").used_at)
    monkeypatch.setattr(guard, "USED_S", 0.0)
    assert post(served, authorization=f"Bearer {secret}").status_code == 200
    assert store.keys.get("laptop").used_at > used, "it is the last time, not the first"
    store.keys.remove("laptop")
    refused(post(served, authorization=f"Bearer {secret}"), 401)


def test_a_placeholder_is_no_key_but_a_mistyped_one_is_noticed(served: Served) -> None:
    assert post(served, authorization="Bearer sk-placeholder").status_code == 200
    refused(post(served, authorization="Bearer claw-mistyped"), 401)


def test_beyond_this_machine_addresses_are_known_but_no_strange_names() -> None:
    door = Door(local=False, hosts=frozenset({"box.lan"}))
    assert door.knows("192.168.1.7:8484") and door.knows("box.lan") and door.knows("[fe80::1]:8484")
    assert not door.knows("evil.example")


def test_a_large_body_is_refused_before_it_is_read(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "LARGEST_BODY", 1000)
    refused(post(served, body={"messages": [{"role": "user", "content": "x" * 2000}]}), 413)

    def pieces() -> Any:
        for _ in range(20):
            yield b"x" * 100

    refused(httpx2.post(f"{served.url}/v1/chat/completions", content=pieces()), 413)


def test_a_body_that_does_not_come_is_not_waited_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_S", 0.2)
    address = urlsplit(served.url)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=10) as line:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 50\r\n\r\n{{"
        line.sendall(head.encode())
        assert line.recv(100).startswith(b"HTTP/1.1 408")


def test_headers_that_do_not_come_are_not_waited_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_S", 0.3)
    address = urlsplit(served.url)
    where = (address.hostname or "", address.port or 0)

    def dripping(line: socket.socket, *, first: bytes = b"") -> bytes:
        """What comes back while a request's head is sent byte after byte."""
        line.sendall(first)
        came = b""
        for letter in b"GET /healthz HTTP/1.1\r\nX-Slow: " + b"x" * 40:
            try:
                line.sendall(bytes([letter]))
                line.settimeout(0.05)
                came += (got := line.recv(4096))
                if not got:
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        return came

    with socket.create_connection(where, timeout=10) as silent:
        silent.settimeout(5)
        assert silent.recv(100).startswith(b"HTTP/1.1 408") and silent.recv(100) == b""
    with socket.create_connection(where, timeout=10) as line:
        assert dripping(line).startswith(b"HTTP/1.1 408")
    with socket.create_connection(where, timeout=10) as line:
        whole = f"GET /healthz HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode()
        came = dripping(line, first=whole)
        assert came.startswith(b"HTTP/1.1 200") and b"HTTP/1.1 408" in came, "also in what comes second on a line"
    asking = {**CHAT, "max_tokens": 60}
    assert post(served, body=asking).status_code == 200, "an answer may take longer than that"


DEEP_PLACES = {
    "/v1/chat/completions": [
        {**CHAT, "tools": [{"type": "function", "function": {"name": "a", "parameters": "DEEP"}}]},
        {**CHAT, "response_format": {"type": "json_schema", "json_schema": {"schema": "DEEP"}}},
        {**CHAT, "unknown": "DEEP"},
    ],
    "/v1/messages": [
        {**CHAT, "model": "claw-local", "tools": [{"name": "a", "input_schema": "DEEP"}]},
        {
            "model": "claw-local",
            "max_tokens": 2,
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "a", "input": "DEEP"}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "done"}]},
            ],
        },
    ],
    "/api/chat": [
        {"model": "claw-local", "messages": CHAT["messages"], "format": "DEEP", "options": {"num_predict": 2}},
        {
            "model": "claw-local",
            "messages": [
                *CHAT["messages"],
                {"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": "DEEP"}}]},
                {"role": "tool", "content": "done"},
            ],
            "options": {"num_predict": 2},
        },
    ],
}


@pytest.mark.parametrize("path", DEEP_PLACES)
def test_however_deep_a_body_is_it_is_answered_or_refused(served: Served, path: str) -> None:
    for body in DEEP_PLACES[path]:
        for depth in (50, 300, 900, 990, 2000, 20_000):
            sent = json.dumps(body).replace('"DEEP"', '{"a":' * depth + "{}" + "}" * depth)
            headers = {"content-type": "application/json"}
            answered = httpx2.post(f"{served.url}{path}", content=sent.encode(), headers=headers, timeout=60)
            assert answered.status_code in (200, 400), (body, depth, answered.text[:300])


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"messages": []}', b'{"messages": "x"}', b"\xff", b"[" * 9999, b'{"temperature": NaN}']
)
def test_what_is_no_request_is_said_so(served: Served, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    response = httpx2.post(f"{served.url}/v1/chat/completions", content=body, headers=headers)
    assert response.status_code == 400 and response.json()["error"]["message"]


def test_unknown_addresses_and_methods_are_errors_in_the_apis_form(served: Served) -> None:
    assert httpx2.get(f"{served.url}/v1/nothing").json()["error"]["type"] == "not_found_error"
    wrong = httpx2.get(f"{served.url}/v1/chat/completions")
    assert wrong.status_code == 405 and wrong.headers["allow"] == "POST" and wrong.json()["error"]


def test_nul_and_half_characters_do_no_harm(served: Served) -> None:
    def ask(text: bytes) -> int:
        body = b'{"messages": [{"role": "user", "content": "a' + text + b'b"}], "max_tokens": 2}'
        headers = {"content-type": "application/json"}
        return httpx2.post(f"{served.url}/v1/chat/completions", content=body, headers=headers, timeout=60).status_code

    assert (ask(b"\\u0000"), ask(b"\\ud800")) == (200, 400)


def test_who_is_answered_before_the_body_has_come_cannot_hold_the_line(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_S", 0.4)
    address = urlsplit(served.url)
    head = f"POST /v1/embeddings HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer claw-wrong\r\n"
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=5) as line:
        line.sendall(f"{head}Content-Length: 1000000\r\n\r\n{{".encode())
        came = line.recv(4096)
        assert came.startswith(b"HTTP/1.1 401")
        began = time.monotonic()
        while came:  # One more byte now and then, which kept it open for ever.
            assert time.monotonic() - began < 4, "the line is still there"
            try:
                line.sendall(b" ")
                line.settimeout(0.05)
                came = line.recv(4096)
            except TimeoutError:
                continue
            except OSError:
                break


def test_who_reads_nothing_is_not_waited_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "READ_S", 0.3)
    address = urlsplit(served.url)
    server = psutil.Process()

    def lines() -> int:
        return sum(
            bool(one.raddr) and one.laddr.port == address.port and one.status == psutil.CONN_ESTABLISHED
            for one in server.net_connections("tcp")
        )

    before = lines()
    ask = f"GET /openapi.json HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode()
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect((address.hostname or "", address.port or 0))
        deaf.sendall(ask * 600)  # Far more than the system takes off the server's hands.
        while lines() == before:
            time.sleep(0.01)
        until = time.monotonic() + 20
        while lines() > before:
            assert time.monotonic() < until, "the server still waits until it is read"
            time.sleep(0.05)


def test_a_body_that_is_not_called_json_is_told_how(served: Served) -> None:
    response = httpx2.post(
        f"{served.url}/v1/chat/completions",
        content=json.dumps(CHAT),
        headers={"content-type": "application/x-www-form-urlencoded"},
    )
    assert response.status_code == 400 and "Content-Type: application/json" in response.json()["error"]["message"]
