"""What the ways to hold the base's weights cost: bytes, and seconds of a training step.

    python -m benchmarks weights [--model FILE.gguf] [--samples 4] [--rounds 2] [--threads N] [--json]
    python -m benchmarks weights --qwen3-4b

`ratio_memory`: bytes of all weights held in NF4, and as in the file, over bf16's. `ratio_seconds`: a step on the same
samples, over bf16's. With `--qwen3-4b`, a file with the tensors of Qwen3-4B as Q4_K_M is made, all zeros and taking no
room on the disk, and one step is taken against it as in the file: `peak_gb` is the most memory that the process held,
its mapped file included.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .sidebyside import child, medians, options_of, peak_bytes, ratio, say

HOLDS = {"bf16": ("bf16", "dequantised"), "fp32": ("fp32", "dequantised"), "nf4": ("fp32", "nf4")} | {
    "as_in_file": ("fp32", "as-in-file"),
    "as_served": ("fp32", "as-in-file"),
}


def step(way: str, model: Path, count: int, threads: int) -> dict[str, Any]:
    """One warm step, timed, after a first one."""
    import claw_trainer  # isort: skip  # noqa: F401  before torch
    import torch

    from claw_trainer.policy import Policy
    from claw_trainer.step import Objective, Trainer
    from claw_trainer.weights import load_base

    from .training import samples_of

    torch.set_num_threads(threads)
    precision, hold = HOLDS[way]
    base = load_base(model, precision=precision, hold=hold, served=way == "as_served")  # type: ignore[arg-type]
    held = {id(t): t for t in base.model.parameters()}  # tied ones once
    size = sum(tensor.nbytes for tensor in {t.data_ptr(): t for t in held.values()}.values())
    for module in base.model.modules():
        state = getattr(getattr(module, "weight", None), "quant_state", None)
        size += 0 if state is None else state.absmax.nbytes
    policy = Policy(base, rank=16, alpha=32)
    if count == 0:  # As a run does with the least memory.
        policy.checkpoint_gradients()
        policy.chunk_rows = 64
    trainer = Trainer(policy, Objective(), micro_tokens=128 if count == 0 else 512)
    seconds, tokens = 0.0, 0.0
    for _ in range(1 if count == 0 else 2):
        trainer.references.restore({})
        started = time.perf_counter()
        tokens = trainer.step(samples_of(count or 1, base.model.config.vocab_size))["tokens"]
        seconds = time.perf_counter() - started
    return {"bytes": size, "seconds": seconds, "tokens": tokens, "peak": peak_bytes()}


def write_qwen3_4b(path: Path) -> Path:
    """A file with the shapes and types of Qwen3-4B's Q4_K_M: zeros, in a file with holes.

    Shapes are those of the model's published configuration. llama.cpp's Q4_K_M keeps attn_v and ffn_down of the first
    and last eighth of the layers and of every third between, and the tied embedding, as Q6_K; all else as Q4_K.
    """
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFWriter

    width, inner, heads, heads_kv, head, vocabulary, layers = 2560, 9728, 32, 8, 128, 151_936, 36
    small, large = GGMLQuantizationType.Q4_K, GGMLQuantizationType.Q6_K
    writer = GGUFWriter(path, "qwen3")
    writer.add_type("model")
    writer.add_block_count(layers)
    writer.add_context_length(40_960)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads_kv)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    end = 0

    def add(name: str, rows: int, columns: int, kind: Any) -> None:
        nonlocal end
        size = rows * columns // 256 * {small: 144, large: 210}[kind]
        writer.add_tensor_info(f"{name}.weight", [rows, columns], np.dtype(np.float32), size, kind)
        end += -(-size // 32) * 32

    def norm(name: str, columns: int) -> None:
        nonlocal end
        writer.add_tensor_info(f"{name}.weight", [columns], np.dtype(np.float32), 4 * columns)
        end += 4 * columns

    add("token_embd", vocabulary, width, large)
    norm("output_norm", width)
    for layer in range(layers):
        more = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
        for part, rows, columns, kind in (
            ("attn_q", heads * head, width, small),
            ("attn_k", heads_kv * head, width, small),
            ("attn_v", heads_kv * head, width, large if more else small),
            ("attn_output", width, heads * head, small),
            ("ffn_gate", inner, width, small),
            ("ffn_up", inner, width, small),
            ("ffn_down", width, inner, large if more else small),
        ):
            add(f"blk.{layer}.{part}", rows, columns, kind)
        for part, columns in (("attn_norm", width), ("ffn_norm", width), ("attn_q_norm", head), ("attn_k_norm", head)):
            norm(f"blk.{layer}.{part}", columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + 32 + end)
    return path


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "--side":
        way, model, count, threads = sys.argv[2:6]
        print(json.dumps(step(way, Path(model), int(count), int(threads))))
        return

    def more(parser: Any) -> None:
        parser.add_argument("--samples", type=int, default=4, help="of a step")
        parser.add_argument("--qwen3-4b", action="store_true", help="one step at that model's size instead")

    options = options_of("weights", __doc__, rounds=2, more=more)
    if options.qwen3_4b:
        with tempfile.TemporaryDirectory() as folder:
            model = write_qwen3_4b(Path(folder) / "qwen3-4b.gguf")
            found = child("benchmarks.weights", "--side", "as_in_file", str(model), "0", str(options.threads))
            size = model.stat().st_size
        say(
            {
                "peak_gb": round(found["peak"] / 1e9, 2),
                "file_gb": round(size / 1e9, 2),
                "step_s": round(found["seconds"], 1),
                "response_tokens": found["tokens"],
            },
            options,
        )
        return
    results: dict[str, list[dict[str, Any]]] = {way: [] for way in HOLDS}
    for _ in range(options.rounds):
        for way, got in results.items():
            arguments = (way, options.model, options.samples, options.threads)
            got.append(child("benchmarks.weights", "--side", *map(str, arguments)))
    seconds = {way: [one["seconds"] for one in got] for way, got in results.items()}
    sizes = {way: got[0]["bytes"] for way, got in results.items()}
    say(
        {
            "ratio_memory": {way: round(size / sizes["bf16"], 3) for way, size in sizes.items()},
            "ratio_seconds": {way: ratio(took, seconds["bf16"]) for way, took in seconds.items()},
            "weights_mb": {way: round(size / 2**20, 1) for way, size in sizes.items()},
            "step_s": medians(seconds, 2),
        },
        options,
    )


if __name__ == "__main__":
    main()
