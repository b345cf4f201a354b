"""Everything a person can do, once: the keys, the palette and the help page are all made from this table."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding

from claw_local.language import N_, _


@dataclass(frozen=True)
class Command:
    """One thing to do.

    Attributes:
        action: name of the action on the main screen.
        keys: keys that work everywhere, while typing too; separated by commas.
        letters: keys that work while not typing (the focus is on a reply or the list).
        title: what it is called in the palette and in the help.
        short: what it is called in the footer; empty keeps it out of there.

    Title, help and short are in English: who shows them puts them into `_()`.
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
        return _(WORDS.get(self.action, ""))


SLASH = {
    "toggle_chats": "chats",
    "search_chats": "search",
    "filter_chats": "open",
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
    "learning_status": "status",
    "hold_learning": "pause",
    "release_learning": "resume",
    "choose_model": "model",
    "forget_message": "forget-this",
    "app.toggle_theme": "theme",
    "app.change_theme": "themes",
    "first_steps": "start",
}
"""The slash commands whose name the action does not say well."""

WORDS = {
    "rename_chat": N_("TITLE"),
    "filter_chats": N_("TITLE"),
    "choose_model": N_("NAME"),
    "forget_chat": N_("TEXT"),
    "search_chats": N_("WORDS"),
    "workspace": N_("FOLDER"),
    "export_chat": N_("PATH"),
    "hint": N_("TEXT"),
    "toggle_learning": "on|off|…",
    "attach_file": N_("PATH"),
    "app.toggle_theme": N_("NAME"),
}
"""What may follow a slash command."""

ALIASES = {"exit": "quit", "bye": "quit", "clear": "new", "again": "regenerate", "find": "open", "models": "model"}
"""What other programs call some of them: taken, and not offered."""


