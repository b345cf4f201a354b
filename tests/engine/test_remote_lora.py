"""Adapters behind a server that takes LoRAs while it runs, on a small one that plays vLLM's documented calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.engine._remote_lora import MOST, RemoteLoras
from claw_local.engine.base import Sampling
from claw_local.errors import EngineError
from claw_local.settings import ModelSettings, OpenAISettings, Settings
from tests.adapters.loras import lora, register
from tests.engine.servers import OPENAI, Script, serving

NAME = "qwen3:4b"


@pytest.fixture
def played(model_path: Path) -> Iterator[tuple[Settings, Script]]:
    with serving(OPENAI) as (url, script):
        script.loras = {}
        server = OpenAISettings(url=f"{url}/v1", timeout_s=5.0, lora="vllm", lora_of=str(model_path))
        yield Settings(model=ModelSettings(context=1024, threads=1), openai=server), script


def test_what_is_in_use_here_is_loaded_there_and_answers(
    tmp_path: Path, model_path: Path, played: tuple[Settings, Script]
) -> None:
    settings, script = played
    with Assistant.open(tmp_path, model=model_path, settings=settings) as local:
        one, two = (register(local, lora(3), name=name) for name in ("one", "two"))
        local.adapters.use("one")
    with Assistant.open(tmp_path, model=f"openai:{NAME}", settings=settings) as assistant:
        first = assistant.ask("What is tea?", sampling=Sampling(max_tokens=6))
        assert assistant.store.messages.get(first.message_id).adapter_id == one.id
        (path,) = (script.loras or {}).values()
        assert Path(path) == Path(one.peft_dir), "a PEFT folder, under the path that it has here"
        assert script.last("/v1/chat/completions")["model"] == RemoteLoras.name_of(Path(one.peft_dir))
        assistant.ask("And coffee?", sampling=Sampling(max_tokens=6))
        loads = [asked for asked, _, _ in script.asked if asked == "/v1/load_lora_adapter"]
        assert len(loads) == 1, "once is enough"
        assistant.ask("And milk?", adapter="two", sampling=Sampling(max_tokens=6))
        assert script.last("/v1/chat/completions")["model"] == RemoteLoras.name_of(Path(two.peft_dir))
        assistant.ask("And water?", adapter="base", sampling=Sampling(max_tokens=6))
        assert script.last("/v1/chat/completions")["model"] == NAME
        script.loras = {}  # It was started anew.
        assert assistant.ask("And juice?", sampling=Sampling(max_tokens=6)).text == "Tea is a drink."
        assert list(script.loras) == [RemoteLoras.name_of(Path(one.peft_dir))]
        script.loras = None
        with pytest.raises(EngineError, match=r"does not take the adapter.*openai\.lora"):
            assistant.ask("And wine?", sampling=Sampling(max_tokens=6))


def test_a_server_is_not_left_with_ever_more_of_them() -> None:
    there: list[str] = []

    def say(path: str, body: dict[str, str]) -> tuple[int, str]:
        (there.append if path == "/load_lora_adapter" else there.remove)(body["lora_name"])
        return 200, ""

    loras = RemoteLoras("sglang", say)
    asked = [loras.model("base", Path(f"/adapters/run-{n}/peft")) for n in range(MOST + 3)]
    assert asked[0] == "base:claw-run-0" and there == [f"claw-run-{n}" for n in range(3, MOST + 3)]
