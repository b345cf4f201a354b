"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file aside, fsync it and rename it over `path`: whole or not at all."""
    write_pieces(path, [data], mode)


def write_pieces(path: Path, pieces: Iterable[bytes], mode: int = 0o600) -> None:
    """The same for data that is made while it is written."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
