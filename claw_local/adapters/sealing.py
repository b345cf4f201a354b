"""Sealing a file with a passphrase, and opening it again. It must never know what is inside.

Format "CLAWSEAL" 1, described in docs/packs.md: the key comes from the passphrase through scrypt (RFC 7914), and the
file is encrypted in pieces with ChaCha20-Poly1305 (RFC 8439) in the STREAM construction (Hoang, Reyhanitabar, Rogaway,
Vizár 2015): a piece that is changed, moved, left out or added is noticed, and so is the end if it is missing.
"""

from __future__ import annotations

import os
import struct
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ..errors import AdapterError, UsageError
from ..language import _

MAGIC = b"CLAWSEAL"
VERSION = 1
PIECE = 1 << 16
"""Plain bytes of each piece but the last, which has fewer or as many."""
TAG = 16
_HEADER = struct.Struct(">8sBBBB16s7s")
LOG_N, R, P = 17, 8, 1
"""scrypt's cost: 128 MiB of memory, about half a second."""
MOST_LOG_N, MOST_P = 19, 4
"""What a file may ask of this machine: 512 MiB."""


@dataclass(frozen=True)
class _Header:
    """The first bytes of a sealed file; all of them are authenticated with every piece."""

    log_n: int
    r: int
    p: int
    salt: bytes
    prefix: bytes

    def packed(self) -> bytes:
        return _HEADER.pack(MAGIC, VERSION, self.log_n, self.r, self.p, self.salt, self.prefix)

    def nonce(self, number: int, last: bool) -> bytes:
        return self.prefix + struct.pack(">IB", number, last)

    def key(self, passphrase: str) -> bytes:
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

        text = unicodedata.normalize("NFC", passphrase)
        if not text.strip():
            raise UsageError(_("The passphrase is empty. Give one of several words."))
        try:
            return Scrypt(self.salt, 32, 1 << self.log_n, self.r, self.p).derive(text.encode("utf-8", "surrogatepass"))
        except MemoryError as error:
            need = 128 * self.r * (1 << self.log_n) >> 20
            raise AdapterError(
                _("A passphrase needs {need} MiB of free memory. Close other programs first.", need=need)
            ) from error


def seal(plain: BinaryIO, passphrase: str) -> Iterator[bytes]:
    """What `plain` holds, encrypted, piece by piece. Twice the same file gives different bytes: the salt is fresh.

    Raises:
        UsageError: the passphrase is empty.
    """
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    header = _Header(LOG_N, R, P, os.urandom(16), os.urandom(7))
    cipher, packed = ChaCha20Poly1305(header.key(passphrase)), header.packed()
    yield packed
    for number, (piece, last) in enumerate(_pieces(plain, PIECE)):
        yield cipher.encrypt(header.nonce(number, last), piece, packed)


def is_sealed(beginning: bytes) -> bool:
    """Whether a file that begins so was sealed."""
    return beginning.startswith(MAGIC)


def unseal(sealed: BinaryIO, passphrase: str) -> Iterator[bytes]:
    """What was sealed. Nothing is given out that was not written by someone who knew the passphrase.

    Raises:
        AdapterError: the passphrase is wrong, or the file was changed, cut or made by a newer version.
        UsageError: the passphrase is empty.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    header = _read_header(sealed.read(_HEADER.size))
    cipher, packed = ChaCha20Poly1305(header.key(passphrase)), header.packed()
    for number, (piece, last) in enumerate(_pieces(sealed, PIECE + TAG)):
        try:
            yield cipher.decrypt(header.nonce(number, last), piece, packed)
        except InvalidTag as wrong:
            if number == 0:
                raise AdapterError(
                    _("The passphrase is wrong, or the file was changed or cut. Try the passphrase again.")
                ) from wrong
            raise AdapterError(_("The file was changed or cut after it was sealed. Get it again.")) from wrong


def _read_header(data: bytes) -> _Header:
    if len(data) < _HEADER.size:
        raise AdapterError(_("The file is cut short. Get it again."))
    _magic, version, log_n, r, p, salt, prefix = _HEADER.unpack(data)
    if version != VERSION:
        raise AdapterError(
            _(
                "The file is sealed in format {version}, which this claw-local does not know. Update it.",
                version=version,
            )
        )
    if not 10 <= log_n <= MOST_LOG_N or r != R or not 1 <= p <= MOST_P:
        raise AdapterError(_("The file asks for more memory or time to open it than is reasonable. Get it again."))
    return _Header(log_n, r, p, salt, prefix)


def _pieces(file: BinaryIO, size: int) -> Iterator[tuple[bytes, bool]]:
    """Pieces of that size, and whether each is the last; an empty file is one empty piece."""
    piece = _read(file, size)
    while True:
        following = _read(file, size) if len(piece) == size else b""
        yield piece, not following
        if not following:
            return
        piece = following


def _read(file: BinaryIO, size: int) -> bytes:
    """As much as that unless the file ends."""
    parts = []
    while size and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
