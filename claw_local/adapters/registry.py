"""Which adapters there are, which one is in use, and the way back. It must never know how they are trained."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from ..engine.base import AdapterSlot, ChatEngine, TakesLoras, has_tokens
from ..errors import AdapterError, NotFoundError, UsageError
from ..language import N_, _
from ..store import AdapterRecord, Store
from .naming import checked_name, is_free
from .retiring import settle

REMEDY = N_("`claw-local adapters use base` goes back to the base model; `claw-local adapters list` shows the others.")

AdapterChoice = int | str | None
"""An adapter's id or name, or "base"; None means the one in use."""

BEFORE = "adapter-before."
"""Flag of what was in use before the adapter now in use, by the model's hash: an id, 0 is the base."""
LONGEST_ID = 20
"""Digits of a number that can still be an id."""


class Registry:
    """The adapters of one store. A switch is a row in the database, so every open program sees it at its next turn."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._checked: set[tuple[str, int, int]] = set()

    def list(self) -> list[AdapterRecord]:
        """Newest first."""
        return self._store.adapters.list()

    def get(self, adapter: int | str) -> AdapterRecord:
        """By id, or by name. Raises NotFoundError."""
        if isinstance(adapter, int) or (adapter.isascii() and adapter.isdecimal() and len(adapter) < LONGEST_ID):
            return self._store.adapters.get(int(adapter))
        for record in self.list():
            if record.name and not is_free(record.name, [adapter]):
                return record
        raise NotFoundError(
            _(
                "There is no adapter called {adapter!r}. `claw-local adapters list` shows those there are.",
                adapter=adapter[:60],
            )
        )

    def active(self, model_sha256: str) -> AdapterRecord | None:
        """The adapter in use for that base model; None means the base itself."""
        return self._store.adapters.active(model_sha256)

    def use(self, choice: int | str, model_sha256: str) -> AdapterRecord | None:
        """Put an adapter (or the base) into use from the next turn on, and out of the prompt the hints it has learned.

        Raises:
            NotFoundError: no such adapter.
            AdapterError: it belongs to another base model, or its file is gone or was changed.
        """
        record = None if choice == "base" else self.checked(choice, model_sha256)
        with self._store.database.write():
            if record is not None:
                not_forgotten(self.get(record.id))  # while its file was looked at
            before = self.active(model_sha256)
            if (before.id if before else 0) != (record.id if record else 0):
                self._store.flags.set(BEFORE + model_sha256, str(before.id if before else 0))
            put_into_use(self._store, record, model_sha256)
        return self.get(record.id) if record else None

    def checked(self, choice: int | str, model_sha256: str) -> AdapterRecord:
        """An adapter that can be used with that model. Raises as `use`."""
        record = self.get(choice)
        if record.model_sha256 != model_sha256:
            raise AdapterError(
                _(
                    "Adapter {choice} was made for another model than the one in use. Open "
                    "claw-local with that model (`--model`), or choose another adapter.",
                    choice=choice,
                )
            )
        verify(record)
        return record

    def rollback(self, model_sha256: str) -> AdapterRecord | None:
        """One step back: to the parent of the adapter in use (None: the base). From a mix or an imported adapter, which
        were not trained here from what was in use, to what was in use before.

        Raises:
            AdapterError: the base is in use already.
        """
        current = self.active(model_sha256)
        if current is None:
            raise AdapterError(_("The base model is in use: there is nothing to roll back."))
        parent = current.parent_id
        if "mix" in current.recipe or "origin" in current.recipe:
            before = self._store.flags.get(BEFORE + model_sha256)
            parent = int(before) if before.isdecimal() else 0
        found = None
        while parent and found is None:
            try:
                found = self.checked(parent, model_sha256)
            except (NotFoundError, AdapterError):
                # A parent whose files are gone is stepped over: the way back must never be closed.
                try:
                    parent = self.get(parent).parent_id
                except NotFoundError:
                    break
        with self._store.database.write():
            put_into_use(self._store, found, model_sha256)
            self._store.flags.set(BEFORE + model_sha256, "")  # or the next step back would lead forward again
        return self.get(found.id) if found else None

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
                _(
                    "Adapter {choice} was made for another model than the one in use. `--adapter base` works.",
                    choice=choice,
                )
            )
        return self._verified(record)

    def choose_for(self, kept: int | None, model_sha256: str) -> AdapterRecord | None:
        """The same for a chat (or a profile) that keeps a choice of its own: an id, 0 is the base, None is none.

        One that is for another model than the one that answers, or that is gone, says nothing.
        """
        if kept:
            try:
                record = self.get(kept)
            except NotFoundError:
                return self.choose(None, model_sha256)
            kept = record.id if record.model_sha256 == model_sha256 and record.gguf_path else None
        return self.choose(kept, model_sha256)

    def rename(self, adapter: int | str, name: str) -> AdapterRecord:
        """Give an adapter a name; "" takes it away.

        Raises:
            NotFoundError: no such adapter. UsageError: the name cannot be, or another one has it.
        """
        with self._store.database.write():
            record = self.get(adapter)
            name = checked_name(name) if name else ""
            others = [other.name for other in self.list() if other.id != record.id]
            if name and not is_free(name, others):
                raise UsageError(
                    _("Another adapter is called {name}. Choose another name, or rename that one first.", name=name)
                )
            return self._store.adapters.update(record.id, name=name)

    def remove(self, adapter: int | str, folder: Path) -> AdapterRecord:
        """Delete an adapter for good, with its files, and return what it was.

        What was made from it stays, and counts its parent as its own from then on. Chats that kept to it go by what is
        in use.

        Args:
            folder: where adapters are kept. Files elsewhere are left alone.

        Raises:
            NotFoundError: no such adapter. AdapterError: it is in use, or a file cannot be removed.
        """
        with self._store.database.write():
            record = self.get(adapter)
            if record.state == "active":
                raise AdapterError(
                    _(
                        "Adapter {id} is in use. Put another one, or the base, into use first: "
                        "claw-local adapters use base",
                        id=record.id,
                    )
                )
            self._store.adapters.remove(record.id)
        own = Path(record.gguf_path).parent
        shared = any(Path(other.gguf_path).parent == own for other in self.list() if other.gguf_path)
        if record.gguf_path and own.parent == folder and not shared:
            try:
                if own.exists():
                    shutil.rmtree(own)
            except OSError as error:
                raise AdapterError(
                    _(
                        "Adapter {id} is gone from the list, but {own} cannot be removed "
                        "({error}). Delete that folder by hand.",
                        id=record.id,
                        own=own,
                        error=error.strerror or error,
                    )
                ) from error
        return record

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


def apply(engine: ChatEngine, record: AdapterRecord | None) -> None:
    """Let the engine answer with this adapter (None: the base) from the next call on; one behind a server too, if it
    takes adapters. Raises AdapterError: a file is missing, damaged, or does not fit the model."""
    if has_tokens(engine):
        engine.set_adapters(slots(record))
    elif isinstance(engine, TakesLoras):
        engine.set_lora(None if record is None else Path(record.peft_dir))


def verify(record: AdapterRecord) -> None:
    """Check that the adapter's files are the ones that were written.

    Raises:
        AdapterError: one is missing or was changed.
    """
    not_forgotten(record)
    path = Path(record.gguf_path)
    if not path.is_file():
        raise AdapterError(_("The file of adapter {id} is gone ({path}).", id=record.id, path=path) + " " + _(REMEDY))
    expected = record.sha256.get(path.name)
    if expected and file_sha256(path) != expected:
        raise AdapterError(
            _("The file of adapter {id} has been changed ({path}).", id=record.id, path=path) + " " + _(REMEDY)
        )


def not_forgotten(record: AdapterRecord) -> None:
    """Raises AdapterError: what it had learned was forgotten, and it with it."""
    if record.state == "forgotten":
        raise AdapterError(
            _("Adapter {id} is gone: it had learned from what you had forgotten.", id=record.id) + " " + _(REMEDY)
        )


def verify_all(record: AdapterRecord) -> None:
    """The same for every file of the adapter, the ones to train on and to export among them."""
    verify(record)
    for name, expected in record.sha256.items():
        path = Path(record.gguf_path).parent / name
        if not path.is_file():
            raise AdapterError(_("A file of adapter {id} is gone ({path}).", id=record.id, path=path) + " " + _(REMEDY))
        if file_sha256(path) != expected:
            raise AdapterError(
                _("A file of adapter {id} has been changed ({path}).", id=record.id, path=path) + " " + _(REMEDY)
            )


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
