"""The one folder that tools may touch, and the only way into it: part by part, no link ever followed.

Each part of a path is opened relative to the one before it, so that what is checked is what is used: a folder that is
swapped for a link in between is found out. Where the system cannot do that (Windows), each part is looked at, and again
after opening.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .base import ToolError

LONGEST_PATH = 1024
LONGEST_SHOWN = 200
"""Characters of a path in a sentence about it."""
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))]
)
_REPARSE = 0x400
"""FILE_ATTRIBUTE_REPARSE_POINT: links, junctions, mount points of Windows."""


def parts_of(path: str, root: Path) -> list[str]:
    """The parts of a path below `root`. A whole path is taken if it leads there, by its words alone.

    Raises:
        ToolError: it leads out of the folder, or is no path at all.
    """
    if len(path) > LONGEST_PATH:
        raise ToolError(f"{path[:40]!r}… is too long: a path has at most {LONGEST_PATH} characters.")
    if any(unicodedata.category(letter) in ("Cc", "Cs") or letter in _BIDI for letter in path):
        raise ToolError("The path holds characters that cannot be shown. Name the file in plain characters.")
    shown = path.strip()
    whole = os.path.isabs(shown) or shown.startswith("/")
    if whole:
        try:
            shown = Path(shown).relative_to(root).as_posix()
        except ValueError:
            raise outside(path) from None
    if sys.platform == "win32":
        shown = shown.replace("\\", "/")
    parts = [part for part in shown.split("/") if part not in ("", ".")]
    if any(part == ".." for part in parts) or shown.startswith("~"):
        raise outside(path)
    if sys.platform == "win32":
        for part in parts:
            if ":" in part or part[-1] in " ." or part.split(".")[0].strip().lower() in _DEVICES:
                raise ToolError(f"{path} is no name of a file here.")
    return parts


def outside(path: str) -> ToolError:
    """The sentence for a path that leads out."""
    return ToolError(f"{path} is not in the workspace. Only what is in it can be used; paths begin at its top.")


class Folder:
    """An open workspace folder. All paths are lists of parts, as `parts_of` gives them.

    Raises:
        ToolError: there is no such folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._check_root()

    def _check_root(self) -> None:
        try:
            with self._root():
                pass
        except OSError as error:
            raise ToolError(
                f"The workspace {self.root} cannot be opened ({error.strerror or error}). Choose another folder."
            ) from error

    @contextmanager
    def _root(self) -> Iterator[int]:
        if not _BY_DESCRIPTOR:
            if not self.root.is_dir():
                raise OSError(errno.ENOTDIR, "it is no folder")
            yield -1
            return
        descriptor = os.open(self.root, _FOLDER)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def at(self, parts: list[str], *, of: str = "", make: bool = False) -> Iterator[Place]:
        """The folder of these parts, to work in.

        Args:
            of: what in it is worked on, which is named if that fails; "" for the folder itself.
            make: make the folders that are missing.

        Raises:
            ToolError: it is not there, no folder, or a link; or what is done inside fails.
        """
        with _in_words(""), self._root() as top:
            place, walked = Place(top, self.root), []
            try:
                for part in parts:
                    walked.append(part)
                    with _in_words("/".join(walked)):
                        below = place.enter(part, "/".join(walked), make=make)
                    place.close(top)
                    place = below
                with _in_words("/".join([*parts, of] if of else parts)):
                    yield place
            finally:
                place.close(top)


