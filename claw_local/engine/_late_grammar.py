"""A grammar that begins to hold in the middle of a text. It must never know what the text is for.

llama.cpp can wait for a pattern by itself (`llama_sampler_init_grammar_lazy_patterns`), but where the token that ends
the pattern goes on with something that the grammar forbids, it throws through its C interface, which ends the whole
process: `{}` in one token is enough. So the waiting is done here, and what stands there already is tried first.
"""

from __future__ import annotations

import ctypes
import math
import re
from typing import Any, Protocol


class Vocabulary(Protocol):
    """The part of a model that text is turned into tokens with."""

    @property
    def vocab(self) -> Any: ...
    def tokenize(self, text: str, *, special: bool) -> list[int]: ...
    def piece(self, token: int) -> bytes: ...


class LateGrammar:
    """Waits for one of several patterns of a whole text so far.

    Args:
        grammar: GBNF; from the beginning of the first group of the pattern that matches first, the text keeps to it.
    """

    def __init__(self, lib: Any, model: Vocabulary, grammar: str, triggers: tuple[str, ...]) -> None:
        self._lib, self._model, self._grammar = lib, model, grammar
        self._triggers = [re.compile(trigger) for trigger in triggers]
        self.done = False

    def after(self, text: str) -> Any:
        """llama.cpp's sampler that holds from here on; None: not yet, or never.

        Where what stands there already breaks the grammar, the text is free: whoever reads it sees that it is no call.
        """
        for trigger in self._triggers:
            if not self.done and (found := trigger.fullmatch(text)):
                self.done = True
                return self._begun(found[1])
        return None

    def _begun(self, text: str) -> Any:
        sampler = self._lib.llama_sampler_init_grammar(self._model.vocab, self._grammar.encode(), b"root")
        if not sampler:
            return None
        for character in text:
            token = self._token_of(character)
            if token is None or not self._takes(sampler, token):
                self._lib.llama_sampler_free(sampler)
                return None
            self._lib.llama_sampler_accept(sampler, token)
        return sampler

    def _token_of(self, character: str) -> int | None:
        """A token that is this character and no more, however the tokenizer treats what begins a text."""
        for before in ("", "\n", "a", ")"):
            tokens = self._model.tokenize(before + character, special=False)
            if tokens and self._model.piece(tokens[-1]) == character.encode():
                return tokens[-1]
        return None

    def _takes(self, sampler: Any, token: int) -> bool:
        one = self._lib.llama_token_data(id=token, logit=0.0, p=0.0)
        array = self._lib.llama_token_data_array(data=ctypes.pointer(one), size=1, selected=-1, sorted=False)
        self._lib.llama_sampler_apply(sampler, ctypes.byref(array))
        return array.size == 1 and not math.isinf(array.data[0].logit)
