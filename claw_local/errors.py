"""The errors a person can meet. Each message says what happened, why, and what to do next."""

from __future__ import annotations


class ClawError(Exception):
    """Root of every error that is shown to a person as a sentence instead of a traceback."""

    exit_code = 1


class UsageError(ClawError):
    """The command or call was put wrongly: exit status 2."""

    exit_code = 2


class NothingError(UsageError):
    """It was put rightly, but there is nothing that it could be done to: exit status 1."""

    exit_code = 1


class ModelError(ClawError):
    """A model file is missing, unreadable, not a GGUF file, cut short, or too big for this machine."""


class EngineError(ClawError):
    """The engine could not start, or failed while it computed."""


class JudgeError(ClawError):
    """The judge gave no verdict: too slow, not understood, or it refused. What it was asked about waits."""


class StoreError(ClawError):
    """The database could not be opened, read or written."""


class DiskError(StoreError):
    """It could not be written: the disk is full, fails or is read-only. What was said can go on in memory."""


class RestoredError(StoreError):
    """A backup was put in the place of the chats that are known here: their numbers mean others now."""


class NotFoundError(ClawError):
    """A chat, message, adapter or hint with that id does not exist."""


class SettingsError(ClawError):
    """The settings file is not valid."""


class AdapterError(ClawError):
    """An adapter's files are missing, damaged, or do not fit the model."""


class LearnError(ClawError):
    """Learning could not start or finish: nothing to learn, trainer not installed, run failed."""


class HistoryError(ClawError):
    """A file of chats could not be read or written: not there, damaged, or of a kind that is not known."""


class BackupError(ClawError):
    """A backup could not be written, or a file is none that can be restored."""
