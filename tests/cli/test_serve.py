"""`claw-local serve` and its keys."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from claw_local.cli.main import run
from claw_local.paths import Paths
from claw_local.store import Store

ROOT = Path(__file__).parents[2]


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    capsys.readouterr()
    assert run([*arguments, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_key_is_shown_once_listed_changed_and_taken_back(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "keys", "add", "laptop"]) == 0
    secret = capsys.readouterr().out.strip()
    assert secret.startswith("claw-") and len(secret) > 40
    (listed,) = told(capsys, "serve", "keys", "list")["keys"]  # type: ignore[misc]
    assert listed["name"] == "laptop" and not listed["learn"]
    assert secret not in json.dumps(listed) and secret.encode() not in home.database.read_bytes()
    assert told(capsys, "serve", "keys", "learn", "laptop", "on")["learn"] is True
    assert run(["serve", "keys", "add", "laptop"]) == 2
    assert run(["serve", "keys", "list"]) == 0
    assert "laptop" in capsys.readouterr().out
    assert run(["serve", "keys", "remove", "laptop"]) == 0
    assert run(["serve", "keys", "remove", "laptop"]) == 1
    assert told(capsys, "serve", "keys", "list") == {"keys": []}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--key", "short"],
        ["--allow-origin", "localhost:3000"],
        ["--host", "no.such.host.invalid", "--key", "0123456789abcdef"],
        ["keys", "add", ""],
        ["keys", "learn", "laptop", "perhaps"],
    ],
)
def test_wrong_use_is_one_sentence(home: Paths, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run(["serve", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.strip() and "Traceback" not in said


def test_no_key_is_made_that_is_never_shown(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run(["serve", "--need-key", "--port", str(taken.getsockname()[1])]) == 2
    assert run(["serve", "--need-key", "--port", "0", "--model", "no-such.gguf"]) == 1
    capsys.readouterr()
    assert told(capsys, "serve", "keys", "list") == {"keys": []}


def test_it_serves_until_it_is_stopped(home: Paths, model_path: Path) -> None:
    command = [sys.executable, "-m", "claw_local", "serve", "--port", "0", "--need-key", "--json"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "app", "trainer")),
        "CLAW_LOCAL_MODEL__PATH": str(model_path),
        "CLAW_LOCAL_MODEL__CONTEXT": "512",
    }
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("}"):
                break
        began = json.loads("".join(lines))
        try:
            assert httpx2.get(f"{began['url']}/healthz").json() == {"status": "ok"}
            assert httpx2.get(f"{began['url']}/v1/models").status_code == 401
            known = {"authorization": f"Bearer {began['key']}"}
            assert httpx2.get(f"{began['url']}/v1/models", headers=known).json()["data"][0]["id"] == "claw-local"
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    store = Store(home)
    assert [key.name for key in store.keys.list()] == ["first"]
    store.close()
