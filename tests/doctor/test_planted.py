"""Faults of more than twenty kinds, planted one by one: each is found, with a remedy, and mended where that can be."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from claw_local.cli.doctor import _read_theme
from claw_local.doctor import as_json, fix
from claw_local.doctor.check import Check
from claw_local.doctor.child import Outcome, run_probe
from claw_local.doctor.diagnosis import home_checks
from claw_local.doctor.engine import check_engine, check_memory, check_token, find
from claw_local.doctor.home import check_own_files, read_themes_with
from claw_local.doctor.learning import check_learning
from claw_local.doctor.machine import check_folder, check_python, check_settings, judge_disk
from claw_local.errors import ModelError
from claw_local.paths import Paths, locate
from claw_local.settings import Settings
from claw_local.store import Store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes, signals and owners are POSIX")


@pytest.fixture
def lived_in(home: Paths) -> Paths:
    """A home with a chat, a run and an adapter in use."""
    store = Store(home)
    chat = store.chats.create(title="Kites")
    _, _, reply = store.messages.go_on(chat.id, "What is a kite?")
    store.messages.append_piece(reply, "A toy.")
    store.messages.fail(reply, "done")
    folder = home.adapters / "run-1-x"
    folder.mkdir()
    (folder / "adapter.gguf").write_bytes(b"GGUF")
    record = store.adapters.add(
        parent_id=0,
        model_sha256="0" * 64,
        architecture="llama",
        peft_dir=str(folder / "peft"),
        gguf_path=str(folder / "adapter.gguf"),
        sha256={"adapter.gguf": hashlib.sha256(b"GGUF").hexdigest()},
    )
    store.adapters.activate(record.id, "0" * 64)
    store.close()
    home.settings.write_text("[model]\ncontext = 2048\n")
    home.settings.chmod(0o600)
    return home


def sql(home: Paths, statement: str) -> None:
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(statement)
        connection.commit()


def _rubbish(home: Paths) -> None:
    for ending in ("-wal", "-shm"):
        home.database.with_name(home.database.name + ending).unlink(missing_ok=True)
    home.database.write_bytes(b"rubbish, and enough of it " * 400)


def _adapter(home: Paths) -> Path:
    return home.adapters / "run-1-x" / "adapter.gguf"


DEAD = "4194305:1@gone"
RUN = "state, phase, detail, result, started_at"
IN_HOME: dict[str, tuple[str, bool, Callable[[Paths], object]]] = {
    "settings that are no TOML": ("settings", True, lambda home: home.settings.write_text("[model\n")),
    "a setting out of range": ("settings", True, lambda home: home.settings.write_text("[model]\ncontext = 1\n")),
    "a setting that is not there": ("settings", True, lambda home: home.settings.write_text("[modle]\nx = 1\n")),
    "a database others can read": ("private", True, lambda home: home.database.chmod(0o644)),
    "a folder others can enter": ("private", True, lambda home: home.data.chmod(0o755)),
    "settings others can read": ("private", True, lambda home: home.settings.chmod(0o640)),
    "a half-made file": ("leftovers", True, lambda home: (home.data / ".x.4194305.1.tmp").write_text("half")),
    "a half-made restore": ("leftovers", True, lambda home: (home.data / ".restore-4194305-1@gone-x").mkdir()),
    "a half-made import": ("leftovers", True, lambda home: (home.adapters / ".import-4194305-1@gone-x").mkdir()),
    "a reply that was cut off": (
        "work",
        True,
        lambda home: sql(home, f"update messages set state = 'streaming', writer = '{DEAD}' where role = 'assistant'"),
    ),
    "a run that was cut off": (
        "work",
        True,
        lambda home: sql(
            home,
            f"insert into runs ({RUN}, process) values ('running', 'loading', '', '{{}}', '2026-01-01', '{DEAD}')",
        ),
    ),
    "messages that are not in the index": ("search", True, lambda home: sql(home, "delete from search_docs")),
    "an adapter whose file is gone": ("adapters", True, lambda home: _adapter(home).unlink()),
    "an adapter that was changed": ("adapters", True, lambda home: _adapter(home).write_bytes(b"other")),
    "rows that point at nothing": ("database", True, lambda home: sql(home, "update messages set chat_id = 99")),
    "a database that is none": ("database", False, _rubbish),
    "a database of a newer version": (
        "database",
        False,
        lambda home: sql(home, "insert into migrations values ('m999_future', 'later')"),
    ),
    "a theme that is no TOML": (
        "own files",
        False,
        lambda home: (home.themes.mkdir(), (home.themes / "mine.toml").write_text("primary = ")),
    ),
    "a theme whose colours are none": (
        "own files",
        False,
        lambda home: (home.themes.mkdir(), (home.themes / "mine.toml").write_text('primary = "blurple"')),
    ),
    "servers that are no JSON": ("own files", False, lambda home: (home.config / "mcp.json").write_text("{")),
}


@pytest.fixture(autouse=True)
def _themes() -> None:
    read_themes_with(_read_theme)


def states(home: Paths) -> dict[str, Check]:
    return {check.name: check for check in home_checks(home)}


def test_a_home_that_is_lived_in_is_fine(lived_in: Paths) -> None:
    assert {name: check for name, check in states(lived_in).items() if check.state != "ok"} == {}
    assert list(fix(lived_in, home_checks(lived_in))) == []


@pytest.mark.parametrize("fault", IN_HOME)
def test_a_fault_in_the_home_is_found_and_mended_where_it_can_be(lived_in: Paths, fault: str) -> None:
    name, mended, plant = IN_HOME[fault]
    plant(lived_in)
    found = states(lived_in)[name]
    assert found.state in ("problem", "warning")
    assert found.remedy
    done = {check.name: check for check in fix(lived_in, home_checks(lived_in))}
    assert (done[name].state == "ok") if mended else name not in done, done
    assert (states(lived_in)[name].state == "ok") == mended


def test_all_files_of_the_person_that_cannot_be_read_are_named(home: Paths) -> None:
    home.themes.mkdir(parents=True)
    for number in range(5):
        (home.themes / f"theme{number}.toml").write_text("primary = ")
    home.config.mkdir(parents=True, exist_ok=True)
    (home.config / "mcp.json").write_text("{")
    found = check_own_files(home)
    assert all(f"theme{number}.toml" in found.detail for number in range(5))
    assert found.detail.endswith("and 1 more")
    assert "Mend that file." in found.remedy and "mcp.json" in found.remedy


def test_what_is_mended_keeps_what_was_said(lived_in: Paths) -> None:
    for fault in ("a half-made file", "messages that are not in the index", "an adapter that was changed"):
        IN_HOME[fault][2](lived_in)
    assert len(list(fix(lived_in, home_checks(lived_in)))) == 3
    store = Store(lived_in)
    try:
        assert [message.content for message in store.messages.branch(2)] == ["What is a kite?", "A toy."]
        assert store.adapters.active("0" * 64) is None
        assert len(store.search.find("kite", limit=5)) == 2
    finally:
        store.close()


def _broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, text: str) -> Outcome:
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return run_probe("engine" if module == "llama_cpp" else module, timeout_s=60)


ILLEGAL = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
MISSING_LIBRARY = "raise ImportError('libgomp.so.1: cannot open shared object file')"
ELSEWHERE: dict[str, Callable[[Path, pytest.MonkeyPatch], Check]] = {
    "an old Python": lambda folder, patch: check_python((3, 10)),
    "a 32-bit Python": lambda folder, patch: check_python((3, 12), 32),
    "a full disk": lambda folder, patch: judge_disk(10**6),
    "a home that cannot be made": lambda folder, patch: (
        (folder / "file").touch(),
        check_folder(locate(folder / "file" / "home")),
    )[1],
    "a variable that is not valid": lambda folder, patch: (
        patch.setenv("CLAW_LOCAL_MODEL__CONTEXT", "many"),
        check_settings(locate(folder))[0],
    )[1],
    "an engine for another CPU": lambda folder, patch: check_engine(_broken(folder, patch, "llama_cpp", ILLEGAL)),
    "a library that is missing": lambda folder, patch: check_engine(
        _broken(folder, patch, "llama_cpp", MISSING_LIBRARY)
    ),
    "torch that does not work": lambda folder, patch: check_learning(
        "torch", _broken(folder, patch, "torch", "raise ImportError('broken')")
    ),
    "peft that is not there": lambda folder, patch: check_learning("peft", None),
}


@pytest.mark.parametrize("fault", ELSEWHERE)
def test_a_fault_outside_the_home_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    found = ELSEWHERE[fault](tmp_path, monkeypatch)
    assert found.state in ("problem", "warning")
    assert found.remedy


def test_a_model_that_is_cut_short_or_missing_is_found(home: Paths, tmp_path: Path, model_path: Path) -> None:
    engine = Outcome(0, {"version": "1"})
    short = tmp_path / "short.gguf"
    short.write_bytes(model_path.read_bytes()[: 1 << 20])
    for path in (short, tmp_path / "gone.gguf"):
        settings = Settings()
        settings.model.path = str(path)
        with pytest.raises(ModelError, match=r"\.") as error:
            find(home, settings, engine)
        assert str(path.name) in str(error.value)
    settings = Settings()
    settings.model.path = str(model_path)
    model = find(home, settings, engine)
    assert check_memory(model, total=10**8, available=10**7).state == "problem"
    assert check_token(model, check_engine(Outcome(1, {}, "broken")), gpu_layers=0).remedy


def test_there_are_twenty_kinds_at_least() -> None:
    assert len(IN_HOME) + len(ELSEWHERE) + 3 >= 20
    assert sum(mended for _, mended, _ in IN_HOME.values()) >= 10


def test_what_was_mended_is_in_the_json(lived_in: Paths) -> None:
    os.chmod(lived_in.database, 0o666)
    found = as_json(fix(lived_in, home_checks(lived_in)))
    (done,) = found["checks"]
    assert (done["name"], done["state"]) == ("private", "ok")
    assert done["detail"].endswith("yours alone now")
