"""A model made on Ollama from a base and an adapter, through Ollama's own package, on a server that plays its API.

The server checks what the real one does: that a blob has the digest it was announced with, and is there when used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local.engine.ollama_publishing import publish
from claw_local.errors import EngineError, UsageError
from claw_local.settings import OllamaSettings
from tests.engine.servers import OLLAMA, Script, serving

PARAMETERS = {"temperature": 0.7, "num_ctx": 4096}


class Making(OLLAMA):  # type: ignore[misc, valid-type]
    """Also keeps blobs and makes models."""

    def do_POST(self) -> None:
        if self.path.startswith("/api/blobs/"):
            data = self._body()
            digest = self.path.removeprefix("/api/blobs/")
            if digest != f"sha256:{hashlib.sha256(data).hexdigest()}":
                self._send(400, {"error": "digest mismatch"})
                return
            blobs = self.script.__dict__.setdefault("blobs", {})
            blobs[digest] = data
            self.script.asked.append((self.path, dict(self.headers), {}))
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/api/create":
            body = self._begin()
            if self._canned():
                return
            named = [*body["files"].values(), *body["adapters"].values()]
            if not all(digest in self.script.__dict__.get("blobs", {}) for digest in named):
                self._send(400, {"error": "blob not found"})
                return
            words = self.script.__dict__.get("making_says", ("parsing GGUF", "writing manifest", "success"))
            self._stream("application/x-ndjson", (json.dumps({"status": word}).encode() + b"\n" for word in words))
        else:
            super().do_POST()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = b""
        while length := int(self.rfile.readline(), 16):
            found += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return found


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[OllamaSettings, Script]]:
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    with serving(Making) as (url, script):
        yield OllamaSettings(url=url, timeout_s=5.0), script


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    base, adapter = tmp_path / "base model.gguf", tmp_path / "adapter.gguf"
    base.write_bytes(b"GGUF" + bytes(range(256)) * 1000)
    adapter.write_bytes(b"GGUF adapter")
    return base, adapter


def test_both_files_go_there_and_a_model_is_made_of_them(
    played: tuple[OllamaSettings, Script], files: tuple[Path, Path]
) -> None:
    settings, script = played
    said: list[str] = []
    publish("me/mine:v1", *files, PARAMETERS, settings, said.append)
    body = script.last("/api/create")
    digests = [f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]
    assert body["model"] == "me/mine:v1"
    assert body["files"] == {"base model.gguf": digests[0]}
    assert body["adapters"] == {"adapter.gguf": digests[1]}
    assert body["parameters"] == PARAMETERS
    assert [script.blobs[digest] for digest in digests] == [file.read_bytes() for file in files]  # type: ignore[attr-defined]
    assert said[-1] == "success"


def test_a_model_that_is_there_is_made_anew_by_force_only(
    played: tuple[OllamaSettings, Script], files: tuple[Path, Path]
) -> None:
    settings, script = played
    with pytest.raises(UsageError, match=r"llama3\.2:latest already.*--force"):
        publish("llama3.2", *files, PARAMETERS, settings)
    assert not [path for path, _, _ in script.asked if path != "/api/tags"], "nothing was sent"
    publish("llama3.2", *files, PARAMETERS, settings, force=True)


@pytest.mark.parametrize("name", ["", "two words", "-x", "a/b/c/d", "x" * 300, "../../x", "a:b:c"])
def test_a_name_that_cannot_be_is_said(
    played: tuple[OllamaSettings, Script], files: tuple[Path, Path], name: str
) -> None:
    with pytest.raises(UsageError, match="cannot be a model's name"):
        publish(name, *files, PARAMETERS, played[0])


def test_an_adapter_does_not_leave_this_machine_unless_the_person_says_so(files: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match=r"on another machine.*--elsewhere"):
        publish("mine", *files, PARAMETERS, OllamaSettings(url="http://ollama.example:11434"))


def test_what_the_server_refuses_or_leaves_unfinished_is_said(
    played: tuple[OllamaSettings, Script], files: tuple[Path, Path]
) -> None:
    settings, script = played
    script.making_says = ("parsing GGUF",)  # type: ignore[attr-defined]
    with pytest.raises(EngineError, match=r"did not finish \(parsing GGUF\)"):
        publish("mine", *files, PARAMETERS, settings)
    script.answer = lambda path: (500, {"error": "no space\x1b[31m left"}) if path == "/api/create" else None
    with pytest.raises(EngineError, match=r"refused: no space \[31m left"):
        publish("mine", *files, PARAMETERS, settings)
    with pytest.raises(EngineError, match="ollama serve"):
        publish("mine", *files, PARAMETERS, OllamaSettings(url="http://127.0.0.1:9", timeout_s=2.0))


def test_a_server_that_never_ends_is_given_up(
    played: tuple[OllamaSettings, Script], files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claw_local.engine.ollama_publishing.LONGEST_ANSWER", 4096)
    played[1].making_says = ["still at it"] * 10_000  # type: ignore[attr-defined]
    with pytest.raises(EngineError, match="does not speak as Ollama does"):
        publish("mine", *files, PARAMETERS, played[0])
