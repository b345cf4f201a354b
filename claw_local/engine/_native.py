"""Thin wrappers around llama.cpp's C objects: the model with its vocabulary, and a context with its KV cache.

It must never know about chats, sampling or threads of Python: callers see to it that one call at a time reaches a
context, and that nothing is used after `close`.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import AdapterError, EngineError, ModelError
from ..language import _
from ._stopping import StopFlag
from .base import Logits

Ints = npt.NDArray[np.int32]
State = npt.NDArray[np.uint8]
Adapters = tuple[tuple[int, float], ...]
"""Loaded LoRAs to apply: (address, scale)."""


class Threads(Protocol):
    def now(self) -> int:
        """How many threads to compute with."""
        ...

    def for_one_token(self, parameters: int) -> int:
        """How many of them to compute a single token with, in a model of that many parameters."""
        ...


class Stopped(Exception):
    """A computation was broken off by its context's flag; what was computed before it stays."""


_WARNING, _CONTINUED = 3, 5
_STOPPED = 2
"""What llama_decode returns then."""
_log: deque[str] = deque(maxlen=20)
_kept: list[Any] = []
"""The log callback: C code holds its address for as long as the process lives."""


@cache
def library() -> Any:
    """The llama_cpp module, with its backend started and its log caught, so that nothing is printed.

    Raises:
        EngineError: it is not installed, or its shared library cannot be loaded.
    """
    try:
        import llama_cpp
    except (ImportError, OSError, RuntimeError) as error:
        raise EngineError(
            _(
                "llama.cpp cannot be loaded ({error}). Run `claw-local doctor` to see what is "
                "missing, and reinstall llama-cpp-python.",
                error=error,
            )
        ) from error

    def keep(level: int, text: bytes, _: object) -> None:
        if level >= _WARNING and level != _CONTINUED:
            _log.append(text.decode("utf-8", "replace").strip())

    callback = llama_cpp.llama_log_callback(keep)
    _kept.append(callback)
    llama_cpp.llama_log_set(callback, None)
    llama_cpp.llama_backend_init()
    return llama_cpp


