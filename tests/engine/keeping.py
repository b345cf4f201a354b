"""Whether a text keeps to a grammar, by llama.cpp's own word: with a vocabulary alone, no weights."""

from __future__ import annotations

import ctypes
import math
import os
from pathlib import Path
from typing import Any

from claw_local.engine._native import library


class Keeping:
    """The vocabulary of a model file."""

    def __init__(self, path: Path) -> None:
        self._lib = lib = library()
        parameters = lib.llama_model_default_params()
        parameters.vocab_only = True
        self._model = lib.llama_model_load_from_file(os.fsencode(path), parameters)
        self._vocab = lib.llama_model_get_vocab(self._model)
        self._end = lib.llama_vocab_eos(self._vocab)

    def close(self) -> None:
        self._lib.llama_model_free(self._model)

    def accepts(self, grammar: str, text: str) -> bool:
        """Whether the whole text keeps to the grammar."""
        sampler = self._lib.llama_sampler_init_grammar(self._vocab, grammar.encode(), b"root")
        assert sampler, f"llama.cpp refuses {grammar}"
        try:
            for token in self._tokens(text):
                if not self._takes(sampler, token):
                    return False
                self._lib.llama_sampler_accept(sampler, token)
            return self._takes(sampler, self._end)
        finally:
            self._lib.llama_sampler_free(sampler)

    def _tokens(self, text: str) -> list[int]:
        data = text.encode()
        tokens = (ctypes.c_int32 * (len(data) + 8))()
        count = self._lib.llama_tokenize(self._vocab, data, len(data), tokens, len(tokens), False, False)
        return list(tokens[:count])

    def _takes(self, sampler: Any, token: int) -> bool:
        one = self._lib.llama_token_data(id=token, logit=0.0, p=0.0)
        array = self._lib.llama_token_data_array(data=ctypes.pointer(one), size=1, selected=-1, sorted=False)
        self._lib.llama_sampler_apply(sampler, ctypes.byref(array))
        return array.size == 1 and not math.isinf(array.data[0].logit)
