"""The judge: what a reply was worth, read from what the person says next."""

from __future__ import annotations
