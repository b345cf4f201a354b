"""Backups: one file with the chats, the adapters and the settings, and the way back. It must never ask anything."""

from __future__ import annotations

from .manifest import Manifest
from .restoring import Restored, look, restore
from .writing import Backup, write_backup

__all__ = ["Backup", "Manifest", "Restored", "look", "restore", "write_backup"]
