"""Drawing a token from logits with llama.cpp's own samplers, and the log-probability it was drawn with.

It must never know about contexts or text.
"""

from __future__ import annotations

import ctypes
import math
import secrets
import time
from typing import Any

import numpy as np

from ..errors import EngineError
from ..language import _
from ._native import library
from .base import FormedSampling, Logits, Noted, Sampling, ShapedSampling
from .grammar import ShapeError, grammar_of

PENALTY_WINDOW = 64
"""The repeat penalty looks at this many last tokens *of the reply*. The prompt does not count: it is full of the
template's control tokens, and a penalty on those keeps the model from ending its turn."""

SLOWEST_S = 3.0
"""Longest that one token may take to draw under a grammar, in seconds of the processor's: others wait meanwhile."""
_CANDIDATE = np.dtype([("id", "<i4"), ("logit", "<f4"), ("p", "<f4")])
_RANDOM = 0xFFFFFFFF
"""llama.cpp takes this seed for "any"; no fixed seed may become it."""


def fresh_seed() -> int:
    return secrets.randbelow(_RANDOM)


def as_seed(seed: int) -> int:
    """Any whole number as a seed llama.cpp takes as it is."""
    return seed % _RANDOM


class Sampler:
    """A chain of samplers with its own random state, for one reply.

    Order: grammar (where the text has to have a shape), repeat penalty, top-k, top-p, min-p, temperature, draw.
    Temperature 0 takes the likeliest token after the penalty; its processed distribution is a point mass, so the
    log-probability is 0.

    Args:
        vocab: llama.cpp's vocabulary; only a grammar needs it.

    Raises:
        EngineError: the shape is not one that a grammar can be made of.
    """

    def __init__(self, n_vocab: int, sampling: Sampling, seed: int, *, vocab: Any = None) -> None:
        self._lib = lib = library()
        self._greedy = sampling.temperature <= 0
        parameters = lib.llama_sampler_chain_default_params()
        parameters.no_perf = True
        self._chain = chain = lib.llama_sampler_chain_init(parameters)
        self._late: Any = None
        self._shaped = False
        if isinstance(sampling, ShapedSampling) and (grammar := _grammar(lib, vocab, sampling)) is not None:
            if not grammar:
                lib.llama_sampler_free(chain)
                raise ShapeError("llama.cpp cannot keep to the shape that was asked for. Ask for a simpler one.")
            lib.llama_sampler_chain_add(chain, grammar)
            self._shaped = True
        if sampling.repeat_penalty != 1.0:
            penalties = lib.llama_sampler_init_penalties(n_vocab, PENALTY_WINDOW, sampling.repeat_penalty, 0.0, 0.0)
            lib.llama_sampler_chain_add(chain, penalties)
        if self._greedy:
            lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_greedy())
        else:
            if sampling.top_k > 0:
                lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_top_k(sampling.top_k))
            if sampling.top_p < 1.0:
                lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_top_p(sampling.top_p, 1))
            if sampling.min_p > 0.0:
                lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_min_p(sampling.min_p, 1))
            lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_temp(sampling.temperature))
            lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_dist(as_seed(seed)))
        self._candidates = np.zeros(n_vocab, _CANDIDATE)
        self._ids = np.arange(n_vocab, dtype=np.int32)

    def draw(self, logits: Logits) -> tuple[int, float]:
        """One token from logits [V], and its log-probability in nats under the processed distribution.

        Raises:
            ShapeError: the shape allows no token here. EngineError: the logits are not numbers (a damaged model or
                adapter).
        """
        candidates = self._candidates
        candidates["id"] = self._ids
        candidates["logit"] = logits
        array = self._lib.llama_token_data_array(
            data=ctypes.cast(candidates.ctypes.data, self._lib.llama_token_data_p),
            size=len(candidates),
            selected=-1,
            sorted=False,
        )
        began = time.thread_time()
        if self._late is not None:
            self._lib.llama_sampler_apply(self._late, ctypes.byref(array))
        self._lib.llama_sampler_apply(self._chain, ctypes.byref(array))
        chosen, kept = array.selected, array.size
        if not 0 <= chosen < kept:
            raise self._nothing_drawn(logits)
        picked = array.data[chosen]
        if not math.isfinite(picked.logit):
            raise self._nothing_drawn(logits)
        token = int(picked.id)
        logprob = 0.0
        if not self._greedy:
            # A sampler may point the array elsewhere, so it is read where it points now.
            address = ctypes.addressof(array.data.contents)
            buffer = (ctypes.c_char * (kept * _CANDIDATE.itemsize)).from_address(address)
            left = np.frombuffer(buffer, _CANDIDATE, kept)["logit"]
            logprob = float(picked.logit) - _log_sum_exp(left)
        if not math.isfinite(logprob):
            raise self._nothing_drawn(logits)
        self._lib.llama_sampler_accept(self._chain, token)
        if self._late is not None:
            self._lib.llama_sampler_accept(self._late, token)
        if (self._shaped or self._late is not None) and time.thread_time() - began > SLOWEST_S:
            raise ShapeError("The shape that was asked for leaves too many ways open at once. Ask for a simpler one.")
        return token, min(logprob, 0.0)

    def _nothing_drawn(self, logits: Logits) -> EngineError:
        if (self._shaped or self._late is not None) and np.isfinite(logits).all():
            return ShapeError("The shape that was asked for allows no text here. Ask for one that some text can have.")
        return EngineError(
            _(
                "The model computed no usable numbers. Its file or its adapter is damaged: use another adapter "
                "(`claw-local adapters use base`), or download the model again."
            )
        )

    @staticmethod
    def note(logits: Logits, token: int, most: int) -> Noted:
        """A drawn token under the model itself: logits [V] as they were computed, and the `most` likeliest tokens."""
        total = _log_sum_exp(logits)
        top: list[tuple[int, float]] = []
        if most > 0:
            likeliest = np.argpartition(logits, -most)[-most:]
            ordered = likeliest[np.argsort(logits[likeliest])[::-1]]
            top = [(int(one), float(logits[one]) - total) for one in ordered]
        return Noted(token, min(float(logits[token]) - total, 0.0), tuple(top))

    def keep_to(self, grammar: Any) -> None:
        """From the next token on keep to this grammar, too: a sampler of llama.cpp's, which is freed with this one."""
        self._late = grammar

    def close(self) -> None:
        if self._late is not None:
            self._lib.llama_sampler_free(self._late)
            self._late = None
        if self._chain:
            self._lib.llama_sampler_free(self._chain)
            self._chain = None


def _grammar(lib: Any, vocab: Any, sampling: ShapedSampling) -> Any:
    """llama.cpp's sampler that keeps to the grammar asked for from the first token on; None if none does."""
    formed = sampling if isinstance(sampling, FormedSampling) else None
    text = grammar_text(sampling)
    if not text or (formed is not None and formed.triggers):
        return None
    return lib.llama_sampler_init_grammar(vocab, text.encode(), b"root")


def grammar_text(sampling: ShapedSampling) -> str:
    """The GBNF that was asked for; "" for none. Raises ShapeError: a schema is none that a grammar can be made of."""
    if isinstance(sampling, FormedSampling) and sampling.grammar:
        return sampling.grammar
    return grammar_of(sampling.schema) if sampling.schema else ""


def _log_sum_exp(logits: Logits) -> float:
    top = logits.max()
    return float(top) + math.log(float(np.exp(logits - top).sum(dtype=np.float64)))
