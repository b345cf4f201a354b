"""What all engines behind a server have in common: a reply that streams in, can be cut, and ends in words.

It must never know a server's API: each engine reads its own.
"""

from __future__ import annotations

import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from ..language import _
from ._line import Line
from ._text import StreamText
from .base import Generation, Message, ModelInfo, Prompt, Sampling
from .estimate import fit

LONGEST_WORDS = 300


@dataclass(frozen=True)
class ServedModel:
    """A model that a server offers, in the server's own words; 0 and "" where it says nothing."""

    name: str
    size_bytes: int = 0
    parameters: str = ""
    quantisation: str = ""
    context: int = 0


class ServedEngine(ABC):
    """A model behind a server; implements `ChatEngine`. Replies may run side by side: the server orders them."""

    def __init__(self, info: ModelInfo) -> None:
        self._info = info

    @property
    def info(self) -> ModelInfo:
        return self._info

    def render(self, messages: Sequence[Message], *, reserve: int = 0) -> Prompt:
        """What to send; see `ChatEngine.render`. At most half of the context is reserved."""
        return fit(messages, self._info.context - min(max(1, reserve), self._info.context // 2))

    def generate(
        self, prompt: Prompt, sampling: Sampling, *, cancel: threading.Event | None = None
    ) -> tuple[Generation, Iterator[str]]:
        """Begin a reply; see `ChatEngine.generate`. Nothing is sent before the iterator is read.

        The iterator raises EngineError (the server is missing, refuses or breaks off) or ModelError (no such model).
        """
        seed = secrets.randbelow(2**31) if sampling.seed is None else sampling.seed
        generation = Generation((), sampling, dropped=prompt.dropped, seed=seed)
        return generation, self._stream(generation, prompt.messages, cancel, time.perf_counter())

    def _stream(
        self, generation: Generation, messages: Sequence[Message], cancel: threading.Event | None, started: float
    ) -> Generator[str, None, None]:
        line, text = Line(), StreamText(generation.sampling.stop)
        ended = False
        try:
            with line.cut_when(cancel), closing(self._read(generation, messages, line)) as chunks:
                try:
                    for chunk in chunks:
                        if not chunk or line.was_cut:
                            continue
                        generation.first_token_s = generation.first_token_s or time.perf_counter() - started
                        if piece := text.push(chunk.replace("\0", "").encode("utf-8", "replace")):
                            generation.text += piece
                            yield piece
                        if text.stopped:
                            generation.finish_reason = "stop"
                            break
                        if cancel is not None and cancel.is_set():
                            line.cut()
                except Exception:
                    if not line.was_cut:
                        raise
            ended = not line.was_cut
            if rest := text.finish():
                generation.text += rest
                yield rest
        finally:
            if not ended:
                generation.finish_reason = "cancelled"
            generation.total_s = time.perf_counter() - started

    @abstractmethod
    def _read(self, generation: Generation, messages: Sequence[Message], line: Line) -> Generator[str, None, None]:
        """Ask the server over `line`, and give out its text as it comes; note finish_reason and what was counted."""

    def close(self) -> None:  # noqa: B027 (there is nothing to do, and no engine does more)
        """Nothing is held between replies: each has a connection of its own."""


def in_words(said: object) -> str:
    """What a server said, on one line, short, and harmless on a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(said)).split())
    return line if len(line) <= LONGEST_WORDS else line[: LONGEST_WORDS - 1] + "…"


def offered(names: Sequence[str]) -> str:
    """The models a server has, as the end of a sentence."""
    if not names:
        return _("It has no models yet.")
    shown = ", ".join(in_words(name) for name in names[:12])
    return _("It has: {names} and more.", names=shown) if len(names) > 12 else _("It has: {names}.", names=shown)
