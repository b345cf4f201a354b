"""Tools that write: a whole file, or more at its end; and the way back. What is written was shown before."""

from __future__ import annotations

import difflib
import hashlib
import threading
from dataclasses import dataclass

from ..language import _
from .arguments import Append, Write, checked, spec_of
from .base import Call, Prepared, Result, ToolError, Undo, cut_middle
from .folder import Folder, parts_of
from .looking import read_file, text_of

LONGEST_DIFF = 100_000
"""Characters of a diff that are shown; of a longer one the middle is left out, and how much that is."""


@dataclass(frozen=True)
class Writing:
    """write and append in one folder. They ask first, and what they did can be undone."""

    folder: Folder

    specs = (spec_of("write", Write), spec_of("append", Append))

    def prepare(self, call: Call) -> Prepared:
        """What the call would do, with the diff. Raises ToolError: it cannot be done."""
        if call.name == "write":
            said = checked(Write, call)
            path, text = said.path, said.content
        else:
            added = checked(Append, call)
            path, text = added.path, added.content
        parts = parts_of(path, self.folder.root)
        if not parts:
            raise ToolError("Name a file to write.")
        try:
            addition = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ToolError("The text holds half a character, which no file can hold.") from error
        shown = "/".join(parts)
        before, mode = self._now(parts)
        old = b"" if before is None else before
        if before is not None:
            text_of(before, shown)  # What is no text is not written over.
        after = addition if call.name == "write" else _joined(old, text)
        if before == after:
            return Prepared(call, f"{call.name} {shown}", "", False, "", lambda __: Result(f"{shown} is so already."))
        title = f"{call.name} {shown}" + (" " + _("(a new file)") if before is None else "")

        def perform(__: threading.Event | None) -> Result:
            if self._now(parts)[0] != before:
                raise ToolError(f"{shown} has changed since its diff was shown, so nothing was written. Try again.")
            with self.folder.at(parts[:-1], of=parts[-1], make=True) as place:
                place.replace(parts[-1], after, mode=mode)
            done = "added to" if call.name == "append" else "wrote"
            return Result(
                f"{done} {shown}: {len(after):,} bytes", undo=Undo(shown, before, hashlib.sha256(after).hexdigest())
            )

        return Prepared(call, title, diff(shown, before, after), True, call.name, perform)

    def _now(self, parts: list[str]) -> tuple[bytes | None, int | None]:
        """A file's content and mode; (None, None) if it is not there. Raises ToolError: something else is."""
        for depth in range(len(parts)):
            with self.folder.at(parts[:depth], of=parts[depth]) as place:
                if place.status(place.spelt(parts[depth])) is None:
                    return None, None
        data, status = read_file(self.folder, parts)
        return data, status.st_mode & 0o777

    def undo(self, undo: Undo) -> str:
        """Make a file what it was before. Returns what was done, in words.

        Raises:
            ToolError: the file is something else by now, or cannot be written.
        """
        parts = parts_of(undo.path, self.folder.root)
        data, mode = self._now(parts)
        if data is None or hashlib.sha256(data).hexdigest() != undo.after_sha256:
            raise ToolError(f"{undo.path} has been changed since, so it is left as it is. Undo it by hand.")
        with self.folder.at(parts[:-1], of=parts[-1]) as place:
            if undo.before is None:
                place.remove(parts[-1])
                return f"{undo.path} is gone again: it was new."
            place.replace(parts[-1], undo.before, mode=mode)
        return f"{undo.path} is as it was."


def diff(path: str, before: bytes | None, after: bytes) -> str:
    """The change as a unified diff, cut in its middle if it is long; nothing in it moves a terminal."""
    old, new = ("" if data is None else data.decode(_encoding(data), "replace") for data in (before, after))
    lines = difflib.unified_diff(
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        fromfile="nothing" if before is None else path,
        tofile=path,
    )
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return cut_middle("".join(c if c.isprintable() or c in "\n\t" else "�" for c in text), LONGEST_DIFF)


def _joined(old: bytes, addition: str) -> bytes:
    """A text with more at its end in its own encoding, which begins on a line of its own."""
    encoding = _encoding(old)
    end, crlf = "\n".encode(encoding), "\r\n".encode(encoding)
    if old and not old.endswith(end):
        old += crlf if crlf in old else end
    return old + addition.encode(encoding)


def _encoding(data: bytes) -> str:
    """As `text_of` reads it; of UTF-16 the byte order, so that nothing writes the mark a second time."""
    return {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(data[:2], "utf-8")
