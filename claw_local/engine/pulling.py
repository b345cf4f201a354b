"""Fetching a GGUF file from the Hugging Face Hub: the right one, with room for it, resumed, and checked at the end.

Bytes go into a file named by its checksum, which the next try goes on with. It must never load a model.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import ModelError, UsageError
from ..language import _
from .base import Cancelled
from .described import quant_in
from .hub import CHUNK, Hub, RemoteFile
from .places import parts_of, short_name

PARTIAL_FOLDER = ".fetching"
SPARE_BYTES = 200_000_000
"""Room left on the disk beside what is fetched."""
SMALL_BYTES = 1_000_000_000
"""Up to this size, eight bits a weight cost little: taken before four."""
STALE_S = 30 * 86400.0
"""What was fetched and given up is removed after this long."""

PREFERRED = "Q4_K_M Q4_K_XL Q4_K_S Q4_K_L Q4_1 Q4_0 IQ4_NL IQ4_XS Q5_K_M Q5_K_S Q6_K Q8_0 Q3_K_L Q3_K_M Q3_K_S".split()
"""Quantisations by what people are best served with where each of them fits: four bits a weight first."""

Reported = Callable[["Fetched"], None]


@dataclass(frozen=True)
class Fetched:
    """Where a pull is. `phase`: "fetching", then "checking" each file's checksum."""

    phase: str
    file: str
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Pulled:
    """What a pull brought. `path`: the file to load. `already`: it was here. `warning`: "", or what is doubtful."""

    path: Path
    repo: str
    file: str
    size_bytes: int
    already: bool
    warning: str


@dataclass(frozen=True)
class Choice:
    """One model of a repository: a file, or all parts of one that is split."""

    parts: tuple[RemoteFile, ...]

    @property
    def name(self) -> str:
        return self.parts[0].name

    @property
    def names(self) -> tuple[str, ...]:
        """What a person may call it, in small letters."""
        path = Path(self.name)
        return self.name.lower(), path.name.lower(), short_name(path).lower()

    @property
    def quant(self) -> str:
        return quant_in(self.name)

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)


def wanted(text: str) -> tuple[str, str]:
    """What a person asked for as (repository, file or quantisation or ""): `owner/name`, `owner/name:Q4_K_M`,
    `owner/name:file.gguf`, or a link to one of these.

    Raises:
        UsageError: it is none of that.
    """
    plain = re.sub(r"^(https?://)?(www\.)?(huggingface\.co|hf\.co)/|^hf:", "", text.strip()).split("?")[0].strip("/")
    link = re.fullmatch(r"([^/:]+/[^/:]+)/(?:resolve|blob|tree)/[^/]+/?(.*)", plain)
    if link:
        return link[1], link[2]
    repo, __, which = plain.partition(":")
    if re.fullmatch(r"[\w.-]+/[\w.-]+", repo) is None:
        raise UsageError(
            _(
                "{text!r} does not name a repository. Give it as OWNER/NAME, or with a file or "
                "quantisation: OWNER/NAME:Q4_K_M. `claw-local models list --recommended` shows "
                "some.",
                text=text,
            )
        )
    return repo, which


def choices(files: list[RemoteFile]) -> list[Choice]:
    """The models among a repository's files, split ones put together; encoders of images and the like left out."""
    by_name = {file.name: file for file in files}
    found = []
    for file in files:
        name = Path(file.name).name
        if not name.lower().endswith(".gguf") or re.search(r"mmproj|imatrix|-vocab\b", name, re.I):
            continue
        parts = [part.as_posix() for part in parts_of(Path(file.name))]
        if parts[0] == file.name and all(part in by_name for part in parts):
            found.append(Choice(tuple(by_name[part] for part in parts)))
    return found


def choose(offered: list[Choice], which: str, room: int) -> Choice:
    """The one to fetch: the file or quantisation that was asked for, else the one that serves best within `room` bytes.

    Raises:
        UsageError: there is none of that name.
    """
    if which:
        low = which.lower()
        exact = [c for c in offered if low in c.names]
        named = exact or [c for c in offered if c.quant.lower() == low] or [c for c in offered if low in c.name.lower()]
        if not named:
            raise UsageError(
                _(
                    "There is no {which} in this repository. It has: {names}.",
                    which=which,
                    names=", ".join(_labels(offered)),
                )
            )
        return min(named, key=lambda c: c.size_bytes)
    fitting = [c for c in offered if c.size_bytes <= room]
    if not fitting:
        return min(offered, key=lambda c: c.size_bytes)
    small = [c for c in fitting if c.quant == "Q8_0" and c.size_bytes <= SMALL_BYTES]
    known = [c for c in fitting if c.quant in PREFERRED]
    if small:
        return small[0]
    if known:
        return min(known, key=lambda c: (PREFERRED.index(c.quant), c.size_bytes))
    return max(fitting, key=lambda c: c.size_bytes)


