"""Words and numbers that stand in more than one place. It must never import anything: the first paint needs them."""

WIDE = 100
"""Columns from which the list of chats is open by itself."""

PLACEHOLDER = "Ask anything · @ attaches a file · / for commands"
SENDS = "Enter sends · Ctrl+J new line"
