"""The barest loop over llama.cpp's C API: what there is to compute, and nothing else."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from pathlib import Path

import llama_cpp as lib


class Bare:
    """One model, one context, the likeliest token each time."""

    def __init__(self, model: Path, *, threads: int, context: int = 4096, lora: Path | None = None) -> None:
        lib.llama_backend_init()
        self._model = lib.llama_model_load_from_file(str(model).encode(), lib.llama_model_default_params())
        parameters = lib.llama_context_default_params()
        parameters.n_ctx, parameters.n_batch = context, 512
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.no_perf = True
        self._context = lib.llama_init_from_model(self._model, parameters)
        if lora is not None:
            pointer = lib.llama_adapter_lora_p_ctypes
            adapter = ctypes.cast(lib.llama_adapter_lora_init(self._model, str(lora).encode()), pointer)
            if lib.llama_set_adapters_lora(self._context, (pointer * 1)(adapter), 1, (ctypes.c_float * 1)(1.0)) != 0:
                raise RuntimeError("llama.cpp refused the adapter")
        self._sampler = lib.llama_sampler_init_greedy()

    def read(self, token_ids: Sequence[int]) -> int:
        """Compute tokens after those that are there. Returns the likeliest next one; 0 if there are none to compute."""
        if not token_ids:
            return 0
        for at in range(0, len(token_ids), 512):
            part = token_ids[at : at + 512]
            tokens = (ctypes.c_int32 * len(part))(*part)
            if lib.llama_decode(self._context, lib.llama_batch_get_one(tokens, len(part))) != 0:
                raise RuntimeError("llama_decode failed")
        return int(lib.llama_sampler_sample(self._sampler, self._context, -1))

    def write(self, first: int, count: int) -> float:
        """Write so many tokens after `first`. Returns tokens a second."""
        started = time.perf_counter()
        token = (ctypes.c_int32 * 1)(first)
        for _ in range(count):
            if lib.llama_decode(self._context, lib.llama_batch_get_one(token, 1)) != 0:
                raise RuntimeError("llama_decode failed")
            token[0] = lib.llama_sampler_sample(self._sampler, self._context, -1)
        return count / (time.perf_counter() - started)

    def keep(self, count: int) -> None:
        """Forget all but the first `count` tokens."""
        lib.llama_memory_seq_rm(lib.llama_get_memory(self._context), 0, count, -1)

    def close(self) -> None:
        lib.llama_sampler_free(self._sampler)
        lib.llama_free(self._context)
        lib.llama_model_free(self._model)
