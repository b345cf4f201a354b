"""How a reply for another program is begun. It must never know what is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..adapters.registry import apply
from ..engine.base import ChatEngine, Generation, Prompt, Sampling
from ..engine.together import asked_by
from ..store import AdapterRecord

if TYPE_CHECKING:
    from ..assistant import Assistant

Write = Callable[
    [ChatEngine, Prompt, Sampling, AdapterRecord | None, str, threading.Event], tuple[Generation, Iterator[str]]
]
"""Begins a reply: engine, prompt, sampling, adapter (None: the base), who asks, what stops it -> as `generate`."""


def through_engine(assistant: Assistant) -> Write:
    """Replies in whichever order the engine writes them: one after the other, or several together."""

    def write(
        engine: ChatEngine,
        prompt: Prompt,
        sampling: Sampling,
        adapter: AdapterRecord | None,
        asker: str,
        cancel: threading.Event,
    ) -> tuple[Generation, Iterator[str]]:
        with assistant._beginning, asked_by(asker):
            apply(engine, adapter)
            return engine.generate(prompt, sampling, cancel=cancel)

    return write
