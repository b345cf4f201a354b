"""`claw-local adapters` in this process: names, mixes, chats, profiles, and carrying adapters between homes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claw_local.adapters import sealing
from claw_local.assistant import Assistant
from claw_local.cli.main import run
from claw_local.cli.packs import PASSPHRASE_VARIABLE
from claw_local.paths import HOME_VARIABLE, Paths
from tests.adapters.loras import SECRET, lora, register


@pytest.fixture
def two(home: Paths) -> Iterator[tuple[int, int]]:
    """Two adapters, "work" and one without a name that was made from it."""
    with Assistant.open() as assistant:
        work = register(assistant, lora(1), name="work")
        yield work.id, register(assistant, lora(2), parent=work.id).id


def told(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    capsys.readouterr()
    assert run(["adapters", *words]) == status
    found = capsys.readouterr()
    text = found.err if status else found.out
    assert "Traceback" not in text
    return text


def as_json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(told(capsys, *words, "--json"))


def test_the_list_tells_names_states_and_where_each_comes_from(
    two: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, "use", "work:0.5", str(two[1]))
    told(capsys, "use", "work", "--profile", "night")
    listed = as_json(capsys, "list")
    assert [(one["id"], one["name"], one["state"]) for one in listed["adapters"]] == [
        (3, "", "active"),
        (2, "", "candidate"),
        (1, "work", "candidate"),
    ]
    assert list(listed["profiles"]) == ["night"]
    lines = told(capsys, "list").splitlines()
    assert "a mix" in lines[0] and "from 1" in lines[1] and "work" in lines[2]
    assert lines[3] == "Profile night: 1"


def test_show_tells_parent_base_recipe_and_what_made_it(
    two: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    text = told(capsys, "show", str(two[1]))
    for words in ("Parent: adapter 1", "Base model: llama, hash ", "Made from 3 replies", '"steps": 8', SECRET):
        assert words in text
    record = as_json(capsys, "show", "work")
    assert (record["id"], record["lineage"], len(record["model_sha256"])) == (two[0], [11, 12, 13], 64)


def test_using_renaming_and_removing(two: tuple[int, int], capsys: pytest.CaptureFixture[str]) -> None:
    assert "adapter 1 (work)" in told(capsys, "use", "work")
    assert as_json(capsys, "rename", str(two[1]), "home")["adapter"]["name"] == "home"
    assert as_json(capsys, "use", "home") == {"adapter": two[1]}
    assert as_json(capsys, "rollback") == {"adapter": two[0]}
    assert "in use" in told(capsys, "remove", "work", "--yes", status=1)
    assert "--yes" in told(capsys, "remove", "home", status=2)
    assert as_json(capsys, "remove", "home", "--yes") == {"deleted": two[1]}
    assert "no adapter called 'home'" in told(capsys, "show", "home", status=1)
    assert as_json(capsys, "use", "base") == {"adapter": 0}
    assert "twice" in told(capsys, "use", "work", "1", status=2)
    assert "cannot be an adapter's name" in told(capsys, "rename", "work", "7", status=2)


def test_a_chat_keeps_to_an_adapter_of_its_own(two: tuple[int, int], capsys: pytest.CaptureFixture[str]) -> None:
    with Assistant.open() as assistant:
        chat = assistant.new_chat(title="mine").id
    assert "chat 1" in told(capsys, "use", "work", "--chat", str(chat))
    with Assistant.open() as assistant:
        assert assistant.chat(chat).adapter_id == two[0]
        assert assistant.adapters.active() is None
    assert as_json(capsys, "use", "default", "--chat", str(chat))["chat"] == chat
    told(capsys, "use", "work", "--chat", "99", status=1)
    told(capsys, "use", "default", status=2)


def test_an_unknown_profile_is_said_before_anything_is_kept(
    two: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["ask", "--profile", "nobody", "Hello?"]) == 2
    assert "no profile 'nobody'" in capsys.readouterr().err
    with Assistant.open() as assistant:
        assert assistant.chats() == []


def test_diff_tells_what_differs(two: tuple[int, int], capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "diff", "work", str(two[1]))
    assert text.startswith("2 was made from 1.") and "Distance of their updates" in text
    found = as_json(capsys, "diff", "base", "work")
    assert (found["first"], found["second"], found["norms"][0]) == (0, 1, 0.0)


def test_a_pack_goes_to_a_second_home_sealed_and_open(
    two: tuple[int, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sealing, "LOG_N", 10)
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "correct horse")
    plain, sealed = tmp_path / "me.claw", tmp_path / "sealed.claw"
    assert as_json(capsys, "export", "work", str(plain)) == {
        "adapter": two[0],
        "format": "claw",
        "path": str(plain),
        "sealed": False,
    }
    assert "sealed" in told(capsys, "export", "work", str(sealed), "--passphrase")
    assert "--force" in told(capsys, "export", "work", str(plain), status=2)
    assert "Leave --passphrase out" in told(
        capsys, "export", "work", str(tmp_path / "x"), "--format", "peft", "--passphrase", status=2
    )
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "second"))
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "wrong horse")
    assert "passphrase is wrong" in told(capsys, "import", str(sealed), status=1)
    monkeypatch.delenv(PASSPHRASE_VARIABLE)
    assert "--passphrase" in told(capsys, "import", str(sealed), status=2)
    assert PASSPHRASE_VARIABLE in told(capsys, "import", str(sealed), "--passphrase", status=2)
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "correct horse")
    found = as_json(capsys, "import", str(sealed), "--as", "carried")
    assert (found["adapter"]["name"], found["adapter"]["state"], found["already"]) == ("carried", "candidate", False)
    assert "already" in told(capsys, "import", str(plain))
    assert "Imported from sealed.claw (claw)" in told(capsys, "show", "carried")
    assert "There is no adapter 1" not in told(capsys, "show", "1")
    plain.write_bytes(plain.read_bytes()[:-5])
    assert "me.claw was not imported" in told(capsys, "import", str(plain), status=1)


def test_the_folder_for_ollama_says_how_to_go_on(
    two: tuple[int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "ollama"
    assert "ollama create NAME -f Modelfile" in told(capsys, "export", "work", str(folder), "--format", "ollama")
    assert sorted(os.listdir(folder)) == ["Modelfile", "adapter.gguf"]
    told(capsys, "export", "work", str(tmp_path / "y"), "--with-base", status=2)
    assert "without an adapter to publish" in told(capsys, "publish-ollama", "mine", status=1)


def test_nothing_in_a_file_of_others_steers_the_terminal(
    two: tuple[int, int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import numpy as np
    from safetensors.numpy import save

    told(capsys, "export", "work", str(tmp_path / "theirs"), "--format", "peft")
    weights = save({"evil\x1b[2J\x1b]0;owned\x07": np.zeros((1, 1), np.float32)})
    (tmp_path / "theirs" / "adapter_model.safetensors").write_bytes(weights)
    said = told(capsys, "import", str(tmp_path / "theirs"), status=1)
    assert "evil" in said and "\x1b" not in said and "\x07" not in said


def test_a_refused_adapter_comes_into_use_with_a_word_about_it(
    two: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    with Assistant.open() as assistant:
        refused = register(assistant, lora(3), reason="Not taken: it became worse.", state="rejected")
    assert run(["adapters", "use", str(refused.id)]) == 0
    assert "had refused" in capsys.readouterr().err
    assert run(["adapters", "use", "work"]) == 0
    assert "refused" not in capsys.readouterr().err


def test_removing_an_adapter_says_which_profiles_kept_to_it(
    two: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, "use", "work", "--profile", "night")
    told(capsys, "use", str(two[1]))
    capsys.readouterr()
    assert run(["adapters", "remove", "work", "--yes"]) == 0
    assert "Profile night" in capsys.readouterr().err
    with Assistant.open() as assistant:
        assistant.settings.adapters.profile = "night"
        chosen = assistant.adapters.choose_for(assistant.chat(assistant.new_chat().id), assistant.model_sha256)
        assert chosen is not None and chosen.id == two[1]
