"""What a tool's outcome says of the reply that called it, by plain rules.

It must never give a hint: tools cannot teach wishes.
"""

from __future__ import annotations

import re
from typing import Literal

_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?|return ?code|exit_?code|\brc|"
    r"status code of the process)[\"']?\s*[:= ]\s*(-?\d{1,3})\b",
    re.I,
)
_NON_ZERO = re.compile(r"non-zero exit (?:status|code)", re.I)
_HTTP = re.compile(r"(?:\bHTTP(?:/\d(?:\.\d)?)?|\bstatus(?:[_ ]?code)?[\"']?\s*[:=])\s*[\"']?([1-5]\d\d)\b", re.I)
_FLAG = re.compile(r"[\"'](?:success|ok)[\"']\s*:\s*(true|false)", re.I)
_ERROR_FIELD = re.compile(
    r"[\"'](?:error|errors|exception)[\"']\s*:\s*(?!null|none|false|\[\s*\]|\{\s*\}|\"\"|'')\S", re.I
)
_TESTS_FAILED = re.compile(r"\b[1-9]\d* (?:failed|failures?|errors?)\b|^(?:FAILED|FAIL:|ERROR:?)\b", re.MULTILINE)
_TESTS_PASSED = re.compile(r"\b[1-9]\d* (?:passed|tests? ok)\b|^OK$", re.MULTILINE)
_FAILURE = re.compile(
    r"Traceback \(most recent call last\)|^\s*(?:\w+\.)*\w*(?:Error|Exception): |^(?:\w+: )?(?:fatal|error|"
    r"panic)(?:\[\w+\])?: |command not found|"
    r"No such file or directory|Permission denied|Segmentation fault|core dumped|Connection refused|"
    r"\btimed out\b|^panic: |"
    r"SyntaxError|\bcannot find (?:module|package)|npm ERR!",
    re.MULTILINE | re.I,
)


def outcome(text: str) -> Literal[-1, 0, 1]:
    """-1: it failed, +1: it says that it succeeded, 0: it does not say. A status outweighs the rest."""
    codes = [int(found) for found in _EXIT.findall(text)]
    if codes or _NON_ZERO.search(text):
        return 1 if codes and codes[-1] == 0 else -1
    statuses = [int(found) for found in _HTTP.findall(text)]
    if statuses and statuses[-1] >= 200:
        return -1 if statuses[-1] >= 400 else (1 if statuses[-1] < 300 else 0)
    flags = [found.lower() == "true" for found in _FLAG.findall(text)]
    if flags:
        return 1 if all(flags) else -1
    if _TESTS_FAILED.search(text) or _FAILURE.search(text) or _ERROR_FIELD.search(text):
        return -1
    return 1 if _TESTS_PASSED.search(text) else 0
