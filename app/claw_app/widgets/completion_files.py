"""Which files a person may mean by what they have typed after `@`. It must never look outside the folder they typed."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

MOST = 50
"""Most files offered at once."""
LONGEST_S = 1.0
"""A folder that takes longer to read is read in part."""

_TOKEN = re.compile(r"""(?:^|(?<=[\s(\[{<"'«“:,;]))@(?:"(?P<quoted>[^"\n]*)|(?P<bare>[^\s"@]*))$""")
_TOKENS = re.compile(r"""(?:^|(?<=[\s(\[{<"'«“:,;]))@(?:"(?P<quoted>[^"\n]+)"?|(?P<bare>[^\s"@]+))""")


@dataclass(frozen=True)
class Token:
    """A path being typed: what was typed of it, and how many characters before the cursor it begins, `@` included."""

    typed: str
    length: int


@dataclass(frozen=True)
class FileHit:
    """A file or folder that fits. `path`: as it is typed, a folder with a slash at its end."""

    path: str
    is_folder: bool

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2] + ("/" if self.is_folder else "")

    @property
    def token(self) -> str:
        """How it is written into the field."""
        return f'@"{self.path}' if re.search(r"\s", self.path) else f"@{self.path}"


def token_before(line: str) -> Token | None:
    """The path being typed at the end of this text, None if there is none. `me@example.org` is none."""
    found = _TOKEN.search(line)
    return Token(found["quoted"] or found["bare"] or "", len(line) - found.start()) if found else None


def tokens_in(text: str) -> list[tuple[str, str]]:
    """Every (token, path) in a text: `("@notes.md", "notes.md")`, without the full stop of the sentence."""
    found = []
    for token in _TOKENS.finditer(text):
        path = token["quoted"] or token["bare"].rstrip(".,;:!?)]}>'’”»")
        found.append((token.group() if token["quoted"] else f"@{path}", path))
    return [(token, path) for token, path in found if path]


def place(typed: str, workspace: str = "") -> Path:
    """Where a typed path is: in the chat's workspace, if it is there, else as seen from the current folder. One that
    begins with / or ~ is where it says. Blocks. Raises OSError, RuntimeError, ValueError: it is nowhere."""
    path = Path(typed).expanduser()
    if workspace and (inside := Path(workspace) / path).exists():
        return inside
    return path


def is_file(typed: str, workspace: str = "") -> bool:
    """Whether this names a file that exists. Blocks."""
    try:
        return place(typed, workspace).is_file()
    except (OSError, RuntimeError, ValueError):
        return False


def looks_like_file(path: str) -> bool:
    """Whether somebody who writes this after `@` means a file, not a name."""
    return "/" in path or bool(re.search(r"\w\.[A-Za-z][A-Za-z0-9]{0,4}$", path))


def find(typed: str, workspace: str = "") -> list[FileHit]:
    """The entries of the typed folder that fit the rest, best first: those of the chat's workspace, or, where nothing
    there fits, as seen from the current folder. Blocks: call it in a thread.

    Hidden files are offered only after a dot. Nothing is an error here: an unreadable folder offers nothing.
    """
    return (_find(typed, workspace) if workspace else []) or _find(typed, "")


def _find(typed: str, folder: str) -> list[FileHit]:
    if typed in ("~", ".."):
        typed += "/"
    slashed = typed.replace(os.sep, "/")
    stem = slashed.rpartition("/")[2]
    prefix = slashed[: len(slashed) - len(stem)]
    ranked: list[tuple[tuple[int, int, str], os.DirEntry[str]]] = []
    wanted = stem.lower()
    end = time.monotonic() + LONGEST_S
    try:
        with os.scandir(Path(folder) / Path(prefix or ".").expanduser()) as entries:
            for number, entry in enumerate(entries):
                if number % 1000 == 999 and time.monotonic() > end:
                    break
                name = entry.name.lower()
                if name.startswith(".") != wanted.startswith("."):
                    continue
                if (fit := rank(wanted, name)) is not None:
                    ranked.append(((fit, len(name) if wanted else 0, name), entry))
    except (OSError, RuntimeError, ValueError):
        return []
    ranked.sort(key=lambda item: item[0])
    hits = [FileHit(f"{prefix}{entry.name}{'/' if folder else ''}", folder) for entry, folder in _kinds(ranked)]
    # Nothing typed yet: folders first, as file managers show them.
    return hits if wanted else sorted(hits, key=lambda hit: not hit.is_folder)


def _kinds(
    ranked: list[tuple[tuple[int, int, str], os.DirEntry[str]]],
) -> list[tuple[os.DirEntry[str], bool]]:
    found = []
    for _, entry in ranked[:MOST]:
        try:
            if not entry.name.isprintable() or '"' in entry.name:
                continue
            found.append((entry, entry.is_dir()))
        except OSError:
            continue
    return found


PART = 2
"""The rank of a name that has what was wanted in it."""


def rank(wanted: str, name: str) -> int | None:
    """0 the very name, 1 its beginning, 2 a part of it, 3 its letters in order, None nothing of the kind."""
    if name == wanted:
        return 0
    if name.startswith(wanted):
        return 1
    if wanted in name:
        return PART
    left = iter(name)
    return 3 if all(letter in left for letter in wanted) else None