class Place:
    """A folder inside the workspace, held open: names in it mean what they meant when it was opened."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path

    def close(self, top: int) -> None:
        if self._descriptor not in (-1, top):
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def _at(self) -> dict[str, int]:
        return {"dir_fd": self._descriptor} if _BY_DESCRIPTOR else {}

    def _named(self, name: str) -> str:
        return name if _BY_DESCRIPTOR else str(self.path / name)

    def enter(self, name: str, shown: str, *, make: bool) -> Place:
        """The folder of this name in here. Raises OSError, ToolError."""
        name = self.spelt(name)
        if make and self.status(name) is None:
            os.mkdir(self._named(name), 0o777, **self._at)
        self._refuse_link(name, shown)
        if not _BY_DESCRIPTOR:
            if not (self.path / name).is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "it is no folder", shown)
            return Place(-1, self.path / name)
        return Place(os.open(name, _FOLDER, dir_fd=self._descriptor), self.path / name)

    def spelt(self, name: str) -> str:
        """A name as it is spelt here: ü may be one character or two."""
        if name.isascii() or self.status(name) is not None:
            return name
        meant = unicodedata.normalize("NFC", name)
        same = [other for other in self.names() if unicodedata.normalize("NFC", other) == meant]
        return same[0] if len(same) == 1 else name

    def status(self, name: str) -> os.stat_result | None:
        """What is there under a name, links not followed; None if nothing is."""
        try:
            return os.stat(self._named(name), follow_symlinks=False, **self._at)
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """All names in here, sorted. Those that cannot be spoken of (not UTF-8) are left out."""
        found = os.listdir(self._descriptor if _BY_DESCRIPTOR else self.path)
        return sorted(name for name in found if not any(map(_surrogate, name)))

    def open(self, name: str, shown: str, *, most: int) -> tuple[int, os.stat_result]:
        """A file of this name to read from, and what is known about it.

        Raises:
            OSError; ToolError: it is a link, no file (a device, a pipe), has another name, or is longer than `most`.
        """
        name = self.spelt(name)
        self._refuse_link(name, shown)
        # Not to wait for whoever writes into a pipe.
        flags = os.O_RDONLY | _FILE | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(self._named(name), flags, **self._at)
        try:
            status = os.fstat(descriptor)
            if not _BY_DESCRIPTOR:
                self._refuse_link(name, shown)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, "it is a folder", shown)
            if not stat.S_ISREG(status.st_mode):
                raise _is_no_file(shown)
            if status.st_nlink > 1:
                raise ToolError(f"{shown} is a hard link: the file has another name, maybe outside the workspace.")
            if status.st_size > most:
                raise ToolError(f"{shown} has {status.st_size:,} bytes; at most {most:,} can be used at once.")
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, status

    def replace(self, name: str, content: bytes, *, mode: int | None) -> None:
        """Put a whole file under a name, in one step: what was there, a link too, is replaced, never written into.

        Args:
            mode: who may do what with it; None: as the person's umask says of new files.
        """
        name = self.spelt(name)
        aside = f".claw-{os.getpid()}-{os.urandom(6).hex()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
        descriptor = os.open(self._named(aside), flags, 0o666 if mode is None else 0o600, **self._at)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            if _BY_DESCRIPTOR:
                os.rename(aside, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
            else:
                os.replace(self._named(aside), self._named(name))
        except BaseException:
            os.unlink(self._named(aside), **self._at)
            raise

    def remove(self, name: str) -> None:
        """Take a file away."""
        os.unlink(self._named(self.spelt(name)), **self._at)

    def _refuse_link(self, name: str, shown: str) -> None:
        status = self.status(name)
        if status is not None and is_link(status):
            raise _is_link(shown)


def _is_link(shown: str) -> ToolError:
    return ToolError(f"{shown} is a link. Links are not followed: they may lead out of the workspace.")


def _is_no_file(shown: str) -> ToolError:
    return ToolError(f"{shown} is no file but a device, a pipe or the like. It is left alone.")


def is_link(status: os.stat_result) -> bool:
    """Whether this is a symbolic link, or what Windows has of the kind."""
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_file_attributes", 0) & _REPARSE)


def _surrogate(letter: str) -> bool:
    return "\ud800" <= letter <= "\udfff"


@contextmanager
def _in_words(path: str) -> Iterator[None]:
    """The system's errors as sentences. `path`: what they are about; "" is the workspace itself."""
    try:
        yield
    except OSError as error:
        shown = path if len(path) <= LONGEST_SHOWN else f"{path[: LONGEST_SHOWN - 1]}…"
        if not path:
            raise ToolError(f"The workspace cannot be used: {error.strerror or error}.") from error
        if error.errno == errno.ENXIO:  # What opening a socket gives.
            raise _is_no_file(shown) from error
        if error.errno == errno.ENAMETOOLONG:
            raise ToolError(f"{shown} is too long a name for a file here. Choose a shorter one.") from error
        if error.errno in (errno.ELOOP, getattr(errno, "EMLINK", -1)):
            raise _is_link(shown) from error
        if isinstance(error, FileNotFoundError):
            raise ToolError(f"There is no {shown} in the workspace.") from error
        if isinstance(error, IsADirectoryError):
            raise ToolError(f"{shown} is a folder. List it, or name a file in it.") from error
        if isinstance(error, NotADirectoryError):
            raise ToolError(f"{shown} is no folder, or a link, which is not followed.") from error
        raise ToolError(f"{shown} cannot be used: {error.strerror or error}.") from error