def pull(
    text: str,
    folder: Path,
    *,
    room: int,
    on_progress: Reported | None = None,
    cancel: threading.Event | None = None,
) -> Pulled:
    """Fetch a model into a folder.

    Args:
        text: see `wanted`.
        room: bytes that a model may have to run well here.

    Raises:
        UsageError: `text` names no repository, or no file in it. ModelError: it cannot be reached or fetched, there is
            no room, or what came is damaged. Cancelled: `cancel` was set. What was fetched is kept for the next try.
    """
    repo, which = wanted(text)
    report = on_progress or (lambda fetched: None)
    hub = Hub()
    with hub.said_plainly(repo):
        revision, files = hub.files(repo)
        offered = choices(files)
        if not offered:
            raise ModelError(_("{repo} holds no GGUF file. Look for one whose name ends in -GGUF.", repo=repo))
        chosen = choose(offered, which, room)
        target = _target(folder, repo, chosen)
        already = all(_is_here(target.with_name(Path(part.name).name), part) for part in chosen.parts)
        if not already:
            _check_disk(folder, repo, chosen)
            for part in chosen.parts:
                _fetch(hub, (repo, revision, part), target, folder, chosen, report, cancel)
    large = chosen.size_bytes > room
    warning = f"{_gib(chosen.size_bytes)} may be more than this machine can run well." if large else ""
    return Pulled(target, repo, chosen.name, chosen.size_bytes, already, warning)


def _fetch(
    hub: Hub,
    what: tuple[str, str, RemoteFile],
    first: Path,
    folder: Path,
    chosen: Choice,
    report: Reported,
    cancel: threading.Event | None,
) -> None:
    """One file (repository, commit, file): fetched aside, checked, and then renamed to where it belongs."""
    repo, revision, part = what
    target = first.with_name(Path(part.name).name)
    if _is_here(target, part):
        return
    before = sum(p.size_bytes for p in chosen.parts[: chosen.parts.index(part)])
    aside = _partial(folder, repo, part)
    aside.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _remove_stale(aside.parent)
    with _only_one(aside):
        with closing(hub.download(repo, revision, part, aside)) as sizes:
            for have in sizes:
                report(Fetched("fetching", part.name, before + have, chosen.size_bytes))
                _stop_if(cancel)
        if part.sha256:
            report(Fetched("checking", part.name, before + part.size_bytes, chosen.size_bytes))
            if _sha256(aside, cancel) != part.sha256:
                aside.unlink()
                raise ModelError(
                    _(
                        "{name} came damaged: its checksum is not the hub's. It was removed; fetch it again.",
                        name=part.name,
                    )
                )
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.replace(aside, target)


def _target(folder: Path, repo: str, chosen: Choice) -> Path:
    """Where it goes: straight into the folder, unless another model of that name is there."""
    name = Path(chosen.name).name
    plain = folder / name
    if not plain.exists() or _is_here(plain, chosen.parts[0]):
        return plain
    return folder / repo.replace("/", "--") / name


def _is_here(path: Path, file: RemoteFile) -> bool:
    try:
        if path.stat().st_size != file.size_bytes:
            return False
    except OSError:
        return False
    return not file.sha256 or _sha256(path, None) == file.sha256


def _partial(folder: Path, repo: str, file: RemoteFile) -> Path:
    name = file.sha256 or hashlib.sha256(f"{repo}/{file.name}/{file.size_bytes}".encode()).hexdigest()
    return folder / PARTIAL_FOLDER / f"{name}.part"


def _check_disk(folder: Path, repo: str, chosen: Choice) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    here = 0
    for part in chosen.parts:
        aside = _partial(folder, repo, part)
        here += aside.stat().st_size if aside.is_file() else 0
    need = chosen.size_bytes - here + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if need > free:
        raise ModelError(
            _(
                "{name} needs {need} of disk, and {free} are free in {folder}. Free some space, "
                "or choose a smaller one.",
                name=Path(chosen.name).name,
                need=_gib(need),
                free=_gib(free),
                folder=folder,
            )
        )


@contextmanager
def _only_one(aside: Path) -> Iterator[None]:
    """Two pulls of one file would write into each other."""
    from filelock import FileLock, Timeout

    lock = FileLock(aside.with_suffix(".lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise ModelError(_("This file is being fetched by another program. Wait for it, or stop it.")) from error
    try:
        yield
    finally:
        lock.release()
        if not aside.exists():
            aside.with_suffix(".lock").unlink(missing_ok=True)


def _remove_stale(folder: Path) -> None:
    for file in folder.glob("*.part"):
        if time.time() - file.stat().st_mtime > STALE_S:
            file.unlink(missing_ok=True)


def _sha256(path: Path, cancel: threading.Event | None) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            _stop_if(cancel)
            digest.update(chunk)
    return digest.hexdigest()


def _stop_if(cancel: threading.Event | None) -> None:
    if cancel is not None and cancel.is_set():
        raise Cancelled


def _labels(offered: list[Choice]) -> list[str]:
    return sorted({choice.quant or Path(choice.name).name for choice in offered})


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
