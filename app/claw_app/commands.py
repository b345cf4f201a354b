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

    @property
    def slash(self) -> str:
        """Its name as a slash command: `rename_chat` is /rename."""
        return SLASH.get(self.action) or self.action.removeprefix("app.").removesuffix("_chat").replace("_", "-")

    @property
    def words(self) -> str:
        """What may follow its slash command, empty if nothing may."""
        return WORDS.get(self.action, "")


SLASH = {
    "toggle_chats": "chats",
    "search_chats": "search",
    "filter_chats": "find",
    "chat_settings": "settings",
    "undo_delete": "undelete",
    "undo_last": "undo",
    "attach_file": "attach",
    "new_incognito": "incognito",
    "edit": "correct",
    "older_version": "before",
    "newer_version": "after",
    "toggle_learning": "learn",
    "learning_view": "learned",
    "app.toggle_theme": "theme",
    "app.change_theme": "themes",
    "first_steps": "start",
}
"""The slash commands whose name the action does not say well."""

WORDS = {
    "rename_chat": "TITLE",
    "search_chats": "WORDS",
    "workspace": "FOLDER",
    "hint": "TEXT",
    "toggle_learning": "on|off|now|status|pause|resume",
    "attach_file": "PATH",
    "app.toggle_theme": "NAME",
}
"""What may follow a slash command."""


GROUPS: dict[str, tuple[Command, ...]] = {
    "Chats": (
        Command("new_chat", "ctrl+n", "", "New chat", "Begin a new chat", "New"),
        Command("toggle_chats", "ctrl+o", "", "Chats", "Show or hide the list of chats", "Chats"),
        Command("search_chats", "f7", "", "Search", "Search in everything that was said, in every chat", "Search"),
        Command("filter_chats", "", "slash", "Find chat", "Find a chat by its title"),
        Command("rename_chat", "f2", "", "Rename chat", "Give this chat another name"),
        Command("chat_settings", "f6", "", "Chat settings", "Model, system prompt, sampling; may this chat teach?"),
        Command("workspace", "", "", "Workspace", "The one folder that this chat's tools may touch; none: no tools"),
        Command("delete_chat", "f8", "", "Delete chat", "Delete this chat; Ctrl+Z brings it back"),
        Command("undo_delete", "ctrl+z", "", "Undo delete", "Bring back the chat deleted last"),
        Command("undo_last", "", "", "Undo", "Take back what was done last: a deleted chat, a file that was written"),
        Command("archive_chat", "", "", "Archive chat", "Put this chat away, or take it out again"),
        Command("duplicate_chat", "", "", "Duplicate chat", "Go on in a copy of this chat"),
        Command("export_chat", "", "", "Export chat", "Write this chat, or all, to a Markdown or JSON file"),
        Command("new_incognito", "f12", "", "Incognito chat", "A chat that is never stored nor learned from"),
    ),
    "Replies": (
        Command("stop", "escape", "", "Stop", "Stop the reply; or go back to typing"),
        Command("good", "ctrl+g", "plus,equals_sign", "Good reply", "Mark the reply as good", "Good"),
        Command("bad", "ctrl+b", "minus", "Bad reply", "Mark the reply as bad", "Bad"),
        Command("hint", "f4", "h", "Give a hint", "Say what the reply should have been like"),
        Command("edit", "f3", "e", "Correct", "Write the reply as you want it, in place; or say a question otherwise"),
        Command(
            "regenerate",
            "ctrl+r",
            "r",
            "Ask again",
            "Ask for another reply; while learning is on, the one before counts as not wanted",
        ),
        Command("older_version", "", "left_square_bracket", "Version before", "Show the version before; also ←"),
        Command("newer_version", "", "right_square_bracket", "Next version", "Show the next version; also →"),
        Command("why", "", "w", "Why this answer", "What wrote it: adapter, hints, model, sampling, times"),
        Command("compare", "", "c", "Compare adapters", "One question, two adapters, side by side and blind"),
        Command("copy", "", "y", "Copy", "Copy the message to the clipboard; 1 to 9 copy one block of its code"),
    ),
    "Learning": (
        Command("toggle_learning", "ctrl+l", "", "Learning on or off", "May chats teach the assistant?", "Learning"),
        Command("learning_view", "ctrl+t", "l", "What it learned", "Score over time, hints, runs, adapters", "Learned"),
        Command("learn_now", "f5", "", "Learn now", "Train on what you taught; again to stop"),
    ),
    "Typing": (
        Command("attach_file", "", "", "Attach a file", "Attach a text file; or type @ and its path"),
        Command("editor", "ctrl+x", "", "Your editor", "Go on writing in $VISUAL or $EDITOR"),
    ),
    "App": (
        Command("app.help", "f1", "question_mark", "Help", "All keys on one page", "Help"),
        Command("app.toggle_theme", "f9", "", "Dark or light", "Change between the dark and the light theme"),
        Command("app.change_theme", "", "", "Choose theme", "Choose the colours from a list"),
        Command("first_steps", "", "", "First steps", "What this is, which model answers, what learning keeps"),
        Command("app.quit", "ctrl+q", "", "Quit", "Leave; what was said is kept", "Quit"),
    ),
}


def slash_commands(typed: str) -> list[Command]:
    """The commands that `/typed` may mean, best first: by the beginning of a name, of a part of it, then of a word of
    the title."""
    typed = typed.lower()

    def rank(command: Command) -> int:
        if command.slash == typed:
            return 0
        if command.slash.startswith(typed):
            return 1
        if any(part.startswith(typed) for part in command.slash.split("-")):
            return 2
        in_title = len(typed) > 2 and any(word.startswith(typed) for word in command.title.lower().split())
        return 3 if in_title else 4

    return sorted((command for command in COMMANDS if rank(command) < 4), key=rank)


COMMANDS: tuple[Command, ...] = tuple(command for group in GROUPS.values() for command in group)

_NAMES = {
    "escape": "Esc",
    "plus": "+",
    "minus": "-",
    "question_mark": "?",
    "slash": "/",
    "enter": "Enter",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
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
