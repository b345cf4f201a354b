"""The embedded model, loaded once for all engine tests, and LoRAs made for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest

from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.settings import ModelSettings

LAYERS, WIDTH, KV_WIDTH, HIDDEN = 30, 576, 192, 1536
"""Sizes of SmolLM2-135M."""
LINEAR = {
    "attn_q": (WIDTH, WIDTH),
    "attn_k": (WIDTH, KV_WIDTH),
    "attn_v": (WIDTH, KV_WIDTH),
    "attn_output": (WIDTH, WIDTH),
    "ffn_gate": (WIDTH, HIDDEN),
    "ffn_up": (WIDTH, HIDDEN),
    "ffn_down": (HIDDEN, WIDTH),
}
"""Linear layers of a block: (inputs, outputs)."""


@pytest.fixture(scope="session")
def engine(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaCppEngine]:
    # One thread: on a machine that runs other tests beside these, two would wait for each other at every step.
    settings = ModelSettings(context=2048, threads=1)
    with LlamaCppEngine.open(model_path, settings, cache_dir=tmp_path_factory.mktemp("cache")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def base_model(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test begins and ends without adapters."""
    yield
    if "engine" in request.fixturenames:
        request.getfixturevalue("engine").set_adapters([])


def write_lora(
    path: Path,
    *,
    seed: int = 0,
    strength: float = 0.02,
    rank: int = 4,
    modules: tuple[str, ...] = ("attn_v",),
    layers: int = LAYERS,
    architecture: str = "llama",
    narrower: int = 0,
) -> Path:
    """A random GGUF LoRA. `narrower` takes that many inputs off, which makes it fit no layer."""
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(2 * rank))
    for layer in range(layers):
        for module in modules:
            inputs, outputs = LINEAR[module]
            name = f"blk.{layer}.{module}.weight"
            writer.add_tensor(f"{name}.lora_a", random.normal(0, 1, (rank, inputs - narrower)).astype(np.float32))
            writer.add_tensor(f"{name}.lora_b", random.normal(0, strength, (outputs, rank)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
