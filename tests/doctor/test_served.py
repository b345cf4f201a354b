"""The doctor where a server answers. A small server plays Ollama, which cannot be had here."""

from __future__ import annotations

import pytest

from claw_local.doctor import diagnosis
from claw_local.doctor.child import Outcome
from claw_local.doctor.learning import PARTS
from claw_local.paths import Paths
from claw_local.settings import ModelSettings, OllamaSettings, Settings
from tests.engine.servers import OLLAMA, serving


@pytest.fixture(autouse=True)
def nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the children would find is looked at in other tests."""
    monkeypatch.setattr(diagnosis, "engine_outcome", lambda: Outcome(0, {"version": "1"}))
    monkeypatch.setattr(diagnosis, "learning_outcomes", lambda: dict.fromkeys(PARTS, Outcome(0, {"version": "1"})))


def model_check(home: Paths, url: str, name: str) -> tuple[str, str, str]:
    settings = Settings(model=ModelSettings(path=name), ollama=OllamaSettings(url=url))
    (check,) = [check for check in diagnosis.checks(home, settings) if check.name == "model"]
    return check.state, check.detail, check.remedy


def test_a_server_that_has_the_model_passes(home: Paths) -> None:
    with serving(OLLAMA) as (url, _):
        state, detail, _ = model_check(home, url, "ollama:llama3.2")
        assert state == "ok" and detail.startswith("ollama:llama3.2 is there")


def test_a_missing_server_or_model_is_said_with_its_remedy(home: Paths) -> None:
    state, detail, remedy = model_check(home, "http://127.0.0.1:9", "ollama:llama3.2")
    assert (state, detail) == ("problem", "Ollama does not answer at http://127.0.0.1:9")
    assert "ollama serve" in remedy
    with serving(OLLAMA) as (url, _):
        state, _, remedy = model_check(home, url, "ollama:mistral")
        assert state == "problem" and "ollama pull mistral" in remedy
