"""Whether a file may be written where a person says. It must never know what is going to be written, or write it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .errors import UsageError
from .files import is_handed_over
from .language import _
from .paths import Paths

_TAKES_NEW = ("models", "backups")
"""Folders of ours in which a person's new file is welcome."""
_OURS = (*_TAKES_NEW, "adapters", "runs", "caches", "themes", "unfinished")
_RESERVED = ("claw-local.db", "settings.toml", "mcp.json", ".")
"""How names of ours begin, of files that need not be there yet."""


def check_target(target: Path, paths: Paths, *, streams: bool = False) -> None:
    """Refuse what no writing may replace, even where the person said so: whatever lies in the folder of claw-local but
    not in one that the person made there, and what is neither a file nor a folder. Links are followed.

    Args:
        streams: /dev/stdout and other open files that this process was handed are taken, to be written straight into.

    Raises:
        UsageError: it is refused.
    """
    try:
        handed_over = is_handed_over(target)
    except OSError:
        handed_over = True  # One of this program's own: who writes says so.
    if handed_over and streams:
        return
    if handed_over or not _is_regular(target):
        raise UsageError(_("{target} is no regular file. Name a file to write.", target=target))
    whole = Path(os.path.realpath(target))
    if any(_is_same(whole, file) for file in _in_use(paths)):
        raise UsageError(_("{target} is in use by claw-local itself. Choose another file.", target=target))
    for home in dict.fromkeys((paths.data, paths.config)):
        inside = _inside(whole, home)
        if inside is not None and _is_ours(inside, home):
            raise UsageError(
                _(
                    "{target} lies in the folder of claw-local itself, where nothing is written over. "
                    "Choose another place.",
                    target=target,
                )
            )


def _in_use(paths: Paths) -> Iterator[Path]:
    """Files of ours that may lie elsewhere, with a link to them in our folders."""
    yield from (paths.database, paths.settings, paths.encryption)
    for folder in (paths.data, paths.config, paths.models, paths.themes):
        with suppress(OSError):
            yield from [entry for entry in folder.iterdir() if entry.is_symlink() and entry.is_file()]


def _is_same(whole: Path, file: Path) -> bool:
    try:
        return whole.samefile(file)
    except (OSError, ValueError):
        return False


def _is_regular(target: Path) -> bool:
    """Whether it is a file or a folder, or nothing yet. What cannot be looked at is left to who writes."""
    try:
        kind = target.stat().st_mode
    except (OSError, ValueError):
        return True
    return stat.S_ISREG(kind) or stat.S_ISDIR(kind)


def _inside(whole: Path, home: Path) -> tuple[str, ...] | None:
    """The names that lead there from a folder, or through a link that is one of ours in it; None: it lies elsewhere. By
    what the folders are, not how their names are written: a disk may not tell A from a."""
    roots: list[tuple[Path, tuple[str, ...]]] = [(home, ())]
    roots += [(home / name, (name,)) for name in _OURS if (home / name).is_symlink()]
    for root, before in roots:
        for folder in (whole, *whole.parents):
            if _is_same(folder, root):
                return (*before, *whole.relative_to(folder).parts)
    return None


def _is_ours(inside: tuple[str, ...], home: Path) -> bool:
    if not inside:
        return True
    top = inside[0].casefold()
    there = os.path.lexists(home.joinpath(*inside))
    if top in _OURS:
        return there or len(inside) == 1 or top not in _TAKES_NEW
    if (home / inside[0]).is_dir():
        return False  # The person's own.
    return there or top.startswith(_RESERVED)
