"""From a model's name to where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_local.engine import models
from claw_local.engine.opening import Source, local_model, locate_model, read_name
from claw_local.errors import ModelError, UsageError
from claw_local.paths import Paths
from claw_local.settings import ModelSettings, Settings


@pytest.mark.parametrize(
    ("name", "kind", "rest"),
    [
        ("ollama:llama3.2:3b", "ollama", "llama3.2:3b"),
        ("OpenAI: org/model", "openai", "org/model"),
        ("model.gguf", "gguf", "model.gguf"),
        (r"C:\models\model.gguf", "gguf", r"C:\models\model.gguf"),
        ("", "gguf", ""),
    ],
)
def test_a_name_says_what_answers(name: str, kind: str, rest: str) -> None:
    assert read_name(name) == (kind, rest)


@pytest.mark.parametrize("name", ["ollama:", "openai:  ", "ollama:a\x1b[2J"])
def test_a_server_without_a_model_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="names no model"):
        read_name(name)


def test_the_settings_may_name_a_server_and_a_choice_goes_before_them(home: Paths, tmp_path: Path) -> None:
    settings = Settings(model=ModelSettings(path="ollama:llama3.2"))
    assert locate_model(settings, home, None) == locate_model(settings, home, "") == Source("ollama", "llama3.2")
    assert locate_model(settings, home, tmp_path / "x.gguf") == Source("gguf", path=tmp_path / "x.gguf")
    assert str(locate_model(settings, home, None)) == "ollama:llama3.2"


def test_a_model_file_judges_where_a_server_answers(
    home: Paths, tmp_path: Path, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Settings(model=ModelSettings(path=str(tmp_path / "x.gguf")))
    served = Settings(model=ModelSettings(path="ollama:llama3.2"))
    assert local_model(mine, home, "openai:m").path == tmp_path / "x.gguf"
    assert local_model(served, home, None).path == model_path
    monkeypatch.setattr(models, "embedded_model", lambda: None)
    with pytest.raises(ModelError, match="can judge and learn"):
        local_model(served, home, None)
