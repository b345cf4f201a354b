"""The policy: the base model with a LoRA on every linear layer of its blocks. It must never know about losses or chats.

One model serves three views. `policy` has the LoRA that is being trained, `teacher` is the same model without the new
training (the parent adapter, frozen; the base if there is none), `base` has no LoRA at all.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import torch

from claw_local.adapters.gguf import MODULES
from claw_local.errors import AdapterError
from claw_local.leftovers import aside

from .attention import ATTENTION, packed_attention
from .batches import Packed, Turn, pack, split_by_tokens, turn_tokens
from .weights import BaseModel

View = Literal["policy", "teacher", "base"]

ADAPTER, PARENT = "default", "parent"
PACKED_TOKENS = 2048
"""Tokens in one forward pass where no gradient is kept."""
CHUNK_ROWS = 256
"""Rows that reach the vocabulary projection at once: 50 MB of logits for 49,152 entries."""


class Policy:
    """A base model and its LoRA. Only the LoRA's matrices can be trained."""

    def __init__(
        self, base: BaseModel, *, rank: int = 16, alpha: int = 32, seed: int = 0, parent: Path | None = None
    ) -> None:
        """Put a LoRA on the base.

        Args:
            base: the model; it is changed in place and must not be used by anyone else.
            rank, alpha: of a new LoRA; the update is scaled by alpha / rank. A LoRA with a parent has its parent's.
            seed: of a new LoRA's A; B begins at zero, so that the policy begins as the base.
            parent: PEFT folder to continue from; the policy begins as a copy of it and the teacher stays with it.

        Raises:
            AdapterError: the parent's files are missing, damaged, or made for another model.
        """
        # bitsandbytes, which PEFT imports, warns that it found no optional kernels; no one here uses them
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
        from peft import LoraConfig, get_peft_model
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

        ALL_ATTENTION_FUNCTIONS.register(ATTENTION, packed_attention)
        causal_lm = base.model
        causal_lm.config._attn_implementation = ATTENTION
        causal_lm.config.rounds_as_served = base.served
        self.base = base
        self.packed_tokens, self.chunk_rows = PACKED_TOKENS, CHUNK_ROWS
        self.computing: Callable[[], AbstractContextManager[Any]] = nullcontext  # see `device.Place`
        self.has_parent = parent is not None
        config = (
            _parent_config(parent)
            if parent is not None
            else LoraConfig(
                r=rank,
                lora_alpha=alpha,
                target_modules=sorted(name.split(".")[1] for name in MODULES),
                lora_dropout=0.0,
                bias="none",
                task_type="CAUSAL_LM",
            )
        )
        config.inference_mode = False
        gpus = {parameter.device for parameter in causal_lm.parameters() if parameter.device.type != "cpu"}
        with torch.random.fork_rng(devices=sorted(device.index or 0 for device in gpus)):
            torch.manual_seed(seed)
            self.model: Any = get_peft_model(causal_lm, config, adapter_name=ADAPTER, autocast_adapter_dtype=True)
        if parent is not None:
            self.model.add_adapter(PARENT, config)
            for name in (ADAPTER, PARENT):
                _load_matrices(self.model, parent, name)
        self.model.eval()
        self._choose(ADAPTER)

    @property
    def device(self) -> torch.device:
        found: torch.device = next(self.model.parameters()).device
        return found

    def parameters(self) -> list[torch.nn.Parameter]:
        """The LoRA's matrices: all that is trained."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    @torch.no_grad()
    def norm(self) -> float:
        """Frobenius norm of the whole update, (Σ ‖α/r · B A‖²)^½ over the layers that have one."""
        return float(sum(self._squares()) ** 0.5)

    @torch.no_grad()
    def bound(self, most: float) -> float:
        """Shrink the update to a norm of at most `most`, the same for all layers. Returns the norm it had."""
        norm = self.norm()
        if norm > most:
            for module in self._layers():
                module.lora_B[ADAPTER].weight.mul_(most / norm)
        return norm

    def _layers(self) -> list[Any]:
        return [module for module in self.model.modules() if ADAPTER in getattr(module, "lora_B", ())]

    def _squares(self) -> Iterator[float]:
        for module in self._layers():
            a, b = module.lora_A[ADAPTER].weight.float(), module.lora_B[ADAPTER].weight.float()  # [r, in], [out, r]
            # ‖B A‖² = tr(Bᵀ B · A Aᵀ): no [out, in] matrix is made.
            yield module.scaling[ADAPTER] ** 2 * float(((b.T @ b) * (a @ a.T)).sum())

    def checkpoint_gradients(self, on: bool = True) -> None:
        """Keep only each block's input for the backward pass and compute the rest again: a third slower, far less
        memory."""
        if on:
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
        else:
            self.model.gradient_checkpointing_disable()
        # transformers checkpoints blocks in training mode only; there is no dropout that the mode could switch on
        self.model.train(on)

    @contextmanager
    def view(self, view: View) -> Iterator[None]:
        """Compute as `view` inside the block. Views other than the policy are for use without gradients."""
        if view == "policy":
            yield
        elif view == "teacher" and self.has_parent:
            self._choose(PARENT)
            try:
                yield
            finally:
                self._choose(ADAPTER)
        else:
            with self.model.disable_adapter():
                yield
            self._choose(ADAPTER)

    def _choose(self, adapter: str) -> None:
        self.model.base_model.set_adapter(adapter, inference_mode=adapter != ADAPTER)

    def hidden(self, packed: Packed) -> torch.Tensor:
        """[R, D] last hidden states, after the final norm, at the tokens that predict response tokens."""
        backbone = self.model.base_model.model.model
        with self.computing():
            states = backbone(
                input_ids=packed.token_ids[None],
                position_ids=packed.position_ids[None],
                use_cache=False,
                segments=packed.lengths,
            ).last_hidden_state  # [1, N, D]
        rows: torch.Tensor = states[0].index_select(0, packed.rows)
        return rows

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """[n, D] hidden states -> [n, V] logits, in float32. The caller keeps n small."""
        projected: torch.Tensor = self.model.base_model.model.lm_head(hidden)
        return projected.float()

    @torch.no_grad()
    def response_logits(self, view: View, turns: Sequence[Turn]) -> Iterator[tuple[int, int, torch.Tensor]]:
        """Logits at response positions, a chunk at a time, so that no [batch, length, vocabulary] ever exists.

        Yields:
            (b, t, [n, V]): logits that predict tokens t .. t + n - 1 of the response of turn b; turns in order of
            length, the chunks of one turn in order.
        """
        order = sorted(range(len(turns)), key=lambda index: turn_tokens(turns[index]))
        sizes = [turn_tokens(turns[index]) for index in order]
        for group in split_by_tokens(sizes, self.packed_tokens):
            members = [order[place] for place in group]
            packed = pack([turns[index] for index in members], self.device)
            with self.view(view):
                hidden = self.hidden(packed)  # [R, D]
            for index, states in zip(members, torch.split(hidden, list(packed.response_lengths)), strict=True):
                for start in range(0, states.shape[0], self.chunk_rows):
                    yield index, start, self.logits(states[start : start + self.chunk_rows])

    def response_logprobs(self, view: View, turns: Sequence[Turn]) -> list[torch.Tensor]:
        """For each turn [T] log-probabilities of its response tokens, in nats, without gradient."""
        found = [torch.empty(len(response)) for _, response in turns]
        for index, start, logits in self.response_logits(view, turns):
            targets = torch.tensor(turns[index][1][start : start + logits.shape[0]], device=logits.device)
            chosen = logits.gather(1, targets[:, None])[:, 0] - logits.logsumexp(1)  # [n]
            found[index][start : start + logits.shape[0]] = chosen.cpu()
        return found

    def save(self, folder: Path) -> Path:
        """Write the LoRA as PEFT does (adapter_model.safetensors, adapter_config.json), whole or not at all.

        Returns:
            `folder`; what was there before is replaced.

        Raises:
            AdapterError: the folder cannot be written.
        """
        from peft import get_peft_model_state_dict
        from safetensors.torch import save_file

        matrices = get_peft_model_state_dict(self.model, adapter_name=ADAPTER, save_embedding_layers=False)
        matrices = {name: matrix.detach().cpu().contiguous() for name, matrix in sorted(matrices.items())}
        try:
            with aside(folder) as made:
                made.mkdir(parents=True, mode=0o700)
                save_file(matrices, made / "adapter_model.safetensors", {"format": "pt"})
                (made / "adapter_config.json").write_text(self._config_text(), "utf-8")
                for file in made.iterdir():
                    file.chmod(0o600)
                    with file.open("rb+") as opened:
                        os.fsync(opened.fileno())
                if folder.exists():
                    shutil.rmtree(folder)
                os.rename(made, folder)
        except OSError as error:
            raise AdapterError(
                f"Cannot write the adapter to {folder}: {error.strerror or error}. "
                "Free some space, or make the folder writable."
            ) from error
        return folder

    def _config_text(self) -> str:
        values = self.model.peft_config[ADAPTER].to_dict()
        values["target_modules"] = sorted(values["target_modules"])
        values["inference_mode"] = True
        values["base_model_name_or_path"] = self.base.path.name
        return json.dumps(values, indent=2, sort_keys=True, default=str) + "\n"


def _parent_config(parent: Path) -> Any:
    """The parent's LoraConfig; only a plain LoRA of this project's shape is taken."""
    from peft import LoraConfig

    from claw_local.adapters.gguf import read_peft

    lora = read_peft(parent)  # says what is wrong with the files, if anything
    config = LoraConfig.from_pretrained(str(parent))
    config.lora_alpha = int(lora.alpha) if lora.alpha.is_integer() else lora.alpha
    config.use_rslora = False
    config.base_model_name_or_path = None  # a file name means nothing to PEFT
    return config


def _load_matrices(model: Any, folder: Path, adapter: str) -> None:
    """Fill an adapter of the model from a PEFT folder. Layers that it has no matrices for begin without an update."""
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    try:
        result = set_peft_model_state_dict(model, load_file(folder / "adapter_model.safetensors"), adapter_name=adapter)
    except RuntimeError as error:
        raise AdapterError(f"The adapter in {folder} does not fit the model: it was trained on another one.") from error
    layers = {name: value for name, value in model.named_parameters() if f".{adapter}." in name and "lora_" in name}
    missing = [key for key in result.missing_keys if key in layers]
    if result.unexpected_keys or len(missing) == len(layers):
        raise AdapterError(f"The adapter in {folder} does not fit the model: it was trained on another one.")
    with torch.no_grad():
        for key in missing:
            if "lora_B" in key:
                layers[key].zero_()
