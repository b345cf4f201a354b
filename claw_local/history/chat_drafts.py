"""What is typed in stored chats and not sent: a text for each window. It must never know what is typed."""

from __future__ import annotations

import uuid

from sqlite_utils import Database as SqliteDatabase

from ..errors import NotFoundError
from ..store import Store, drafts
from ..store.processes import process_identity, process_lives


class ChatDrafts:
    """One window's texts. The first window that types in a chat has its draft; what another one types there meanwhile
    is kept beside it, and given to whoever shows the chat next, once nobody has it any more. None is overwritten."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._window = uuid.uuid4().hex[:12]
        self._used: set[int] = set()

    def take(self, chat_id: int) -> str:
        """The chat is shown here from now on: its draft, unless another window types in it, and what was left beside.

        Raises:
            NotFoundError: there is no such chat.
        """
        chat = self._store.chats.get(chat_id)
        with self._store.database.read() as db:
            if not chat.draft and not drafts.beside(db, chat_id):
                return ""
        with self._store.database.write() as db:  # Two windows that show it at once do not get the same.
            texts = [] if self._others(chat_id) else [self._store.chats.get(chat_id).draft]
            for name, text in self._left(db, chat_id):
                texts.append(text)
                db.execute("delete from flags where name = ?", [name])
            text = "\n".join(text for text in dict.fromkeys(texts) if text)
            if text:
                self._put(chat_id, text, mine=not self._others(chat_id))
            return text

    def keep(self, chat_id: int, text: str) -> None:
        """Keep what stands in this window's field; "" if nothing does. Raises NotFoundError."""
        with self._store.database.write() as db:
            mine = self._owner(chat_id) == self._me or not self._store.chats.get(chat_id).draft
            self._put(chat_id, text, mine=mine)
            if not text:
                self._move_up(db, chat_id)

    def leave(self, chat_id: int) -> None:
        """The chat is shown here no more: whoever shows it next may have what was typed."""
        if chat_id not in self._used:
            return
        self._used.discard(chat_id)
        with self._store.database.write() as db:
            if self._owner(chat_id) == self._me:
                db.execute("delete from flags where name = ?", [drafts.who_types(chat_id)])
            own = drafts.text_of(chat_id, self._window, process_identity())
            nobodys = drafts.text_of(chat_id, uuid.uuid4().hex[:12])
            db.execute("update flags set name = ? where name = ?", [nobodys, own])
            self._move_up(db, chat_id)

    def close(self) -> None:
        """The window is closed."""
        for chat_id in sorted(self._used):
            self.leave(chat_id)

    @property
    def _me(self) -> str:
        return f"{self._window}/{process_identity()}"

    def _owner(self, chat_id: int) -> str:
        return self._store.flags.get(drafts.who_types(chat_id))

    def _others(self, chat_id: int) -> bool:
        """Whether the chat's draft is being typed in another window."""
        owner = self._owner(chat_id)
        return owner != self._me and process_lives(owner.rpartition("/")[2])

    def _left(self, db: SqliteDatabase, chat_id: int) -> list[tuple[str, str]]:
        """What stands beside the draft and is this window's, or nobody's any more."""
        own = drafts.text_of(chat_id, self._window, process_identity())
        return [
            (name, text)
            for name, process, text in drafts.beside(db, chat_id)
            if name == own or not process_lives(process)
        ]

    def _put(self, chat_id: int, text: str, *, mine: bool) -> None:
        """As the chat's draft (`mine`), or beside it."""
        own = drafts.text_of(chat_id, self._window, process_identity())
        (self._used.add if text else self._used.discard)(chat_id)
        with self._store.database.write() as db:
            if mine:
                self._store.chats.update(chat_id, touch=False, draft=text)
                db.execute("delete from flags where name = ?", [own])
                if text:
                    self._store.flags.set(drafts.who_types(chat_id), self._me)
                else:
                    db.execute("delete from flags where name = ?", [drafts.who_types(chat_id)])
            elif text:
                self._store.flags.set(own, text)
            else:
                db.execute("delete from flags where name = ?", [own])

    def _move_up(self, db: SqliteDatabase, chat_id: int) -> None:
        """Where the draft is empty, what nobody has any more takes its place, so that the chat is seen to have one."""
        try:
            draft = self._store.chats.get(chat_id).draft
        except NotFoundError:  # Deleted meanwhile.
            return
        left = self._left(db, chat_id) if not draft else []
        for name, _ in left:
            db.execute("delete from flags where name = ?", [name])
        if left:
            self._store.chats.update(chat_id, touch=False, draft="\n".join(text for _, text in left))
