"""What is kept: chats, messages, signals, hints, samples, adapters, runs, in one SQLite file.

The store must never know about engines, judges or training.
"""

from __future__ import annotations

from ..paths import Paths
from .chats import Chats
from .database import Database
from .exams import Exams
from .learning import Adapters, Flags, Samples
from .messages import Messages
from .records import AdapterRecord, Chat, Hint, Run, SampleRecord, Signal, StoredMessage, ToolCall
from .runs import Runs
from .search import Search
from .served import Keys, Sessions
from .signals import Hints, Signals
from .tool_calls import ToolCalls
from .trees import Trees

__all__ = ["AdapterRecord", "Chat", "Hint", "Run", "SampleRecord", "Signal", "Store", "StoredMessage", "ToolCall"]


class Store:
    """The whole database, one attribute a table. Safe to share between threads; processes open their own."""

    def __init__(self, paths: Paths, database: Database | None = None) -> None:
        """Open, migrate if need be, and mark replies that a dead process left unfinished.

        Args:
            database: what to keep everything in; None means the file of these paths.

        Raises:
            StoreError: the file cannot be opened, is damaged, or is from a newer version.
        """
        self.database = Database(paths) if database is None else database
        self.chats = Chats(self.database)
        self.messages = Messages(self.database)
        self.signals = Signals(self.database)
        self.hints = Hints(self.database)
        self.samples = Samples(self.database)
        self.adapters = Adapters(self.database)
        self.runs = Runs(self.database)
        self.flags = Flags(self.database)
        self.exams = Exams(self.database)
        self.tool_calls = ToolCalls(self.database)
        self.search = Search(self.database)
        self.keys = Keys(self.database)
        self.sessions = Sessions(self.database)
        self.trees = Trees(self.database)
        self.messages.recover()
        self.database.nothing_new()

    def close(self) -> None:
        self.database.close()
