"""Several adapters with weights as one: Σ wᵢ · (αᵢ / rᵢ) · Bᵢ Aᵢ is itself a LoRA, of rank Σ rᵢ.

So a mix is an adapter like any other: it can be used, trained on from, exported, merged and rolled back.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import AdapterError
from ..language import _
from ..paths import Paths
from ..store import AdapterRecord, Store
from .gguf import MOST_RANK, BaseShape, write_gguf
from .peft import PeftLora, Place, read_peft, write_peft
from .registry import file_sha256, verify_all

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

Parts = Sequence[tuple[AdapterRecord, float]]


def mix(parts: Sequence[tuple[PeftLora, float]]) -> PeftLora:
    """One LoRA whose update is the weighted sum of the parts' updates.

    A is the parts' A one under the other [Σ rᵢ, in], B their wᵢ · αᵢ / rᵢ · Bᵢ side by side [out, Σ rᵢ], and α the
    rank, so that the scale is 1. A layer that a part leaves alone gets zeros from it.
    """
    import numpy as np

    rank = sum(lora.rank for lora, _weight in parts)
    places = sorted({place for lora, _weight in parts for place in lora.weights})
    weights: dict[Place, tuple[Array, Array]] = {}
    for place in places:
        some_a, some_b = next(lora.weights[place] for lora, _weight in parts if place in lora.weights)
        above, beside = [], []
        for lora, weight in parts:
            if place in lora.weights:
                a, b = lora.weights[place]
                above.append(a)
                beside.append(b * np.float32(weight * lora.alpha / a.shape[0]))
            else:
                above.append(np.zeros((lora.rank, some_a.shape[1]), np.float32))
                beside.append(np.zeros((some_b.shape[0], lora.rank), np.float32))
        weights[place] = np.concatenate(above), np.concatenate(beside, axis=1)
    return PeftLora(float(rank), weights, parts[0][0].base_name)


def mixed(store: Store, paths: Paths, base: BaseShape, parts: Parts) -> AdapterRecord:
    """The adapter that these make together; made if it is not there yet.

    Args:
        base: their base model.
        parts: each with its weight; all of that model.

    Raises:
        AdapterError: a part's files are gone or were changed, together they have too high a rank, or the files cannot
            be written.
    """
    recipe = [[record.id, weight] for record, weight in parts]
    for record in store.adapters.list():
        if record.recipe.get("mix") == recipe and Path(record.gguf_path).is_file():
            return record
    for record, _weight in parts:
        verify_all(record)
    loras = [(read_peft(Path(record.peft_dir)), weight) for record, weight in parts]
    rank = sum(lora.rank for lora, _weight in loras)
    if rank > MOST_RANK:
        raise AdapterError(
            _(
                "Together these adapters have rank {rank}, and at most {most} works. Mix fewer.",
                rank=rank,
                most=MOST_RANK,
            )
        )
    together = mix(loras)
    words = " ".join(f"{record.name or record.id}:{weight:g}" for record, weight in parts)
    heaviest = max(parts, key=lambda part: part[1])[0]
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"mix-{os.getpid()}-", dir=paths.adapters))
        write_peft(together, folder / "peft")
        write_gguf(together, base, folder / "adapter.gguf")
        files = ("adapter.gguf", "peft/adapter_model.safetensors")
        return store.adapters.add(
            parent_id=heaviest.id,
            model_sha256=heaviest.model_sha256,
            architecture=heaviest.architecture,
            peft_dir=str(folder / "peft"),
            gguf_path=str(folder / "adapter.gguf"),
            sha256={name: file_sha256(folder / name) for name in files},
            recipe={"mix": recipe},
            lineage=sorted({message for record, _weight in parts for message in record.lineage}),
            state="candidate",
            reason=f"A mix: {words}.",
        )
    except BaseException as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise AdapterError(
                _(
                    "The mix cannot be written to {folder}: {error}. Free some space.",
                    folder=paths.adapters,
                    error=error.strerror or error,
                )
            ) from error
        raise
