"""Faults of the engine and of the model, planted: a library that kills its process, files that are no models."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claw_local.doctor import engine as engine_checks
from claw_local.doctor.check import Check, from_error
from claw_local.doctor.child import Outcome
from claw_local.errors import ModelError
from claw_local.settings import Settings

FINE = Check("engine", "ok", "")
NO_GPU = Outcome(returncode=0, result={"gpu_offload": False})


def plant(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, source: str) -> None:
    """Put a module in front of the real one, for child processes."""
    (folder / f"{name}.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def with_model(path: object) -> Settings:
    settings = Settings()
    settings.model.path = str(path)
    return settings


def test_the_engine_starts():
    check = engine_checks.check_engine(engine_checks.engine_outcome())
    assert (check.state, check.remedy) == ("ok", "")
    assert check.detail.startswith("llama-cpp-python 0.")


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_an_engine_built_for_another_cpu_is_named_and_the_remedy_compiles_it_afresh(tmp_path, monkeypatch):
    plant(tmp_path, monkeypatch, "llama_cpp", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    check = engine_checks.check_engine(engine_checks.engine_outcome())
    assert check.state == "problem"
    assert "illegal instruction" in check.detail
    for part in ("-DGGML_NATIVE=OFF", "--no-cache-dir", "--force-reinstall", "--no-binary llama-cpp-python"):
        assert part in check.remedy


def test_a_missing_system_library_is_told_apart(tmp_path, monkeypatch):
    fault = "raise RuntimeError('libgomp.so.1: cannot open shared object file: No such file or directory')"
    plant(tmp_path, monkeypatch, "llama_cpp", fault)
    check = engine_checks.check_engine(engine_checks.engine_outcome())
    assert check.state == "problem"
    assert "libgomp.so.1" in check.detail
    assert "libgomp1" in check.remedy


def test_an_engine_that_is_not_installed_is_told_apart(tmp_path, monkeypatch):
    plant(tmp_path, monkeypatch, "llama_cpp", "raise ModuleNotFoundError(\"No module named 'llama_cpp'\")")
    check = engine_checks.check_engine(engine_checks.engine_outcome())
    assert "not installed" in check.detail
    assert "--force-reinstall" not in check.remedy


def test_the_embedded_model_computes_a_token(home, model_path):
    model = engine_checks.find(home, with_model(model_path), NO_GPU)
    check = engine_checks.check_token(model, FINE, gpu_layers=0)
    assert (check.state, model.path) == ("ok", model_path)


def test_a_missing_model_is_named_with_its_remedy(home, tmp_path):
    with pytest.raises(ModelError) as caught:
        engine_checks.find(home, with_model(tmp_path / "no.gguf"), NO_GPU)
    check = from_error("model", caught.value, "")
    assert "no.gguf" in check.detail
    assert "model.path" in check.remedy


def test_a_model_that_is_cut_short_does_not_pass(home, model_path, tmp_path):
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(model_path.read_bytes()[:20_000_000])
    with pytest.raises(ModelError, match="cut short"):
        engine_checks.find(home, with_model(cut), NO_GPU)


def test_a_model_that_the_engine_refuses_does_not_pass(tmp_path):
    """Its header was fine, but the file is gone when the engine comes to it."""
    model = engine_checks.FoundModel(tmp_path / "gone.gguf", needed=0, on_gpu=False)
    check = engine_checks.check_token(model, FINE, gpu_layers=0)
    assert check.state == "problem"
    assert "gone.gguf does not compute" in check.detail


def test_the_model_is_not_tried_on_an_engine_that_does_not_start(home, model_path):
    model = engine_checks.find(home, with_model(model_path), NO_GPU)
    check = engine_checks.check_token(model, Check("engine", "problem", ""), gpu_layers=0)
    assert (check.state, "not tried" in check.detail) == ("problem", True)


def test_memory_is_measured_against_the_model(home, model_path):
    model = engine_checks.find(home, with_model(model_path), NO_GPU)
    assert model.needed > model_path.stat().st_size
    states = [
        engine_checks.check_memory(model, total=8 * 10**9, available=free).state for free in (10**9, 5 * 10**8, 10**8)
    ]
    assert states == ["ok", "warning", "problem"]
    assert engine_checks.check_memory(None, total=10**9, available=10**8).state == "ok"


def test_a_model_on_the_gpu_takes_no_main_memory(home, model_path):
    model = engine_checks.find(home, with_model(model_path), Outcome(0, {"gpu_offload": True}))
    assert engine_checks.check_memory(model, total=8 * 10**9, available=10**8).state == "ok"


def put_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A stand-in for nvidia-smi: this machine has no such card."""
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")
@pytest.mark.parametrize(
    ("script", "offload", "state", "words"),
    [
        ("echo 'Card X, 24 GB, 20 GB'", True, "ok", "Card X"),
        ("echo 'Card X, 24 GB, 20 GB'", False, "warning", "not used"),
        ("echo 'no driver'; exit 9", False, "warning", "no driver"),
    ],
)
def test_a_gpu_that_the_engine_does_not_use_is_a_warning(tmp_path, monkeypatch, script, offload, state, words):
    put_on_path(tmp_path, monkeypatch, script)
    check = engine_checks.check_gpu(Outcome(returncode=0, result={"gpu_offload": offload}))
    assert check.state == state
    assert words in check.detail
    assert ("-DGGML_CUDA=on" in check.remedy) is (words == "not used")


def test_no_gpu_is_fine(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    check = engine_checks.check_gpu(Outcome(returncode=0, result={"gpu_offload": False}))
    assert check.state != "problem"
    assert check.remedy == "" or "METAL" in check.remedy
