"""settings.toml, changed by key: comments kept, values checked first, wrong names answered with the closest ones."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from claw_local import settings_file
from claw_local.errors import SettingsError, UsageError
from claw_local.paths import Paths
from claw_local.settings import Settings, load


def test_a_value_is_written_typed_and_read_back(home: Paths) -> None:
    done = settings_file.set_value(home, "sampling.temperature", "0.25")
    assert (done.value, done.origin, done.default) == (0.25, "file", 0.7)
    settings_file.set_value(home, "memory.enabled", "false")
    settings_file.set_value(home, "model.path", "openai:local")
    loaded = load(home)
    assert (loaded.sampling.temperature, loaded.memory.enabled, loaded.model.path) == (0.25, False, "openai:local")
    assert tomllib.loads(home.settings.read_text())["memory"] == {"enabled": False}


def test_comments_and_order_stay(home: Paths) -> None:
    home.make()
    text = "# mine\n[sampling] # how it draws\nmax_tokens = 50 # short\n\n# cool\ntemperature = 0.2\n"
    home.settings.write_text(text)
    settings_file.set_value(home, "sampling.max_tokens", 60)
    assert home.settings.read_text() == text.replace("50", "60")
    settings_file.unset(home, "sampling.temperature")
    assert "# how it draws" in home.settings.read_text()
    assert load(home).sampling.temperature == 0.7


def test_a_number_as_text_stays_text_where_text_is_wanted(home: Paths) -> None:
    settings_file.set_value(home, "app.theme", "7")
    assert load(home).app.theme == "7"


def test_a_model_is_a_gguf_file_that_is_there_or_one_of_a_server(home: Paths, tmp_path: Path) -> None:
    for name, begin in (("good.gguf", b"GGUF\x03"), ("bad.gguf", b"# read me")):
        (tmp_path / name).write_bytes(begin)
    home.models.mkdir(parents=True)
    (home.models / "kept.gguf").write_bytes(b"GGUF")
    for key in ("model.path", "judge.model"):
        for value in ("kept.gguf", "embedded", str(tmp_path / "good.gguf"), "ollama:llama3.2", "openai:local", ""):
            settings_file.set_value(home, key, value)
        for value, word in (
            ("openai:", "names no model"),
            ("Ollama: ", "names no model"),
            (str(tmp_path / "bad.gguf"), "no GGUF file"),
            (str(tmp_path), "no such file"),
            ("nonsense.gguf", "no such file"),
            ("models/nonsense", "no such file"),
        ):
            with pytest.raises(UsageError, match=word):
                settings_file.set_value(home, key, value)


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("sampling.temperature", "hot", "a number from 0 to 5"),
        ("sampling.temperature", "9", "cannot be '9': it takes a number from 0 to 5.$"),
        ("learning.method", "magic", "one of combined, opd"),
        ("memory.enabled", "perhaps", "true or false"),
        ("model.context", "4.5", "a whole number from 512"),
        ("model.context", "abc", "^model.context cannot be 'abc': it takes a whole number from 512.$"),
        ("model.temprature", "1", "Did you mean sampling.temperature"),
        ("sampling.temprature", "1", "Did you mean sampling.temperature"),
        ("temperature", "1", "Did you mean sampling.temperature"),
        ("sampling", "1", "sampling.top_p"),
        ("model.api_key", "sk-1", "secrets are never kept"),
        ("openai.url", "file:///etc/passwd", "no address like"),
        ("openai.url", "http://[::1", "no address like"),
        ("openai.url", "http://box\r\nHost: x", "no address like"),
        ("ollama.url", "ftp://box", "no address like"),
        ("ollama.url", "http://", "no address like"),
        ("judge.timeout_s", "1e400", "not finite"),
        ("judge.timeout_s", "nan", "a number above 0"),
        ("learning.accelerate", "/dev/zero", "no such file"),
        ("learning.device", "cuda:99999999999999999999", "cuda:N with N from 0 to 99.$"),
        ("", "1", "no setting"),
    ],
)
def test_what_cannot_be_set_is_said_and_nothing_is_written(home: Paths, key: str, value: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        settings_file.set_value(home, key, value)
    assert not home.settings.exists()


def test_another_wrong_value_in_the_file_does_not_stand_in_the_way_of_mending(home: Paths) -> None:
    home.make()
    home.settings.write_text("[sampling]\ntop_p = 7\ntemperature = 'hot'\n[learning]\nsteps = 0\n")
    for key, value in (("sampling.temperature", "1"), ("sampling.top_p", "0.9"), ("learning.steps", "4")):
        settings_file.set_value(home, key, value)
    assert load(home).learning.steps == 4


def test_a_file_that_is_not_toml_is_left_alone(home: Paths) -> None:
    home.make()
    home.settings.write_text("[sampling\n")
    with pytest.raises(SettingsError, match="config edit"):
        settings_file.set_value(home, "sampling.temperature", 1)
    assert home.settings.read_text() == "[sampling\n"


def test_every_setting_says_what_it_means_and_where_its_value_comes_from(
    home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.make()
    home.settings.write_text("[sampling]\ntemperature = 0.2\n")
    monkeypatch.setenv("CLAW_LOCAL_SAMPLING__TOP_P", "0.5")
    shown = {setting.key: setting for setting in settings_file.listing(home)}
    assert set(shown) == set(settings_file.names())
    assert all(setting.doc.strip() for setting in shown.values())
    assert shown["sampling.temperature"].origin == "file"
    assert (shown["sampling.top_p"].origin, shown["sampling.top_p"].value) == ("environment", 0.5)
    assert shown["sampling.top_k"].origin == "default"
    assert "likeliest" in shown["sampling.temperature"].doc


def test_a_file_begun_by_hand_starts_with_every_setting_explained_and_changes_nothing(home: Paths) -> None:
    text = settings_file.text_to_edit(home)
    settings_file.write_text(home, text)
    assert load(home).model_dump() == Settings().model_dump()
    uncommented = "\n".join(line.removeprefix("# ") if " = " in line else line for line in text.splitlines())
    settings_file.check_text(home, uncommented)
    assert all(f"# {key.split('.')[1]} = " in text for key in settings_file.names())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[sampling\n", "TOML"),
        ("[smapling]\nx = 1\n", "Did you mean sampling"),
        ("[sampling]\ntemprature = 1\n", "Did you mean sampling.temperature"),
        ("[sampling]\ntemperature = 9\n", "sampling.temperature"),
        ("sampling = 3\n", "sampling"),
    ],
)
def test_a_whole_file_is_checked_before_it_is_written(home: Paths, text: str, word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        settings_file.write_text(home, text)
    assert not home.settings.exists()


def test_a_settings_file_that_is_a_link_stays_one(home: Paths, tmp_path: Path) -> None:
    home.make()
    real = tmp_path / "dotfiles.toml"
    real.write_text("# mine\n")
    home.settings.symlink_to(real)
    settings_file.set_value(home, "learning.steps", 3)
    assert home.settings.is_symlink()
    assert "steps = 3" in real.read_text() and "# mine" in real.read_text()


def test_the_file_is_for_its_owner_only(home: Paths) -> None:
    settings_file.set_value(home, "learning.steps", 3)
    assert home.settings.stat().st_mode & 0o077 == 0


TOO_MUCH = ["a = " + "[" * 100_000, "a = " + "9" * 5000, "a = " + "{b = " * 20_000]


@pytest.mark.parametrize("text", TOO_MUCH)
def test_a_file_with_a_value_that_is_too_much_is_said_and_left_alone(home: Paths, text: str) -> None:
    home.make()
    home.settings.write_text(text)
    for change in (
        lambda: settings_file.set_value(home, "learning.seed", 1),
        lambda: settings_file.unset(home, "learning.seed"),
        lambda: settings_file.write_text(home, text),
        lambda: settings_file.listing(home),
    ):
        with pytest.raises(SettingsError, match=r"too deeply nested|levels deep|Invalid number"):
            change()
    assert home.settings.read_text() == text


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5000, "0x" + "f" * 6000, 2**70, "\ud800"])
def test_a_value_that_is_too_much_is_refused_in_few_words(home: Paths, value: object) -> None:
    with pytest.raises(UsageError, match=r"learning\.seed cannot be .* a whole number") as caught:
        settings_file.set_value(home, "learning.seed", value)
    assert len(str(caught.value)) < 500
    assert not home.settings.exists()


def test_half_a_character_is_never_written(home: Paths) -> None:
    with pytest.raises(SettingsError, match="half of a character"):
        settings_file.set_value(home, "model.system", "\ud800")
    with pytest.raises(SettingsError, match="half of a character"):
        settings_file.write_text(home, "# \ud800\n")
    assert not home.settings.exists()


@pytest.mark.parametrize("text", ["sampling = 3\n", "sampling = 'temperature'\n", "[[sampling]]\ntemperature = 1\n"])
def test_a_section_that_is_none_is_said(home: Paths, text: str) -> None:
    home.make()
    home.settings.write_text(text)
    for change in (settings_file.unset, lambda paths, key: settings_file.set_value(paths, key, 1)):
        with pytest.raises(SettingsError, match="sampling is not a table"):
            change(home, "sampling.temperature")
    assert home.settings.read_text() == text


@pytest.mark.parametrize("key", ["openai.url", "ollama.url"])
def test_an_address_with_a_password_is_refused_without_it(home: Paths, key: str) -> None:
    with pytest.raises(UsageError, match="cannot be 'http://…@box': an address is written without") as caught:
        settings_file.set_value(home, key, "http://me:secret@box")
    assert "secret" not in str(caught.value)
    with pytest.raises(SettingsError, match="an address is written without") as whole:
        settings_file.write_text(home, f"[{key.partition('.')[0]}]\nurl = 'http://me:secret@box'\n")
    assert "secret" not in str(whole.value)
    assert not home.settings.exists()
