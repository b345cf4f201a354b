"""One reply on its way: text as it comes, kept before it is shown, whole at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial

from .engine.base import Generation
from .errors import NotFoundError, RestoredError
from .store import Store
from .store.records import MessageState


@dataclass(frozen=True)
class Answer:
    """A finished reply.

    Attributes:
        adapter: id of the adapter that wrote it; 0 is the base model.
        hints: the hints that were in the prompt.
        prompt_tokens, evaluated_tokens: how long the prompt was, and how much of it had to be computed.
        load_s, first_token_s, total_s: seconds for loading the model (0 if it was loaded), to the first token, in all.
        notices: sentences the person should see, such as that old messages no longer fit.
    """

    text: str
    message_id: int
    chat_id: int
    model: str
    adapter: int
    hints: tuple[str, ...]
    prompt_tokens: int
    evaluated_tokens: int
    completion_tokens: int
    load_s: float
    first_token_s: float
    total_s: float
    finish_reason: str
    notices: tuple[str, ...]


@dataclass
class Draft:
    """Everything known about a reply before its first token.

    Attributes:
        model: name of what answers.
        begin: begins the reply: the record being filled, and its text as it comes.
        release: gives the engine back; called once, however the reply ends.
    """

    model: str
    begin: Callable[[threading.Event], tuple[Generation, Iterator[str]]]
    release: Callable[[], None]
    adapter_id: int
    hints: tuple[str, ...]
    load_s: float
    notices: list[str] = field(default_factory=list)


class Reply:
    """Iterate over it for the text; `cancel()` from any thread stops it within one token.

    The person's message is in the store already when a Reply exists. Each piece of text is in the store before it is
    handed out. The model is loaded, if need be, when the iteration begins.
    """

    def __init__(
        self,
        store: Store,
        *,
        chat_id: int,
        user_message_id: int,
        message_id: int,
        prepare: Callable[[], Draft],
        begun: Callable[[], None],
        ended: Callable[[str], None] = lambda text: None,
        cancel: threading.Event | None = None,
        content: str | None = None,
    ) -> None:
        """`content`: the mark of the content that the ids are of; None means that in hand."""
        self.chat_id = chat_id
        self.user_message_id = user_message_id
        self.message_id = message_id
        self.notices: list[str] = []
        self._store = store
        self._content = store.database.content if content is None else content
        self._prepare = prepare
        self._begun = begun
        self._ended = ended
        self._cancel = threading.Event() if cancel is None else cancel
        self._answer: Answer | None = None
        self._pieces = self._run()

    @property
    def answer(self) -> Answer:
        """The finished reply; what is left of it is read first."""
        for _ in self._pieces:
            pass
        if self._answer is None:
            raise RuntimeError("this reply did not come to its end")
        return self._answer

    def cancel(self) -> None:
        self._cancel.set()

    def close(self) -> None:
        """Give the reply up; what was shown of it is kept."""
        self._pieces.close()
        if self._answer is None:
            with suppress(NotFoundError, RestoredError), self._of_it():  # Where it is gone, nothing is left to close.
                if self._store.messages.get(self.message_id).state == "streaming":
                    self._store.messages.fail(self.message_id, "interrupted")

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def _run(self) -> Generator[str, None, None]:
        started = time.perf_counter()
        try:
            with self._of_it():
                draft = self._prepare()
            try:
                self.notices.extend(draft.notices)
                generation, pieces = draft.begin(self._cancel)
                first = True
                try:
                    for piece in pieces:
                        self._keep(partial(self._store.messages.append_piece, self.message_id, piece))
                        if first:
                            first = False
                            self._tell_begun()
                        yield piece
                finally:
                    # A reply that is given up stops computing, or leaves its server, at once.
                    if isinstance(pieces, Generator):
                        pieces.close()
            finally:
                draft.release()
            self._finish(draft, generation, time.perf_counter() - started)
            if first:
                self._tell_begun()
            with self._of_it():
                self._ended(generation.text)
        except (GeneratorExit, KeyboardInterrupt):
            with suppress(RestoredError):
                self._keep(partial(self._store.messages.fail, self.message_id, "interrupted"))
            raise
        except BaseException:
            self._keep(partial(self._store.messages.fail, self.message_id, "failed"))
            raise

    def _of_it(self) -> AbstractContextManager[None]:
        """Should a backup put other chats in the place of these, nothing of this reply gets into them."""
        return self._store.database.only(self._content)

    def _tell_begun(self) -> None:
        with self._of_it():
            self._begun()

    def _keep(self, write: Callable[[], None]) -> None:
        """Write something of the reply: in memory where the disk is full or fails, and then the person is told."""
        with self._of_it():
            self._store.database.keeping(write)
        sentence = self._store.database.adrift
        if sentence and sentence not in self.notices:
            self.notices.append(sentence)

    def _finish(self, draft: Draft, generation: Generation, total_s: float) -> None:
        cut = generation.finish_reason == "cancelled"
        timings = {
            "load": draft.load_s,
            "first_token": draft.load_s + generation.first_token_s,
            "total": total_s,
        }
        if generation.counted != (0, 0):
            timings["prompt_tokens"], timings["completion_tokens"] = map(float, generation.counted)
        state: MessageState = "interrupted" if cut else "done"
        self._keep(lambda: self._store.messages.finish(self.message_id, generation, state=state, timings=timings))
        self._answer = Answer(
            text=generation.text,
            message_id=self.message_id,
            chat_id=self.chat_id,
            model=draft.model,
            adapter=draft.adapter_id,
            hints=draft.hints,
            prompt_tokens=generation.prompt_tokens,
            evaluated_tokens=generation.evaluated,
            completion_tokens=generation.completion_tokens,
            load_s=timings["load"],
            first_token_s=timings["first_token"],
            total_s=total_s,
            finish_reason=generation.finish_reason,
            notices=tuple(self.notices),
        )
