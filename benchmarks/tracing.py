"""What llama.cpp computed on the way: the values of its graph's named tensors, and the logits, of one text."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import llama_cpp as lib
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]


@dataclass
class Trace:
    """Attributes:
    logits: [T, V] after each token.
    values: by name, such as `ffn_up-0`, [rows, columns]; of a name that comes up again, the first.
    """

    logits: Array
    values: dict[str, Array] = field(default_factory=dict)


class Tracer:
    """A model in a context like the one chats use on a processor: attention without the fused kernel."""

    def __init__(self, model: Path, *, threads: int, context: int = 512) -> None:
        lib.llama_backend_init()
        self._base = _ggml()
        self._watched: dict[str, Array] | None = None
        self._callback = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_bool, ctypes.c_void_p)(self._see)
        self._model = lib.llama_model_load_from_file(str(model).encode(), lib.llama_model_default_params())
        self._size = int(lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self._model)))
        parameters = lib.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = context
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
        parameters.cb_eval = ctypes.cast(self._callback, type(parameters.cb_eval))
        self._context = lib.llama_init_from_model(self._model, parameters)
        self._batch = lib.llama_batch_init(context, 0, 1)

    def read(self, token_ids: Sequence[int], *, at_once: int = 0, values: bool = False) -> Trace:
        """Compute a text from its beginning.

        Args:
            at_once: tokens of a batch; 0: all.
            values: keep what was computed on the way, of the last batch.
        """
        lib.llama_memory_clear(lib.llama_get_memory(self._context), True)
        trace = Trace(np.empty((len(token_ids), self._size), np.float32))
        step = at_once or len(token_ids)
        for start in range(0, len(token_ids), step):
            part = token_ids[start : start + step]
            self._batch.n_tokens = len(part)
            for place, token in enumerate(part):
                self._batch.token[place], self._batch.pos[place] = token, start + place
                self._batch.n_seq_id[place], self._batch.seq_id[place][0], self._batch.logits[place] = 1, 0, 1
            self._watched = trace.values if values else None
            if lib.llama_decode(self._context, self._batch) != 0:
                raise RuntimeError("llama_decode failed")
            for place in range(len(part)):
                row = lib.llama_get_logits_ith(self._context, place)
                trace.logits[start + place] = np.ctypeslib.as_array(row, (self._size,))
        return trace

    def _see(self, tensor: int, asked: bool, _: Any) -> bool:
        name = self._base.ggml_get_name(tensor).decode()
        if self._watched is None or name in self._watched or self._base.ggml_element_size(tensor) != 4:
            return not asked
        if not asked:
            found = np.empty(self._base.ggml_nelements(tensor), np.float32)
            self._base.ggml_backend_tensor_get(tensor, found.ctypes.data, 0, found.nbytes)
            self._watched[name] = found.reshape(self._base.ggml_nrows(tensor), -1)
        return True

    def close(self) -> None:
        lib.llama_batch_free(self._batch)
        lib.llama_free(self._context)
        lib.llama_model_free(self._model)


def _ggml() -> Any:
    """ggml's own functions, which llama-cpp-python has no names for."""
    folder = Path(lib.__file__).parent / "lib"
    names = ("libggml-base.so", "libggml-base.dylib", "ggml-base.dll")
    base = ctypes.CDLL(str(next(folder / name for name in names if (folder / name).exists())))
    base.ggml_get_name.restype, base.ggml_get_name.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    for name, kind in (("nelements", ctypes.c_int64), ("nrows", ctypes.c_int64), ("element_size", ctypes.c_size_t)):
        function = getattr(base, f"ggml_{name}")
        function.restype, function.argtypes = kind, [ctypes.c_void_p]
    base.ggml_backend_tensor_get.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
    return base


def token_logprobs(logits: Array, token_ids: Sequence[int]) -> npt.NDArray[np.float64]:
    """[T - 1] log-probabilities of token_ids[1:] from [T, V] logits."""
    shifted = logits.astype(np.float64) - logits.max(1, keepdims=True)
    normalised = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    found: npt.NDArray[np.float64] = normalised[np.arange(len(token_ids) - 1), list(token_ids[1:])]
    return found
