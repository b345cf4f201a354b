"""Everything a person can do, once: the keys, the palette and the help page are all made from this table."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True)
class Command:
    """One thing to do.

    Attributes:
        action: name of the action on the main screen.
        keys: keys that work everywhere, while typing too; separated by commas.
        letters: keys that work while not typing (the focus is on a reply or the list).
        title: what it is called in the palette and in the help.
        short: what it is called in the footer; empty keeps it out of there.
    """

    action: str
    keys: str
    letters: str
    title: str
    help: str
    short: str = ""


GROUPS: dict[str, tuple[Command, ...]] = {
    "Chats": (
        Command("new_chat", "ctrl+n", "", "New chat", "Begin a new chat", "New"),
        Command("toggle_chats", "ctrl+o", "", "Chats", "Show or hide the list of chats", "Chats"),
        Command("rename_chat", "f2", "", "Rename chat", "Give this chat another name"),
        Command("delete_chat", "f8", "", "Delete chat", "Delete this chat, after a question"),
    ),
    "Replies": (
        Command("stop", "escape", "", "Stop", "Stop the reply; or go back to typing"),
        Command("good", "ctrl+g", "plus,equals_sign", "Good reply", "Mark the reply as good", "Good"),
        Command("bad", "ctrl+b", "minus", "Bad reply", "Mark the reply as bad", "Bad"),
        Command("hint", "f4", "h", "Give a hint", "Say what the reply should have been like"),
        Command("edit", "f3", "e", "Edit reply", "Write the reply as you want it to be"),
        Command("copy", "", "y", "Copy reply", "Copy the reply to the clipboard"),
    ),
    "Learning": (
        Command("toggle_learning", "ctrl+l", "", "Learning on or off", "May chats teach the assistant?", "Learning"),
        Command("learn_now", "f5", "", "Learn now", "Train on what you taught; again to stop"),
    ),
    "App": (
        Command("app.help", "f1", "question_mark", "Help", "All keys on one page", "Help"),
        Command("app.toggle_theme", "f9", "", "Dark or light", "Change between the dark and the light theme"),
        Command("app.quit", "ctrl+q", "", "Quit", "Leave; what was said is kept", "Quit"),
    ),
}

COMMANDS: tuple[Command, ...] = tuple(command for group in GROUPS.values() for command in group)

_NAMES = {
    "escape": "Esc",
    "plus": "+",
    "minus": "-",
    "question_mark": "?",
    "enter": "Enter",
}


def key_name(key: str) -> str:
    """A key as it is printed on keyboards: ctrl+n becomes Ctrl+N."""
    return _NAMES.get(key) or "+".join(part.capitalize() for part in key.split("+"))


def key_names(command: Command) -> str:
    """The keys of a command for the help page, without aliases that are the same key."""
    keys = [key for key in f"{command.keys},{command.letters}".split(",") if key and key != "equals_sign"]
    return ", ".join(key_name(key) if len(key) > 1 else key for key in keys)


def bindings() -> list[Binding]:
    """The table as Textual bindings. Letters never reach them while a text field has the focus."""
    made = []
    for command in COMMANDS:
        if command.keys:
            made.append(Binding(command.keys, command.action, command.short or command.title, show=bool(command.short)))
        if command.letters:
            made.append(Binding(command.letters, command.action, command.title, show=False))
    return made