@contextmanager
def signals_later() -> Iterator[None]:
    """Put off Ctrl-C and SIGTERM until a call into llama.cpp that logs is over.

    The log callback is Python: a signal handler that runs inside it raises where nobody can catch it, and is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    came: list[int] = []
    before = {number: signal.signal(number, lambda n, _: came.append(n)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for missed in came:
            signal.raise_signal(missed)


def last_log() -> str:
    """The last thing llama.cpp complained about, or an empty text."""
    return _log[-1] if _log else ""


def forget_log() -> None:
    _log.clear()


def can_use_gpu() -> bool:
    return bool(library().llama_supports_gpu_offload())


class NativeModel:
    """The weights and the vocabulary.

    Raises:
        ModelError: llama.cpp refuses the file.
    """

    def __init__(self, path: Path, *, gpu_layers: int) -> None:
        self._lib = lib = library()
        self.on_gpu = gpu_layers != 0 and can_use_gpu()
        parameters = lib.llama_model_default_params()
        parameters.n_gpu_layers = gpu_layers
        forget_log()
        with signals_later():
            self.pointer = lib.llama_model_load_from_file(os.fsencode(path), parameters)
        if not self.pointer:
            reason = last_log() or _("no reason given")
            raise ModelError(
                _(
                    "llama.cpp cannot load {path}: {reason}. The file may need a newer "
                    "llama-cpp-python, or be damaged: update, download it again, or name "
                    "another model.",
                    path=path,
                    reason=reason,
                )
            )
        self.vocab = self._vocab = lib.llama_model_get_vocab(self.pointer)
        self.n_vocab = int(lib.llama_vocab_n_tokens(self._vocab))
        self.trained_context = int(lib.llama_model_n_ctx_train(self.pointer))
        self.parameters = int(lib.llama_model_n_params(self.pointer))
        self.bos = int(lib.llama_vocab_bos(self._vocab))
        self.eos = int(lib.llama_vocab_eos(self._vocab))
        self.adds_bos = bool(lib.llama_vocab_get_add_bos(self._vocab))
        self._pieces: dict[int, bytes] = {}
        self._ends: dict[int, bool] = {}

    def chat_template(self) -> str | None:
        source = self._lib.llama_model_chat_template(self.pointer, None)
        return None if source is None else source.decode("utf-8", "replace")

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        data = text.encode("utf-8", "replace")
        room = len(data) + 16
        while True:
            tokens = (ctypes.c_int32 * room)()
            count = self._lib.llama_tokenize(self._vocab, data, len(data), tokens, room, False, special)
            if count >= 0:
                return list(tokens[:count])
            room = -count

    def detokenize(self, token_ids: Sequence[int]) -> str:
        tokens = (ctypes.c_int32 * len(token_ids))(*token_ids)
        room = 8 * len(token_ids) + 16
        while True:
            buffer = ctypes.create_string_buffer(room)
            count = self._lib.llama_detokenize(self._vocab, tokens, len(token_ids), buffer, room, False, False)
            if count >= 0:
                return buffer.raw[:count].decode("utf-8", "replace")
            room = -count

    def piece(self, token: int) -> bytes:
        """The bytes a token adds to a text: nothing for a control token."""
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._to_piece(token)
        return known

    def _to_piece(self, token: int) -> bytes:
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            count = self._lib.llama_token_to_piece(self._vocab, token, buffer, room, 0, False)
            if count >= 0:
                return buffer.raw[:count]
            room = -count

    def token_text(self, token: int) -> str:
        """How a token is spelt in the vocabulary, control tokens included; empty for -1."""
        if token < 0:
            return ""
        text = self._lib.llama_vocab_get_text(self._vocab, token)
        return (text or b"").decode("utf-8", "replace")

    def is_eog(self, token: int) -> bool:
        known = self._ends.get(token)
        if known is None:
            known = self._ends[token] = bool(self._lib.llama_vocab_is_eog(self._vocab, token))
        return known

    def is_control(self, token: int) -> bool:
        return bool(self._lib.llama_vocab_is_control(self._vocab, token))

    def load_adapter(self, path: Path) -> int:
        """Load a GGUF LoRA; it is freed with the model. Returns its address.

        Raises:
            AdapterError: llama.cpp refuses it.
        """
        forget_log()
        with signals_later():
            adapter = self._lib.llama_adapter_lora_init(self.pointer, os.fsencode(path))
        address = ctypes.cast(adapter, ctypes.c_void_p).value if adapter else None
        if address is None:
            reason = last_log() or _("no reason given")
            raise AdapterError(
                _(
                    "The adapter {path} does not fit the model: {reason}. Use the model it was "
                    "made for, or another adapter.",
                    path=path,
                    reason=reason,
                )
            )
        return address

    def close(self) -> None:
        if self.pointer:
            self._lib.llama_model_free(self.pointer)
            self.pointer = None


class NativeContext:
    """A KV cache and what computes with it.

    Args:
        context: tokens the cache holds, all sequences together.
        batch: most tokens of one `decode`.
        sequences: how many sequences it holds; they share the cache.
        threads: says how many to compute with; asked before each `decode`.
        outputs: most rows of logits of one `decode`.
        stop: breaks off a `decode` when it is set.
        fused: on a CPU, attention in one kernel, which passes over other sequences' cells; it rounds differently.

    Raises:
        EngineError: there is not enough memory.
    """

    def __init__(
        self,
        model: NativeModel,
        *,
        context: int,
        batch: int,
        threads: Threads,
        sequences: int = 1,
        outputs: int = 1,
        stop: StopFlag | None = None,
        fused: bool = False,
    ) -> None:
        self._lib = lib = library()
        self._row = ctypes.c_float * model.n_vocab
        self.batch = batch
        parameters = lib.llama_context_default_params()
        parameters.n_ctx = context
        parameters.n_batch = parameters.n_ubatch = batch
        parameters.n_seq_max = sequences
        parameters.n_outputs_max = outputs
        self._threads = threads
        self._parameters = model.parameters
        self._computing_with = threads.now()
        parameters.n_threads = threads.for_one_token(model.parameters)
        parameters.n_threads_batch = self._computing_with
        parameters.kv_unified = True
        parameters.no_perf = True
        self._stop = stop
        if stop is not None:
            stop.give_to(parameters, lib.ggml_abort_callback)
        if not model.on_gpu and not fused:
            # On a CPU, attention without the fused kernel gives the same bits for every batch of two tokens or more, so
            # what is computed does not depend on how a prompt was cut up; it is also a little quicker.
            parameters.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
        forget_log()
        with signals_later():
            self.pointer = lib.llama_init_from_model(model.pointer, parameters)
        if not self.pointer:
            raise EngineError(
                _(
                    "There is not enough memory for a context of {context} tokens ({reason}). "
                    "Close other programs, or set a smaller model.context.",
                    context=context,
                    reason=last_log() or _("no reason given"),
                )
            )
        self._memory = lib.llama_get_memory(self.pointer)
        self._applied: Adapters = ()
        self._tokens = np.zeros(batch, np.int32)
        self._positions = np.zeros(batch, np.int32)
        self._sequences = np.zeros(batch, np.int32)
        self._counts = np.ones(batch, np.int32)
        self._outputs = np.zeros(batch, np.int8)
        int32 = ctypes.POINTER(ctypes.c_int32)
        base = self._sequences.ctypes.data
        self._rows = (int32 * batch)(*(ctypes.cast(base + 4 * n, int32) for n in range(batch)))
        self._batch = lib.llama_batch(
            0,
            self._tokens.ctypes.data_as(int32),
            None,
            self._positions.ctypes.data_as(int32),
            self._counts.ctypes.data_as(int32),
            self._rows,
            self._outputs.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
        )

    def decode(
        self,
        tokens: Sequence[int] | Ints,
        positions: int | Sequence[int] | Ints,
        sequences: int | Sequence[int] | Ints = 0,
        outputs: Sequence[int] | Ints | slice = (),
    ) -> None:
        """Compute tokens [n] at positions [n] (or from one position on) of sequences [n] (or one sequence).

        `outputs` names the batch places whose logits are wanted.

        Raises:
            EngineError: llama.cpp failed. Stopped: the flag was set; some of the tokens may be in the cache.
        """
        threads = self._threads.now()
        if threads != self._computing_with:
            one = self._threads.for_one_token(self._parameters)
            self._lib.llama_set_n_threads(self.pointer, one, threads)
            self._computing_with = threads
        n = len(tokens)
        self._tokens[:n] = tokens
        self._positions[:n] = np.arange(positions, positions + n) if isinstance(positions, int) else positions
        self._sequences[:n] = sequences
        self._outputs[:n] = 0
        self._outputs[outputs if isinstance(outputs, slice) else list(outputs)] = 1
        self._batch.n_tokens = n
        status = self._lib.llama_decode(self.pointer, self._batch)
        if status == _STOPPED:
            raise Stopped
        if status != 0:
            self.clear()
            why = _("its context is full") if status == 1 else last_log() or f"status {status}"
            raise EngineError(
                _("The engine failed while it computed ({why}). Try again, or restart claw-local.", why=why)
            )

    def logits(self, place: int) -> Logits:
        """[V] logits of one batch place of the last `decode`: a view that the next one overwrites."""
        row = self._lib.llama_get_logits_ith(self.pointer, place)
        if not row:
            raise EngineError(_("The engine gave no result for a token. Try again, or restart claw-local."))
        return np.frombuffer(memoryview(self._row.from_address(ctypes.addressof(row.contents))), np.float32)

    def remove(self, sequence: int, start: int) -> bool:
        """Forget a sequence's tokens from position `start` on; False if this kind of model cannot forget a part."""
        return bool(self._lib.llama_memory_seq_rm(self._memory, sequence, start, -1))

    def copy(self, source: int, target: int) -> None:
        self._lib.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def save(self, sequence: int) -> State | None:
        """A copy of a sequence's KV cache; None if there is not enough memory, or this kind of model has none."""
        size = int(self._lib.llama_state_seq_get_size(self.pointer, sequence))
        try:
            # Pages of its own, which the system has back at once: in the heap, thousands that come and go leave holes.
            state = np.frombuffer(mmap.mmap(-1, max(1, size)), np.uint8, size)
        except (MemoryError, OSError):
            return None
        written = self._lib.llama_state_seq_get_data(self.pointer, self._bytes(state), size, sequence)
        return state if 0 < written == size else None

    def restore(self, sequence: int, state: State) -> bool:
        """Put a saved KV cache into an empty sequence; False if llama.cpp finds no place for it."""
        read = self._lib.llama_state_seq_set_data(self.pointer, self._bytes(state), len(state), sequence)
        if not read:
            self.remove(sequence, 0)
        return bool(read)

    @staticmethod
    def _bytes(state: State) -> Any:
        return state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))

    def clear(self) -> None:
        self._lib.llama_memory_clear(self._memory, False)

    @property
    def applied(self) -> Adapters:
        """The LoRAs that are set."""
        return self._applied

    def apply(self, adapters: Adapters) -> bool:
        """Set exactly these LoRAs. Returns whether that changed anything (then the KV cache is stale).

        Raises:
            AdapterError: llama.cpp refuses them.
        """
        if adapters == self._applied:
            return False
        pointer = self._lib.llama_adapter_lora_p_ctypes
        addresses = (pointer * len(adapters))(*(ctypes.cast(address, pointer) for address, _ in adapters))
        scales = (ctypes.c_float * len(adapters))(*(scale for _, scale in adapters))
        if self._lib.llama_set_adapters_lora(self.pointer, addresses, len(adapters), scales) != 0:
            raise AdapterError(
                _(
                    "The adapter cannot be applied: {reason}. Use another one.",
                    reason=last_log() or _("no reason given"),
                )
            )
        self._applied = adapters
        return True

    def close(self) -> None:
        if self.pointer:
            self._lib.llama_free(self.pointer)
            self.pointer = None
