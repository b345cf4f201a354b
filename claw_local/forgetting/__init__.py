"""Forgetting: out of the chats, out of fast memory, out of the weights, off the disk. It must never know who asks."""

from __future__ import annotations

from ..store.forgetting import Request
from .forgetting import Forgetting, Plan
from .receipts import Receipt

__all__ = ["Forgetting", "Plan", "Receipt", "Request"]
