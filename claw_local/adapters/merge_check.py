"""How far a merged model is from the model with its adapters, in log-probabilities. It must never write a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.base import AdapterSlot, Engine, Message, Sampling
from ..errors import AdapterError
from ..language import _
from ..settings import ModelSettings
from .measuring import shipped_prompts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..engine.llama_cpp import LlamaCppEngine

    Array = npt.NDArray[np.float32]

QUESTIONS = 4
REPLY_TOKENS = 32
CONTEXT = 1024
FAR = 0.5
"""Share of the adapters' effect below which a merged model says little of what was learned."""


@dataclass(frozen=True)
class Distance:
    """Log-probabilities of the same tokens (replies of the model with its adapters), in nats.

    Attributes:
        tokens: how many were compared.
        mean, largest: of |log p of the merged model - log p of the model with the adapters|.
        adapters: mean of |log p with the adapters - log p without|: what they do at all.
        kept: share of that which the merged model does too: the slope of one difference over the other; 1 is all.
    """

    tokens: int
    mean: float
    largest: float
    adapters: float
    kept: float

    def sentence(self) -> str:
        words = _(
            "Log-probabilities of {tokens} tokens: {mean:.3f} nats from the model with its adapters on average, "
            "{largest:.2f} at most; {kept:.0%} of what the adapters change came through.",
            tokens=self.tokens,
            mean=self.mean,
            largest=self.largest,
            kept=self.kept,
        )
        if self.kept < FAR:
            words += " " + _("That is little: add --quant q8_0 (or f16) for a larger file that keeps more of it.")
        return words


def measure(
    base: Path, adapters: Sequence[AdapterSlot], merged: Path, report: Callable[[str, float], None]
) -> Distance:
    """Let the model with its adapters answer shipped questions, and compare what each thinks of the answers.

    Raises:
        AdapterError: the merged model's log-probabilities are not finite.
        ModelError, EngineError: a model cannot be loaded.
    """
    import numpy as np

    report(_("checking: the model with its adapters"), 0.8)
    with _opened(base) as engine:
        engine.set_adapters(adapters)
        prompts = [engine.render([Message("user", text)]).token_ids for text in shipped_prompts("neutral")[:QUESTIONS]]
        greedy = Sampling(max_tokens=REPLY_TOKENS, temperature=0.0, repeat_penalty=1.0, seed=0)
        replies = [tuple(answer.response_ids) for answer in engine.generate_many(prompts, greedy)]
        texts = [(prompt, reply) for prompt, reply in zip(prompts, replies, strict=True) if reply]
        wanted = logprobs(engine, texts)
        engine.set_adapters([])
        plain = logprobs(engine, texts)
    report(_("checking: the merged model"), 0.9)
    with _opened(merged) as engine:
        found = logprobs(engine, texts)
    if not np.isfinite(found).all():
        raise AdapterError(
            _("The merged model computes nothing that is finite. Merge with --quant f16, or not at all.")
        )
    effect = wanted - plain
    whole = float((effect**2).sum())
    return Distance(
        tokens=len(found),
        mean=float(np.abs(found - wanted).mean()),
        largest=float(np.abs(found - wanted).max()),
        adapters=float(np.abs(effect).mean()),
        kept=float(((found - plain) * effect).sum()) / whole if whole > 0 else 1.0,
    )


def logprobs(engine: Engine, texts: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Array:
    """[all reply tokens] log-probabilities, in nats, of each reply after its prompt, adapters as they are set."""
    import numpy as np

    found = [np.zeros(0, np.float32)]
    for prompt, reply in texts:
        logits = engine.logits([*prompt, *reply], start=len(prompt) - 1)[:-1]  # [R, V]
        top = logits.max(1)
        total = top + np.log(np.exp(logits - top[:, None]).sum(1))
        found.append((logits[np.arange(len(reply)), list(reply)] - total).astype(np.float32))
    return np.concatenate(found)


def _opened(path: Path) -> LlamaCppEngine:
    from ..engine.llama_cpp import LlamaCppEngine

    return LlamaCppEngine.open(path, ModelSettings(context=CONTEXT), cache_dir=None)
