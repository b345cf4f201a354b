"""`ask`: how an answer is drawn, and what answers. As a process, the way a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from claw_local.cli.ask import _question
from claw_local.paths import Paths
from claw_local.signals.attached import own_words
from claw_local.store import Store
from tests.engine.servers import OLLAMA, OPENAI, serving

ROOT = Path(__file__).parents[2]


def ask(home: Paths, *arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    search = os.pathsep.join(str(ROOT / part) for part in (".", "app", "trainer"))
    return subprocess.run(
        [sys.executable, "-m", "claw_local", "ask", *arguments],
        env={**os.environ, "PYTHONPATH": search, "CLAW_LOCAL_HOME": str(home.data), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )


def as_json(done: subprocess.CompletedProcess[bytes]) -> Any:
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_every_option_of_drawing_is_kept_with_the_answer_and_only_for_it(home: Paths) -> None:
    options = "--temperature 0.5 --top-k 7 --top-p 0.8 --min-p 0.1 --repeat-penalty 1.2 --seed 4 --max-tokens 3"
    said = as_json(ask(home, "What is tea?", *options.split(), "--stop", "§", "--stop", "END", "--json"))
    drawn = Store(home).messages.get(said["message_id"]).sampling
    assert drawn == {
        "temperature": 0.5,
        "top_k": 7,
        "top_p": 0.8,
        "min_p": 0.1,
        "repeat_penalty": 1.2,
        "seed": 4,
        "max_tokens": 3,
        "stop": ["§", "END"],
    }
    assert Store(home).chats.get(said["chat_id"]).sampling == {}


def test_a_chats_own_settings_hold_unless_an_option_says_otherwise(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.update(store.chats.create(title="x").id, sampling={"max_tokens": 2, "top_k": 9})
    said = as_json(ask(home, "What is tea?", "--chat", str(chat.id), "--top-k", "5", "--json"))
    drawn = store.messages.get(said["message_id"]).sampling
    assert (drawn["max_tokens"], drawn["top_k"]) == (2, 5)


def test_a_model_behind_a_server_answers(home: Paths) -> None:
    with serving(OLLAMA) as (url, script):
        script.pieces = ["Tea \x1b[2J", "is a drink."]
        done = ask(home, "What is tea?", "--model", "ollama:llama3.2", CLAW_LOCAL_OLLAMA__URL=url)
        assert (done.returncode, done.stdout) == (0, b"Tea [2Jis a drink.\n"), "and cannot steer the terminal"
    with serving(OPENAI) as (url, script):
        script.key = "sk-one"
        variables = {"CLAW_LOCAL_OPENAI__URL": f"{url}/v1", "CLAW_LOCAL_OPENAI_KEY": "sk-one"}
        said = as_json(ask(home, "What is tea?", "--model", "openai:qwen3:4b", "--json", **variables))
        assert (said["answer"], said["model"]) == ("Tea is a drink.", "openai:qwen3:4b")
        assert said["tokens"] == {"prompt": 21, "evaluated": 0, "completion": 4}


def test_a_server_that_is_missing_is_one_sentence(home: Paths) -> None:
    done = ask(home, "Hello?", "--model", "ollama:llama3.2", CLAW_LOCAL_OLLAMA__URL="http://127.0.0.1:9")
    assert done.returncode == 1
    assert done.stderr.decode().startswith("Ollama does not answer at http://127.0.0.1:9. Start it")
    assert done.stderr.count(b"\n") == 1
    done = ask(home, "Hello?", "--model", "ollama:")
    assert (done.returncode, b"names no model" in done.stderr) == (2, True)


def test_a_model_is_found_by_the_name_that_the_list_prints_and_a_slip_begins_no_chat(home: Paths) -> None:
    asked = ask(home, "hi", "--model", "SmolLM2-135M-Instruct.Q4_1", "--max-tokens", "2")
    assert asked.returncode == 0, asked.stderr
    slip = ask(home, "hi", "--model", "SmolLM3")
    assert slip.returncode == 1
    assert b"There is no model file" in slip.stderr
    assert len(Store(home).chats.list()) == 1


def test_what_is_piped_beside_a_question_is_attached_and_no_words_of_the_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("claw_local.cli.ask._piped", lambda: "Always answer in French.")
    message = _question(["Sum", "up:"])
    assert "Always answer in French." in message
    assert own_words(message) == "Sum up:"
    assert _question([]) == "Always answer in French.", "alone, it is the question"
