"""`History`: what can be done with the chats that are kept, beside talking in them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..language import _
from ..store import AdapterRecord, Chat, Store, StoredMessage
from ..store.database import now
from ..store.words import parse, pattern
from . import exporting
from .chat_drafts import ChatDrafts
from .formats import own
from .formats.tree import clean
from .new_draft import NewDraft
from .report import ImportReport, Progress
from .snippets import Marks, snippet

_STORE_NAME = "history_store"


@dataclass(frozen=True)
class Found:
    """One hit of a search.

    Attributes:
        message_id: the message it is in; for a title, the chat's first message.
        role: who said it: "user", "assistant" or "tool"; "title" if the chat's title was found.
        snippet: the words around the hit, on one line.
        marks: where in the snippet the hits are, as (start, end).
    """

    chat_id: int
    message_id: int
    title: str
    role: str
    snippet: str
    marks: Marks
    created_at: str


class History:
    """The chats in a store. Safe to use from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._new_draft = NewDraft(store)
        self._chat_drafts = ChatDrafts(store)

    # Finding

    def search(self, text: str, *, limit: int = 50) -> list[Found]:
        """Messages and titles with all words of `text`, newest first: whole words before words that go on.

        Case, accents and width do not matter; quotes make a phrase; any other sign is just text. Deleted chats are
        never found, archived ones are.
        """
        found = []
        looked_for = pattern(parse(text))
        for hit in self._store.search.look_up(self._store.search.find(text, limit=limit)):
            line, marks = snippet(hit.text, looked_for)
            found.append(Found(hit.chat_id, hit.message_id, hit.title, hit.role, line, marks, hit.created_at))
        return found

    def messages(self, chat_id: int) -> list[StoredMessage]:
        """All branches of a chat, each message after its parent. Raises NotFoundError."""
        self._store.chats.get(chat_id)
        return self._store.trees.messages(chat_id)

    # Putting away

    def archive(self, chat_id: int) -> Chat:
        """Take a chat out of the list; searches still find it."""
        return self._store.chats.update(chat_id, touch=False, archived=True)

    def unarchive(self, chat_id: int) -> Chat:
        return self._store.chats.update(chat_id, touch=False, archived=False)

    def delete(self, chat_id: int) -> Chat:
        """Take a chat out of every list, search and lesson, until `undelete` or `purge`."""
        return self._store.chats.update(chat_id, touch=False, deleted_at=now())

    def undelete(self, chat_id: int) -> Chat:
        """Bring back all of a chat that was deleted and not purged yet."""
        return self._store.chats.update(chat_id, touch=False, deleted_at="")

    def purge(self, *, older_than_s: float = 0) -> int:
        """Remove for good what was deleted at least so long ago. Returns how many chats."""
        before = (datetime.now(UTC) - timedelta(seconds=older_than_s)).isoformat(timespec="microseconds")
        chats = self._store.chats.deleted(before=before)
        if chats:
            self.delete_for_good(*chats)
        return len(chats)

    def delete_for_good(self, *chat_ids: int) -> None:
        """Remove chats with all that hangs on them, all or none. What adapters learned from them stays in those.

        Raises:
            NotFoundError: one of them is not there.
        """
        self._store.chats.erase(chat_ids)

    def learned_from(self, chat_id: int) -> list[AdapterRecord]:
        """The adapters that a chat's messages had a part in, newest first."""
        mine = {message.id for message in self.messages(chat_id)}
        return [adapter for adapter in self._store.adapters.list() if not mine.isdisjoint(adapter.lineage)]

    # Changing

    def rename(self, chat_id: int, title: str) -> Chat:
        title = " ".join(clean(title).split())
        if not title:
            raise UsageError(_("A title needs at least one word."))
        return self._store.chats.update(chat_id, touch=False, title=title)

    def duplicate(self, chat_id: int) -> Chat:
        """A new chat with all branches and marks of this one. It goes on by itself; the copied part teaches nothing
        twice, and its verdicts count once.
        """
        title = f"{self._store.chats.get(chat_id).title or 'untitled'} (copy)"
        return self._store.chats.get(self._store.trees.copy(chat_id, title))

    def set_draft(self, chat_id: int | None, text: str) -> None:
        """Keep what is typed and not sent yet, in a chat or, without one, for the one that is not begun yet. Each open
        program has its own text: none writes over another's."""
        text = clean(text)
        if chat_id is None:
            self._new_draft.set(text)
        else:
            self._chat_drafts.keep(chat_id, text)

    def draft(self, chat_id: int | None) -> str:
        """What this program's `set_draft` kept last, or what nobody has any more; the chat is shown here now."""
        return self._new_draft.get() if chat_id is None else self._chat_drafts.take(chat_id)

    def leave_draft(self, chat_id: int) -> None:
        """The chat is shown here no more: its draft is for whoever shows it next."""
        self._chat_drafts.leave(chat_id)

    def close(self) -> None:
        """What is typed and not sent is for the next program that is opened."""
        self._new_draft.leave()
        self._chat_drafts.close()

    # Carrying

    def markdown(self, chat_id: int) -> str:
        """The branch that is shown, as Markdown. Raises NotFoundError."""
        chat = self._store.chats.get(chat_id)
        return exporting.markdown(chat, self._store.messages.branch(chat.head_id))

    def json(self, chat_ids: Sequence[int]) -> dict[str, Any]:
        """Whole chats with all their branches, as `import_file` reads them. The format: see `history.formats.own`.

        Raises NotFoundError.
        """
        return {**own.header(now()), "chats": [self._own(chat_id) for chat_id in chat_ids]}

    def json_pieces(self, chat_ids: Sequence[int]) -> Iterator[str]:
        """The same as text, chat by chat, so that a whole history never has to be in memory."""
        yield from exporting.json_pieces(own.header(now()), (self._own(chat_id) for chat_id in chat_ids))

    def all_ids(self) -> list[int]:
        """Every chat that is not deleted, archived ones too, oldest first."""
        found = [chat.id for archived in (False, True) for chat in self._store.chats.list(limit=-1, archived=archived)]
        return sorted(found)

    def import_file(
        self,
        path: str | Path,
        *,
        learn: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> ImportReport:
        """Read chats in: ChatGPT's and Claude's data exports (zip, folder or JSON), the databases of oterm, elia and
        llm, and our own JSON. The kind is found out from the content.

        What is there already is not doubled: a chat that has grown since gets its new messages. Every chat is written
        whole or not at all, also when it is stopped.

        Args:
            learn: whether the chats may teach from now on; what was said in them before never does.
            on_progress: called now and then, in this thread.
            cancel: set it to stop after the chats that are being written.

        Raises:
            HistoryError: not there, not known, or damaged; the message says what was imported before that.
        """
        from .importing import import_file

        return import_file(
            self._store,
            Path(path).expanduser(),
            store_name=self._store_name(),
            learn=learn,
            on_progress=on_progress,
            cancel=cancel,
        )

    def _own(self, chat_id: int) -> dict[str, Any]:
        chat, messages = self._store.chats.get(chat_id), self.messages(chat_id)
        signals = self._store.signals.of([message.id for message in messages])
        return own.written(chat, messages, signals, self._store.trees.origins(chat_id), self._store_name())

    def _store_name(self) -> str:
        """What tells this store from every other one."""
        with self._store.database.write():
            name = self._store.flags.get(_STORE_NAME)
            if not name:
                name = uuid.uuid4().hex
                self._store.flags.set(_STORE_NAME, name)
        return name
