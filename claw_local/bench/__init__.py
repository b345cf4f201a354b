"""How fast the assistant is on this machine: a few honest numbers in about twenty seconds."""
