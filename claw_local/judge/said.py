"""What a message says by itself, whatever a model makes of it: lists of words, and wordings learned from labels.

It must never know a model's opinion.
"""

from __future__ import annotations

import hashlib
from functools import cache

from . import phrases, words
from .calibration import Floats


def evidence(question: str, reply: str, message: str, *, working: bool = False) -> Floats:
    """[3] nats for good, neutral and bad.

    Args:
        working: see `AnyJudge.judge`. The labels are of people who talk, not of people who work with tools: what was
            learned from them does not count then.
    """
    nats = words.evidence(question, reply, message, working=working)
    return nats if working else nats + phrases.evidence(question, reply, message)


@cache
def version() -> str:
    """Changes whenever any of it does."""
    return hashlib.sha256(f"{words.raw()}{phrases.version()}".encode()).hexdigest()
