"""A switch of adapters is seen by every open program within a second and cuts no reply: two processes, one home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.engine.base import Sampling
from claw_local.settings import ModelSettings, Settings
from tests.adapters.loras import ALL, lora, register

ROOT = Path(__file__).parent.parent
SETTINGS = Settings(model=ModelSettings(context=512, threads=1))
LONG = Sampling(max_tokens=60, temperature=0.0, repeat_penalty=1.0)
SHORT = Sampling(max_tokens=4, temperature=0.0)
QUESTION = "Tell me a long story about a river."


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory, model_path: Path) -> Iterator[Assistant]:
    with Assistant.open(tmp_path_factory.mktemp("home"), model=model_path, settings=SETTINGS) as opened:
        yield opened


def python(assistant: Assistant, *arguments: str) -> subprocess.Popen[str]:
    """Another process on the same home."""
    environment = {
        **os.environ,
        "CLAW_LOCAL_HOME": str(assistant.paths.data),
        "PYTHONPATH": str(ROOT),
        "CLAW_LOCAL_MODEL__PATH": str(assistant.model_path),
    }
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *arguments], env=environment, cwd=ROOT, **pipes)


def test_a_switch_in_another_process_cuts_no_reply_and_is_seen_by_the_next(assistant: Assistant) -> None:
    strong = register(assistant, lora(blocks=30, modules=ALL, size=0.004), name="work")
    by_base = assistant.ask(QUESTION, sampling=LONG, learn=False)
    by_adapter = assistant.ask(QUESTION, sampling=LONG, learn=False, adapter="work")
    assert by_base.text != by_adapter.text, "so it would show if a reply changed sides"

    reply = assistant.stream(QUESTION, sampling=LONG, learn=False)
    pieces = iter(reply)
    shown = next(pieces)
    switching = python(assistant, "-m", "claw_local", "adapters", "use", "work", "--json")
    out, errors = switching.communicate(timeout=60)
    assert switching.returncode == 0, errors
    assert json.loads(out) == {"adapter": strong.id}
    shown += "".join(pieces)
    assert (shown, reply.answer.adapter) == (by_base.text, 0), "the reply under way ends as it began"

    after = assistant.ask(QUESTION, sampling=LONG, learn=False)
    assert (after.text, after.adapter) == (by_adapter.text, strong.id)


def test_it_is_seen_within_a_second_in_what_is_shown_and_in_private_chats(assistant: Assistant) -> None:
    register(assistant, lora(7, blocks=30, modules=ALL, size=0.004), name="home")
    assistant.adapters.use("base")
    private = assistant.incognito()
    script = """
import time
from claw_local import Assistant
with Assistant.open() as assistant:
    record = assistant.adapters.use(["home:0.5", "work:0.5"])
    print(record.id, time.time())
"""
    switching = python(assistant, "-c", script)
    seen = 0.0
    while not seen and switching.poll() is None:
        if assistant.learn.status().adapter:
            seen = time.time()
        time.sleep(0.02)
    out, errors = switching.communicate(timeout=60)
    assert switching.returncode == 0, errors
    adapter, switched = int(out.split()[0]), float(out.split()[1])
    assert assistant.learn.status().adapter == adapter
    assert (seen or time.time()) - switched < 1.0
    for program in (assistant, private):
        assert program.ask("Hello", sampling=SHORT, learn=False).adapter == adapter
    private.close()


def test_a_hint_that_one_adapter_learned_stands_in_the_prompts_of_another(assistant: Assistant) -> None:
    hint = assistant.hints.add("Use capital letters only.")
    learned = register(assistant, lora(9))
    assistant.store.adapters.update(learned.id, metrics={"learned_hints": [hint.id]})
    chat = assistant.new_chat(title="by the base").id
    assistant.adapters.use(learned.id)
    assistant.adapters.use("base", chat=chat)
    assert assistant.ask("Hello", sampling=SHORT, learn=False).hints == ()
    by_base = assistant.ask("Hello", chat=chat, sampling=SHORT, learn=False)
    assert (by_base.adapter, by_base.hints) == (0, (hint.text,))
    assistant.adapters.use("base")
    other = assistant.ask("Hello", adapter=learned.id, sampling=SHORT, learn=False)
    assert (other.adapter, other.hints) == (learned.id, ())
