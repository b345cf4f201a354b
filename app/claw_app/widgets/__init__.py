"""The parts of the chat's screen, one a file."""
