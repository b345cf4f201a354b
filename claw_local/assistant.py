"""`Assistant`: the whole loop behind one small Python API. The commands, the app and the tests use nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .engine.opening import Source
from .engine.pool import Engines
from .errors import ClawError, UsageError
from .language import _
from .memory import fast
from .paths import Paths, locate
from .reply import Answer, Reply
from .settings import Settings, load
from .store import Hint, Signal, Store
from .talking.adapters import Adapters
from .talking.comparing import Comparing
from .talking.marking import Marking, TakenBack, scope_of
from .talking.reasons import Reasons, Why
from .talking.text import clean
from .talking.titles import Titles
from .talking.working import Tools

if TYPE_CHECKING:
    from .engine.catalog import Models
    from .forgetting import Forgetting
    from .idle.learning import Learning
    from .talking.serving import Serving

__all__ = ["Adapters", "Answer", "Assistant", "Hints", "Reply", "TakenBack", "Why"]

LONGEST_HINT = 400
JUDGE_AT_CLOSE_S = 10.0
"""How long leaving a `with` block waits for the judge."""


class Assistant(Comparing, Marking, Reasons, Titles):
    """A personal assistant over one home folder. Open it with `Assistant.open()`; use it from any thread.

    >>> with Assistant.open() as assistant:
    ...     print(assistant.ask("How do I boil an egg?").text)
    """

    def __init__(
        self,
        paths: Paths,
        settings: Settings,
        model: str | Path | None,
        *,
        store: Store | None = None,
        engines: Engines[Source] | None = None,
    ) -> None:
        super().__init__(paths, settings, model, store=store, engines=engines)
        self.adapters = Adapters(self)
        self.hints = Hints(self)
        self._serving: Serving | None = None
        self.tools = Tools(self)
        self._judge.listen(self._watch)

    @classmethod
    def open(
        cls,
        home: str | os.PathLike[str] | None = None,
        *,
        model: str | Path | None = None,
        settings: Settings | None = None,
    ) -> Assistant:
        """Open the store. Quick: the model is loaded by `load()`, or by the first reply.

        Args:
            home: folder for everything; None means CLAW_LOCAL_HOME, else the platform's own places.
            model: a GGUF file, `ollama:NAME` or `openai:NAME`; None means the one in the settings, else the embedded
                model.

        Raises:
            StoreError, SettingsError: the message says what to do.
        """
        from .adapters.orphans import sweep

        paths = locate(home)
        assistant = cls(paths, settings if settings is not None else load(paths), model)
        sweep(assistant.store, paths)
        return assistant

    def __enter__(self) -> Assistant:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.wait_judged(JUDGE_AT_CLOSE_S)
        self.close()

    def close(self) -> None:
        """Stop the judge and MCP servers, free the model, close the store. Turns not judged yet stay waiting."""
        self._judge.close()
        self.tools.close()
        if self._handing is not None:
            self._handing.close()
        if self._shelving is not None:
            with suppress(ClawError, MemoryError):  # It can be computed again.
                self._shelving.put(self._engines.engines())
        self._engines.close()
        with suppress(
            ClawError
        ):  # Nobody waits for a busy or full disk here: once this program is gone it is the same.
            self.history.close()
        self.store.close()

    def _watch(self, signal: Signal) -> None:
        """After each verdict: does the adapter in use still please? From the judge's thread."""
        if signal.score < 0:
            self.learn.watch()

    def incognito(self) -> Assistant:
        """The same model, adapters and hints for chats that live in memory only: never on disk, never judged, never
        learned from. Closing it forgets them, and leaves this assistant as it is."""
        from .talking.incognito import Incognito

        return Incognito(self)

    # Signals

    def save(self) -> bool:
        """Try once more to write what was said while the disk was full or failed. Whether nothing is left in memory
        only, where it ends with this program."""
        return self.store.database.save()

    def on_judged(self, listener: Callable[[Signal], None]) -> None:
        """Call `listener` from the judge's thread for each reply that has been judged."""
        self._judge.listen(listener)

    def wait_judged(self, timeout_s: float | None = 30.0) -> bool:
        """Wait until the judge has nothing left; whether that came about in time."""
        return self._judge.wait(timeout_s)

    # Learning

    @property
    def learn(self) -> Learning:
        from .idle.learning import Learning

        return Learning(self)

    @property
    def serving(self) -> Serving:
        """Answers for other programs. The same object each time."""
        from .talking.serving import Serving

        if self._serving is None:
            self._serving = Serving(self)
        return self._serving

    @property
    def forgetting(self) -> Forgetting:
        """What was said, out of chats, hints, adapters and files, for good."""
        from .forgetting import Forgetting

        return Forgetting(self.store, self.paths)

    @property
    def models(self) -> Models:
        """The models of this machine."""
        from .engine.catalog import Models

        return Models(self.paths, self.settings)


