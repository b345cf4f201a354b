"""What of claw-local lies on this machine outside its package, and how the package itself came here.

It must never remove anything by itself, and never read what is in a chat.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .leftovers import NOTES
from .paths import APP, HOME_VARIABLE, Paths

APP_ID = "local.claw.ClawLocal"
OTHER_FILES = ("model-hashes.json", "model-files.json", "mcp.json", NOTES)
"""What lies beside the files that `Paths` names."""

_SHARED = frozenset(
    "doc claw-local man man1 bash-completion completions zsh site-functions fish vendor_completions.d applications "
    "icons hicolor scalable apps metainfo".split()
)
"""Folders below ~/.local/share that packaging/share.py makes."""


@dataclass(frozen=True)
class Piece:
    """One thing outside the package. `kind`: what it is. `line`: a line in a file that is not ours; else ""."""

    kind: str
    path: Path
    line: str = ""


@dataclass(frozen=True)
class Package:
    """How the package came here. `way`: pip, pipx, uv, ... `remove`: what to type so that it goes."""

    way: str
    remove: str


@dataclass(frozen=True)
class Data:
    """What is kept for the person. `entries`: ours, in these folders. `others`: what lies beside them."""

    folders: tuple[Path, ...]
    entries: tuple[Path, ...]
    others: tuple[Path, ...]
    size: int


def outside(user: Path | None = None, environment: Mapping[str, str] = os.environ) -> list[Piece]:
    """Completions, desktop files, man pages and schedules of this person, as far as they are there.

    Args:
        user: the person's home folder. environment: its XDG variables move what they name.
    """
    home = user or Path.home()
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    found = [
        *_there("shell completion", home / ".bash_completions" / f"{APP}.sh"),
        *_there("shell completion", data / "bash-completion" / "completions" / APP),
        *_there("shell completion", home / ".zfunc" / f"_{APP}"),
        *_there("shell completion", data / "zsh" / "site-functions" / f"_{APP}"),
        # Typer writes there whatever XDG_CONFIG_HOME says.
        *_there("shell completion", home / ".config" / "fish" / "completions" / f"{APP}.fish"),
        *_there("shell completion", data / "fish" / "vendor_completions.d" / f"{APP}.fish"),
        *_there("desktop entry", data / "applications" / f"{APP_ID}.desktop"),
        *_there("icon", data / "icons" / "hicolor" / "scalable" / "apps" / f"{APP_ID}.svg"),
        *_there("software catalogue entry", data / "metainfo" / f"{APP_ID}.metainfo.xml"),
    ]
    found += _there("notices", data / "doc" / APP / "NOTICES.md")
    found += [Piece("man page", page) for page in _named(data / "man" / "man1", f"{APP}*.1")]
    units = config / "systemd" / "user"
    found += [Piece("schedule", unit) for unit in _named(units, f"{APP}*")]
    found += [Piece("schedule", link) for link in _named(units / "timers.target.wants", f"{APP}*")]
    found += [Piece("schedule", agent) for agent in _named(home / "Library" / "LaunchAgents", f"*{APP}*.plist")]
    found += [Piece("scheduled task", Path(name)) for name in _tasks()]
    line = f"source '{home / '.bash_completions' / f'{APP}.sh'}'"
    if _has_line(home / ".bashrc", line):
        found.append(Piece("line of the shell's start", home / ".bashrc", line))
    return list(dict.fromkeys(found))


def take_out(piece: Piece) -> None:
    """Remove one piece; a schedule is ended first. Raises OSError."""
    if piece.line:
        text = piece.path.read_text("utf-8")
        kept = _without(text, piece.line)
        target = piece.path.resolve()  # Often a link into a folder of dotfiles.
        mode = target.stat().st_mode & 0o777
        aside = target.with_name(f"{target.name}.{APP}-new")
        aside.write_text(kept, "utf-8")
        aside.chmod(mode)
        os.replace(aside, target)
        return
    if piece.kind == "scheduled task":
        _asked("schtasks", "/End", "/TN", str(piece.path))
        if _asked("schtasks", "/Delete", "/TN", str(piece.path), "/F") is None:
            raise OSError(f"Windows did not delete it: schtasks /Delete /TN {piece.path}")
        return
    if piece.kind == "schedule":
        _end(piece.path)
    piece.path.unlink(missing_ok=True)
    folder = piece.path.parent
    # Typer makes the first, packaging/share.py the others; what others keep in them stays.
    ours = {".bash_completions"} if "share" not in folder.parts else _SHARED
    with contextlib.suppress(OSError):
        while folder.name in ours:
            folder.rmdir()
            folder = folder.parent


def _without(text: str, line: str) -> str:
    """The text without a line, and without the empty one that Typer puts before it."""
    kept: list[str] = []
    for one in text.splitlines(keepends=True):
        if one.strip() != line:
            kept.append(one)
        elif kept and not kept[-1].strip():
            kept.pop()
    return "".join(kept)


def _end(unit: Path) -> None:
    """Ask the system to end a schedule, and a run that it began; where its tool is missing, the file going is all there
    is to do."""
    if unit.suffix == ".timer":
        _asked("systemctl", "--user", "disable", "--now", unit.name)
    elif unit.suffix == ".service":
        _asked("systemctl", "--user", "stop", unit.name)
    elif unit.suffix == ".plist" and sys.platform == "darwin":
        _asked("launchctl", "bootout", f"gui/{os.getuid()}/{unit.stem}")


def _tasks() -> list[str]:
    """Names of this person's tasks in Windows' Task Scheduler."""
    listed = _asked("schtasks", "/Query", "/FO", "CSV", "/NH") if sys.platform == "win32" else None
    names = {line.split('","')[0].strip('"').lstrip("\\") for line in (listed or "").splitlines()}
    return sorted(name for name in names if name.startswith(f"{APP}-"))


def _asked(*command: str) -> str | None:
    """What a tool of the system says; None if it is not there, fails, or takes too long."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def kept_data(paths: Paths, environment: Mapping[str, str] = os.environ) -> Data:
    """What is kept, told from what else lies in a folder that the person named with CLAW_LOCAL_HOME."""
    folders = tuple(dict.fromkeys((paths.data, paths.config)))
    named = bool(environment.get(HOME_VARIABLE))
    entries: list[Path] = []
    others: list[Path] = []
    for folder in folders:
        for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
            (entries if not named or _is_ours(entry, paths) else others).append(entry)
    return Data(folders, tuple(entries), tuple(others), sum(map(_size, entries)))


