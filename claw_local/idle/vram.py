"""What a GPU's memory must hold, and what is free of it: for a run, and for the model that answers.

It must never import torch, nor take any of that memory.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import re
from dataclasses import dataclass
from pathlib import Path

from .. import extras
from ..adapters.gguf import MODULES
from ..engine.gguf_file import GgufHeader
from ..engine.models import kv_bytes
from ..errors import ClawError
from ..language import N_, _
from ..settings import ModelSettings, Settings
from .probes import gpu
from .share import ECONOMIES, MOST_ECONOMY, SHARE

PROGRAM_BYTES = 700 << 20
"""What CUDA itself and torch's libraries take on the card."""
ENGINE_BYTES = 400 << 20
"""What CUDA itself and llama.cpp's work space take beside a model and its context."""
MATRIX_BYTES = 2
"""Bytes of a weight in the blocks' matrices: bfloat16. All others are float32."""
NF4_BYTES = 0.57
NOTHING = N_("nothing")
TOKENS, LESS_TOKENS = 512, 128
ROWS, LESS_ROWS = 256, 64


@dataclass(frozen=True)
class TrainingSizes:
    """What training holds on a GPU, of a model and a LoRA.

    Attributes:
        linear, other: weights in the blocks' matrices, and all others.
        linear_stored: bytes of the former in the file.
        lora: weights of the LoRA.
        blocks, width, inner, vocabulary: the model's shape.
    """

    linear: int
    linear_stored: int
    other: int
    lora: int
    blocks: int
    width: int
    inner: int
    vocabulary: int

    @classmethod
    def of(cls, header: GgufHeader, rank: int) -> TrainingSizes:
        """Raises KeyError: it is no whole language model."""
        linear = stored = other = lora = inner = 0
        blocks: set[str] = set()
        for name, tensor in header.tensors.items():
            parts = name.split(".")
            weights = math.prod(tensor.shape)
            if parts[0] == "blk":
                blocks.add(parts[1])
            if parts[0] == "blk" and parts[2] in MODULES.values() and parts[-1] == "weight":
                linear += weights
                stored += tensor.size or 4 * weights
                lora += rank * sum(tensor.shape)
                inner = max(inner, *tensor.shape)
            else:
                other += weights
        width, vocabulary = header.tensors["token_embd.weight"].shape
        return cls(linear, stored, other, lora, len(blocks), width, inner, vocabulary)

    def bytes_at(self, level: int, *_more: object) -> int:
        """Estimate of the most memory that training needs on a GPU at a level of `ECONOMIES`, in bytes."""
        if level >= MOST_ECONOMY:
            matrices = NF4_BYTES * self.linear
        elif "file" in ECONOMIES[level]:
            matrices = self.linear_stored
        else:
            matrices = MATRIX_BYTES * self.linear
        adapter = 4 * 5 * self.lora  # the LoRA, its gradient, two moments, and a parent to compare with
        tokens, rows = (TOKENS, ROWS) if level < 1 else (LESS_TOKENS, LESS_ROWS)
        of_block = 4 * tokens * (16 * self.width + 8 * self.inner)
        kept = self.blocks * of_block if level < 2 else of_block + 4 * tokens * self.width * self.blocks
        logits = 4 * 5 * rows * self.vocabulary
        return int(matrices + 4 * self.other + adapter + kept + logits) + PROGRAM_BYTES

    @property
    def least(self) -> int:
        """The same, saving memory as hard as possible."""
        return self.bytes_at(MOST_ECONOMY)


def engine_bytes(header: GgufHeader, model: ModelSettings) -> int:
    """Estimate of what a model that answers takes of a GPU's memory, where llama.cpp computes there, in bytes."""
    if model.gpu_layers == 0:
        return 0
    whole = header.file_size + kv_bytes(header, model.context)
    blocks = header.numbers(f"{header.text('general.architecture')}.block_count")[0]
    share = 1.0 if model.gpu_layers < 0 else min(1.0, model.gpu_layers / max(1, blocks + 1))
    return int(whole * share) + ENGINE_BYTES


def may_train(settings: Settings) -> bool:
    """Whether a run may compute on an NVIDIA GPU at all: the setting, and how torch was built."""
    return settings.learning.device != "cpu" and torch_has_cuda()


def run_bytes(header: GgufHeader, settings: Settings, *, engine_on_gpu: bool) -> int:
    """Estimate of what a run that need not save memory takes of a GPU, its own engine included, in bytes; 0 if it takes
    none. Raises KeyError: the header is none of a whole language model."""
    engine = engine_bytes(header, settings.model) if engine_on_gpu else 0
    trains = TrainingSizes.of(header, settings.learning.rank).bytes_at(0) if may_train(settings) else 0
    return engine + trains


@functools.cache
def torch_has_cuda() -> bool:
    """Whether the torch that is installed was built for NVIDIA GPUs. It is not imported: that takes seconds."""
    file = _torch()
    try:
        text = (file.parent / "version.py").read_text("utf-8", "replace") if file is not None else ""
    except OSError:
        return False
    return re.search(r"^cuda\b[^=\n]*=\s*['\"]", text, re.MULTILINE) is not None


def _torch() -> Path | None:
    """The file of the torch that is installed; None if there is none."""
    try:
        spec = importlib.util.find_spec("torch")
    except ValueError:
        return None
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


def card_of(device: str, cards: list[gpu.Card]) -> gpu.Card | None:
    """The card a setting means: the one it names, else the one with most memory free; None: there is no such."""
    if device.startswith("cuda:"):
        number = int(device.removeprefix("cuda:"))
        return next((card for card in cards if card.number == number), None)
    return max(cards, key=lambda card: card.free, default=None)


def trains_on(settings: Settings, header: GgufHeader | None) -> str:
    """What a run that starts now would compute on, and why, in words; they begin with `NOTHING` where it would fail."""
    device = settings.learning.device
    if _torch() is None:
        return _("nothing: what trains is not installed ({command})", command=extras.to_type("learn"))
    if device == "cpu":
        return _("the processor (learning.device is cpu)")
    instead = _("the processor") if device == "auto" else _("nothing (learning.device is {device})", device=device)
    if not torch_has_cuda():
        return f"{instead}: " + _("torch was built without CUDA")
    try:
        cards = gpu.cards()
    except ClawError as error:
        return f"{instead}: {error}"
    card = card_of(device, cards)
    if card is None:
        why = _("there is no such NVIDIA GPU") if cards else _("there is no NVIDIA GPU")
        return f"{instead}: {why}"
    found = _(
        "{name} (cuda:{number}, {free} of {total} free)",
        name=card.name,
        number=card.number,
        free=_gib(card.free),
        total=_gib(card.total),
    )
    if header is None or device != "auto":
        return found
    try:
        need = TrainingSizes.of(header, settings.learning.rank).least
    except KeyError:
        return found
    if need > SHARE * card.free:
        return _(
            "the processor: {found} has too little memory free for the {need} that learning needs at least",
            found=found,
            need=_gib(need),
        )
    return found


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
