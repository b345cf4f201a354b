"""One reply being written: draws its tokens, turns them into text, and sees when it ends.

It must never know where its logits come from.
"""

from __future__ import annotations

import time

from ._late_grammar import LateGrammar
from ._native import NativeModel, library
from ._sampler import Sampler, grammar_text
from ._text import StreamText
from .base import FinishReason, FormedSampling, Generation, Logits


class Writing:
    """Fills a `Generation`.

    Args:
        limit: longest prompt plus reply, in tokens.
        started: time.perf_counter() at the call.

    Attributes:
        done: no more tokens are wanted.
    """

    def __init__(self, generation: Generation, model: NativeModel, *, limit: int, started: float) -> None:
        self.generation = generation
        self.done = False
        self._model = model
        self._started = started
        sampling = generation.sampling
        self._alternatives = sampling.alternatives if isinstance(sampling, FormedSampling) else -1
        self._most = min(max(1, sampling.max_tokens), limit - len(generation.prompt_ids))
        self._text = StreamText(sampling.stop)
        self._sampler = Sampler(model.n_vocab, sampling, generation.seed, vocab=model.vocab)
        self._late: LateGrammar | None = None
        if isinstance(sampling, FormedSampling) and sampling.triggers:
            self._late = LateGrammar(library(), model, grammar_text(sampling), sampling.triggers)

    def accept(self, logits: Logits) -> str:
        """Draw the next token from logits [V]; returns the text that became certain, which may be empty."""
        generation = self.generation
        token, logprob = self._sampler.draw(logits)
        generation.response_ids.append(token)
        generation.logprobs.append(logprob)
        if self._alternatives >= 0:
            generation.noted.append(self._sampler.note(logits, token, self._alternatives))
        if len(generation.response_ids) == 1:
            generation.first_token_s = time.perf_counter() - self._started
        if self._model.is_eog(token):
            return self.end("stop")
        piece = self._text.push(self._model.piece(token))
        generation.text += piece
        if self._late is not None and (grammar := self._late.after(generation.text)) is not None:
            self._sampler.keep_to(grammar)
        if self._text.stopped:
            self.end("stop")
        elif len(generation.response_ids) >= self._most:
            piece += self.end("length")
        return piece

    def end(self, reason: FinishReason) -> str:
        """Finish; returns text held back as the possible beginning of a stop string. Only the first call counts."""
        if self.done:
            return ""
        self.done = True
        rest = self._text.finish()
        self.generation.text += rest
        self.generation.finish_reason = reason
        self.generation.total_s = time.perf_counter() - self._started
        self._sampler.close()
        return rest
