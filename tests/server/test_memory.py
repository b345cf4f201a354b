"""Requests leave nothing behind: neither in memory, nor in the store of who does not teach."""

from __future__ import annotations

import threading
from itertools import islice

import httpx2
import psutil
import pytest

from benchmarks.enduring import ask, bodies
from claw_local import heap
from claw_local.server import service

from .conftest import Served

REQUESTS = 60
MOST_MB = 24.0


def test_many_requests_leave_memory_where_it_was(served: Served) -> None:
    process = psutil.Process()
    with httpx2.Client(base_url=served.url, timeout=60) as client:

        def ask(count: int) -> None:
            for number in range(count):
                messages = [{"role": "user", "content": f"Say {number % 7}."}]
                body = {"messages": messages, "max_tokens": 1, "user": f"user {number}", "stream": number % 2 == 0}
                response = client.post("/v1/chat/completions", json=body, headers={"X-Session-Id": f"s{number}"})
                assert response.status_code == 200

        ask(20)
        before = process.memory_info().rss
        ask(REQUESTS)
        grown_mb = (process.memory_info().rss - before) / 1e6
    assert grown_mb < MOST_MB
    assert served.assistant.chats() == []


def test_every_way_in_which_memory_is_measured_is_answered_as_expected(served: Served) -> None:
    with httpx2.Client(base_url=served.url, timeout=60) as client:
        found = [ask(client, number, *request) for number, request in enumerate(islice(bodies(), 12))]
    assert set(found) == {"as expected", "left"} and len(found) == 12


def test_what_is_free_goes_back_once_nobody_is_answered(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    given, give_back = threading.Event(), heap.give_back
    monkeypatch.setattr(service, "QUIET_S", 0.05)
    monkeypatch.setattr(heap, "give_back", lambda: (give_back(), given.set()))
    with httpx2.Client(base_url=served.url, timeout=60) as client:
        body = {"messages": [{"role": "user", "content": "Say 1."}], "max_tokens": 1}
        assert client.post("/v1/chat/completions", json=body).status_code == 200
    assert given.wait(10)
