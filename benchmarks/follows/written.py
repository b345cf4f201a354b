"""Pairs that no check can label: tone, warmth, level, language. Written by hand in `written.toml`.

Each subject has one reply for each manner. A wish for a manner is followed by the reply written in it, and not by the
one written in its opposite, so each reply is an answer "yes" to one wish and "no" to another.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def written(split: str) -> list[dict[str, Any]]:
    """The hand-written pairs of one split."""
    data = tomllib.loads((HERE / "written.toml").read_text("utf-8"))
    rows: list[dict[str, Any]] = []
    for number, subject in enumerate(subject for subject in data["subject"] if subject["split"] == split):
        for manner, wish in data["wish"].items():
            if wish.get("unseen", False) and split != "test":
                continue
            wordings = wish["tested"] if split == "test" else wish["hints"]
            broken = wish["broken_by"][number % len(wish["broken_by"])]
            for reply, follows in ((manner, True), (broken, False)):
                rows.append(
                    {
                        "id": f"{split}-{manner}-{'yes' if follows else 'no'}-w{number}",
                        "split": split,
                        "wish": manner,
                        "seen": not wish.get("unseen", False),
                        "source": "written",
                        "question": subject["question"],
                        "hint": wordings[(number + follows) % len(wordings)],
                        "reply": subject[reply],
                        "follows": follows,
                    }
                )
    return rows
