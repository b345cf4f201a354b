"""Where model files lie: each program's folders, on each system, by its variables."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from claw_local.engine import places
from claw_local.engine.places import Machine
from claw_local.paths import Paths
from tests.engine.small_gguf import write_gguf


def machine(home: Path, system: str = "linux", **environment: str) -> Machine:
    return Machine(system, home, environment)


def names(home: Paths, here: Machine) -> set[tuple[str, str]]:
    # Folders of this machine's own services are none of the test's business.
    return {(file.source, file.name) for file in places.found_files(home, here) if file.path.is_relative_to(here.home)}


def write_ollama(folder: Path, model: str, content: Path, **changes: str) -> Path:
    digest = changes.get("digest", "sha256:" + "ab" * 32)
    blob = folder / "blobs" / digest.replace(":", "-")
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content.read_bytes())
    manifest = folder / "manifests" / model
    manifest.parent.mkdir(parents=True, exist_ok=True)
    layers = [
        {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:" + "cd" * 32},
        {"mediaType": "application/vnd.ollama.image.model", "digest": digest, "size": 1},
    ]
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    return blob


def test_every_program_s_files_are_found_under_the_names_it_gives_them(home: Paths, tmp_path: Path) -> None:
    here = machine(tmp_path / "person")
    home.make()
    file = write_gguf(home.models / "own.gguf")
    write_ollama(here.home / ".ollama" / "models", "registry.ollama.ai/library/llama3.2/1b", file)
    write_ollama(here.home / ".ollama" / "models", "registry.ollama.ai/me/mine/latest", file)
    write_ollama(here.home / ".ollama" / "models", "hf.co/a/b/Q4_K_M", file)
    write_gguf(here.home / ".lmstudio" / "models" / "maker" / "Nice-GGUF" / "nice-Q4_0.gguf")
    snapshot = here.home / ".cache" / "huggingface" / "hub" / "models--a--b" / "snapshots" / "c0ffee"
    blob = write_gguf(snapshot.parents[1] / "blobs" / "1234.gguf").rename(snapshot.parents[1] / "blobs" / "1234")
    snapshot.mkdir(parents=True)
    (snapshot / "hub.gguf").symlink_to(blob)
    write_gguf(here.home / ".cache" / "llama.cpp" / "a_b_cached.gguf")
    found = {
        (file.source, file.name)
        for file in places.found_files(home, here)
        if file.path.is_relative_to(here.home) or file.path.is_relative_to(home.models)
    }
    assert found == {
        ("models", "own"),
        ("ollama-files", "llama3.2:1b"),
        ("ollama-files", "me/mine:latest"),
        ("ollama-files", "hf.co/a/b:Q4_K_M"),
        ("lm-studio", "nice-Q4_0"),
        ("huggingface", "hub"),
        ("llama.cpp", "a_b_cached"),
    }


def test_a_split_model_is_one_model(home: Paths, tmp_path: Path) -> None:
    here = machine(tmp_path / "person")
    folder = here.home / ".lmstudio" / "models" / "m" / "r"
    for number in (1, 2, 3):
        write_gguf(folder / f"big-0000{number}-of-00003.gguf")
    assert names(home, here) == {("lm-studio", "big")}
    assert [part.name for part in places.parts_of(folder / "big-00001-of-00003.gguf")] == [
        f"big-0000{number}-of-00003.gguf" for number in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("system", "environment", "folders"),
    [
        (
            "linux",
            {},
            {
                "ollama": "~/.ollama/models",
                "lm_studio": "~/.lmstudio/models",
                "huggingface": "~/.cache/huggingface/hub",
                "llama_cpp": "~/.cache/llama.cpp",
            },
        ),
        ("linux", {}, {"ollama": "/usr/share/ollama/.ollama/models", "lm_studio": "~/.cache/lm-studio/models"}),
        ("linux", {"XDG_CACHE_HOME": "/x"}, {"huggingface": "/x/huggingface/hub", "llama_cpp": "/x/llama.cpp"}),
        ("darwin", {}, {"ollama": "~/.ollama/models", "llama_cpp": "~/Library/Caches/llama.cpp"}),
        ("win32", {"LOCALAPPDATA": "/local"}, {"ollama": "~/.ollama/models", "llama_cpp": "/local/llama.cpp"}),
        ("win32", {}, {"llama_cpp": "~/AppData/Local/llama.cpp", "huggingface": "~/.cache/huggingface/hub"}),
        ("linux", {"OLLAMA_MODELS": "/o", "LLAMA_CACHE": "~/l"}, {"ollama": "/o", "llama_cpp": "~/l"}),
        ("darwin", {"HF_HOME": "/h"}, {"huggingface": "/h/hub"}),
        ("darwin", {"HF_HOME": "/h", "HF_HUB_CACHE": "/c"}, {"huggingface": "/c"}),
    ],
)
def test_each_system_has_its_places_and_variables_go_before_them(
    tmp_path: Path, system: str, environment: dict[str, str], folders: dict[str, str]
) -> None:
    here = machine(tmp_path, system, **environment)
    for program, folder in folders.items():
        expected = tmp_path / folder[2:] if folder.startswith("~/") else Path(folder)
        assert expected in getattr(places, f"{program}_folders")(here)


def test_lm_studio_s_pointer_and_downloads_folder_are_followed(home: Paths, tmp_path: Path) -> None:
    here = machine(tmp_path / "person")
    moved = here.home / "moved"
    write_gguf(moved / "models" / "a" / "b" / "pointed.gguf")
    (here.home / ".lmstudio-home-pointer").write_text(str(moved))
    downloads = here.home / "downloads"
    write_gguf(downloads / "a" / "b" / "downloaded.gguf")
    (moved / "settings.json").write_text(json.dumps({"downloadsFolder": str(downloads)}))
    assert names(home, here) == {("lm-studio", "pointed"), ("lm-studio", "downloaded")}


def test_what_is_broken_is_passed_over(home: Paths, tmp_path: Path) -> None:
    here = machine(tmp_path / "person")
    ollama = here.home / ".ollama" / "models"
    file = write_gguf(tmp_path / "a.gguf")
    write_ollama(ollama, "registry.ollama.ai/library/gone/1", file).unlink()
    write_ollama(ollama, "registry.ollama.ai/library/climbing/1", file, digest="sha256:../../../a")
    bad = ollama / "manifests" / "registry.ollama.ai" / "library" / "bad" / "1"
    bad.parent.mkdir(parents=True)
    for text in ("{", "[]", '{"layers": 3}', '{"layers": [3, {"mediaType": 1}]}', "\0"):
        bad.write_text(text)
        assert names(home, here) == set()
    circle = here.home / ".lmstudio" / "models" / "circle"
    circle.mkdir(parents=True)
    (circle / "again").symlink_to(circle)
    (circle / ".hidden.gguf").write_bytes(b"")
    assert names(home, here) == set()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is closed to this user")
def test_a_folder_that_cannot_be_read_is_passed_over(home: Paths, tmp_path: Path) -> None:
    here = machine(tmp_path / "person")
    closed = here.home / ".lmstudio" / "models"
    write_gguf(closed / "a.gguf")
    closed.chmod(0)
    try:
        assert names(home, here) == set()
    finally:
        closed.chmod(0o700)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")
def test_what_only_has_the_name_of_a_file_is_passed_over(home: Paths, tmp_path: Path) -> None:
    here = machine(tmp_path / "person")
    write_gguf(here.home / ".lmstudio" / "models" / "m" / "r" / "real.gguf")
    os.mkfifo(here.home / ".lmstudio" / "models" / "m" / "r" / "pipe.gguf")
    os.mkfifo(here.home / ".lmstudio-home-pointer")
    manifests = here.home / ".ollama" / "models" / "manifests" / "registry.ollama.ai" / "library" / "x"
    manifests.mkdir(parents=True)
    os.mkfifo(manifests / "pipe")
    (manifests / "deep").write_text("[" * 200_000)
    assert names(home, here) == {("lm-studio", "real")}