class Hints:
    """What fast memory holds."""

    def __init__(self, assistant: Assistant) -> None:
        self._store = assistant.store

    def list(self, *, active_only: bool = True) -> list[Hint]:
        """Those that stand in prompts, newest first; otherwise all, dropped ones and those of one turn too."""
        hints = self._store.hints.list(state="active" if active_only else None)
        return [hint for hint in hints if hint.scope != "turn"] if active_only else hints

    def add(self, text: str) -> Hint:
        """A wish typed in by the person, for every chat."""
        hint = self._store.hints.add(_wish(text))
        fast.remember(self._store, hint)
        return self._store.hints.get(hint.id)

    def on(self, hint_id: int) -> Hint:
        """Put a hint back into the prompt: one that was off, replaced or learned. Those that say less, or the opposite,
        make room for it. Raises NotFoundError."""
        with self._store.database.write():
            hint = self._store.hints.set_state(hint_id, "active")
            if hint.id in [gone.id for gone in fast.remember(self._store, hint)]:
                # Another one says all of it. The person asked for this one all the same.
                hint = self._store.hints.set_state(hint_id, "active")
        return hint

    def off(self, hint_id: int) -> Hint:
        """Take a hint out of the prompt; `on` brings it back. Raises NotFoundError."""
        return self._store.hints.set_state(hint_id, "dropped")

    drop = off

    def edit(self, hint_id: int, text: str) -> Hint:
        """Say a hint in other words. One that was learned stands in prompts again, since the new words were not.

        Raises:
            NotFoundError: no such hint. UsageError: there is no text, or too much.
        """
        with self._store.database.write():
            self._store.hints.get(hint_id)
            if not clean(text).strip():
                raise UsageError(_("There are no new words for the hint. Say how answers should be."))
            hint = self._store.hints.set_text(hint_id, _wish(text))
            if hint.state == "consolidated":
                hint = self._store.hints.set_state(hint_id, "active")
            if hint.state == "active":
                fast.remember(self._store, hint)
        return self._store.hints.get(hint_id)

    def change(self, hint_id: int, text: str) -> Hint:
        """Say a hint that was given to a reply in other words, which also decide anew where it holds.

        Raises:
            NotFoundError: no such hint. UsageError: there is no text, or too much.
        """
        with self._store.database.write():
            if self._store.hints.get(hint_id).scope != "chat":
                self._store.hints.set_scope(hint_id, scope_of(text))
            return self.edit(hint_id, text)

    def remove(self, hint_id: int) -> Hint:
        """Delete a hint for good, and with it the lesson it would be. Raises NotFoundError."""
        return self._store.hints.remove(hint_id)


def _wish(text: str) -> str:
    """A hint's text on one line. Raises UsageError: there is none, or too much."""
    text = " ".join(clean(text).split())
    if not text:
        raise UsageError(_('Say what you wish for: claw-local hints add "Answer in plain sentences."'))
    if len(text) > LONGEST_HINT:
        raise UsageError(
            _("A hint has at most {most} characters: it stands in every prompt. Say it shorter.", most=LONGEST_HINT)
        )
    return text
