"""What a backup's file says about itself, and which names may stand in it. It must never open one.

Format: docs/backup.md. A zip file; the entry `manifest.json` lists all others with their sizes and SHA-256.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from ..language import _

FORMAT, VERSION = "claw-local-backup", 1
MANIFEST = "manifest.json"
DATABASE, SETTINGS = "claw-local.db", "settings.toml"
ENCRYPTION = "claw-local.db.encrypted"
"""There where the database is encrypted: with what kind of key, and its salt."""
LARGEST_MANIFEST = 16 << 20
LONGEST_NAME = 400
COUNTED = ("chats", "messages", "hints", "adapters")

_NAME = re.compile(r"claw-local\.db(?:\.encrypted)?|settings\.toml|themes/[^/]+\.toml|adapters/[^/]+(?:/[^/]+)+")
_BAD_PART = re.compile(r'[\x00-\x1f\x7f\ud800-\udfff\\:*?"<>|]|^\.{1,2}$|^\s|[\s.]$')
_MOMENT = re.compile(r"[0-9T:.+-]{16,40}Z?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Wrong(ValueError):
    """The file is no backup that can be taken. The message completes "The file ..."."""


@dataclass(frozen=True)
class Entry:
    """One file of a backup: bytes, and SHA-256 in hex."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What is in a backup.

    Attributes:
        created_at: UTC, ISO 8601.
        app: version of claw-local that wrote it.
        migrations: of its database, in order.
        counts: chats, messages, hints, adapters.
        files: by name, `/` between folders.
    """

    created_at: str
    app: str
    migrations: tuple[str, ...]
    counts: dict[str, int]
    files: dict[str, Entry]

    def as_bytes(self) -> bytes:
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=1).encode()


def is_allowed(name: str) -> bool:
    """Whether a file of that name may be in a backup: it can lead nowhere but into its place."""
    parts = name.split("/")
    return (
        len(name) <= LONGEST_NAME
        and _NAME.fullmatch(name) is not None
        and not any(_BAD_PART.search(part) for part in parts)
    )


def read_manifest(data: bytes) -> Manifest:
    """Raises Wrong: it is none, or of a newer kind."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Wrong(_("is damaged: what it says about itself cannot be read")) from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise Wrong(_("is not a backup of claw-local"))
    if value.get("version") != VERSION:
        raise Wrong(_("was written by a newer claw-local; update it first"))
    try:
        files = {name: Entry(**entry) for name, entry in value["files"].items()}
        manifest = Manifest(
            created_at=value["created_at"],
            app=value["app"],
            migrations=tuple(value["migrations"]),
            counts=dict(value["counts"]),
            files=files,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Wrong(_("is damaged: what it says about itself is not whole")) from error
    _check(manifest)
    return manifest


def _check(manifest: Manifest) -> None:
    if not _all_are(str, [manifest.created_at, manifest.app, *manifest.migrations]):
        raise Wrong(_("is damaged: what it says about itself is not whole"))
    counted = all(name in COUNTED and type(count) is int and count >= 0 for name, count in manifest.counts.items())
    if not counted or not _MOMENT.fullmatch(manifest.created_at):
        raise Wrong(_("is damaged: what it says about itself is not whole"))
    for name, entry in manifest.files.items():
        if not is_allowed(name):
            raise Wrong(_("holds {name!r}, which has no place in a backup", name=name[:80]))
        if type(entry.size) is not int or entry.size < 0 or not isinstance(entry.sha256, str):
            raise Wrong(_("is damaged: what it says about {name} is not whole", name=name))
        if not _SHA256.fullmatch(entry.sha256):
            raise Wrong(_("is damaged: what it says about {name} is not whole", name=name))
    if DATABASE not in manifest.files:
        raise Wrong(_("has no database in it"))
    if len({name.casefold() for name in manifest.files}) != len(manifest.files):
        raise Wrong(_("has two files of the same name"))


def _all_are(kind: type, values: Collection[Any]) -> bool:
    return all(isinstance(value, kind) for value in values)
