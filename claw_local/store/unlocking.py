"""The key of an encrypted store: what is noted about it beside the database, and where it comes from.

It must never write a key or a passphrase anywhere but into the system's keyring, nor say one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .. import extras
from ..errors import StoreError, UsageError
from ..files import write_whole
from ..language import _
from ..prompting import asked

VARIABLE = "CLAW_LOCAL_STORE_PASSPHRASE"
SERVICE, NAME = "claw-local", "store"
"""Under which the keyring has the key."""
ITERATIONS = 256_000
"""SQLCipher's own, of PBKDF2 with SHA-512: its tools open the database with the same passphrase."""
SHORTEST = 8
TRIES = 3

Source = Literal["passphrase", "keyring"]

_RAW = re.compile(r"x'([0-9a-f]{64})'")
_CHECKED = b"claw-local store"


@dataclass(frozen=True)
class Key:
    """32 bytes, and the 16 at the beginning of the database that go with them."""

    raw: bytes = field(repr=False)
    salt: bytes

    @property
    def literal(self) -> str:
        """As SQLCipher takes it."""
        return f"x'{self.raw.hex()}{self.salt.hex()}'"

    @property
    def text(self) -> str:
        """As the variable and the keyring hold it."""
        return f"x'{self.raw.hex()}'"


@dataclass(frozen=True)
class Encryption:
    """What is noted beside an encrypted database. `check`: tells whether a key is the right one."""

    source: Source
    salt: bytes
    check: bytes

    def key(self, text: str) -> Key | None:
        """The key that a passphrase (or a key as the variable holds it) gives; None: it is a wrong one."""
        found = _key(text, self.salt)
        return found if hmac.compare_digest(_check(found), self.check) else None

    def write(self, file: Path) -> None:
        """Raises OSError."""
        noted = {"format": 1, "cipher": "SQLCipher 4", "key": self.source}
        noted |= {"salt": self.salt.hex(), "check": self.check.hex()}
        write_whole(file, json.dumps(noted, indent=1).encode() + b"\n")


def beside(database: Path) -> Path:
    """The file that says how a database is encrypted."""
    return database.with_name(f"{database.name}.encrypted")


def read(database: Path) -> Encryption | None:
    """How a database is encrypted; None: it is not, as far as is noted beside it.

    Raises:
        StoreError: what is noted cannot be read.
    """
    file = beside(database)
    try:
        noted = json.loads(file.read_bytes())
        if noted["format"] != 1 or noted["key"] not in ("passphrase", "keyring"):
            raise ValueError("of another format")
        salt, check = bytes.fromhex(noted["salt"]), bytes.fromhex(noted["check"])
        if (len(salt), len(check)) != (16, 32):
            raise ValueError("cut short")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(
            _(
                "{file}, which says how the database is encrypted, cannot be read. Put it back "
                "from a backup, or move it away: `claw-local encrypt on` makes it anew from the "
                "passphrase.",
                file=file,
            )
        ) from error
    return Encryption(noted["key"], salt, check)


def made(text: str, source: Source, salt: bytes = b"") -> tuple[Encryption, Key]:
    """A new encryption with a passphrase (or a key as the variable holds it).

    Raises:
        UsageError: the passphrase is too short.
    """
    if len(text) < SHORTEST:
        raise UsageError(
            _("The passphrase has fewer than {shortest} characters. Give one of several words.", shortest=SHORTEST)
        )
    key = _key(text, salt or secrets.token_bytes(16))
    return Encryption(source, key.salt, _check(key)), key


def _key(text: str, salt: bytes) -> Key:
    if raw := _RAW.fullmatch(text):
        return Key(bytes.fromhex(raw[1]), salt)
    words = unicodedata.normalize("NFC", text).encode("utf-8", "surrogateescape")
    return Key(hashlib.pbkdf2_hmac("sha512", words, salt, ITERATIONS, 32), salt)


def _check(key: Key) -> bytes:
    return hmac.digest(key.raw, _CHECKED + key.salt, "sha256")


# Where it comes from.