def delete(data: Data) -> None:
    """Delete what is kept, for good, and the folders if nothing else is in them. Raises OSError."""
    for entry in data.entries:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
    for folder in data.folders:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def package(environment: Mapping[str, str] = os.environ, prefix: Path | None = None) -> Package:
    """How this package was installed, as far as it shows."""
    prefix = prefix or Path(sys.prefix)
    if getattr(sys, "frozen", False):
        return Package("without Python", f"delete the folder {Path(sys.executable).parent}")
    if environment.get("FLATPAK_ID"):
        return Package("Flatpak", f"flatpak uninstall {environment['FLATPAK_ID']}")
    if environment.get("CLAW_LOCAL_CONTAINER"):
        return Package("container", "docker image rm claw-local")
    if (prefix / "uv-receipt.toml").is_file():
        return Package("uv tool", f"uv tool uninstall {prefix.name}")
    if (prefix / "pipx_metadata.json").is_file():
        return Package("pipx", f"pipx uninstall {prefix.name}")
    if "Cellar" in prefix.parts:
        return Package("Homebrew", f"brew uninstall {APP}")
    if (prefix / f"{APP}-stamp.json").is_file():
        return Package("bootstrap", f"delete the folder {prefix}" + _and_source())
    try:
        installer = (distribution(APP).read_text("INSTALLER") or "pip").strip()
    except PackageNotFoundError:
        return Package("source", "delete the project's folder")
    if installer == "uv":
        return Package("uv", f"uv pip uninstall --python {_quoted(sys.executable)} {APP}")
    return Package("pip", f"{_quoted(sys.executable)} -m pip uninstall {APP}")


def _and_source() -> str:
    """Where the source lies, of a package that is used from there."""
    try:
        told = json.loads(distribution(APP).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    url = urlsplit(str(told.get("url", "")))
    return f", and with it {unquote(url.path)} if you need the source no longer" if url.scheme == "file" else ""


def _quoted(path: str) -> str:
    return f'"{path}"' if " " in path else path


def _there(kind: str, path: Path) -> list[Piece]:
    return [Piece(kind, path)] if path.is_file() or path.is_symlink() else []


def _named(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path for path in folder.glob(pattern) if not path.is_dir())
    except OSError:
        return []


def _has_line(file: Path, line: str) -> bool:
    try:
        return line in (text.strip() for text in file.read_text("utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return False


def _is_ours(entry: Path, paths: Paths) -> bool:
    places = [getattr(paths, name).name for name, value in vars(Paths).items() if isinstance(value, property)]
    begins = (f"{paths.database.name}-", f"{paths.database.name}.", f".{APP}", f"{APP}-")
    return entry.name in (*places, *OTHER_FILES) or entry.name.startswith(begins)


def _size(entry: Path) -> int:
    if entry.is_symlink() or not entry.is_dir():
        return entry.lstat().st_size
    return sum(file.lstat().st_size for file in entry.rglob("*") if not file.is_dir())
