"""A tool's outcome by plain rules."""

from __future__ import annotations

import pytest

from claw_local.judge.tools import outcome


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("exit code: 0", 1),
        ("done\nexit status 1", -1),
        ('{"returncode": 127, "stdout": ""}', -1),
        ("Command returned non-zero exit status 3.", -1),
        ("Traceback (most recent call last):\n  File ...\nValueError: no", -1),
        ("HTTP/1.1 200 OK", 1),
        ("HTTP/1.1 404 Not Found", -1),
        ("HTTP/1.1 400 Bad Request", -1),
        ("HTTP/1.1 300 Multiple Choices", 0),
        ('{"status": 503}', -1),
        ('{"status": 302}', 0),
        ('{"success": true}', 1),
        ('{"ok": false}', -1),
        ('{"error": "no such user"}', -1),
        ('{"error": null, "rows": 3}', 0),
        ("bash: foo: command not found", -1),
        ("3 failed, 12 passed in 0.4s", -1),
        ("12 passed in 0.4s", 1),
        ("error: cannot open\nexit code 0", 1),
        ("README.md\nsetup.py", 0),
        ("", 0),
    ],
)
def test_the_outcome_is_read(text: str, score: int) -> None:
    assert outcome(text) == score
