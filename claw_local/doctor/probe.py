"""The dangerous parts, one a process: `python -m claw_local.doctor.probe NAME [ARGUMENT ...]`.

Each prints one JSON object as its last line. What goes wrong may end in an exception, in an exit status or in a signal:
that is what this is for. It must never be imported for its functions.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

PROMPT = "The capital of France is"
NF4_ERROR = 0.15  # mean |error| of NF4 on standard normal values is near 0.07


def engine() -> dict[str, Any]:
    """Load llama.cpp's libraries and start its backends."""
    import llama_cpp

    llama_cpp.llama_backend_init()
    return {"version": llama_cpp.__version__, "gpu_offload": bool(llama_cpp.llama_supports_gpu_offload())}


def token(model: str = "", gpu_layers: str = "-1") -> dict[str, Any]:
    """Load a GGUF file (the embedded model, if none is named) and compute one token with it."""
    import llama_cpp

    from ..engine.models import embedded_model

    started = time.monotonic()
    path = model or embedded_model()
    if path is None:
        raise FileNotFoundError("the embedded model is not installed")
    loaded = llama_cpp.Llama(
        str(path), n_ctx=64, n_batch=32, n_threads=1, n_threads_batch=1, n_gpu_layers=int(gpu_layers), verbose=False
    )
    answer = loaded.create_completion(PROMPT, max_tokens=1, temperature=0.0)
    return {
        "version": llama_cpp.__version__,
        "gpu_offload": bool(llama_cpp.llama_supports_gpu_offload()),
        "token": answer["choices"][0]["text"],
        "seconds": round(time.monotonic() - started, 3),
    }


def torch() -> dict[str, Any]:
    """Import torch and compute a gradient."""
    import torch

    weight = torch.ones(4, requires_grad=True)
    (weight * weight).sum().backward()  # type: ignore[no-untyped-call]
    if weight.grad is None or weight.grad.tolist() != [2.0] * 4:
        raise ArithmeticError("torch computed a wrong gradient")
    cuda = torch.cuda.is_available()
    return {
        "version": torch.__version__,
        "device": torch.cuda.get_device_name(0) if cuda else "mps" if torch.backends.mps.is_available() else "cpu",
    }


def peft() -> dict[str, Any]:
    """Import peft, and with it transformers."""
    import peft
    import transformers

    return {"version": peft.__version__, "transformers": transformers.__version__}


def bitsandbytes() -> dict[str, Any]:
    """Import bitsandbytes and take NF4 there and back."""
    import bitsandbytes
    import torch

    values = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    packed, state = bitsandbytes.functional.quantize_4bit(values, quant_type="nf4")
    error = (bitsandbytes.functional.dequantize_4bit(packed, state) - values).abs().mean().item()
    if not error < NF4_ERROR:
        raise ArithmeticError(f"NF4 comes back wrong: mean error {error:.3f}")
    return {"version": bitsandbytes.__version__, "nf4_error": round(error, 4)}


def together(*parts: str) -> dict[str, Any]:
    """Several of these in one process, as the trainer has them: torch is imported once. A line for each that worked."""
    for part in parts:
        print(json.dumps({"part": part, **PROBES[part]()}), flush=True)
    return {"parts": len(parts)}


PROBES: dict[str, Callable[..., dict[str, Any]]] = {
    "engine": engine,
    "token": token,
    "torch": torch,
    "peft": peft,
    "bitsandbytes": bitsandbytes,
    "together": together,
}


def main(arguments: list[str]) -> int:
    """Run one probe; returns the exit status."""
    _no_core_file()
    try:
        result = PROBES[arguments[0]](*arguments[1:])
    except Exception as error:
        print(f"{type(error).__name__}: {error}".replace("\n", " "))
        return 1
    print(json.dumps(result))
    return 0


def _no_core_file() -> None:
    """A probe that dies leaves nothing behind."""
    try:
        import resource
    except ImportError:  # Windows has neither the module nor core files
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
