"""Keys of programs that ask: made here, shown once, kept as hashes. It must never know who shows them."""

from __future__ import annotations

import secrets

from ..errors import UsageError
from ..store import Store
from ..store.served import ServedKey

KEY_BEGINS = "claw-"
SHORTEST = 16
LONGEST = 256
LONGEST_NAME = 40


def make(store: Store, name: str, *, learn: bool) -> tuple[ServedKey, str]:
    """A new key, and its text: this is the only time it is seen. Raises UsageError."""
    secret = KEY_BEGINS + secrets.token_urlsafe(32)
    return store.keys.add(_checked(name), secret, learn=learn), secret


def take(store: Store, secret: str, *, learn: bool) -> ServedKey:
    """A key the person chose; the same one again is the same key. Raises UsageError: it can be guessed."""
    if not SHORTEST <= len(secret) <= LONGEST or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise UsageError(
            f"A key has {SHORTEST} to {LONGEST} characters of ASCII without spaces. Leave it out, and one is made."
        )
    found = store.keys.find(secret)
    if found is not None:
        return store.keys.set_learn(found.name, True) if learn and not found.learn else found
    names = {key.name for key in store.keys.list()}
    name = next(name for name in ("given", *(f"given-{n}" for n in range(2, 1000))) if name not in names)
    return store.keys.add(name, secret, learn=learn)


def _checked(name: str) -> str:
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(f"A key's name has 1 to {LONGEST_NAME} characters that can be shown, such as: laptop")
    return name
