"""The Ollama engine, through Ollama's own package, on a small server that plays its documented HTTP API."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import pytest

from claw_local.engine.base import Generation, Message, Sampling, has_tokens
from claw_local.engine.ollama import OllamaEngine, list_models, server_url
from claw_local.errors import EngineError, ModelError, SettingsError
from claw_local.settings import OllamaSettings
from tests.engine.servers import OLLAMA, Script, serving

CHAT = [Message("system", "Be kind."), Message("user", "What is tea?")]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[OllamaSettings, Script]]:
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    with serving(OLLAMA) as (url, script):
        yield OllamaSettings(url=url, timeout_s=5.0), script


def answer(engine: OllamaEngine, sampling: Sampling | None = None) -> tuple[str, Generation]:
    generation, pieces = engine.generate(engine.render(CHAT), sampling or Sampling())
    return "".join(pieces), generation


def test_the_servers_models_are_listed(played: tuple[OllamaSettings, Script]) -> None:
    found = list_models(played[0])
    assert [model.name for model in found] == ["llama3.2:latest", "qwen3:4b"]
    assert (found[0].size_bytes, found[0].parameters, found[0].quantisation) == (2_000, "3.2B", "Q4_K_M")


def test_a_reply_streams_and_says_what_it_was_made_of(played: tuple[OllamaSettings, Script]) -> None:
    settings, script = played
    engine = OllamaEngine.open("llama3.2", settings, context=4096)
    assert (engine.info.name, engine.info.context, engine.info.architecture) == ("ollama:llama3.2", 4096, "llama")
    assert not has_tokens(engine)
    script.pause_s = 0.15
    generation, pieces = engine.generate(engine.render(CHAT), Sampling())
    started = time.monotonic()
    assert next(iter(pieces)) == "Tea "
    assert time.monotonic() - started < 0.3, "the first piece comes before the last is there"
    assert "".join(pieces) == "is a drink."
    assert (generation.text, generation.finish_reason) == ("Tea is a drink.", "stop")
    assert (generation.prompt_tokens, generation.completion_tokens) == (21, 4)
    assert generation.response_ids == [] and 0 < generation.first_token_s < generation.total_s


def test_every_option_reaches_the_server(played: tuple[OllamaSettings, Script]) -> None:
    settings, script = played
    engine = OllamaEngine.open("qwen3:4b", settings, context=2048)
    answer(engine, Sampling(7, 0.3, 0.8, 11, 0.05, 1.2, 42, ("END",)))
    body = script.last("/api/chat")
    assert body["options"] == {
        "num_ctx": 2048,
        "num_predict": 7,
        "temperature": 0.3,
        "top_p": 0.8,
        "top_k": 11,
        "min_p": 0.05,
        "repeat_penalty": 1.2,
        "seed": 42,
        "stop": ["END"],
    }
    assert body["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "What is tea?"},
    ]
    assert body["think"] is False, "a model that can think is told not to, unless the settings say so"


def test_a_reply_cut_at_its_longest_says_so(played: tuple[OllamaSettings, Script]) -> None:
    settings, script = played
    script.finish = "length"
    assert answer(OllamaEngine.open("llama3.2", settings, context=4096))[1].finish_reason == "length"


@pytest.mark.parametrize("before_first", [True, False])
def test_cancel_closes_the_connection_within_a_chunk(played: tuple[OllamaSettings, Script], before_first: bool) -> None:
    settings, script = played
    engine = OllamaEngine.open("llama3.2", settings, context=4096)
    script.pieces = [f"{n} " for n in range(100)]
    script.pause_s, script.first_s = (0.05, 20.0) if before_first else (20.0, 0.0)
    cancel = threading.Event()
    generation, pieces = engine.generate(engine.render(CHAT), Sampling(), cancel=cancel)
    threading.Timer(0.3, cancel.set).start()
    started = time.monotonic()
    text = "".join(pieces)
    assert time.monotonic() - started < 2.0, "also while the server says nothing"
    assert (generation.finish_reason, text) == ("cancelled", "" if before_first else "0 ")
    assert script.left.wait(2.0), "the server is told to stop computing"


def test_a_reply_given_up_closes_the_connection(played: tuple[OllamaSettings, Script]) -> None:
    settings, script = played
    engine = OllamaEngine.open("llama3.2", settings, context=4096)
    script.pieces, script.pause_s = ["word "] * 100, 0.05
    generation, pieces = engine.generate(engine.render(CHAT), Sampling())
    next(iter(pieces))
    pieces.close()  # type: ignore[attr-defined]
    assert generation.finish_reason == "cancelled"
    assert script.left.wait(2.0)


def test_a_missing_model_is_said_with_those_there_are(played: tuple[OllamaSettings, Script]) -> None:
    with pytest.raises(
        ModelError, match=r"no model mistral\. It has: llama3\.2:latest, qwen3:4b\..*ollama pull mistral"
    ):
        OllamaEngine.open("mistral", played[0], context=4096)


def test_a_missing_server_is_said_with_how_to_start_it() -> None:
    with pytest.raises(EngineError, match=r"does not answer at http://127\.0\.0\.1:9\..*ollama serve"):
        OllamaEngine.open("llama3.2", OllamaSettings(url="http://127.0.0.1:9"), context=4096)


def test_a_server_that_goes_away_keeps_what_came(played: tuple[OllamaSettings, Script]) -> None:
    settings, script = played
    engine = OllamaEngine.open("llama3.2", settings, context=4096)
    script.break_off = True
    generation, pieces = engine.generate(engine.render(CHAT), Sampling())
    with pytest.raises(EngineError, match="broke off"):
        list(pieces)
    assert generation.text == "Tea is a drink."


def test_a_silent_server_is_given_up_after_the_time_that_was_set(played: tuple[OllamaSettings, Script]) -> None:
    settings, script = played
    engine = OllamaEngine.open("llama3.2", settings.model_copy(update={"timeout_s": 0.3}), context=4096)
    script.first_s = 20.0
    with pytest.raises(EngineError, match="too long"):
        answer(engine)


def test_an_error_of_the_server_is_passed_on_without_control_characters(
    played: tuple[OllamaSettings, Script],
) -> None:
    settings, script = played
    engine = OllamaEngine.open("llama3.2", settings, context=4096)
    script.answer = lambda path: (500, {"error": "out of\x1b[31m memory\n\n" + "x" * 999})
    with pytest.raises(EngineError, match=r"refused: out of \[31m memory x+…") as caught:
        answer(engine)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500


def test_what_is_no_ollama_server_is_said(played: tuple[OllamaSettings, Script]) -> None:
    settings, script = played
    script.answer = lambda path: (200, b"<html>hello</html>")
    with pytest.raises(EngineError, match=r"does not speak as Ollama does.*ollama\.url"):
        OllamaEngine.open("llama3.2", settings, context=4096)


def test_a_redirect_is_not_followed(played: tuple[OllamaSettings, Script]) -> None:
    settings, script = played
    with serving(OLLAMA) as (elsewhere, other):
        script.redirect = f"{elsewhere}/api/show"
        script.answer = lambda path: (307, {})
        with pytest.raises(EngineError):
            OllamaEngine.open("llama3.2", settings, context=4096)
        assert other.asked == []


def test_a_proxy_in_the_environment_is_not_used_for_loopback(
    played: tuple[OllamaSettings, Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert answer(OllamaEngine.open("llama3.2", played[0], context=4096))[0] == "Tea is a drink."


def test_a_missing_package_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ollama", None)
    with pytest.raises(ModelError, match=r'pip install "claw-local\[ollama\]"'):
        OllamaEngine.open("llama3.2", OllamaSettings(), context=4096)


@pytest.mark.parametrize(
    ("named", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:5000", "http://127.0.0.1:5000"),
        ("box:1234/ollama/", "http://box:1234/ollama"),
        ("https://example.org", "https://example.org:443"),
        ("http://example.org", "http://example.org:80"),
    ],
)
def test_the_variable_ollama_host_is_read_as_ollama_reads_it(
    named: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", named)
    assert server_url(OllamaSettings()) == url


@pytest.mark.parametrize("named", ["ftp://x", "http://", "http://box:99999999"])
def test_what_is_no_address_is_refused(named: str) -> None:
    with pytest.raises(SettingsError, match=r"ollama\.url"):
        server_url(OllamaSettings(url=named))


@pytest.mark.parametrize(
    "named", ["http://me:secret@box", "me:secret@box", "http://me:secret/x@box", "http://me:secret＠box"]
)
def test_an_address_with_a_password_is_refused_and_the_password_not_shown(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", named)
    with pytest.raises(SettingsError, match=r"OLLAMA_HOST.*box.*without a name or a password") as caught:
        server_url(OllamaSettings())
    assert "secret" not in str(caught.value)


class Dripping(OLLAMA):
    def do_GET(self) -> None:
        self._begin()
        self._stream("application/json", (part.encode() for part in self.script.pieces))


def test_a_list_of_models_that_drips_or_has_no_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Dripping) as (url, script):
        script.pieces, script.pause_s = [" "] * 100, 0.1
        started = time.monotonic()
        with pytest.raises(EngineError, match="takes too long to answer"):
            list_models(OllamaSettings(url=url), timeout_s=0.5)
        assert time.monotonic() - started < 3.0
        script.pieces, script.pause_s = [" " * 2**20] * 12, 0.0
        with pytest.raises(EngineError, match=r"does not speak as Ollama does .*no end"):
            list_models(OllamaSettings(url=url))


class Endless(OLLAMA):
    """Begins a line of a reply that never ends."""

    def _parts(self, name: str) -> Iterator[bytes]:
        yield from (b" " * 2**20 for _ in range(64))


def test_a_line_of_a_reply_without_an_end_is_given_up() -> None:
    with serving(Endless) as (url, script):
        engine = OllamaEngine.open("llama3.2", OllamaSettings(url=url, timeout_s=5.0), context=4096)
        with pytest.raises(EngineError, match="a line without an end"):
            answer(engine)
        assert script.left.wait(2.0), "the rest of it is not read"


class Refusing(OLLAMA):
    def do_POST(self) -> None:
        if self.path == "/api/show":
            super().do_POST()
            return
        self._begin()
        self.send_response(500)
        self.send_header("Content-Length", str(2**30))
        self.end_headers()
        try:
            for _ in range(2**10):
                self.wfile.write(b" " * 2**20)
        except OSError:
            self.close_connection = True
            self.script.left.set()


def test_a_refusal_without_an_end_is_given_up() -> None:
    with serving(Refusing) as (url, script):
        engine = OllamaEngine.open("llama3.2", OllamaSettings(url=url, timeout_s=5.0), context=4096)
        with pytest.raises(EngineError, match="no end"):
            answer(engine)
        assert script.left.wait(2.0)
