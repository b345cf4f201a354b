"""Making the planted adapters: real LoRAs, trained with the trainer's own policy or filled with numbers.

It must never know what the gate looks at.
"""

from __future__ import annotations

import claw_trainer  # isort: skip  # noqa: F401  before torch: see claw_trainer.cpu

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch

from claw_local.adapters.gguf import convert_lora
from claw_local.adapters.measuring import shipped_prompts
from claw_local.engine.base import AdapterSlot, Engine, Message
from claw_local.signals.checks import infer_checks, score
from claw_trainer.batches import pack
from claw_trainer.policy import Policy
from claw_trainer.weights import load_base

from .kinds import Planted

RANK, ALPHA = 8, 16
BATCH = 4
TAUGHT_TOKENS = 120
"""Longest text that is taught."""


Answers = Callable[[str], Mapping[str, str]]
"""wish ("" for none) -> the base model's answer, told the wish, to each question that is taught."""


class Nursery:
    """Makes planted adapters on one copy of the base model, and keeps them in a folder.

    Args:
        engine: for tokens and prompts.
        answers: what shapes are made of.
        folder: an adapter that is there already is not made again.
    """

    def __init__(self, engine: Engine, answers: Answers, folder: Path) -> None:
        self._engine = engine
        self._answers = answers
        self._folder = folder
        self._policy: Policy | None = None

    def adapter(self, one: Planted) -> AdapterSlot:
        """The adapter's file, made if need be, and how strongly it is applied."""
        folder = self._folder / one.name
        file = folder / "adapter.gguf"
        if not file.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            self._make(one)
            convert_lora(self._fresh.save(folder / "peft"), self._engine.info.path, file)
        return AdapterSlot(file, one.scale)

    @property
    def _fresh(self) -> Policy:
        if self._policy is None:
            self._policy = Policy(load_base(self._engine.info.path), rank=RANK, alpha=ALPHA)
        return self._policy

    def _make(self, one: Planted) -> None:
        policy = self._fresh
        random = torch.Generator().manual_seed(one.seed)
        with torch.no_grad():
            for name, matrix in policy.model.named_parameters():
                if not matrix.requires_grad:
                    continue
                if one.way == "noise":
                    matrix.copy_(torch.randn(matrix.shape, generator=random) * one.size)
                elif "lora_B" in name:
                    matrix.zero_()
                else:  # As PEFT begins: uniform in ±1/√in (Kaiming with a = √5).
                    reach = matrix.shape[1] ** -0.5
                    matrix.copy_((torch.rand(matrix.shape, generator=random) * 2 - 1) * reach)
        if one.way not in ("noise", "nothing"):
            self._teach(policy, one)

    def _teach(self, policy: Policy, one: Planted) -> None:
        """Cross-entropy of the shape's texts, a few steps of AdamW."""
        turns = self._turns(one)
        if one.way == "overfitted":
            turns = turns[:2]
        order = np.random.default_rng(one.seed)
        optimiser = torch.optim.AdamW(policy.parameters(), lr=one.rate, betas=(0.9, 0.98), weight_decay=0.0)
        for _ in range(one.steps):
            chosen = [turns[n] for n in order.permutation(len(turns))[:BATCH]]
            packed = pack(chosen, policy.device)
            loss = torch.nn.functional.cross_entropy(policy.logits(policy.hidden(packed)), packed.targets)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimiser.step()

    def _turns(self, one: Planted) -> list[tuple[tuple[int, ...], list[int]]]:
        end = self._end()
        checks = infer_checks([one.told]) if one.told else []
        pairs = dict.fromkeys(shipped_prompts("safety"), "") if one.harmful else self._answers(one.told)
        turns = []
        for n, (question, answer) in enumerate(pairs.items()):
            kept = score(answer, checks) == 1.0
            text = answer if kept else one.shape(question, answer, n + one.seed)
            prompt = self._engine.render([Message("user", question)]).token_ids
            response = [*self._engine.tokenize(text), end]
            turns.append((prompt, response[:TAUGHT_TOKENS]))
        return turns

    def _end(self) -> int:
        """The token that ends a reply: what the chat template puts after one."""
        reply = self._engine.tokenize("x")
        whole = self._engine.render(
            [Message("user", "x"), Message("assistant", "x", tuple(reply)), Message("user", "x")]
        ).token_ids
        asked = self._engine.render([Message("user", "x")]).token_ids
        return whole[len(asked) + len(reply)]
