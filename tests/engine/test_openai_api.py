"""The engine for OpenAI-compatible servers, on a small one that plays the documented API."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator

import keyring
import pytest
from keyring.backend import KeyringBackend

from claw_local.engine.base import Generation, Message, Sampling, has_tokens
from claw_local.engine.openai_api import OpenAIEngine, list_models
from claw_local.errors import EngineError, ModelError, SettingsError
from claw_local.settings import OpenAISettings
from tests.engine.servers import OPENAI, Script, serving

CHAT = [Message("system", "Be kind."), Message("user", "What is tea?")]
NAME = "qwen3:4b"


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[OpenAISettings, Script]]:
    for name in ("CLAW_LOCAL_OPENAI_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with serving(OPENAI) as (url, script):
        yield OpenAISettings(url=f"{url}/v1", timeout_s=5.0), script


class KeptKeys(KeyringBackend):
    """A keyring in memory: the system's own cannot be had in a test."""

    priority = 1  # type: ignore[assignment]

    def __init__(self, keys: dict[tuple[str, str], str]) -> None:
        self.keys = keys

    def get_password(self, service: str, username: str) -> str | None:
        return self.keys.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.keys[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.keys[service, username]


@pytest.fixture
def kept_keys() -> Iterator[dict[tuple[str, str], str]]:
    before = keyring.get_keyring()
    keys: dict[tuple[str, str], str] = {}
    keyring.set_keyring(KeptKeys(keys))
    yield keys
    keyring.set_keyring(before)


def answer(engine: OpenAIEngine, sampling: Sampling | None = None) -> tuple[str, Generation]:
    generation, pieces = engine.generate(engine.render(CHAT), sampling or Sampling())
    return "".join(pieces), generation


def test_the_servers_models_are_listed(played: tuple[OpenAISettings, Script]) -> None:
    assert [(model.name, model.context) for model in list_models(played[0])] == [
        ("llama3.2:latest", 2048),
        ("qwen3:4b", 2048),
    ]


def test_a_reply_streams_and_says_what_it_was_made_of(played: tuple[OpenAISettings, Script]) -> None:
    settings, script = played
    engine = OpenAIEngine.open(NAME, settings, context=4096)
    assert (engine.info.name, engine.info.context) == ("openai:qwen3:4b", 2048)
    assert not has_tokens(engine)
    script.pieces, script.pause_s = ["Tee heißt ", "お茶\u2028", "🍵."], 0.1
    text, generation = answer(engine)
    assert text == generation.text == "Tee heißt お茶\u2028🍵.", "no character of a text ends a line of the stream"
    assert (generation.finish_reason, generation.prompt_tokens, generation.completion_tokens) == ("stop", 21, 4)
    assert 0 < generation.first_token_s < generation.total_s


def test_every_option_reaches_the_server(played: tuple[OpenAISettings, Script]) -> None:
    settings, script = played
    answer(OpenAIEngine.open(NAME, settings, context=4096), Sampling(7, 0.3, 0.8, 11, 0.05, 1.2, 42, ("END",)))
    body = script.last("/v1/chat/completions")
    assert {name: value for name, value in body.items() if name != "messages"} == {
        "model": NAME,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 7,
        "temperature": 0.3,
        "top_p": 0.8,
        "top_k": 11,
        "min_p": 0.05,
        "repeat_penalty": 1.2,
        "repetition_penalty": 1.2,
        "seed": 42,
        "stop": ["END"],
    }


def test_a_server_that_knows_openais_own_options_only_is_asked_with_those(
    played: tuple[OpenAISettings, Script],
) -> None:
    settings, script = played
    script.plain = True
    engine = OpenAIEngine.open(NAME, settings, context=4096)
    assert answer(engine)[0] == "Tea is a drink."
    body = script.last("/v1/chat/completions")
    assert "min_p" not in body and body["temperature"] == 0.7
    script.asked.clear()
    assert answer(engine)[0] == "Tea is a drink."
    assert len(script.asked) == 1, "it is remembered"


@pytest.mark.parametrize("before_first", [True, False])
def test_cancel_closes_the_connection_within_a_chunk(played: tuple[OpenAISettings, Script], before_first: bool) -> None:
    settings, script = played
    engine = OpenAIEngine.open(NAME, settings, context=4096)
    script.pieces = [f"{n} " for n in range(100)]
    script.pause_s, script.first_s = (0.05, 20.0) if before_first else (0.2, 0.0)
    cancel = threading.Event()
    generation, pieces = engine.generate(engine.render(CHAT), Sampling(), cancel=cancel)
    threading.Timer(0.5, cancel.set).start()
    started = time.monotonic()
    text = "".join(pieces)
    assert time.monotonic() - started < 2.0
    assert generation.finish_reason == "cancelled" and len(text) < 20
    assert script.left.wait(2.0)


def test_stop_texts_beyond_what_the_api_takes_still_stop(played: tuple[OpenAISettings, Script]) -> None:
    settings, script = played
    script.pieces = ["one two", " thr", "ee four"]
    text, generation = answer(
        OpenAIEngine.open(NAME, settings, context=4096), Sampling(stop=("a#", "b#", "c#", "d#", "three"))
    )
    assert (text, generation.finish_reason) == ("one two ", "stop")
    assert script.last("/v1/chat/completions")["stop"] == ["a#", "b#", "c#", "d#"]


def test_a_key_comes_from_the_environment(
    played: tuple[OpenAISettings, Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, script = played
    script.key = "sk-one"
    monkeypatch.setenv("CLAW_LOCAL_OPENAI_KEY", "sk-one")
    assert answer(OpenAIEngine.open(NAME, settings, context=4096))[0] == "Tea is a drink."


def test_a_key_comes_from_the_keyring_once_the_server_asks_for_one(
    played: tuple[OpenAISettings, Script], kept_keys: dict[tuple[str, str], str]
) -> None:
    settings, script = played
    kept_keys["claw-local", settings.url] = "sk-two"
    list_models(settings)
    assert all("Authorization" not in headers for _, headers, _ in script.asked), "nobody asked for it"
    script.key = "sk-two"
    assert answer(OpenAIEngine.open(NAME, settings, context=4096))[0] == "Tea is a drink."


def test_openais_own_key_is_sent_to_nobody_else(
    played: tuple[OpenAISettings, Script],
    kept_keys: dict[tuple[str, str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings, script = played
    script.key = "sk-one"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with pytest.raises(EngineError, match=r"wants a key\..*CLAW_LOCAL_OPENAI_KEY.*keyring set claw-local http"):
        OpenAIEngine.open(NAME, settings, context=4096)
    assert "sk-secret" not in repr(script.asked)


def test_a_wrong_key_is_said_and_never_shown(
    played: tuple[OpenAISettings, Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, script = played
    script.key = "sk-right"
    monkeypatch.setenv("CLAW_LOCAL_OPENAI_KEY", "sk-wrong")
    with pytest.raises(EngineError, match="refuses the key") as caught:
        OpenAIEngine.open(NAME, settings, context=4096)
    assert "sk-wrong" not in str(caught.value)
    monkeypatch.setenv("CLAW_LOCAL_OPENAI_KEY", "schlüssel")
    with pytest.raises(SettingsError, match="does not look like a key") as odd:
        OpenAIEngine.open(NAME, settings, context=4096)
    assert "schlüssel" not in str(odd.value)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "x" * 290 + " bad key sk-mine/1"}},
        {"detail": ["sk-mine/1"]},
        b"<p>sk-mine/1</p>",
        b'"sk-mine/1',
        {"error": {"message": "sk-mine%2F1"}},
    ],
)
def test_a_key_that_the_server_repeats_is_not_shown(
    played: tuple[OpenAISettings, Script], monkeypatch: pytest.MonkeyPatch, body: object
) -> None:
    settings, script = played
    monkeypatch.setenv("CLAW_LOCAL_OPENAI_KEY", "sk-mine/1")
    engine = OpenAIEngine.open(NAME, settings, context=4096)
    script.answer = lambda path: (500, body)
    with pytest.raises(EngineError, match=r"refused: .*…") as caught:
        answer(engine)
    assert "sk-" not in str(caught.value)


def test_a_key_in_the_middle_of_a_reply_or_among_the_models_is_not_shown(
    played: tuple[OpenAISettings, Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, script = played
    monkeypatch.setenv("CLAW_LOCAL_OPENAI_KEY", "sk-mine")
    engine = OpenAIEngine.open(NAME, settings, context=4096)
    script.answer = lambda path: (200, b'data: {"error": {"message": "who is sk-mine?"}}\n\n')
    with pytest.raises(EngineError, match=r"refused: who is …\?"):
        answer(engine)
    script.answer = lambda path: None
    script.models = ["model-sk-mine"]
    with pytest.raises(ModelError, match="It has: model-…"):
        answer(engine)


@pytest.mark.parametrize("content", [7, ["a"], {"text": "a"}, True])
def test_a_piece_that_is_no_text_is_a_sentence(played: tuple[OpenAISettings, Script], content: object) -> None:
    settings, script = played
    engine = OpenAIEngine.open(NAME, settings, context=4096)
    script.pieces = ["Tea ", content]  # type: ignore[list-item]
    generation, pieces = engine.generate(engine.render(CHAT), Sampling())
    with pytest.raises(EngineError, match=r"does not speak the OpenAI API \(a piece of the reply is no text\)"):
        list(pieces)
    assert generation.text == "Tea "


class Dripping(OPENAI):
    """Lists models, and replies, in whatever pieces the script says."""

    def do_GET(self) -> None:
        self._begin()
        self._stream("application/json", (part.encode() for part in self.script.pieces))

    def do_POST(self) -> None:
        self._begin()
        self._stream("text/event-stream", (part.encode() for part in self.script.pieces))


def test_a_list_of_models_that_drips_or_has_no_end_is_given_up() -> None:
    with serving(Dripping) as (url, script):
        script.pieces, script.pause_s = [" "] * 100, 0.1
        started = time.monotonic()
        with pytest.raises(EngineError, match="takes too long to say"):
            list_models(OpenAISettings(url=url), timeout_s=0.5)
        assert time.monotonic() - started < 3.0
        script.pieces, script.pause_s = [" " * 2**20] * 12, 0.0
        with pytest.raises(EngineError, match=r"does not speak the OpenAI API .*no end"):
            list_models(OpenAISettings(url=url))


def said(**delta: str) -> str:
    return "data: " + json.dumps({"choices": [{"delta": delta}]}) + "\n\n"


def test_a_server_that_only_pings_is_given_up_and_one_that_thinks_is_not() -> None:
    with serving(Dripping) as (url, script):
        script.pieces = ['{"data": []}']
        engine = OpenAIEngine.open(NAME, OpenAISettings(url=url, timeout_s=0.8), context=4096)
        script.pause_s = 0.2
        for ping in (": ping\n\n", said(role="assistant", content="")):
            script.pieces = [said(content="Tea"), *[ping] * 20]
            generation, pieces = engine.generate(engine.render(CHAT), Sampling())
            started = time.monotonic()
            with pytest.raises(EngineError, match=r"takes too long.*openai\.timeout_s"):
                list(pieces)
            assert generation.text == "Tea" and time.monotonic() - started < 3.0
        script.pieces = [*[said(reasoning_content="Hm.")] * 7, said(content="Tea"), "data: [DONE]\n\n"]
        assert answer(engine)[0] == "Tea"


def test_a_redirect_is_not_followed_and_the_key_stays_here(
    played: tuple[OpenAISettings, Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, script = played
    monkeypatch.setenv("CLAW_LOCAL_OPENAI_KEY", "sk-one")
    with serving(OPENAI) as (elsewhere, other):
        script.redirect = f"{elsewhere}/v1/models"
        script.answer = lambda path: (302, {})
        with pytest.raises(EngineError, match="did not name"):
            OpenAIEngine.open(NAME, settings, context=4096)
        assert other.asked == []


def test_a_missing_model_is_said_with_those_there_are(played: tuple[OpenAISettings, Script]) -> None:
    engine = OpenAIEngine.open("gpt-9", played[0], context=4096)
    with pytest.raises(ModelError, match=r"no model gpt-9\. It has: llama3\.2:latest, qwen3:4b"):
        answer(engine)


def test_a_missing_server_is_said_with_how_to_start_it() -> None:
    with pytest.raises(EngineError, match=r"No server answers at http://127\.0\.0\.1:9/v1\. Start it.*openai\.url"):
        OpenAIEngine.open(NAME, OpenAISettings(url="http://127.0.0.1:9/v1"), context=4096)


def test_a_wrong_address_on_a_running_server_is_said(played: tuple[OpenAISettings, Script]) -> None:
    settings, script = played
    script.answer = lambda path: (404, {"detail": "Not Found"})
    engine = OpenAIEngine.open(NAME, settings, context=4096)
    with pytest.raises(EngineError, match=r"no chat API.*end in /v1"):
        answer(engine)
    script.answer = lambda path: (200, b"<html>")
    with pytest.raises(EngineError, match="does not speak the OpenAI API"):
        OpenAIEngine.open(NAME, settings, context=4096)


def test_a_server_that_goes_away_keeps_what_came(played: tuple[OpenAISettings, Script]) -> None:
    settings, script = played
    engine = OpenAIEngine.open(NAME, settings, context=4096)
    script.break_off = True
    generation, pieces = engine.generate(engine.render(CHAT), Sampling())
    with pytest.raises(EngineError, match="broke off"):
        list(pieces)
    assert generation.text == "Tea is a drink."


def test_a_missing_package_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ModelError, match=r'pip install "claw-local\[openai\]"'):
        OpenAIEngine.open(NAME, OpenAISettings(), context=4096)
