"""The `llm` command against a running server with the embedded model: nothing is set up but the server's address."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Served

MODEL = "claw-local"


@pytest.fixture
def llm_folder(tmp_path: Path, served: Served) -> Path:
    """A folder of llm's own, in which one model is the server's."""
    (tmp_path / "extra-openai-models.yaml").write_text(
        f"- model_id: claw\n  model_name: {MODEL}\n  api_base: {served.url}/v1\n"
        "  supports_tools: true\n  supports_schema: true\n",
        "utf-8",
    )
    return tmp_path


def llm(folder: Path, *arguments: str, may_stop: str = "") -> str:
    """What the command says. `may_stop`: words of an error that is no fault of the server's."""
    done = subprocess.run(
        [sys.executable, "-m", "llm", *arguments],
        env={**os.environ, "LLM_USER_PATH": str(folder), "OPENAI_API_KEY": "none"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0 or (may_stop and may_stop in done.stderr), done.stderr
    return done.stdout


def test_it_lists_the_models_at_the_address(tmp_path: Path, served: Served) -> None:
    assert MODEL in llm(tmp_path, "openai", "endpoint", f"{served.url}/v1", "--models").splitlines()


def test_it_asks_and_goes_on_with_the_conversation(llm_folder: Path) -> None:
    options = ("-o", "temperature", "0", "-o", "max_tokens", "24")
    streamed = llm(llm_folder, "-m", "claw", *options, "What is the capital of France?")
    whole = llm(llm_folder, "-m", "claw", "--no-stream", *options, "What is the capital of France?")
    assert "Paris" in streamed and streamed.strip() == whole.strip()
    assert llm(llm_folder, "-c", *options, "And of Italy?").strip()
    logged = json.loads(llm(llm_folder, "logs", "--json", "-n", "1"))
    assert logged[0]["input_tokens"] > 30 and logged[0]["output_tokens"] > 0


def test_it_runs_tools(llm_folder: Path) -> None:
    function = 'def lucky_number() -> int:\n    "The lucky number of today."\n    return 4217\n'
    llm(
        llm_folder,
        *("-m", "claw", "--functions", function, "--cl", "2", "-o", "temperature", "0", "-o", "max_tokens", "40"),
        *("-s", "Answer every question by calling the tool lucky_number.", "What is the lucky number of today?"),
        may_stop="hain limit",
    )
    logged = json.loads(llm(llm_folder, "logs", "--json"))
    assert logged and [tool["name"] for tool in logged[0]["tools"]] == ["lucky_number"]
    called = [call["name"] for entry in logged for call in entry["tool_calls"]]
    assert set(called) <= {"lucky_number"}
    assert called or logged[0]["response"]
    results = [result["output"] for entry in logged for result in entry["tool_results"]]
    assert set(results) <= {"4217"}


def test_it_gets_a_shape(llm_folder: Path) -> None:
    said = llm(llm_folder, "-m", "claw", "--schema", "name, age int", "-o", "max_tokens", "80", "Invent a dog.")
    found = json.loads(said)
    assert isinstance(found["name"], str) and isinstance(found["age"], int)
