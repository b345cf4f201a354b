"""The history: searching, deleting, exporting and importing chats. It must never know about engines or learning."""

from __future__ import annotations

from .history import Found, History
from .report import ImportReport, Progress, Skipped

__all__ = ["Found", "History", "ImportReport", "Progress", "Skipped"]
