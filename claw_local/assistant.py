"""`Assistant`: the whole loop behind one small Python API. The commands, the app and the tests use nothing else."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .adapters.registry import AdapterChoice, Registry, slots
from .engine.base import Engine, ModelInfo, Sampling
from .errors import UsageError
from .judge.background import BackgroundJudge
from .memory import fast
from .memory.prompt import prompt_messages
from .paths import Paths, locate
from .reply import Answer, Draft, Reply
from .settings import Settings, load
from .signals import turns
from .store import AdapterRecord, Chat, Hint, Signal, Store, StoredMessage
from .store.chats import Teaching

if TYPE_CHECKING:
    from .idle.learning import Learning

__all__ = ["Adapters", "Answer", "Assistant", "Hints", "Reply"]

TITLE_LENGTH = 60
LONGEST_HINT = 400
JUDGE_AT_CLOSE_S = 10.0
"""How long leaving a `with` block waits for the judge."""
LEFT_OVER = 20
"""Most turns, left unjudged by an earlier program, that are judged beside a new one."""


class Assistant:
    """A personal assistant over one home folder. Open it with `Assistant.open()`; use it from any thread.

    >>> with Assistant.open() as assistant:
    ...     print(assistant.ask("How do I boil an egg?").text)
    """

    def __init__(self, paths: Paths, settings: Settings, model: str | Path | None) -> None:
        self.paths = paths
        self.settings = settings
        self.store = Store(paths)
        self._model = model
        self._engine: Engine | None = None
        self._load_lock = threading.Lock()
        self._load_s = 0.0
        self._looked_back = False
        self._judge = BackgroundJudge(self.store, self._loaded_engine)
        self.adapters = Adapters(self)
        self.hints = Hints(self)

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
            model: a GGUF file; None means the one in the settings, else the embedded model.

        Raises:
            StoreError, SettingsError: the message says what to do.
        """
        paths = locate(home)
        return cls(paths, settings if settings is not None else load(paths), model)

    def __enter__(self) -> Assistant:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.wait_judged(JUDGE_AT_CLOSE_S)
        self.close()

    def close(self) -> None:
        """Stop the judge, free the model, close the store. Turns not judged yet stay waiting."""
        self._judge.close()
        with self._load_lock:
            if self._engine is not None:
                self._engine.close()
                self._engine = None
        self.store.close()

    # The model

    @property
    def loaded(self) -> bool:
        return self._engine is not None

    @property
    def model_path(self) -> Path:
        """The model file that is, or would be, loaded. Raises ModelError."""
        from .engine.models import find_model

        return find_model(self.settings, self.paths, self._model)

    @property
    def model_sha256(self) -> str:
        """Hash of the model file; adapters belong to it. Raises ModelError."""
        if self._engine is not None:
            return self._engine.info.sha256
        from .engine.models import model_sha256

        return model_sha256(self.model_path, self.paths.data)

    def load(self) -> ModelInfo:
        """Load the model now. Raises ModelError, EngineError."""
        return self._loaded_engine().info

    def _loaded_engine(self) -> Engine:
        with self._load_lock:
            if self._engine is None:
                from .engine.llama_cpp import LlamaCppEngine

                started = time.perf_counter()
                self._engine = LlamaCppEngine.open(self.model_path, self.settings.model, cache_dir=self.paths.data)
                self._load_s = time.perf_counter() - started
            return self._engine

    # Chats

    def new_chat(self, *, title: str = "", system: str | None = None, learn: bool = True) -> Chat:
        return self.store.chats.create(
            title=title, system=self.settings.model.system if system is None else system, learn=learn
        )

    def chats(self, *, limit: int = 200, archived: bool = False) -> list[Chat]:
        """Newest first."""
        return self.store.chats.list(limit=limit, archived=archived)

    def chat(self, chat_id: int) -> Chat:
        """Raises NotFoundError."""
        return self.store.chats.get(chat_id)

    def messages(self, chat_id: int) -> list[StoredMessage]:
        """The branch that is shown, oldest first."""
        return self.store.messages.branch(self.chat(chat_id).head_id)

    def signals(self, message_ids: Sequence[int]) -> dict[int, list[Signal]]:
        return self.store.signals.of(message_ids)

    def rename_chat(self, chat_id: int, title: str) -> Chat:
        return self.store.chats.update(chat_id, title=clean(title))

    def delete_chat(self, chat_id: int) -> None:
        self.store.chats.delete(chat_id)

    # Talking

    def ask(self, text: str, **options: Any) -> Answer:
        """Ask and wait for the whole answer. Options as for `stream`."""
        return self.stream(text, **options).answer

    def stream(
        self,
        text: str,
        *,
        chat: int | None = None,
        system: str | None = None,
        sampling: Sampling | None = None,
        adapter: AdapterChoice = None,
        learn: bool | None = None,
        memory: bool = True,
    ) -> Reply:
        """Ask. The message is stored before this returns; the answer comes as the Reply is iterated.

        Args:
            chat: go on with this chat; None starts a new one.
            system: the chat's system prompt from now on.
            adapter: an adapter's id or "base"; None means the one in use.
            learn: False: neither this message nor its reply may teach. None: as the chat and the switch say.
            memory: whether active hints enter the prompt.

        Raises:
            UsageError: there is no text. NotFoundError: no such chat or adapter. StoreError: it could not be stored.
        """
        text = clean(text)
        system = None if system is None else clean(system)
        if not text.strip():
            raise UsageError('There is no question. Put it in quotes: claw-local ask "How do I boil an egg?"')
        if isinstance(adapter, int) and adapter:
            self.store.adapters.get(adapter)
        if chat is None:
            record = self.new_chat(title=_title(text), system=system, learn=learn is not False)
        else:
            record = self.chat(chat)
            if system is not None:
                record = self.store.chats.update(chat, system=system)
            if not record.title:
                record = self.store.chats.update(chat, title=_title(text))
        teaching: Teaching = "never" if learn is False else "yes" if self.learn.enabled and record.learn else "off"
        previous_id, user_id, reply_id = self.store.messages.go_on(record.id, text, learn=teaching)

        def begun() -> None:
            if teaching == "yes" and previous_id is not None:
                self._judge_later(previous_id)

        return self._reply(record, user_id, reply_id, sampling, adapter, memory, begun)

    def regenerate(
        self,
        message_id: int,
        *,
        sampling: Sampling | None = None,
        adapter: AdapterChoice = None,
        memory: bool = True,
    ) -> Reply:
        """Answer the same message once more, as a new branch; the earlier reply counts as not wanted."""
        old = self.store.messages.get(message_id)
        if old.role != "assistant" or old.parent_id is None:
            raise UsageError("Only a reply of the assistant can be asked for again.")
        record = self.chat(old.chat_id)
        if old.state == "done":
            self.store.signals.add(message_id, "regenerate", -1)
        user_id, reply_id = self.store.messages.begin_turn(
            record.id,
            None,
            parent_id=old.parent_id,
            learn="yes" if old.learn and self.learn.enabled and record.learn else "never",
        )
        return self._reply(record, user_id, reply_id, sampling, adapter, memory, lambda: None)

    def _reply(
        self,
        record: Chat,
        user_id: int,
        reply_id: int,
        sampling: Sampling | None,
        adapter: AdapterChoice,
        memory: bool,
        begun: Callable[[], None],
    ) -> Reply:
        def prepare() -> Draft:
            was_loaded = self.loaded
            engine = self._loaded_engine()
            chosen = self.adapters.choose(adapter)
            drawn = sampling if sampling is not None else self.default_sampling()
            active = self._active_hints(engine, record.id) if memory else []
            messages = prompt_messages(record.system, self.store.messages.branch(user_id), [h.text for h in active])
            prompt = engine.render(messages, reserve=min(drawn.max_tokens, engine.info.context // 4))
            engine.set_adapters(slots(chosen))
            self.store.messages.describe(
                reply_id,
                model=engine.info.name,
                model_sha256=engine.info.sha256,
                adapter_id=chosen.id if chosen else 0,
                hint_ids=[hint.id for hint in active],
            )
            if active:
                self.store.hints.count_use([hint.id for hint in active])
            notices = [_dropped(prompt.dropped)] if prompt.dropped else []
            return Draft(
                engine=engine,
                prompt=prompt,
                sampling=drawn,
                adapter_id=chosen.id if chosen else 0,
                hints=tuple(hint.text for hint in active),
                load_s=0.0 if was_loaded else self._load_s,
                notices=notices,
            )

        return Reply(
            self.store, chat_id=record.id, user_message_id=user_id, message_id=reply_id, prepare=prepare, begun=begun
        )

    def default_sampling(self, **changes: Any) -> Sampling:
        """The settings' sampling, with changes (None leaves one as it is)."""
        values = self.settings.sampling.model_dump()
        values.update({name: value for name, value in changes.items() if value is not None})
        return Sampling(**values)

    def _active_hints(self, engine: Engine, chat_id: int) -> list[Hint]:
        if not self.settings.memory.enabled:
            return []
        return fast.choose(
            self.store,
            chat_id=chat_id,
            budget_tokens=self.settings.memory.budget_tokens,
            count=lambda text: len(engine.tokenize(text)),
        )

    # Signals

    def feedback(
        self,
        message_id: int,
        verdict: Literal["good", "bad"] | None = None,
        *,
        hint: str | None = None,
        edit: str | None = None,
    ) -> Signal:
        """What the person says outright about a reply: a thumb, a hint, or the text as it should have been.

        An edited text becomes a new branch of the chat, which goes on from there.

        Raises:
            NotFoundError: no such message. UsageError: it is not a reply, or nothing was said about it.
        """
        message = self.store.messages.get(message_id)
        if message.role != "assistant":
            raise UsageError(f"Message {message_id} is not a reply of the assistant, so there is nothing to judge.")
        if verdict is None and not hint and not edit:
            raise UsageError("Say good or bad, give a hint, or give the text as it should have been.")
        text = clean(hint or "").strip()
        with self.store.database.write():
            signal = None
            if verdict is not None or not edit:
                signal = self.store.signals.add(message_id, "thumb", 1 if verdict == "good" else -1, hint=text)
            if edit:
                self.store.messages.add(
                    message.chat_id,
                    "assistant",
                    clean(edit),
                    parent_id=message.parent_id,
                    learn="never",  # The person's own words: a demonstration for the reply, not one of the model's.
                    # What was said after an older reply stays in view.
                    make_head=self.chat(message.chat_id).head_id == message_id,
                )
                signal = self.store.signals.add(message_id, "edit", -1, hint=text)
            if text:
                scope: Literal["everywhere", "turn"] = "everywhere" if self._holds_everywhere(text) else "turn"
                kept = self.store.hints.add(text, message_id=message_id, chat_id=message.chat_id, scope=scope)
                fast.remember(self.store, kept)
        assert signal is not None
        return signal

    @staticmethod
    def _holds_everywhere(text: str) -> bool:
        from .judge.hints import is_about_content

        return not is_about_content(text)

    def on_judged(self, listener: Callable[[Signal], None]) -> None:
        """Call `listener` from the judge's thread for each reply that has been judged."""
        self._judge.listen(listener)

    def wait_judged(self, timeout_s: float | None = 30.0) -> bool:
        """Wait until the judge has nothing left; whether that came about in time."""
        return self._judge.wait(timeout_s)

    def _judge_later(self, reply_id: int) -> None:
        for turn in turns.pair_some(self.store, [reply_id]):
            self._judge.put(turn)
        if not self._looked_back and self.store.samples.count_unjudged() > 1:
            for turn in turns.waiting(self.store)[:LEFT_OVER]:
                if turn.reply.id != reply_id:
                    self._judge.put(turn)
        self._looked_back = True

    # Learning

    @property
    def learn(self) -> Learning:
        from .idle.learning import Learning

        return Learning(self)


class Adapters:
    """The registry, bound to the model in use."""

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant
        self._registry = Registry(assistant.store)

    def list(self) -> list[AdapterRecord]:
        """Newest first."""
        return self._registry.list()

    def get(self, adapter_id: int) -> AdapterRecord:
        return self._registry.get(adapter_id)

    def active(self) -> AdapterRecord | None:
        """The adapter in use; None means the base model."""
        return self._registry.active(self._assistant.model_sha256)

    def use(self, choice: int | Literal["base"]) -> AdapterRecord | None:
        """Put an adapter or the base into use, from every open program's next turn on."""
        return self._registry.use(choice, self._assistant.model_sha256)

    def rollback(self) -> AdapterRecord | None:
        """One step back to the parent; None means the base model."""
        return self._registry.rollback(self._assistant.model_sha256)

    def choose(self, choice: AdapterChoice) -> AdapterRecord | None:
        return self._registry.choose(choice, self._assistant.model_sha256)


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
        text = " ".join(clean(text).split())
        if not text:
            raise UsageError('Say what you wish for: claw-local hints add "Answer in plain sentences."')
        if len(text) > LONGEST_HINT:
            raise UsageError(
                f"A hint has at most {LONGEST_HINT} characters: it stands in every prompt. Say it shorter."
            )
        hint = self._store.hints.add(text)
        fast.remember(self._store, hint)
        return hint

    def drop(self, hint_id: int) -> Hint:
        """Take a hint out of the prompt. Raises NotFoundError."""
        return self._store.hints.set_state(hint_id, "dropped")


def clean(text: str) -> str:
    """What a person or a pipe gave, as text that can be stored: no NUL, no half surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


def _dropped(count: int) -> str:
    noun = "message" if count == 1 else "messages"
    return (
        f"This chat is longer than the model can read at once: its {count} oldest {noun} were left out of the prompt."
    )
