"""Does the engine start, and does the model compute? Also what a GPU adds. Loads nothing itself."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from ..language import _
from ..paths import Paths
from ..settings import Settings
from .check import Check, python_command, size, tidy
from .child import Outcome, run_child, run_probe

ENGINE = "llama-cpp-python"
ENGINE_TIMEOUT_S = 60.0
TOKEN_TIMEOUT_S = 180.0
NVIDIA_TIMEOUT_S = 15.0
X86_PARTS = {"AVX": "avx", "AVX2": "avx2", "F16C": "f16c", "FMA": "fma", "BMI2": "bmi2"}
SPARE_BYTES = 500_000_000  # what Python, the app and llama.cpp's work space take beside the model


def check_engine(outcome: Outcome) -> Check:
    """Judge how the probe "engine" ended."""
    if outcome.worked:
        return Check("engine", "ok", _("llama-cpp-python {version} starts", version=outcome.result.get("version", "")))
    if outcome.illegal_instruction:
        return Check(
            "engine",
            "problem",
            _("llama.cpp dies of an illegal instruction: it was compiled for another CPU"),
            _("Compile it for this one: {command}", command=reinstall_command()),
        )
    if "No module named 'llama_cpp'" in outcome.said:
        return Check(
            "engine",
            "problem",
            _("llama-cpp-python is not installed"),
            _("Install it: {command}", command=reinstall_command(force=False)),
        )
    if "cannot open shared object file" in outcome.said:
        return Check(
            "engine",
            "problem",
            _("a system library is missing: {said}", said=tidy(outcome.said)),
            _(
                "Install the package that holds it (for libgomp.so.1 on Debian, Ubuntu: sudo "
                "apt install libgomp1); if it belongs to llama.cpp itself: {command}",
                command=reinstall_command(),
            ),
        )
    return Check(
        "engine", "problem", tidy(outcome.ending), _("Compile it afresh: {command}", command=reinstall_command())
    )


@dataclass(frozen=True)
class FoundModel:
    """The model's file, and the memory it takes with its context, in bytes (none of it here if it is on a GPU)."""

    path: Path
    needed: int
    on_gpu: bool


def find(paths: Paths, settings: Settings, engine: Outcome) -> FoundModel:
    """Find the model and read its header.

    Raises:
        ModelError: there is none, or the file cannot be one.
    """
    from ..engine.models import check_model, find_model, kv_bytes

    path = find_model(settings, paths)
    # The memory is judged on its own, so that a model that is too big is still known to be whole.
    header = check_model(path, on_gpu=True)
    on_gpu = bool(engine.result.get("gpu_offload")) and settings.model.gpu_layers != 0
    return FoundModel(path, header.file_size + kv_bytes(header, settings.model.context), on_gpu)


def check_token(model: FoundModel, engine: Check, *, gpu_layers: int) -> Check:
    """Compute one token with the model, in a child process."""
    name = model.path.name
    if engine.state == "problem":
        return Check(
            "model",
            "problem",
            _("{name} was not tried: the engine does not start", name=name),
            _("Mend the engine first."),
        )
    outcome = run_probe("token", str(model.path), str(gpu_layers), timeout_s=TOKEN_TIMEOUT_S)
    if outcome.worked:
        seconds = float(outcome.result.get("seconds", 0.0))
        return Check(
            "model",
            "ok",
            _(
                "{name} ({size}) computes a token, {seconds:.1f} s",
                name=name,
                size=size(model.path.stat().st_size),
                seconds=seconds,
            ),
        )
    if outcome.illegal_instruction:
        detail = _("llama.cpp dies of an illegal instruction while it computes with {name}", name=name)
        return Check("model", "problem", detail, _("Compile it for this CPU: {command}", command=reinstall_command()))
    remedy = _("Get the file again, or choose another one with model.path in the settings.")
    return Check(
        "model", "problem", _("{name} does not compute: {ending}", name=name, ending=tidy(outcome.ending)), remedy
    )


