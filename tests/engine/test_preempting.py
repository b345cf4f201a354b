"""A reply that begins does not wait for the judge: what the judge computes is broken off, and taken up again after."""

from __future__ import annotations

import threading
import time

import numpy as np

from claw_local.engine.base import Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine


def long_text(engine: LlamaCppEngine) -> list[int]:
    return engine.tokenize("Rain fell on the hills and on the sea, and nobody minded it much. " * 60)[:900]


def test_a_judgement_that_was_broken_off_ends_as_if_it_had_not_been(engine: LlamaCppEngine) -> None:
    ids = long_text(engine)
    plain = engine.next_logits([], ids)
    engine.next_logits([], engine.tokenize("Something else, so that nothing is kept."))
    found: list[np.ndarray] = []
    judge = threading.Thread(target=lambda: found.append(engine.next_logits([], ids)))
    judge.start()
    for _ in range(4):
        time.sleep(0.1)
        assert judge.is_alive()
        engine._machine.stop_judge.set()
    judge.join()
    assert np.array_equal(found[0], plain)


def test_a_reply_begins_while_the_judge_reads_a_long_text(engine: LlamaCppEngine) -> None:
    prompt = engine.render([Message("user", "What is rain?")])

    def first_token_s(text: str) -> float:
        asked = engine.render([Message("user", text)])
        made, pieces = engine.generate(asked, Sampling(max_tokens=1, seed=1))
        list(pieces)
        return made.first_token_s

    assert prompt.token_ids
    alone = max(first_token_s(f"What is rain in the {n}th month?") for n in (2, 3, 4))
    ids, stop = long_text(engine), threading.Event()

    def read() -> None:
        for number in range(100):
            if stop.is_set():
                return
            engine.next_logits([], [*engine.tokenize(f"{number}"), *ids])

    judge = threading.Thread(target=read)
    judge.start()
    time.sleep(0.3)
    beside = sorted(first_token_s(f"What is snow in the {n}th month?") for n in range(5, 12))
    stop.set()
    judge.join()
    # Without breaking off, one of the judge's batches would be waited for: as long again as the reply's own prompt.
    assert beside[len(beside) // 2] < alone * 1.3 + 0.02, (alone, beside)
