"""The first four lines a person reads."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class Welcome(Static):
    """Says what this is, that it does not learn yet, how to change that, and where things are kept."""

    def __init__(self) -> None:
        super().__init__(id="welcome")
        self.first = True

    def tell(self, *, first: bool, learning: bool, home: str) -> None:
        """Fill in the lines: all four before the first chat, a greeting after it."""
        self.first = first
        if not first:
            self.update(Content.styled("A new chat. Type below to begin.", "$quiet"))
            return
        state = (
            ("Learning is on: what you say about a reply teaches it.  ", "Ctrl+L turns it off.")
            if learning
            else ("Learning is off: nothing you say trains it.  ", "Ctrl+L turns it on.")
        )
        lines = [
            Content.assemble(("claw-local", "bold $primary"), " is an assistant that lives on this machine."),
            Content.assemble("Say what you like and dislike about its replies, and it becomes yours."),
            Content.assemble(state[0], (state[1], "bold")),
            Content.assemble("Nothing leaves this machine. Everything is kept in ", (home, "$secondary")),
        ]
        self.update(Content("\n").join(lines))
