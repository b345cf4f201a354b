"""Where GGUF files lie on this machine: our own folder and those of other programs. It must never open a model file.

Each program's documented places and variables, on Linux, macOS and Windows:
Ollama (docs/faq: OLLAMA_MODELS), LM Studio (docs: import models; its home pointer and downloads folder), the Hugging
Face cache (docs: HF_HOME, HF_HUB_CACHE, XDG_CACHE_HOME) and llama.cpp (common/download: LLAMA_CACHE).
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..paths import Paths

Source = Literal[
    "embedded", "models", "ollama-files", "lm-studio", "huggingface", "llama.cpp", "named", "ollama", "openai"
]

DEEPEST = 5
"""Folders below a place that are looked into: no program nests deeper, and a link that leads back up must end."""

_PART = re.compile(r"^(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$", re.I)
_OLLAMA_MODEL = "application/vnd.ollama.image.model"


@dataclass(frozen=True)
class FoundFile:
    """A GGUF file under the name its program gives it."""

    name: str
    source: Source
    path: Path


@dataclass(frozen=True)
class Machine:
    """What decides where programs keep their files. `system` as in sys.platform."""

    system: str
    home: Path
    environment: Mapping[str, str]

    @classmethod
    def this(cls) -> Machine:
        return cls(sys.platform, Path.home(), os.environ)

    def folder(self, variable: str) -> Path | None:
        """The folder that a variable names, if it is set."""
        value = self.environment.get(variable, "").strip()
        if not value:
            return None
        return self.home / value[2:] if value.startswith("~/") else Path(value)


def found_files(paths: Paths, machine: Machine | None = None) -> Iterator[FoundFile]:
    """Every GGUF file in the known places, our own first. What cannot be read is passed over; one file may come twice,
    under two names, where a link leads to it."""
    machine = machine or Machine.this()
    yield from _in_folders("models", [paths.models])
    for folder in ollama_folders(machine):
        yield from _in_ollama(folder)
    yield from _in_folders("lm-studio", lm_studio_folders(machine))
    yield from _in_folders("huggingface", huggingface_folders(machine))
    yield from _in_folders("llama.cpp", llama_cpp_folders(machine))


def ollama_folders(machine: Machine) -> list[Path]:
    named = machine.folder("OLLAMA_MODELS")
    folders = [named] if named else [machine.home / ".ollama" / "models"]
    if machine.system.startswith("linux"):
        # Where its installer, Arch's package and its snap put the service's models.
        folders += map(
            Path,
            ("/usr/share/ollama/.ollama/models", "/var/lib/ollama", "/var/snap/ollama/common/models"),
        )
    return folders


def lm_studio_folders(machine: Machine) -> list[Path]:
    homes = [machine.home / ".lmstudio", machine.home / ".cache" / "lm-studio"]
    pointer = _text(machine.home / ".lmstudio-home-pointer").strip()
    if pointer:
        homes.insert(0, Path(pointer))
    settings = [home / "settings.json" for home in homes]
    if machine.system == "darwin":
        settings.append(machine.home / "Library" / "Application Support" / "LM Studio" / "settings.json")
    elif machine.system == "win32":
        settings.append((machine.folder("APPDATA") or machine.home) / "LM Studio" / "settings.json")
    else:
        config = machine.folder("XDG_CONFIG_HOME") or machine.home / ".config"
        settings.append(config / "LM Studio" / "settings.json")
    chosen = [_json(file).get("downloadsFolder") for file in settings]
    return [*(Path(folder) for folder in chosen if isinstance(folder, str)), *(home / "models" for home in homes)]


def huggingface_folders(machine: Machine) -> list[Path]:
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if named := machine.folder(variable):
            return [named]
    if home := machine.folder("HF_HOME"):
        return [home / "hub"]
    return [(machine.folder("XDG_CACHE_HOME") or machine.home / ".cache") / "huggingface" / "hub"]


def llama_cpp_folders(machine: Machine) -> list[Path]:
    if named := machine.folder("LLAMA_CACHE"):
        return [named]
    if machine.system == "darwin":
        return [machine.home / "Library" / "Caches" / "llama.cpp"]
    if machine.system == "win32":
        return [(machine.folder("LOCALAPPDATA") or machine.home / "AppData" / "Local") / "llama.cpp"]
    return [(machine.folder("XDG_CACHE_HOME") or machine.home / ".cache") / "llama.cpp"]


def parts_of(path: Path) -> list[Path]:
    """The files that a split model consists of, in order, whether they are there or not; [path] for one of one file."""
    part = _PART.match(path.name)
    if part is None:
        return [path]
    stem, count = part["stem"], int(part["count"])
    return [path.with_name(f"{stem}-{n:05d}-of-{count:05d}{path.suffix}") for n in range(1, count + 1)]


def short_name(path: Path) -> str:
    """A file's name without `.gguf`, and without the number of the first of several parts."""
    part = _PART.match(path.name)
    return part["stem"] if part else path.name.removesuffix(path.suffix)


def _is_later_part(name: str) -> bool:
    part = _PART.match(name)
    return part is not None and int(part["number"]) != 1


def _in_folders(source: Source, folders: list[Path]) -> Iterator[FoundFile]:
    for folder in dict.fromkeys(folders):
        for path in _gguf_files(folder):
            yield FoundFile(short_name(path), source, path)


def _gguf_files(folder: Path) -> Iterator[Path]:
    """GGUF files below a folder, links followed, hidden folders left out, by name."""
    depth = len(folder.parts)
    for at, folders, files in os.walk(folder, followlinks=True):
        here = Path(at)
        folders[:] = sorted(n for n in folders if not n.startswith(".")) if len(here.parts) - depth < DEEPEST else []
        for name in sorted(files):
            wanted = name.lower().endswith(".gguf") and not name.startswith(".") and not _is_later_part(name)
            # A FIFO or a device of that name is no model, and to open it might wait for ever.
            if wanted and os.path.isfile(here / name):
                yield here / name


def _in_ollama(folder: Path) -> Iterator[FoundFile]:
    """Ollama's manifests (manifests/REGISTRY/NAMESPACE/MODEL/TAG) name models and list their blobs by SHA-256."""
    manifests = folder / "manifests"
    for at, folders, files in os.walk(manifests):
        folders.sort()
        for tag in sorted(files):
            place = (Path(at) / tag).relative_to(manifests).parts
            layers = _json(Path(at) / tag).get("layers")
            for layer in layers if isinstance(layers, list) else []:
                if isinstance(layer, dict) and layer.get("mediaType") == _OLLAMA_MODEL and len(place) == 4:
                    digest = str(layer.get("digest", ""))
                    blob = folder / "blobs" / digest.replace(":", "-")
                    if re.fullmatch(r"sha256:[0-9a-f]{64}", digest) and blob.is_file():
                        yield FoundFile(_ollama_name(place), "ollama-files", blob)
                        break


def _ollama_name(place: tuple[str, ...]) -> str:
    registry, namespace, model, tag = place
    if registry != "registry.ollama.ai":
        return f"{registry}/{namespace}/{model}:{tag}"
    return f"{model}:{tag}" if namespace == "library" else f"{namespace}/{model}:{tag}"


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8") if os.path.isfile(file) else ""
    except (OSError, UnicodeDecodeError):
        return ""


def _json(file: Path) -> dict[str, object]:
    try:
        value = json.loads(_text(file))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
