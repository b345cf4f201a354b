"""Settings and places."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_local.errors import SettingsError
from claw_local.paths import Paths, locate
from claw_local.settings import load


def test_defaults_hold_without_a_file(home: Paths) -> None:
    settings = load(home)
    assert settings.learning.method == "combined"
    assert settings.model.path == ""


def test_the_file_is_read_and_the_environment_goes_before_it(home: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    home.make()
    home.settings.write_text("[sampling]\ntemperature = 0.2\nmax_tokens = 50\n")
    monkeypatch.setenv("CLAW_LOCAL_SAMPLING__MAX_TOKENS", "60")
    sampling = load(home).sampling
    assert (sampling.temperature, sampling.max_tokens) == (0.2, 60)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[sampling\n", "not valid TOML"),
        ("[sampling]\ntemperature = 'hot'\n", "sampling.temperature"),
        ("[sampling]\ntemprature = 0.5\n", "sampling.temprature"),
        ("[learning]\nsteps = 0\n", "learning.steps"),
        ("[wonder]\nx = 1\n", "wonder"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(home: Paths, text: str, word: str) -> None:
    home.make()
    home.settings.write_text(text)
    with pytest.raises(SettingsError, match=word) as caught:
        load(home)
    assert str(home.settings) in str(caught.value)


def test_one_folder_holds_everything_when_home_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAW_LOCAL_HOME", str(tmp_path / "here"))
    paths = locate()
    places = (paths.database, paths.settings, paths.adapters, paths.models, paths.backups, paths.runs)
    assert all(place.is_relative_to(tmp_path / "here") for place in places)
    monkeypatch.delenv("CLAW_LOCAL_HOME")
    assert "claw-local" in str(locate().data)
    assert locate(tmp_path).data == tmp_path
