"""Bytes in words. It must never know of what."""

from __future__ import annotations


def size(count: int) -> str:
    """Bytes for a person: "2.5 GB"; as makers of disks and hubs count."""
    for unit, bytes_of_unit in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= bytes_of_unit:
            return f"{count / bytes_of_unit:.1f} {unit}"
    return f"{count} B"
