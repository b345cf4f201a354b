"""Where a run computes: the processor, or an NVIDIA GPU; and how numbers are held there. It must never know what is
learned.

On a GPU that has bfloat16, the blocks' matrices are held in it and multiplied in it (autocast); the LoRA, the
optimiser, norms, embeddings, the projection to the vocabulary and the losses stay float32.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from claw_local.engine.gguf_file import read_header
from claw_local.errors import ClawError, LearnError
from claw_local.idle.probes import gpu
from claw_local.idle.share import SHARE
from claw_local.idle.vram import TrainingSizes
from claw_local.settings import LearningSettings

from .economy import Economy, Sizes, held_bytes
from .weights import BaseModel


@dataclass(frozen=True)
class Place:
    """Where a run computes.

    Attributes:
        device: the processor, or one GPU.
        bound: most bytes of the GPU's memory that the run may hold; 0 on the processor, whose bound is the request's.
        bf16: whether the blocks' matrices are held and multiplied in bfloat16.
    """

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    bound: int = 0
    bf16: bool = False

    @property
    def on_gpu(self) -> bool:
        return self.device.type != "cpu"

    def prepare(self) -> None:
        """Choose how this process multiplies there. The processor is prepared when the base is loaded."""
        if self.on_gpu:
            # A run that is left must end as one that never was, as far as the GPU's kernels can.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True, warn_only=True)
            torch.cuda.set_device(self.device)

    def put(self, base: BaseModel) -> BaseModel:
        """Move a base there, one tensor after the other; the same base. Nothing is done if it is as it should be.

        Raises:
            torch.OutOfMemoryError: it does not fit.
        """
        if not self.on_gpu and not self.bf16:
            return base
        if self.on_gpu:
            # TensorFloat-32: products of float32 are rounded to 10 bits, far less than the quantised weights were.
            torch.set_float32_matmul_precision("high")
        model = base.model
        matrices = {id(layer.weight) for layer in model.model.layers.modules() if type(layer) is torch.nn.Linear}
        moved: dict[int, Any] = {}  # Tied weights stay one.
        for module in model.modules():
            for name, parameter in list(module._parameters.items()):
                if parameter is None:
                    continue
                if _is_nf4(module) and name == "weight":  # It takes its scales along.
                    moved[id(parameter)] = parameter.to(self.device)
                    module.compute_dtype = torch.bfloat16 if self.bf16 else torch.float32
                elif id(parameter) not in moved:
                    narrow = self.bf16 and id(parameter) in matrices and parameter.dtype == torch.float32
                    values = parameter.data.to(self.device, torch.bfloat16 if narrow else None)
                    moved[id(parameter)] = torch.nn.Parameter(values, requires_grad=False)
                module._parameters[name] = moved[id(parameter)]
            for name, buffer in list(module._buffers.items()):
                if buffer is not None:
                    module._buffers[name] = buffer.to(self.device)
        return base

    def computing(self) -> AbstractContextManager[Any]:
        """Around the blocks' forward pass."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.bf16 else nullcontext()

    def held_bytes(self) -> int:
        """Memory that this process holds where it computes."""
        return int(torch.cuda.memory_reserved(self.device)) if self.on_gpu else held_bytes()

    def economise(self, economy: Economy) -> Economy:
        """Let a run save the memory that is short there; the same economy."""
        if self.on_gpu:
            economy.bound, economy.held = self.bound, self.held_bytes
        return economy

    def sizes(self, model: Path, learning: LearningSettings) -> Any:
        """What is held there, by level. Raises KeyError: it is no whole language model."""
        header = read_header(model)
        rank = learning.rank
        return TrainingSizes.of(header, rank) if self.on_gpu else Sizes.of(header, rank, learning)

    def random_state(self) -> list[int]:
        """State of the GPU's own random numbers; nothing on the processor, whose state is torch's."""
        found: list[int] = torch.cuda.get_rng_state(self.device).tolist() if self.on_gpu else []
        return found

    def set_random_state(self, state: list[int]) -> None:
        """Put back what `random_state` told; what was told elsewhere is left out."""
        if self.on_gpu and state:
            torch.cuda.set_rng_state(torch.tensor(state, dtype=torch.uint8), self.device)


PROCESSOR = Place()


def choose(learning: LearningSettings, model: Path, *, began: str = "") -> Place:
    """Where a run computes that starts now. What else it holds of the GPU, such as its engine, is held already.

    Args:
        began: where a run that goes on has computed so far: elsewhere it would end a little differently.

    Raises:
        LearnError: the settings name a GPU, and torch has none, or not this one.
    """
    wanted = learning.device
    if wanted == "auto" and began:
        wanted = "auto" if began.startswith("cuda") else began
    if wanted == "cpu":
        return PROCESSOR
    if not torch.cuda.is_available():
        if wanted == "auto":
            return PROCESSOR
        raise LearnError(
            f"learning.device is {wanted}, and torch finds no NVIDIA GPU. Install a torch that was built for CUDA, or "
            "set learning.device to auto."
        )
    count = torch.cuda.device_count()
    named = began if began.startswith("cuda:") and learning.device in ("auto", "cuda") else wanted
    number = int(named.removeprefix("cuda:")) if named.startswith("cuda:") else _roomiest(count)
    if number >= count:
        if learning.device in ("auto", "cuda"):
            return choose(learning, model)
        raise LearnError(f"learning.device is {wanted}, and torch finds {count} NVIDIA GPU(s), from cuda:0 on.")
    free = int(torch.cuda.mem_get_info(number)[0])
    bound = int(SHARE * free)
    if learning.memory_gib:
        bound = min(bound, int(learning.memory_gib * 2**30))
    if wanted == "auto" and TrainingSizes.of(read_header(model), learning.rank).least > bound:
        print(f"cuda:{number} has {free / 2**30:.1f} GiB free: too little. The processor learns.", flush=True)
        return PROCESSOR
    device = torch.device("cuda", number)
    return Place(device, bound, bf16=torch.cuda.get_device_capability(device) >= (8, 0))


def _roomiest(count: int) -> int:
    """The GPU with most memory free. torch is not asked: it would take some of each one's to tell."""
    try:
        cards = [card for card in gpu.cards() if card.number < count]
    except ClawError:
        cards = []
    return max(cards, key=lambda card: card.free).number if cards else 0


def _is_nf4(module: torch.nn.Module) -> bool:
    return type(module).__name__ == "Linear4bit"
