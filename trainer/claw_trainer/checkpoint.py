"""What a run needs to go on exactly where it was left, on the disk. It must never decide when.

Two files: `state.json` (where it is, random states, the samples at hand), and one with the tensors it names
(LoRA, optimiser, what the frozen views said), as safetensors. Each is written aside, synced and renamed, the tensors
first: whatever ends the process, what `state.json` names is whole. Nothing is ever unpickled.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from claw_local.files import write_whole
from claw_local.leftovers import aside

from .batches import Sample
from .device import PROCESSOR, Place
from .references import Reference
from .step import Trainer

FORMAT = 1
STATE = "state.json"
Phase = Literal["practising", "training", "gate"]


class DamagedCheckpoint(Exception):
    """It is not whole, or not of this program; the message says what is wrong."""


@dataclass
class State:
    """Where a run is.

    Attributes:
        phase: what comes next: fresh answers, the step on `samples`, or the gate.
        step: steps that are done.
        samples: those of the step that comes next, once its fresh answers are drawn.
        history: what each step reported.
        seen: samples that were trained on.
        practice: `Practice.state()`.
        replay: state of the generator that chooses stored turns.
        tensors: name of the file with the tensors, and its SHA-256; empty before the first step is done.
        device: what it has computed on, as torch says it.
    """

    phase: Phase = "practising"
    step: int = 0
    samples: list[Sample] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)
    seen: int = 0
    practice: dict[str, Any] = field(default_factory=dict)
    replay: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)
    device: str = ""


def write(folder: Path, state: State, trainer: Trainer | None = None, place: Place = PROCESSOR) -> None:
    """Keep a state, and with a trainer its tensors too. What was kept before is replaced.

    Args:
        place: where the run computes, whose random state is kept as well.

    Raises:
        OSError: the disk is full, or the folder cannot be written. What was kept before is still there.
    """
    if trainer is not None:
        file = folder / f"step-{state.step}.safetensors"
        state.tensors = {"file": file.name, "sha256": _save(file, tensors_of(trainer))}
    dice = {"random": random.getstate(), "torch": torch.get_rng_state().tolist(), "gpu": place.random_state()}
    values = {**asdict(state), "format": FORMAT, **dice}
    write_whole(folder / STATE, json.dumps(values).encode())
    _sync(folder)
    for old in folder.glob("step-*.safetensors"):
        if old.name != state.tensors.get("file"):
            old.unlink(missing_ok=True)


def device_of(folder: Path) -> str:
    """What the run that is kept there has computed on so far; "" if nothing tells."""
    try:
        return str(json.loads((folder / STATE).read_text("utf-8")).get("device", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def read(folder: Path, place: Place = PROCESSOR) -> State | None:
    """The state that is kept there, and the random states of Python, torch and the GPU set as they were; None: there is
    none.

    Raises:
        DamagedCheckpoint: it is not whole.
    """
    try:
        values = json.loads((folder / STATE).read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DamagedCheckpoint(f"{STATE} cannot be read ({error})") from error
    try:
        if values.pop("format") != FORMAT:
            raise DamagedCheckpoint("it was kept by another version")
        version, inner, gauss = values.pop("random")
        random.setstate((version, tuple(inner), gauss))
        torch.set_rng_state(torch.tensor(values.pop("torch"), dtype=torch.uint8))
        place.set_random_state(values.pop("gpu", []))
        samples = [Sample(**{name: _tuple(value) for name, value in one.items()}) for one in values.pop("samples")]
        return State(**values, samples=samples)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DamagedCheckpoint(f"{STATE} is not as it was written ({error})") from error


def restore(folder: Path, state: State, trainer: Trainer) -> None:
    """Give a fresh trainer the LoRA, the optimiser and what the frozen views said.

    Raises:
        DamagedCheckpoint: the file is gone, was changed, or is of another shape.
    """
    if not state.tensors:
        return
    file = folder / state.tensors["file"]
    try:
        if _sha256(file) != state.tensors["sha256"]:
            raise DamagedCheckpoint(f"{file.name} was changed")
        with safe_open(file, framework="pt") as opened:
            kept = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise DamagedCheckpoint(f"{file.name} cannot be read ({error})") from error
    try:
        put_weights(trainer, kept)
        trainer.references.restore(dict(_references(kept)))
    except (KeyError, RuntimeError, ValueError) as error:
        raise DamagedCheckpoint(f"{file.name} does not fit ({error})") from error


def put_weights(trainer: Trainer, kept: dict[str, torch.Tensor]) -> None:
    """Give a trainer what `weights_of` found. Raises KeyError, RuntimeError, ValueError: it does not fit."""
    parameters = dict(_trained(trainer))
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(kept[f"lora.{name}"])
    moments = trainer.optimiser.state_dict()
    moments["state"] = {
        number: {part: kept[f"optimiser.{number}.{part}"] for part in ("step", "exp_avg", "exp_avg_sq")}
        for number in range(len(parameters))
        if f"optimiser.{number}.step" in kept
    }
    trainer.optimiser.load_state_dict(moments)


def weights_of(trainer: Trainer) -> dict[str, torch.Tensor]:
    """The LoRA and the optimiser's moments, by name."""
    found: dict[str, torch.Tensor] = {}
    for name, parameter in _trained(trainer):
        found[f"lora.{name}"] = parameter
    for number, moments in trainer.optimiser.state_dict()["state"].items():
        for part, values in moments.items():
            found[f"optimiser.{number}.{part}"] = values
    return {name: values.detach().cpu().contiguous().clone() for name, values in found.items()}


