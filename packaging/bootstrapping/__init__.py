"""The steps behind packaging/bootstrap.py. Standard library only; knows nothing of what claw-local does."""
