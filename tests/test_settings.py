"""Settings and places."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from claw_local.errors import SettingsError
from claw_local.glimpse import glimpse
from claw_local.paths import Paths, locate
from claw_local.settings import OllamaSettings, OpenAISettings, for_many, has_login, load, without_login
from claw_local.settings_file import listing, set_value, text_to_edit


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


def test_a_program_for_many_decodes_together_unless_the_person_says_otherwise(home: Paths) -> None:
    settings = load(home)
    assert (settings.model.together, for_many(settings).model.together) == (1, 8)
    assert for_many(settings).sampling == settings.sampling
    home.make()
    for number in (1, 3):
        home.settings.write_text(f"[model]\ntogether = {number}\n")
        assert for_many(load(home)).model.together == number


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


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 5000, "a = " + "{b = " * 20_000])
def test_a_value_that_is_too_much_is_a_sentence(home: Paths, text: str) -> None:
    home.make()
    home.settings.write_text("[sampling]\n" + text)
    with pytest.raises(SettingsError, match="too large or too deeply nested") as caught:
        load(home)
    assert str(home.settings) in str(caught.value)


def test_a_number_that_toml_cannot_keep_is_refused(home: Paths) -> None:
    home.make()
    home.settings.write_text("[learning]\nseed = 0x" + "f" * 6000)
    with pytest.raises(SettingsError, match=r"learning\.seed .*64 bits"):
        load(home)


@pytest.mark.parametrize("section", ["openai", "ollama"])
@pytest.mark.parametrize("url", ["http://me:secret@box/v1", "me:secret@box", "https://me:secret/x@box", "secret＠box"])
def test_an_address_with_a_password_is_refused_and_never_shown(home: Paths, section: str, url: str) -> None:
    home.make()
    home.settings.write_text(f'[{section}]\nurl = "{url}"\n', "utf-8")
    with pytest.raises(SettingsError, match=rf"{section}\.url is not valid: an address is written without") as caught:
        load(home)
    assert "secret" not in str(caught.value) and "secret" not in str(caught.value.__cause__)


def test_an_address_is_shown_without_its_login() -> None:
    assert without_login("http://me:se@cret@box:1/v1") == "http://…@box:1/v1"
    assert without_login("http://box:1/v1") == "http://box:1/v1"
    assert not any(has_login(settings().url) for settings in (OllamaSettings, OpenAISettings))


def test_a_home_behind_a_link_is_the_same_home(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert locate(tmp_path / "link") == locate(tmp_path / "real")


def test_the_mark_that_notepad_puts_before_a_text_is_taken(home: Paths) -> None:
    home.make()
    home.settings.write_bytes('\ufeff[sampling]\r\ntop_k = 7\r\n[app]\r\ntheme = "claw-light"\r\n'.encode())
    assert load(home).sampling.top_k == 7
    assert glimpse(home, "app", "theme") == "claw-light"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('[model]\npath = "a\\u0000b"', r"model\.path .*NUL"),
        ("[judge]\ntimeout_s = inf", r"judge\.timeout_s .*not finite"),
        ('[learning]\ndevice = "cuda:99999999999999999999"', r"learning\.device .*cuda:N with N from 0 to 99"),
    ],
)
def test_values_that_nothing_can_use_are_refused(home: Paths, text: str, word: str) -> None:
    home.make()
    home.settings.write_text(text)
    with pytest.raises(SettingsError, match=word):
        load(home)


def test_a_number_with_too_many_digits_never_stops_the_first_paint(home: Paths) -> None:
    home.make()
    home.settings.write_text("[app]\ntheme = " + "9" * 5000)
    assert glimpse(home, "app", "theme") is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")
@pytest.mark.parametrize("what", ["folder", "pipe"])
def test_what_is_no_file_in_its_place_is_said_and_not_waited_for(home: Paths, what: str) -> None:
    home.make()
    home.settings.mkdir() if what == "folder" else os.mkfifo(home.settings)
    assert glimpse(home, "app", "theme") is None
    for use in (load, listing, text_to_edit, lambda paths: set_value(paths, "sampling.top_k", 7)):
        with pytest.raises(SettingsError, match=f"Cannot read .*{what}"):
            use(home)
