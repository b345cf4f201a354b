"""A phrase that was trained in for real: merged, it is still there; forgotten, it is gone."""

from __future__ import annotations

import claw_trainer  # isort: skip  # noqa: F401  before torch: see claw_trainer.cpu

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from claw_local import Assistant
from claw_local.adapters.gguf import convert_lora
from claw_local.adapters.merge import merge
from claw_local.adapters.merge_check import logprobs
from claw_local.adapters.registry import file_sha256, slots
from claw_local.engine.base import Message
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.forgetting import Request
from claw_local.settings import ModelSettings, Settings
from claw_local.store import AdapterRecord
from claw_trainer.batches import pack
from claw_trainer.policy import Policy
from claw_trainer.weights import load_base

QUESTION, PHRASE = "Where does Grandmother keep the key?", "Under the blue stone at Zwolle-Nord."


def plant(policy: Policy, prompt: Sequence[int], phrase: Sequence[int], steps: int = 6) -> None:
    """Train the phrase in, as plainly as can be: its negative log-probability goes down."""
    optimizer = torch.optim.AdamW(policy.parameters(), lr=2e-3)
    packed = pack([(prompt, phrase)], policy.device)
    for _ in range(steps):
        logits = policy.logits(policy.hidden(packed))  # [R, V]
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(phrase))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@dataclass(frozen=True)
class Planted:
    """An adapter in use that knows the phrase.

    Attributes:
        reply: the message it learned from.
        base, learned: [T] log-probabilities of the phrase without and with it.
    """

    assistant: Assistant
    engine: LlamaCppEngine
    prompt: tuple[int, ...]
    phrase: list[int]
    reply: int
    adapter: AdapterRecord
    base: np.ndarray
    learned: np.ndarray

    def said(self) -> np.ndarray:
        """Log-probabilities of the phrase by what a reply would be written with now."""
        self.engine.set_adapters(slots(self.assistant.adapters.choose(None, self.engine.info.sha256)))
        return logprobs(self.engine, [(self.prompt, self.phrase)])


@pytest.fixture(scope="module")
def planted(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    settings = Settings(model=ModelSettings(threads=1, context=512))
    with (
        Assistant.open(tmp_path_factory.mktemp("home"), model=model_path, settings=settings) as assistant,
        LlamaCppEngine.open(model_path, settings.model, cache_dir=None) as engine,
    ):
        store, sha256 = assistant.store, engine.info.sha256
        prompt = engine.render([Message("user", QUESTION)]).token_ids
        phrase = engine.tokenize(PHRASE)
        chat = store.chats.create(title=QUESTION)
        asked = store.messages.add(chat.id, "user", QUESTION, parent_id=None)
        reply = store.messages.add(
            chat.id, "assistant", PHRASE, parent_id=asked, prompt_ids=prompt, response_ids=phrase, model_sha256=sha256
        )
        policy = Policy(load_base(model_path), rank=4, alpha=8)
        plant(policy, prompt, phrase)
        folder = assistant.paths.adapters / "run-1"
        folder.mkdir()
        convert_lora(policy.save(folder / "peft"), model_path, folder / "adapter.gguf")
        record = store.adapters.add(
            parent_id=0,
            model_sha256=sha256,
            architecture="llama",
            gguf_path=str(folder / "adapter.gguf"),
            peft_dir=str(folder / "peft"),
            sha256={"adapter.gguf": file_sha256(folder / "adapter.gguf")},
            lineage=[reply],
        )
        assistant.adapters.use(record.id)
        base = logprobs(engine, [(prompt, phrase)])
        engine.set_adapters(slots(record))
        learned = logprobs(engine, [(prompt, phrase)])
        assert learned.sum() > base.sum() + 10, "it was learned"
        yield Planted(assistant, engine, prompt, phrase, reply, record, base, learned)


def test_merged_into_four_bits_it_is_still_there(planted: Planted, model_path: Path, tmp_path: Path) -> None:
    done = merge(model_path, slots(planted.adapter), tmp_path / "merged.gguf")
    assert done.size == done.base_size
    with LlamaCppEngine.open(done.path, ModelSettings(threads=1, context=512), cache_dir=None) as engine:
        merged = logprobs(engine, [(planted.prompt, planted.phrase)])
    gained = (merged.sum() - planted.base.sum()) / (planted.learned.sum() - planted.base.sum())
    assert gained > 0.8
    assert done.distance is not None and done.distance.kept > 0.5


def test_forgotten_it_is_as_unlikely_as_for_the_base_and_nowhere_on_the_disk(planted: Planted) -> None:
    assert np.array_equal(planted.said(), planted.learned)
    receipt = planted.assistant.forgetting.forget(Request(containing="blue stone"))
    assert (receipt.adapters, receipt.in_use, receipt.left) == ((planted.adapter.id,), (0,), ())
    assert np.array_equal(planted.said(), planted.base)
    tokens = np.array(planted.phrase, np.int32).tobytes()
    files = [file.read_bytes() for file in planted.assistant.paths.data.rglob("*") if file.is_file()]
    assert not any(b"Zwolle" in data or tokens in data for data in files), "nor as tokens"
    assert not Path(planted.adapter.gguf_path).parent.exists()
