"""The processes of a run beside the first one: each builds the same trainer and takes every step along with it.

It must never know the store, chats, or what an answer is worth: samples come from the first process.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from claw_local.engine.models import model_sha256
from claw_local.errors import LearnError
from claw_local.settings import LearningSettings

from . import checkpoint
from .batches import Sample
from .device import PROCESSOR, Place
from .economy import Economy, hold_of
from .policy import Policy
from .ranks import Ranks
from .step import Objective, Trainer
from .weights import load_base


@dataclass(frozen=True)
class Begin:
    """All that a process needs to take the same steps as the first one.

    Attributes:
        model, sha256: the model's file where the first process runs, and its hash.
        parent: files of the PEFT folder that is trained further, by name; empty without one.
        economy: how hard memory is saved.
        weights: the LoRA and the optimiser, as `checkpoint.weights_of` gives them.
    """

    model: Path
    sha256: str
    learning: LearningSettings
    threads: int
    parent: dict[str, bytes]
    economy: int
    weights: dict[str, torch.Tensor] = field(default_factory=dict)


def build(
    model: Path,
    learning: LearningSettings,
    economy: Economy,
    parent: Path | None,
    ranks: Ranks | None = None,
    place: Place = PROCESSOR,
) -> Trainer:
    """A fresh trainer on a model's file, saving memory as hard as it must, that computes at `place`.

    Raises:
        ModelError: the file cannot be trained on. AdapterError: the parent does not fit it.
    """
    base = load_base(model, precision="bf16" if learning.precision == "bf16" else "fp32", hold=economy.hold)
    policy = Policy(
        place.put(base),
        rank=learning.rank,
        alpha=learning.alpha,
        seed=learning.seed,
        parent=parent,
    )
    policy.computing = place.computing
    policy.packed_tokens, policy.chunk_rows = economy.packed_tokens, economy.chunk_rows
    if economy.recomputes:
        policy.checkpoint_gradients()
    objective = Objective(
        method=learning.method,
        top_k=learning.top_k,
        w_rl=learning.w_rl,
        w_opd=learning.w_opd,
        clip_low=learning.clip_low,
        clip_high=learning.clip_high,
        kl_base=learning.kl_base,
        importance_cap=learning.importance_cap,
        opd_only=learning.opd_only,
    )
    return Trainer(
        policy,
        objective,
        learning_rate=learning.learning_rate,
        max_norm=learning.max_norm,
        micro_tokens=economy.micro_tokens,
        ranks=ranks,
    )


def read_parent(folder: Path | None) -> dict[str, bytes]:
    """The files of a parent's PEFT folder, as `Begin` takes them."""
    if folder is None:
        return {}
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


def begin(ranks: Ranks, trainer: Trainer, word: Begin) -> None:
    """Tell the other processes where the first one stands, before its first step."""
    if ranks.count > 1:
        ranks.tell(replace(word, weights=checkpoint.weights_of(trainer)))


def follow(ranks: Ranks, model: Path | None = None) -> None:
    """Take part in a run until the first process says that it is over.

    Args:
        model: the model's file on this machine; None: where the first process has it.

    Raises:
        LearnError: it is another model than that of the first process.
    """
    trainer: Trainer | None = None
    while (word := ranks.tell()) is not None:
        if isinstance(word, Begin):
            trainer = None  # Its memory first.
            trainer = _begun(word, ranks, model)
        elif trainer is not None:
            _step(trainer, word)


def _step(trainer: Trainer, samples: Sequence[Sample]) -> None:
    """A step that fails is said by the first process, which decides what comes next."""
    try:
        trainer.step(samples)
    except (LearnError, MemoryError, torch.OutOfMemoryError) as error:
        error.__traceback__ = None
    except RuntimeError as error:
        error.__traceback__ = None


def _begun(word: Begin, ranks: Ranks, model: Path | None) -> Trainer:
    torch.set_num_threads(word.threads)
    file = model or word.model
    if model_sha256(file, None) != word.sha256:
        raise LearnError(f"{file} is not the model that the first process learns with. Name the same file.")
    folder = Path(tempfile.mkdtemp(prefix="claw-parent-"))
    try:
        for name, content in word.parent.items():
            (folder / Path(name).name).write_bytes(content)
        economy = Economy(word.economy, 0, lambda level, why: None, hold=hold_of(word.learning))
        trainer = build(file, word.learning, economy, folder if word.parent else None, ranks)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    checkpoint.put_weights(trainer, word.weights)
    return trainer
