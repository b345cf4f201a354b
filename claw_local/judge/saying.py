"""One answer of a given shape from whatever model judges: in this process or behind a server. It must never read it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ..engine.base import Cancelled, ChatEngine, Message, ShapedSampling, has_tokens
from .deadline import within

TIMEOUT_S = 60.0
LONGEST = 240
"""Tokens of an answer: a verdict and three short sentences, in any language."""


def say(
    engine: ChatEngine,
    messages: Sequence[Message],
    shape: str,
    *,
    temperature: float = 0.0,
    seed: int = 1,
    timeout_s: float = TIMEOUT_S,
    cancel: threading.Event | None = None,
) -> str:
    """The model's answer; a model in this process writes it as the judge, beside the chat.

    Args:
        shape: JSON Schema of the answer. A server may not heed it.
        temperature: 0 takes the likeliest words.

    Raises:
        Cancelled: `cancel` was set. JudgeError: it took too long. EngineError, ModelError: the model or server failed.
    """
    sampling = ShapedSampling(
        max_tokens=LONGEST, temperature=temperature, top_p=0.95, repeat_penalty=1.0, seed=seed, schema=shape
    )
    with within(timeout_s, cancel, engine) as deadline:
        prompt = engine.render(messages, reserve=LONGEST)
        if has_tokens(engine):
            return engine.generate_aside(prompt, sampling, cancel=deadline).text
        generation, pieces = engine.generate(prompt, sampling, cancel=deadline)
        for _ in pieces:
            pass
        if generation.finish_reason == "cancelled":
            raise Cancelled
        return generation.text
