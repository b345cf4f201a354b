"""How many there are of what is kept, in the language in use: "3 chats". It must never count anything itself."""

from __future__ import annotations

from ..language import ngettext, number


def counted(name: str, count: int) -> str:
    """So many of a sort by its English plural; a sort that has no words here by that name."""
    words = {
        "chats": ngettext("{number} chat", "{number} chats", count),
        "messages": ngettext("{number} message", "{number} messages", count),
        "signals": ngettext("{number} signal", "{number} signals", count),
        "hints": ngettext("{number} hint", "{number} hints", count),
        "samples": ngettext("{number} sample", "{number} samples", count),
        "drafts": ngettext("{number} draft", "{number} drafts", count),
        "titles": ngettext("{number} title", "{number} titles", count),
        "settings": ngettext("{number} setting", "{number} settings", count),
        "adapters": ngettext("{number} adapter", "{number} adapters", count),
    }
    return words.get(name) or f"{number(count)} {name.removesuffix('s') if count == 1 else name}"
