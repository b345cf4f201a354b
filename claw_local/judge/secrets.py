"""Keys and tokens of known services, as detect-secrets' patterns see them. It must never ask any service about them.

Only its plugins' patterns are used, on text in memory: no scan of files, and no verification, which would send what it
found over the network. What people write in words ("my password is …"), cards and accounts, `filters` sees by itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def _detectors() -> tuple[Any, ...]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.plugins.base import RegexBasedDetector
    from detect_secrets.plugins.keyword import KeywordDetector

    # Keywords ("token: …") are for source code: in a wish they are everyday words.
    kinds = get_mapping_from_secret_type_to_class().values()
    return tuple(
        kind() for kind in kinds if issubclass(kind, RegexBasedDetector) and not issubclass(kind, KeywordDetector)
    )


def has_known_token(text: str) -> bool:
    """Whether a key or token of a known service stands in it, in the form that service gives it."""
    return any(
        found for detector in _detectors() for line in text.splitlines() for found in detector.analyze_string(line)
    )
