"""Words and numbers that stand in more than one place. It must import nothing heavy: the first paint needs them."""

from claw_local.language import N_

WIDE = 100
"""Columns from which the list of chats is open by itself."""
BROAD = 160
"""Columns from which that list has room for longer titles."""

PLACEHOLDER = N_("Ask anything · @ attaches a file · / for commands")
SENDS = N_("Enter sends · Ctrl+J new line")

EXAMPLE = {
    "yes": N_("It is the example that learning takes for the reply it corrects."),
    "off": N_(
        "It teaches nothing yet: the reply it corrects was written while learning was off. "
        "`claw-local learn on --past` lets it teach."
    ),
    "never": N_("It teaches nothing: the reply it corrects never teaches."),
}
"""What becomes of a reply as the person wants it, by whether the reply that it corrects may teach."""

BUSY = "busy"
"""The topic of what is said of a reply that is still being written: it is no longer so once that is there."""
