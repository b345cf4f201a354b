"""Attached files: reading one, and showing a message that has some. It must never read but the one file they named."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path

from claw_local.errors import UsageError
from claw_local.language import _, ngettext
from claw_local.signals.attached import Attachment, split

from .text import clean, one_line
from .widgets.completion_files import place

LARGEST_BYTES = 1_000_000
"""More text than any model here reads at once; a bigger file is a mistake or a log."""


def read(typed: str, workspace: str = "") -> Attachment:
    """The text of the file at this path (`~` is the home folder). Blocks: call it where it cannot freeze the screen.

    Args:
        workspace: the chat's, where the path is looked for first.

    Raises:
        UsageError: it cannot be attached; the message says why and what to do.
    """
    name = one_line(typed)
    data = _bytes(typed, name, workspace)
    if len(data) > LARGEST_BYTES:
        raise UsageError(
            _(
                "{name} is larger than {largest_bytes} MB, the most that can be attached. "
                "Attach a part of it, or paste what matters.",
                name=name,
                largest_bytes=LARGEST_BYTES // 1000000,
            )
        )
    text = _text(data)
    if text is None:
        raise UsageError(
            _("{name} is not a text file, so it cannot be attached. Its text has to be in UTF-8 or UTF-16.", name=name)
        )
    if not text.strip():
        raise UsageError(_("{name} is empty: there is nothing to attach.", name=name))
    return Attachment(name, clean(text))


def refused(typed: str, workspace: str = "") -> str:
    """Why the file at this path cannot be read, in a sentence; empty if it can. Blocks."""
    try:
        _bytes(typed, one_line(typed), workspace)
    except UsageError as error:
        return str(error)
    return ""


def folded(message: str) -> str:
    """A message as it is shown: each attachment as one line with its name and size."""
    parts = split(message)
    if all(isinstance(part, str) for part in parts):
        return message
    shown = [
        part.strip("\n")
        if isinstance(part, str)
        else f"▤ {part.name} · " + ngettext("{number} character", "{number} characters", len(part.text))
        for part in parts
    ]
    return "\n".join(shown)


def _bytes(typed: str, name: str, workspace: str) -> bytes:
    path = Path(typed)
    try:
        path = place(typed, workspace)
        # Not blocking: a pipe without a writer would wait for one for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(handle, "rb") as file:
            kind = os.fstat(handle).st_mode
            if stat.S_ISDIR(kind):
                raise IsADirectoryError
            if not stat.S_ISREG(kind):
                raise UsageError(_("{name} is a device or a pipe, not a file: it cannot be attached.", name=name))
            return file.read(LARGEST_BYTES + 1)
    except (IsADirectoryError, PermissionError) as error:
        if isinstance(error, IsADirectoryError) or path.is_dir():
            raise UsageError(_("{name} is a folder. Go on typing to choose a file in it.", name=name)) from error
        raise UsageError(_("{name} cannot be read: you have no permission.", name=name)) from error
    except FileNotFoundError as error:
        raise UsageError(_("There is no file {name}.", name=name)) from error
    except (OSError, RuntimeError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise UsageError(_("{name} cannot be read: {said}.", name=name, said=said)) from error


def _text(data: bytes) -> str | None:
    """None if these bytes are no text."""
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
