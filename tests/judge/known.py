"""An engine whose numbers are known: no model gives logits that can be worked out by hand. It computes nothing.

Words are its tokens. What it is asked is kept, as text, with whatever may stop it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from claw_local.engine.base import Cancelled, Message, ModelInfo

Logits = Callable[[str], Mapping[str, float]]
"""What each next word gets after a text; all others get `OTHERS`."""
OTHERS = -1e9


@dataclass
class Known:
    """Implements what judging needs of `Engine`. `says`: what it writes. `others`: logit of every other word."""

    logits: Logits = lambda text: {}
    says: str = ""
    sha256: str = "c0ffee"
    parameters: int = 10**9
    others: float = OTHERS
    finish_reason: str = "stop"
    replying: bool = False
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    written: list[tuple[Sequence[Message], int, Any, Any]] = field(default_factory=list)
    judge_adapters: Any = None
    _words: dict[str, int] = field(default_factory=dict)

    @property
    def info(self) -> ModelInfo:
        return ModelInfo("known", Path("known.gguf"), self.sha256, "none", self.parameters, 4096)

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        return [self._words.setdefault(word, len(self._words)) for word in re.findall(r"\s?\S+|\s+", text)]

    def text(self, token_ids: Sequence[int]) -> str:
        words = list(self._words)
        return "".join(words[token] for token in token_ids)

    def next_logits(
        self, prefix: Sequence[int], suffix: Sequence[int], *, cancel: threading.Event | None = None
    ) -> np.ndarray[Any, Any]:
        self.asked.append((self.text(prefix), self.text(suffix), cancel))
        if cancel is not None and cancel.is_set():
            raise Cancelled
        wanted = self.logits(self.text([*prefix, *suffix]))
        for word in wanted:
            self.tokenize(word)
        return np.array([wanted.get(word, self.others) for word in self._words], dtype=np.float32)

    def set_judge_adapters(self, slots: Any) -> None:
        self.judge_adapters = slots

    def render(self, messages: Sequence[Message], *, reserve: int = 0) -> Any:
        return messages, reserve

    def generate_aside(self, prompt: Any, sampling: Any, *, cancel: threading.Event | None = None) -> Any:
        self.written.append((*prompt, sampling, cancel))
        if cancel is not None and cancel.is_set():
            raise Cancelled
        return Answer(self.says, self.finish_reason)

    def generate(
        self, prompt: Any, sampling: Any, *, cancel: threading.Event | None = None
    ) -> tuple[Any, Iterator[str]]:
        self.written.append((*prompt, sampling, cancel))
        answer = Answer("", self.finish_reason)

        def pieces() -> Iterator[str]:
            for piece in self.says.split(" "):
                answer.text += f" {piece}"
                yield piece

        return answer, pieces()


@dataclass
class Answer:
    """What stands for a `Generation`: its text grows while its pieces are taken."""

    text: str
    finish_reason: str