def tensors_of(trainer: Trainer) -> dict[str, torch.Tensor]:
    """All tensors that a trainer needs to go on, by name."""
    found = weights_of(trainer)
    for number, ((prompt, teacher_prompt, response), reference) in enumerate(trainer.references.kept()):
        at = f"reference.{number:05d}"
        ids = {"prompt": prompt, "teacher_prompt": teacher_prompt, "response": response}
        found |= {f"{at}.{name}": torch.tensor(of, dtype=torch.int32) for name, of in ids.items() if of is not None}
        views = {name: getattr(reference, name) for name in ("base", "teacher", "topk_ids", "topk")}
        found |= {f"{at}.{name}": values for name, values in views.items() if values is not None}
    return {name: values.detach().cpu().contiguous().clone() for name, values in found.items()}


def _references(kept: dict[str, torch.Tensor]) -> Iterator[tuple[tuple[Any, Any, Any], Reference]]:
    """What the frozen views said, in the order in which it was asked."""
    for at in sorted({name.rpartition(".")[0] for name in kept if name.startswith("reference.")}):
        teacher_prompt = kept.get(f"{at}.teacher_prompt")
        key = (
            tuple(kept[f"{at}.prompt"].tolist()),
            None if teacher_prompt is None else tuple(teacher_prompt.tolist()),
            tuple(kept[f"{at}.response"].tolist()),
        )
        views = {name: kept.get(f"{at}.{name}") for name in ("teacher", "topk_ids", "topk")}
        yield key, Reference(kept[f"{at}.base"], **views)


def _trained(trainer: Trainer) -> list[tuple[str, torch.nn.Parameter]]:
    return [(name, one) for name, one in trainer.policy.model.named_parameters() if one.requires_grad]


def _save(file: Path, tensors: dict[str, torch.Tensor]) -> str:
    """Write tensors whole or not at all; returns the file's SHA-256."""
    try:
        with aside(file) as made:
            save_file(tensors, made)
            made.chmod(0o600)
            with made.open("rb+") as opened:
                os.fsync(opened.fileno())
            os.replace(made, file)
    except SafetensorError as error:  # How it says that the disk is full.
        full = errno.ENOSPC if "space" in str(error).lower() else errno.EIO
        raise OSError(full, str(error)) from error
    return _sha256(file)


def _sync(folder: Path) -> None:
    """Let the renamings reach the disk, where a folder can be opened."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
