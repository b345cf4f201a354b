"""Which chat's KV cache is put on the disk when the models are closed, and brought back when the chat goes on.

Only of chats that are kept themselves, only while the person lets it, and never longer than the chat. It must never
know how a cache is laid out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..engine.base import ChatEngine, Generation
from ..engine.prefixes import common

if TYPE_CHECKING:
    from ..engine._remembered import Remembered
    from ..engine.shelf import Shelf
    from ..store import Store

MEGABYTE = 1_000_000
LEAST_SHARE = 0.5
"""A cache of which less is needed is not worth fetching."""
MOST_NOTED = 16


@runtime_checkable
class _Remembers(Protocol):
    def remember(self) -> Remembered: ...
    def recall(self, remembered: Remembered) -> None: ...


class Shelving:
    """Caches of this person's chats.

    Args:
        folder: where they lie.
        most_mb: of all together; 0: none is written, and those that are there go.
    """

    def __init__(self, store: Store, folder: Path, most_mb: int) -> None:
        self._store = store
        self._folder = folder
        self._most = most_mb * MEGABYTE
        self._said: dict[int, tuple[str, int, Generation]] = {}

    def begun(self, chat_id: int, message_id: int, generation: Generation) -> None:
        """Note what is being said in a chat."""
        self._said.pop(chat_id, None)
        self._said[chat_id] = self._store.database.content, message_id, generation
        while len(self._said) > MOST_NOTED:
            del self._said[next(iter(self._said))]

    def bring(self, engine: ChatEngine, chat_id: int, prompt_ids: Sequence[int]) -> bool:
        """Before the first reply to a chat here: its cache from the last time. Returns whether it was of any use."""
        if chat_id in self._said or not isinstance(engine, _Remembers) or not self._folder.is_dir():
            return False
        shelf = self._shelf()
        if not self._most:
            shelf.keep_only(())
            return False
        prefix = shelf.take(chat_id, engine.info.sha256)
        if prefix is None or common(list(prefix.tokens), list(prompt_ids)) < LEAST_SHARE * len(prefix.tokens):
            return False
        from ..engine._remembered import Remembered

        engine.recall(Remembered((prefix,), prefix.adapters))
        return True

    def put(self, engines: Iterable[ChatEngine]) -> None:
        """Keep what models that are about to be closed know of the last chats, as far as the chats are still there."""
        if not self._most:
            if self._folder.is_dir():
                self._shelf().keep_only(())
            return
        if not self._said:
            return
        shelf = self._shelf()
        there = self._store.chats.there([*self._said, *shelf.numbers()])
        shelf.keep_only(there)
        for engine in engines:
            if not isinstance(engine, _Remembers):
                continue
            for prefix in engine.remember().prefixes:
                chat_id = self._chat_of(prefix.tokens)
                if chat_id is not None and chat_id in there:
                    shelf.put(chat_id, engine.info.sha256, prefix)

    def _chat_of(self, tokens: Sequence[int]) -> int | None:
        """The chat whose last reply here these tokens are."""
        held, content = list(tokens), self._store.database.there
        for chat_id, (then, message_id, generation) in reversed(self._said.items()):
            if then != content:  # A backup was put in place of what was said, under the same numbers.
                continue
            said = [*generation.prompt_ids, *generation.response_ids]
            of_it = common(held, said) == len(held) > len(generation.prompt_ids)
            if of_it and self._store.messages.is_there(message_id):
                return chat_id
        return None

    def _shelf(self) -> Shelf:
        from ..engine.shelf import Shelf

        return Shelf(self._folder, self._most)
