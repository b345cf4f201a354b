"""LoRAs for the embedded model, and adapters registered with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from claw_local.adapters.gguf import BaseShape, write_gguf
from claw_local.adapters.peft import MODULES, PeftLora, write_peft
from claw_local.adapters.registry import file_sha256
from claw_local.assistant import Assistant
from claw_local.store import AdapterRecord

SHAPES = {
    "q_proj": (576, 576),
    "k_proj": (192, 576),
    "v_proj": (192, 576),
    "o_proj": (576, 576),
    "gate_proj": (1536, 576),
    "up_proj": (1536, 576),
    "down_proj": (576, 1536),
}
"""Rows and columns of the embedded model's linear layers."""

SECRET = "zyzzyva-of-the-garden"
"""A phrase of the person's, which must not leave with an adapter."""


def lora(
    seed: int = 0, *, rank: int = 2, blocks: int = 2, modules: tuple[str, ...] = ("v_proj",), size: float = 0.02
) -> PeftLora:
    """A random LoRA."""
    random = np.random.default_rng(seed)
    weights = {}
    for block in range(blocks):
        for module in MODULES:
            name = module.split(".")[1]
            if name in modules:
                rows, columns = SHAPES[name]
                a = random.standard_normal((rank, columns)).astype(np.float32)
                weights[block, module] = a * size, random.standard_normal((rows, rank)).astype(np.float32)
    return PeftLora(2.0 * rank, weights, "base.gguf")


ALL = tuple(SHAPES)


def gate_report() -> dict[str, Any]:
    """A gate's report as it is kept, with the person's words in an example, and a shipped prompt in another."""
    from claw_local.adapters.gate import Guard, Probe, decide
    from claw_local.adapters.measuring import shipped_prompts
    from claw_local.settings import GateSettings

    probes = [
        Probe(f"Tell me of the {SECRET}.", True, "Long.", "Short.", 0.9, 0.4, -1.0, 1.0, hinted="Short."),
        Probe(shipped_prompts("neutral")[0], False, "Well then.", "Well now.", 0.8, 0.3, -1.0, 1.0, hinted="Well."),
    ]
    return decide(probes, guard=Guard(kl_base=0.1), bounds=GateSettings()).as_json()


def register(assistant: Assistant, made: PeftLora, *, name: str = "", parent: int = 0, **columns: Any) -> AdapterRecord:
    """An adapter as a training run leaves it."""
    folder = assistant.paths.adapters / f"run-{len(assistant.adapters.list())}-{parent}"
    write_peft(made, folder / "peft")
    write_gguf(made, BaseShape.of(assistant.model_path), folder / "adapter.gguf")
    return assistant.store.adapters.add(
        parent_id=parent,
        name=name,
        model_sha256=assistant.model_sha256,
        architecture="llama",
        peft_dir=str(folder / "peft"),
        gguf_path=str(folder / "adapter.gguf"),
        sha256={file: file_sha256(folder / file) for file in ("adapter.gguf", "peft/adapter_model.safetensors")},
        recipe={"method": "combined", "steps": 8, "hints": [f"Say {SECRET}."], "likes": {SECRET: "said so"}},
        metrics={"gate": gate_report(), "hints": [{"text": SECRET}], "learned_hints": [4]},
        lineage=[11, 12, 13],
        **columns,
    )


def folders(assistant: Assistant) -> set[Path]:
    """Every file and folder where adapters are kept."""
    return set(assistant.paths.adapters.rglob("*"))