GROUPS: dict[str, tuple[Command, ...]] = {
    N_("Chats"): (
        Command("new_chat", "ctrl+n", "", N_("New chat"), N_("Begin a new chat"), N_("New")),
        Command(
            "toggle_chats", "ctrl+o", "", N_("Chats"), N_("Go to the list of chats; from there, hide it"), N_("Chats")
        ),
        Command(
            "search_chats",
            "f7",
            "",
            N_("Search"),
            N_("Search in everything that was said, in every chat"),
            N_("Search"),
        ),
        Command("filter_chats", "", "slash", N_("Open chat"), N_("Find a chat by its title, and go to it")),
        Command("rename_chat", "f2", "", N_("Rename chat"), N_("Give this chat another name")),
        Command("choose_model", "", "", N_("Model"), N_("Which model answers in this chat")),
        Command(
            "chat_settings", "f6", "", N_("Chat settings"), N_("Model, adapter, system prompt, sampling; may it teach?")
        ),
        Command(
            "workspace", "", "", N_("Workspace"), N_("The one folder that this chat's tools may touch; none: no tools")
        ),
        Command("delete_chat", "f8", "", N_("Delete chat"), N_("Delete this chat; Ctrl+Z brings it back")),
        Command(
            "undo_delete",
            "ctrl+z",
            "",
            N_("Undo delete"),
            N_("Bring back the chat put away last: deleted, or archived a moment ago"),
        ),
        Command(
            "undo_last", "", "", N_("Undo"), N_("Take back what was done last: a deleted chat, a file that was written")
        ),
        Command("archive_chat", "", "", N_("Archive chat"), N_("Put this chat away, or take it out again; Ctrl+Z too")),
        Command("duplicate_chat", "", "", N_("Duplicate chat"), N_("Go on in a copy of this chat")),
        Command(
            "forget_chat",
            "",
            "",
            N_("Forget chat"),
            N_("Take it out of all there is, for good; or all with TEXT"),
        ),
        Command(
            "forget_message",
            "",
            "",
            N_("Forget message"),
            N_("Take the message in focus out, with its question, for good"),
        ),
        Command("export_chat", "", "", N_("Export chat"), N_("Write this chat, or all, to a Markdown or JSON file")),
        Command("new_incognito", "f12", "", N_("Incognito chat"), N_("A chat that is never stored nor learned from")),
    ),
    N_("Replies"): (
        Command("stop", "escape", "", N_("Stop"), N_("Stop the reply; or go back to typing")),
        Command(
            "good",
            "ctrl+g",
            "plus,equals_sign",
            N_("Good reply"),
            N_("Mark the reply as good; again takes that back"),
            N_("Good"),
        ),
        Command(
            "bad", "ctrl+b", "minus", N_("Bad reply"), N_("Mark the reply as bad; again takes that back"), N_("Bad")
        ),
        Command("hint", "f4", "h", N_("Give a hint"), N_("Say what the reply should have been like")),
        Command(
            "edit",
            "f3",
            "e",
            N_("Correct"),
            N_("Write the reply as you want it, in place; or say a question otherwise"),
        ),
        Command(
            "regenerate",
            "ctrl+r",
            "r",
            N_("Ask again"),
            N_("Ask for another reply; while learning is on, the one before counts as not wanted"),
        ),
        Command(
            "older_version", "", "left_square_bracket", N_("Version before"), N_("Show the version before; also ←")
        ),
        Command("newer_version", "", "right_square_bracket", N_("Next version"), N_("Show the next version; also →")),
        Command("why", "", "w", N_("Why this answer"), N_("What wrote it: adapter, hints, model, sampling, times")),
        Command("compare", "", "c", N_("Compare adapters"), N_("One question, two adapters, side by side and blind")),
        Command(
            "copy", "", "y", N_("Copy"), N_("Copy the message to the clipboard; 1 to 9 copy one block of its code")
        ),
    ),
    N_("Learning"): (
        Command(
            "toggle_learning",
            "ctrl+l",
            "",
            N_("Learning on or off"),
            N_("May chats teach the assistant?"),
            N_("Learning"),
        ),
        Command(
            "learning_view",
            "ctrl+t",
            "l",
            N_("What it learned"),
            N_("Score over time, hints, runs, adapters"),
            N_("Learned"),
        ),
        Command("learn_now", "f5", "", N_("Learn now"), N_("Train on what you taught; again to pause or stop")),
        Command("learning_status", "", "", N_("How learning stands"), N_("What learning by itself waits for")),
        Command(
            "hold_learning", "", "", N_("Pause learning"), N_("Leave a run; learn nothing by itself until you resume")
        ),
        Command("release_learning", "", "", N_("Resume learning"), N_("It may learn by itself again")),
    ),
    N_("Typing"): (
        Command("attach_file", "", "", N_("Attach a file"), N_("Attach a text file; or type @ and its path")),
        Command("editor", "ctrl+x", "", N_("Your editor"), N_("Go on writing in $VISUAL or $EDITOR")),
    ),
    N_("App"): (
        Command("app.help", "f1", "question_mark", N_("Help"), N_("All keys on one page"), N_("Help")),
        Command("app.toggle_theme", "f9", "", N_("Dark or light"), N_("Change between the dark and the light theme")),
        Command("app.change_theme", "", "", N_("Choose theme"), N_("Choose the colours from a list")),
        Command("app.screenshot", "", "", N_("Screenshot"), N_("Save a picture of the screen (SVG)")),
        Command("first_steps", "", "", N_("First steps"), N_("What this is, which model answers, what learning keeps")),
        Command("app.quit", "ctrl+q", "", N_("Quit"), N_("Leave; what was said is kept"), N_("Quit")),
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
        in_title = len(typed) > 2 and any(word.startswith(typed) for word in _(command.title).lower().split())
        return 3 if in_title else 4

    return sorted((command for command in COMMANDS if rank(command) < 4), key=rank)


def meant(name: str) -> Command | None:
    """The command of this name, or the first whose name begins so."""
    name = ALIASES.get(name.lower(), name)
    exact = next((command for command in COMMANDS if command.slash == name.lower()), None)
    first = next(iter(slash_commands(name)), None)
    if exact is None and first is not None and name and first.slash.startswith(name.lower()):
        return first
    return exact


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


BY_LETTER = {
    key_name(letter) if len(letter) > 1 else letter: command.action
    for command in COMMANDS
    for letter in command.letters.split(",")
    if letter
}
"""The action of each letter."""


def key_names(command: Command) -> str:
    """The keys of a command for the help page, without aliases that are the same key."""
    keys = [key for key in f"{command.keys},{command.letters}".split(",") if key and key != "equals_sign"]
    return ", ".join(key_name(key) if len(key) > 1 else key for key in keys)


MOVING = {
    *("new_chat", "toggle_chats", "search_chats", "filter_chats", "rename_chat", "choose_model", "chat_settings"),
    *("workspace", "delete_chat", "forget_chat", "forget_message", "export_chat", "new_incognito", "undo_delete"),
    *("stop", "good", "bad", "hint", "edit", "why", "compare", "learning_view", "learn_now", "attach_file"),
    *("app.help", "app.change_theme"),
}
"""What opens a page or moves the focus, be it now and then: the next key is meant for where that goes, and waits."""
MOVING_KEYS = {
    *(
        key
        for command in COMMANDS
        if command.action in MOVING
        for key in f"{command.keys},{command.letters}".split(",")
        if key
    ),
    *("ctrl+p", "tab", "shift+tab"),
}
"""Their keys, and those that no command stands for."""


def bindings() -> list[Binding]:
    """The table as Textual bindings. Letters never reach them while a text field has the focus."""
    made = []
    for command in COMMANDS:
        if command.keys:
            shown = command.short or command.title
            made.append(Binding(command.keys, command.action, shown, show=bool(command.short)))
        if command.letters:
            made.append(Binding(command.letters, command.action, command.title, show=False))
    return made
