"""Files of chats to import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .conftest import ChatGPT


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), "utf-8")
    return path


def kites() -> ChatGPT:
    return (
        ChatGPT()
        .say("s", "system", "", metadata={"is_visually_hidden_from_conversation": True})
        .say("u1", "user", "how do kites fly")
        .say("a1", "assistant", "Badly.", metadata={"model_slug": "gpt-4"})
        .say("a2", "assistant", "Let me look.", after="u1", metadata={"model_slug": "gpt-5"})
        .say("call", "assistant", "search('kites')", recipient="browser")
        .say("tool", "tool", "ten results")
        .say("think", "assistant", "hm", content={"content_type": "thoughts", "thoughts": []})
        .say("a3", "assistant", "By lift \ue200cite\ue202turn0\ue201 and tension.", metadata={"model_slug": "gpt-5"})
        .say("u2", "user", "thanks")
    )


def many(count: int) -> list[dict[str, Any]]:
    return [
        ChatGPT(f"c{n}").say("u", "user", f"question {n}").say("a", "assistant", "yes").export() for n in range(count)
    ]
