"""Which adapters there are, which one is in use, and the way back. It must never know how they are trained."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

from ..engine.base import AdapterSlot
from ..errors import AdapterError, NotFoundError
from ..store import AdapterRecord, Store
from .retiring import settle

REMEDY = "`claw-local adapters use base` goes back to the base model; `claw-local adapters list` shows the others."

AdapterChoice = int | Literal["base"] | None


class Registry:
    """The adapters of one store. A switch is a row in the database, so every open program sees it at its next turn."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._checked: set[tuple[str, int, int]] = set()

    def list(self) -> list[AdapterRecord]:
        """Newest first."""
        return self._store.adapters.list()

    def get(self, adapter_id: int) -> AdapterRecord:
        """Raises NotFoundError."""
        return self._store.adapters.get(adapter_id)

    def active(self, model_sha256: str) -> AdapterRecord | None:
        """The adapter in use for that base model; None means the base itself."""
        return self._store.adapters.active(model_sha256)

    def use(self, choice: int | Literal["base"], model_sha256: str) -> AdapterRecord | None:
        """Put an adapter (or the base) into use from the next turn on, and out of the prompt the hints it has learned.

        Raises:
            NotFoundError: no such adapter.
            AdapterError: it belongs to another base model, or its file is gone or was changed.
        """
        if choice == "base":
            put_into_use(self._store, None, model_sha256)
            return None
        record = self.get(choice)
        if record.model_sha256 != model_sha256:
            raise AdapterError(
                f"Adapter {choice} was made for another model than the one in use. "
                "Open claw-local with that model (`--model`), or choose another adapter."
            )
        verify(record)
        put_into_use(self._store, record, model_sha256)
        return self.get(choice)

    def rollback(self, model_sha256: str) -> AdapterRecord | None:
        """One step back: to the parent of the adapter in use (None: the base).

        Raises:
            AdapterError: the base is in use already.
        """
        current = self.active(model_sha256)
        if current is None:
            raise AdapterError("The base model is in use: there is nothing to roll back.")
        parent = current.parent_id
        while parent:
            try:
                return self.use(parent, model_sha256)
            except (NotFoundError, AdapterError):
                # A parent whose files are gone is stepped over: the way back must never be closed.
                try:
                    parent = self.get(parent).parent_id
                except NotFoundError:
                    break
        self.use("base", model_sha256)
        return None

    def choose(self, choice: AdapterChoice, model_sha256: str) -> AdapterRecord | None:
        """The adapter a reply is to be written with: the one named, or the one in use. None means the base."""
        if choice == "base" or choice == 0:
            return None
        if choice is None:
            active = self.active(model_sha256)
            return None if active is None else self._verified(active)
        record = self.get(choice)
        if record.model_sha256 != model_sha256:
            raise AdapterError(
                f"Adapter {choice} was made for another model than the one in use. `--adapter base` works."
            )
        return self._verified(record)

    def _verified(self, record: AdapterRecord) -> AdapterRecord:
        """The record, after its file was checked; a file that has not changed since is not read again."""
        try:
            status = Path(record.gguf_path).stat()
            stamp = (record.gguf_path, status.st_size, status.st_mtime_ns)
        except OSError:
            stamp = (record.gguf_path, -1, -1)
        if stamp not in self._checked:
            verify(record)
            self._checked.add(stamp)
        return record


def put_into_use(store: Store, record: AdapterRecord | None, model_sha256: str) -> None:
    """Make this the adapter in use (None: the base), and the hints' states fit it."""
    with store.database.write():
        store.adapters.activate(record.id if record else None, model_sha256)
        settle(store, record)


def slots(record: AdapterRecord | None) -> list[AdapterSlot]:
    """What the engine is to apply."""
    return [] if record is None else [AdapterSlot(Path(record.gguf_path))]


def verify(record: AdapterRecord) -> None:
    """Check that the adapter's files are the ones that were written.

    Raises:
        AdapterError: one is missing or was changed.
    """
    if record.state == "forgotten":
        raise AdapterError(f"Adapter {record.id} is gone: it had learned from what you had forgotten. {REMEDY}")
    path = Path(record.gguf_path)
    if not path.is_file():
        raise AdapterError(f"The file of adapter {record.id} is gone ({path}). {REMEDY}")
    expected = record.sha256.get(path.name)
    if expected and file_sha256(path) != expected:
        raise AdapterError(f"The file of adapter {record.id} has been changed ({path}). {REMEDY}")


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
