"""Where the styles lie. Each screen names its own, which are read when it is first shown."""

from pathlib import Path, PurePath

_FOLDER = Path(__file__).parent
LEARNED = _FOLDER / "learned.tcss"
OVER = _FOLDER / "over.tcss"
CHAT: list[str | PurePath] = [
    _FOLDER / f"{name}.tcss" for name in ("chat", "messages", "dialogs", "chats", "small", "plain")
]
"""The chat's; it is there before any other screen, so the others need not name these again."""
