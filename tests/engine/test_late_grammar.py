"""A grammar that begins in the middle of a text: what a token brings along too much must not end the process."""

from __future__ import annotations

import numpy as np
import pytest

from claw_local.engine._late_grammar import LateGrammar
from claw_local.engine._native import library
from claw_local.engine._writing import Writing
from claw_local.engine.base import FormedSampling, Generation
from claw_local.engine.llama_cpp import LlamaCppEngine

GRAMMAR = 'root ::= "{" [a-z]+ "}"'
TRIGGERS = (r"\s*(\{[\s\S]*)",)


def begun(engine: LlamaCppEngine, text: str) -> LateGrammar:
    late = LateGrammar(library(), engine._model, GRAMMAR, TRIGGERS)
    sampler = late.after(text)
    if sampler is not None:
        library().llama_sampler_free(sampler)
    late.held = sampler is not None  # type: ignore[attr-defined]
    return late


@pytest.mark.parametrize(
    ("text", "done", "held"),
    [("Hello", False, False), ("{", True, True), (" {ab", True, True), ("{}", True, False), ("{'a'", True, False)],
)
def test_it_waits_for_its_pattern_and_lets_go_of_what_breaks_it(
    engine: LlamaCppEngine, text: str, done: bool, held: bool
) -> None:
    late = begun(engine, text)
    assert (late.done, late.held) == (done, held)  # type: ignore[attr-defined]


def test_a_text_goes_on_by_the_grammar_and_one_that_broke_it_is_free(engine: LlamaCppEngine) -> None:
    model = engine._model

    def written(*texts: str) -> str:
        sampling = FormedSampling(temperature=0.0, repeat_penalty=1.0, grammar=GRAMMAR, triggers=TRIGGERS)
        generation = Generation((1,), sampling)
        writing = Writing(generation, model, limit=100, started=0.0)
        for text in texts:
            for token in model.tokenize(text, special=False):
                logits = np.zeros(model.n_vocab, np.float32)
                logits[token] = 50.0
                writing.accept(logits)
        writing.end("stop")
        return generation.text

    assert written("{", "7").startswith("{") and "7" not in written("{", "7")
    assert written("{}", "7") == "{}7"
    assert written("So", " 7") == "So 7"
