"""A chat goes on after a restart without being read anew, and nothing of it stays longer than it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.engine.base import Sampling
from claw_local.paths import locate
from claw_local.settings import ModelSettings, Settings
from claw_local.store import encrypting, unlocking

LONG = "Remember this list. " + " ".join(f"Item {n} is a small brown box." for n in range(6))
GREEDY = Sampling(max_tokens=6, temperature=0.0)


def opened(home: Path, model: Path, **changes: int) -> Assistant:
    return Assistant.open(home, model=model, settings=Settings(model=ModelSettings(threads=1, **changes)))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short chats are worth it too: reading long ones takes its time."""
    monkeypatch.setattr("claw_local.engine.shelf.LEAST_TOKENS", 48)


@pytest.fixture
def left(tmp_path: Path, model_path: Path) -> tuple[Path, int]:
    """A home whose program was closed after one exchange, and that chat."""
    with opened(tmp_path, model_path) as assistant:
        chat_id = assistant.ask(LONG, sampling=GREEDY).chat_id
    assert [file.name for file in (tmp_path / "caches").iterdir()] == [f"{chat_id}.kv"]
    return tmp_path, chat_id


def test_after_a_restart_it_goes_on_as_if_it_had_never_been_closed(
    left: tuple[Path, int], model_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home, chat_id = left
    with opened(home, model_path) as assistant:
        fetched = assistant.ask("Thank you.", chat=chat_id, sampling=GREEDY)
    with opened(tmp_path_factory.mktemp("open"), model_path, kept_mb=0) as assistant:
        first = assistant.ask(LONG, sampling=GREEDY)
        stayed = assistant.ask("Thank you.", chat=first.chat_id, sampling=GREEDY)
        assert not assistant.paths.caches.exists(), "with 0, none is written"
    assert fetched.evaluated_tokens == stayed.evaluated_tokens < 40 < fetched.prompt_tokens == stayed.prompt_tokens
    assert fetched.text == stayed.text


def test_with_nothing_allowed_those_that_are_there_go(left: tuple[Path, int], model_path: Path) -> None:
    home, chat_id = left
    with opened(home, model_path, kept_mb=0) as assistant:
        answer = assistant.ask("Thank you.", chat=chat_id, sampling=GREEDY)
        assert answer.evaluated_tokens == answer.prompt_tokens
    assert list((home / "caches").iterdir()) == []


def test_a_damaged_cache_costs_time_and_nothing_else(left: tuple[Path, int], model_path: Path) -> None:
    home, chat_id = left
    file = home / "caches" / f"{chat_id}.kv"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with opened(home, model_path) as assistant:
        answer = assistant.ask("Thank you.", chat=chat_id, sampling=GREEDY)
        assert answer.evaluated_tokens == answer.prompt_tokens


def test_a_private_chat_is_never_there(tmp_path: Path, model_path: Path) -> None:
    with opened(tmp_path, model_path) as assistant, assistant.incognito() as private:
        private.ask(LONG, sampling=GREEDY)
    assert not (tmp_path / "caches").exists()


def test_what_is_deleted_for_good_goes_at_once_and_is_not_written_again(
    left: tuple[Path, int], model_path: Path
) -> None:
    home, chat_id = left
    with opened(home, model_path) as assistant:
        assistant.ask("Thank you.", chat=chat_id, sampling=GREEDY)
        assistant.history.delete_for_good(chat_id)
        assert not (home / "caches").exists()
    assert not (home / "caches").exists()


def test_a_chat_in_the_bin_is_not_written_either(left: tuple[Path, int], model_path: Path) -> None:
    home, chat_id = left
    with opened(home, model_path) as assistant:
        assistant.ask("Thank you.", chat=chat_id, sampling=GREEDY)
        assistant.history.delete(chat_id)
    assert list((home / "caches").iterdir()) == []


def test_beside_an_encrypted_store_none_is_written(
    tmp_path: Path, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = f"x'{'5a' * 32}'"
    monkeypatch.setenv(unlocking.VARIABLE, key)
    encrypting.encrypt(locate(tmp_path), lambda: unlocking.made(key, "passphrase"))
    with opened(tmp_path, model_path) as assistant:
        assistant.ask(LONG, sampling=Sampling(max_tokens=2, temperature=0.0))
    assert not (tmp_path / "caches").exists()
