"""How llama.cpp is built, for machines that are described rather than had."""

from __future__ import annotations

import pytest
from bootstrapping.flags import Machine, choose, look, read_cpu_flags, wants_gpu

MODERN = frozenset({"avx", "avx2", "f16c", "fma", "bmi2", "sse4_2"})


ALWAYS = "-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF"


def linux(**found) -> Machine:
    return Machine(system="Linux", architecture="x86_64", **{"cpu_flags": MODERN, **found})


def test_a_plain_machine_gets_a_portable_build():
    assert choose(linux(), {}) == ALWAYS


def test_cuda_needs_both_the_driver_and_the_compiler():
    assert "-DGGML_CUDA=on" in choose(linux(nvidia_driver=True, cuda_compiler=True), {}).split()
    assert "CUDA" not in choose(linux(nvidia_driver=True), {})
    assert "CUDA" not in choose(linux(cuda_compiler=True), {})


def test_metal_is_for_apple_silicon_only():
    assert "-DGGML_METAL=on" in choose(Machine("Darwin", "arm64"), {}).split()
    assert "METAL" not in choose(Machine("Darwin", "x86_64"), {})
    assert "METAL" not in choose(Machine("Linux", "arm64"), {})


def test_a_cpu_without_avx2_gets_a_build_without_it():
    flags = choose(linux(cpu_flags=frozenset({"sse4_2", "avx"})), {}).split()
    assert "-DGGML_AVX2=OFF" in flags
    assert "-DGGML_FMA=OFF" in flags
    assert "-DGGML_AVX=OFF" not in flags


def test_what_is_not_known_of_the_cpu_is_not_guessed():
    assert choose(Machine("Windows", "amd64"), {}) == ALWAYS


def test_what_the_person_set_stands():
    machine = linux(nvidia_driver=True, cuda_compiler=True)
    flags = choose(machine, {"CMAKE_ARGS": "-DGGML_CUDA=off -DGGML_VULKAN=on"}).split()
    assert flags == [*ALWAYS.split(), "-DGGML_CUDA=off", "-DGGML_VULKAN=on"]
    assert choose(machine, {"CMAKE_ARGS": "-DGGML_NATIVE=ON"}).split()[-1] == "-DGGML_NATIVE=ON"
    assert "-DGGML_NATIVE=OFF" not in choose(machine, {"CMAKE_ARGS": "-DGGML_NATIVE=ON"})


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ("-DGGML_NATIVE=OFF", False),
        ("-DGGML_NATIVE=OFF -DGGML_CUDA=on", True),
        ("-DGGML_CUDA=off", False),
        ("-DGGML_METAL=on", True),
    ],
)
def test_it_knows_which_builds_should_use_a_gpu(flags, wanted):
    assert wants_gpu(flags) is wanted


def test_this_machine_can_be_described(tmp_path):
    assert look().system in ("Linux", "Darwin", "Windows")
    assert read_cpu_flags(tmp_path / "nothing") is None
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu avx avx2\n")
    assert read_cpu_flags(tmp_path / "cpuinfo") == {"fpu", "avx", "avx2"}