_known: dict[bytes, Key] = {}
"""Keys that were right, by their salts, for as long as this process lives."""
_guard = threading.RLock()


def know(key: Key) -> None:
    """Keep a key for as long as this process lives."""
    _known[key.salt] = key


def forget_keys() -> None:
    """Forget all keys that this process knows."""
    _known.clear()


def key_to(database: Path, encryption: Encryption) -> Key:
    """The key, from this process, the environment, the keyring, or the person, in this order.

    Raises:
        StoreError: there is none, or a wrong one.
    """
    with _guard:
        known = _known.get(encryption.salt)
        if known is None or not hmac.compare_digest(_check(known), encryption.check):
            known = _found(database, encryption)
            know(known)
        return known


def for_children(database: Path) -> dict[str, str]:
    """What a program that this one starts needs in its environment to open the database; nothing for a plain one."""
    encryption = read(database)
    key = _known.get(encryption.salt) if encryption is not None else None
    return {} if key is None else {VARIABLE: key.text}


def _found(database: Path, encryption: Encryption) -> Key:
    question = f"{'Passphrase' if encryption.source == 'passphrase' else 'Key'} of {database}: "
    tried = ""
    for source, text in offered(question, keyring=encryption.source == "keyring"):
        if key := encryption.key(text):
            return key
        if source == "keyring":
            continue  # Of another store.
        tried = "variable" if text == os.environ.get(VARIABLE) else "person"
    if tried == "variable":
        raise StoreError(
            _(
                "What the variable {variable} holds does not open {database}: it is another "
                "passphrase. Nothing was changed.",
                variable=VARIABLE,
                database=database,
            )
        )
    if tried:
        raise StoreError(
            _(
                "The passphrase is wrong: it does not open {database}. Nothing was changed; try again.",
                database=database,
            )
        )
    if encryption.source == "keyring":
        raise StoreError(
            _(
                "{database} is encrypted, and the keyring does not give its key. Unlock the "
                "keyring, or put the key into the variable {variable}.",
                database=database,
                variable=VARIABLE,
            )
        )
    raise StoreError(
        _(
            "{database} is encrypted. Start in a terminal, where its passphrase is asked for, "
            "or put it into the variable {variable}.",
            database=database,
            variable=VARIABLE,
        )
    )


def offered(question: str, *, keyring: bool = True) -> Iterator[tuple[Source, str]]:
    """What may be the key, one after the other: what the variable holds, what the keyring holds (`keyring`: whether it
    is looked into), and what the person says. Where the variable holds something, nobody is asked."""
    given = os.environ.get(VARIABLE, "")
    if given:
        yield "passphrase", given
    if keyring and (kept := of_keyring()):
        yield "keyring", kept
    for _try in range(0 if given else TRIES):
        said = asked(question)
        if not said:
            return
        yield "passphrase", said
        question = _("That is not it. Once more: ")


def of_keyring() -> str:
    """The store's key in the system's keyring; "" if there is none, no keyring, or a locked one."""
    try:
        import keyring

        return (keyring.get_password(SERVICE, NAME) or "").strip()
    except Exception:  # Each backend fails in its own way.
        return ""


def into_keyring() -> str:
    """The key in the system's keyring; made, and looked up again, where there is none.

    Raises:
        StoreError: there is no keyring that keeps it.
    """
    if kept := of_keyring():
        return kept
    new = Key(secrets.token_bytes(32), b"").text
    try:
        import keyring

        keyring.set_password(SERVICE, NAME, new)
    except ImportError as error:
        raise StoreError(
            _(
                "The keyring needs a package that is not installed. Install it: {command}",
                command=extras.to_type("encrypted"),
            )
        ) from error
    except Exception as error:  # Each backend fails in its own way.
        raise StoreError(
            _(
                "The system's keyring does not keep a key ({name}). Unlock it, or encrypt with "
                "a passphrase instead: leave --keyring out.",
                name=type(error).__name__,
            )
        ) from error
    if of_keyring() != new:
        raise StoreError(
            _("The system's keyring did not keep the key. Encrypt with a passphrase: leave --keyring out.")
        )
    return new
