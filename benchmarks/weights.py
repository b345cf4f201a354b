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


def qwen3_4b() -> dict[str, tuple[tuple[int, ...], int]]:
    """The tensors of Qwen3-4B as Q4_K_M: shape (fastest dimension first) and ggml type of each, by name.

    Shapes: the model's published configuration (36 layers, width 2560, inner 9728, 32 and 8 heads of 128, vocabulary
    151,936, output tied). Types: llama.cpp's rule for Q4_K_M (llama-quant.cpp): attn_v and ffn_down of the first and
    last eighth of the layers and of every third between are Q6_K, as is the tied embedding; all else is Q4_K.
    """
    width, inner, query, key, head, layers = 2560, 9728, 32 * 128, 8 * 128, 128, 36
    number, small, large = 0, 12, 14
    found = {"token_embd": ((width, 151_936), large), "output_norm": ((width,), number)}
    for layer in range(layers):
        more = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
        parts: dict[str, tuple[tuple[int, ...], int]] = {
            "attn_q": ((width, query), small),
            "attn_k": ((width, key), small),
            "attn_v": ((width, key), large if more else small),
            "attn_output": ((query, width), small),
            "ffn_gate": ((width, inner), small),
            "ffn_up": ((width, inner), small),
            "ffn_down": ((inner, width), large if more else small),
            "attn_norm": ((width,), number),
            "ffn_norm": ((width,), number),
            "attn_q_norm": ((head,), number),
            "attn_k_norm": ((head,), number),
        }
        found |= {f"blk.{layer}.{part}": entry for part, entry in parts.items()}
    return {f"{name}.weight": entry for name, entry in found.items()}


def write_qwen3_4b(path: Path) -> Path:
    """A file with these tensors: zeros, in a file with holes."""
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFWriter

    from claw_local.engine.gguf_file import GgufTensor

    writer = GGUFWriter(path, "qwen3")
    writer.add_type("model")
    writer.add_block_count(36)
    writer.add_context_length(40_960)
    writer.add_embedding_length(2560)
    writer.add_feed_forward_length(9728)
    writer.add_head_count(32)
    writer.add_head_count_kv(8)
    writer.add_key_length(128)
    writer.add_value_length(128)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    end = 0
    for name, (shape, kind) in qwen3_4b().items():
        size = GgufTensor(shape, kind, 0).size or 0
        writer.add_tensor_info(name, list(shape[::-1]), np.dtype(np.float32), size, GGMLQuantizationType(kind))
        end += -(-size // 32) * 32
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
