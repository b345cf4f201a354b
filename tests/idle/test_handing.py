"""Models and runs hand a GPU's memory to each other. The models are real and lie in main memory; the GPU is not there:
what it is said to have free comes from a program in the PATH, as it does on a real one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from claw_local import Assistant
from claw_local.engine.base import Sampling
from claw_local.engine.gguf_file import read_header
from claw_local.errors import EngineError
from claw_local.idle import handing, vram
from claw_local.idle.handing import FLAG, Handing
from claw_local.idle.keeper import Keeper
from claw_local.idle.probes import gpu
from claw_local.paths import Paths
from claw_local.settings import LearningSettings, ModelSettings, Settings
from claw_local.store import Store
from claw_local.store.processes import _identity
from tests.idle.cards import MIB, Card, answer_on_it, card
from tests.idle.simulated import Clock, SimulatedMachine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")

SETTINGS = Settings(model=ModelSettings(threads=1, context=1024), learning=LearningSettings(device="cpu"))
SAMPLING = Sampling(max_tokens=24, temperature=0.8, seed=5)
FIRST = "Tell me about the rain in the mountains, and what a person should take along when it falls for days."
SECOND = "And by the sea?"


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Card:
    return card(tmp_path, monkeypatch)


@pytest.fixture
def assistant(home: Paths, model_path: Path, smi: Card, monkeypatch: pytest.MonkeyPatch) -> Iterator[Assistant]:
    """On the embedded model, which says it is on a GPU."""
    monkeypatch.setattr(handing, "GIVE_S", 0.5)
    answer_on_it(monkeypatch)
    with Assistant.open(home.data, model=model_path, settings=SETTINGS) as opened:
        yield opened


class Holders:
    """Models that let go when they are told to."""

    def __init__(self) -> None:
        self.gone = 0

    def on_gpu(self) -> bool:
        return not self.gone

    def let_go(self) -> bool:
        self.gone += 1
        return True


# Letting go and coming back


def test_what_is_let_go_of_gives_its_memory_back_and_the_chat_goes_on_bit_by_bit(
    assistant: Assistant, model_path: Path
) -> None:
    control = assistant.ask(FIRST, sampling=SAMPLING)
    expected = assistant.ask(SECOND, chat=control.chat_id, sampling=SAMPLING)
    first = assistant.ask(FIRST, sampling=SAMPLING)
    assert first.text == control.text
    assert assistant.wait_judged(30)

    held = psutil.Process().memory_info().rss
    assert assistant.handing.before_run(model_path), "nothing is free, and a run wants some"
    assert not assistant.loaded and len(assistant._engines.away()) == 1
    given_back = held - psutil.Process().memory_info().rss
    assert given_back > 0.5 * model_path.stat().st_size

    second = assistant.ask(SECOND, chat=first.chat_id, sampling=SAMPLING)
    assert second.load_s > 0 and assistant.loaded and not assistant._engines.away()
    one, other = (assistant.store.messages.get(answer.message_id) for answer in (expected, second))
    assert (one.response_ids, one.logprobs) == (other.response_ids, other.logprobs)
    assert second.evaluated_tokens == expected.evaluated_tokens < second.prompt_tokens / 2


def test_a_key_begins_to_load_it_and_so_does_whatever_else_needs_it(assistant: Assistant, model_path: Path) -> None:
    keeper = Keeper(assistant, probes=SimulatedMachine(Clock()))
    assistant.load()
    keeper.touch()
    assert assistant.handing._coming is None, "nothing is away"

    assert assistant.handing.before_run(model_path)
    keeper.touch()
    soon(lambda: assistant.loaded)

    assert assistant.handing.before_run(model_path)
    assert not assistant.loaded
    assert assistant.serving.detokenize([100, 200]) and assistant.loaded


def test_during_a_run_the_judge_waits_and_a_key_during_one_s_own_run_brings_nothing_back(
    assistant: Assistant, model_path: Path, smi: Card
) -> None:
    assistant.load()
    assistant.handing.before_run(model_path)
    run = assistant.store.runs.begin("person")
    with pytest.raises(EngineError, match="judged later"), assistant._judging_engine():
        pass
    assistant.come_back()
    time.sleep(0.3)
    assert not assistant.loaded
    smi.set_free(8 << 30)
    assert assistant.ask("Hello", sampling=SAMPLING).text and assistant.loaded
    assert assistant.store.runs.get(run).asked == "", "there is room for both"
    with assistant._judging_engine():
        pass


def test_one_that_is_answering_stays(assistant: Assistant, model_path: Path) -> None:
    reply = assistant.stream("Count to a hundred.", sampling=SAMPLING)
    pieces = iter(reply)
    next(pieces)
    assistant.handing.before_run(model_path)
    assert assistant.loaded
    assert reply.answer.finish_reason in ("stop", "length") and assistant.loaded
    assistant.handing.before_run(model_path)
    assert not assistant.loaded


# When


def test_a_message_lets_the_run_leave_first_and_waits_until_its_memory_is_free(home: Paths, smi: Card) -> None:
    settings = Settings(model=ModelSettings(context=512))
    store = Store(home)
    run, process = store.runs.begin("idle"), subprocess.Popen(["sleep", "60"])
    with store.database.write() as db:
        db.table("runs").update(run, {"process": _identity(process.pid)})
    left: list[float] = []

    def leave_when_asked() -> None:
        while store.runs.get(run).asked != "leave":
            time.sleep(0.01)
        store.runs.pause(run)
        time.sleep(0.4)  # Its process ends a little after the store knows.
        left.append(time.monotonic())
        process.kill()
        process.wait()

    thread = threading.Thread(target=leave_when_asked)
    thread.start()
    try:
        Handing(store, settings, Holders(), on_gpu=lambda _: True).before_opening(embedded())
        came = time.monotonic()
    finally:
        thread.join(5)
        process.kill()
        store.close()
    assert 0 <= came - left[0] < 0.5


@pytest.mark.parametrize(
    ("engines", "device", "free", "asked"),
    [
        # SmolLM2-135M: an engine takes about 0.6 GiB, training about 1.9 GiB.
        (True, "cpu", 400, True),
        (True, "cpu", 1000, False),
        (False, "cpu", 0, False),
        (False, "auto", 1000, True),
        (False, "auto", 4000, False),
        (True, "auto", 1500, True),
        (True, "auto", 6000, False),
        (True, "cuda:0", 1500, True),
        (True, "cuda:3", 0, False),
    ],
)
def test_models_are_let_go_of_where_a_run_would_find_too_little(
    home: Paths, smi: Card, monkeypatch: pytest.MonkeyPatch, engines: bool, device: str, free: int, asked: bool
) -> None:
    monkeypatch.setattr(vram, "torch_has_cuda", lambda: True)
    monkeypatch.setattr(handing, "GIVE_S", 0.0)
    settings = Settings(model=ModelSettings(context=2048), learning=LearningSettings(device=device))
    store, holders = Store(home), Holders()
    smi.set_free(free * MIB)
    found = Handing(store, settings, holders, on_gpu=lambda _: engines).before_run(embedded())
    assert (found, holders.gone) == (asked, int(asked))
    assert store.flags.get(FLAG) == ""
    store.close()


def test_without_a_gpu_nothing_happens(home: Paths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    store, holders = Store(home), Holders()
    handing_ = Handing(store, SETTINGS, holders, on_gpu=lambda _: True)
    run = store.runs.begin("idle")
    assert not handing_.before_run(embedded()) and not holders.gone
    handing_.before_opening(embedded())
    assert store.runs.get(run).asked == ""
    store.close()


def test_a_program_lets_go_for_another_one_s_run_and_not_for_one_that_is_dead(home: Paths) -> None:
    store, holders = Store(home), Holders()
    watching = Handing(store, SETTINGS, holders)
    watching.watch()
    other = subprocess.Popen(["sleep", "60"])
    try:
        identity = _identity(other.pid)
        store.flags.set(FLAG, f"{os.getpid()}0:1")
        time.sleep(2.5 * handing.WATCH_S)
        assert not holders.gone
        store.flags.set(FLAG, identity)
        soon(lambda: holders.gone > 0)
    finally:
        other.kill()
        other.wait()
        watching.close()
        store.close()


def test_a_run_waits_until_the_memory_is_given_back(home: Paths, smi: Card) -> None:
    store = Store(home)
    timer = threading.Timer(0.7, lambda: smi.set_free(8 << 30))
    timer.start()
    began = time.monotonic()
    settings = Settings(learning=LearningSettings(device="cpu"))
    assert Handing(store, settings, Holders(), on_gpu=lambda _: True).before_run(embedded())
    assert 0.6 < time.monotonic() - began < handing.GIVE_S
    store.close()


# What the cards say


def test_cards_are_counted_as_cuda_counts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    lines = "GPU-aa, 100, 8192, One\\nGPU-ab, [N/A], [N/A], Shared\\nGPU-bb, 4000, 24576, Two\\n"
    program.write_text(f"#!/bin/sh\nprintf '{lines}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [(one.number, one.name, one.free // MIB) for one in gpu.cards()] == [(0, "One", 100), (2, "Two", 4000)]
    for chosen, expected in (("2,0", ["Two", "One"]), ("GPU-b", ["Two"]), ("0,7,2", ["One"]), ("", []), ("GPU-", [])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
        found = gpu.cards()
        assert [one.name for one in found] == expected
        assert [one.number for one in found] == list(range(len(expected)))
    program.write_text("#!/bin/sh\nexit 9\n")
    with pytest.raises(Exception, match="reinstall the NVIDIA driver"):
        gpu.cards()


def test_what_learns_is_named_in_words(smi: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    header = read_header(embedded())
    smi.set_free(6 << 30)
    monkeypatch.setattr(vram, "torch_has_cuda", lambda: True)

    def words(device: str) -> str:
        return vram.trains_on(Settings(learning=LearningSettings(device=device)), header)

    assert words("auto") == "NVIDIA Pretended 8GB (cuda:0, 6.0 GiB of 8.0 GiB free)" == words("cuda:0")
    assert words("cpu") == "the processor (learning.device is cpu)"
    assert words("cuda:4") == "nothing (learning.device is cuda:4): there is no such NVIDIA GPU"
    smi.set_free(500 * MIB)
    assert "has too little memory free for the" in words("auto")
    monkeypatch.setattr(vram, "torch_has_cuda", lambda: False)
    assert words("auto") == "the processor: torch was built without CUDA"
    monkeypatch.setattr(vram, "_torch", lambda: None)
    for device in ("auto", "cpu", "cuda:0"):
        assert words(device).startswith("nothing: what trains is not installed (")


@pytest.mark.parametrize(("written", "expected"), [("'12.8'", True), ("None", False)])
def test_how_torch_was_built_is_known_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, expected: bool
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise AssertionError('imported')\n")
    (tmp_path / "torch" / "version.py").write_text(f"cuda: Optional[str] = {written}\nhip: Optional[str] = None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    loaded = sys.modules.pop("torch", None)
    try:
        assert vram.torch_has_cuda.__wrapped__() is expected
    finally:
        if loaded is not None:
            sys.modules["torch"] = loaded


def embedded() -> Path:
    from claw_local.engine.models import embedded_model

    path = embedded_model()
    assert path is not None
    return path


def soon(holds: object, within_s: float = 20.0) -> None:
    assert callable(holds)
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