def check_served(paths: Paths, settings: Settings) -> Check:
    """Ask the server of the settings' model about it.

    Raises:
        ModelError, EngineError, SettingsError: it does not answer, has no such model, or its package is missing.
    """
    from ..engine.opening import locate_model, open_engine

    engine = open_engine(locate_model(settings, paths, None), settings, paths)
    return Check(
        "model",
        "ok",
        _("{name} is there; what it answers can give hints, but is not trained on", name=engine.info.name),
    )


def check_memory(model: FoundModel | None, *, total: int, available: int) -> Check:
    """Compare the memory with what the model needs. All in bytes."""
    found = _("{free} of {total} free", free=size(available), total=size(total))
    if model is None or model.on_gpu:
        return Check("memory", "ok", found)
    detail = _("{found}; {name} needs about {size}", found=found, name=model.path.name, size=size(model.needed))
    remedy = _("Close other programs, set a smaller model.context, or choose a smaller model.")
    if model.needed > available:
        return Check("memory", "problem", detail, remedy)
    if model.needed + SPARE_BYTES > available:
        return Check("memory", "warning", detail, remedy)
    return Check("memory", "ok", detail)


def check_gpu(engine: Outcome) -> Check:
    """Is there a GPU, and does the engine use it?"""
    offload = bool(engine.result.get("gpu_offload"))
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        if offload or not engine.worked:
            return Check("gpu", "ok", _("Apple GPU (Metal)"))
        return _unused_gpu("Apple GPU", "METAL")
    program = shutil.which("nvidia-smi")
    if program is None:
        found = _("a GPU that llama.cpp knows") if offload else _("none found: the CPU does everything")
        return Check("gpu", "ok", found)
    query = [program, "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader"]
    outcome = run_child(query, timeout_s=NVIDIA_TIMEOUT_S)
    if not outcome.worked:
        remedy = _("If there is an NVIDIA GPU, reinstall its driver. Without one, all is well.")
        return Check("gpu", "warning", _("nvidia-smi finds no GPU: {ending}", ending=tidy(outcome.ending)), remedy)
    cards = "; ".join(line.strip() for line in outcome.output.splitlines() if line.strip())
    return Check("gpu", "ok", cards) if offload or not engine.worked else _unused_gpu(cards, "CUDA")


def engine_outcome() -> Outcome:
    """Run the probe "engine"."""
    return run_probe("engine", timeout_s=ENGINE_TIMEOUT_S)


def reinstall_command(extra_flags: str = "", *, force: bool = True) -> str:
    """The command that compiles llama-cpp-python for this machine, as its shell takes it."""
    flags = " ".join(filter(None, ["-DGGML_NATIVE=OFF", *_missing_vectors(), extra_flags]))
    afresh = f"--no-cache-dir --force-reinstall --no-deps --no-binary {ENGINE} " if force else ""
    command = f'{python_command()} -m pip install {afresh}"{_requirement()}"'
    return f'$env:CMAKE_ARGS="{flags}"; {command}' if os.name == "nt" else f'CMAKE_ARGS="{flags}" {command}'


def _unused_gpu(name: str, kind: str) -> Check:
    return Check(
        "gpu",
        "warning",
        _("{name}: not used, because llama.cpp was compiled without it", name=name),
        _("With its compiler installed: {command}", command=reinstall_command(f"-DGGML_{kind}=on")),
    )


def _missing_vectors() -> list[str]:
    """Flags that leave out what llama.cpp's portable build uses and this CPU lacks, where Linux tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return [f"-DGGML_{part}=OFF" for part, flag in X86_PARTS.items() if flags and flag not in flags]


def _requirement() -> str:
    """What this distribution asks of llama-cpp-python, so that the remedy installs a release that fits."""
    try:
        listed = requires("claw-local") or []
    except PackageNotFoundError:
        return ENGINE
    return next((line for line in listed if line.startswith(ENGINE)), ENGINE)
