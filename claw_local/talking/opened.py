"""What every room of the assistant stands on: the store, the model, the chats. It must never know what is asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.base import ChatEngine, Engine, ModelInfo, Sampling, has_tokens
from ..engine.opening import Source, local_model, locate_model, open_engine, read_name
from ..engine.pool import Engines, Remembers
from ..errors import EngineError, ModelError, UsageError
from ..history import History
from ..judge.background import BackgroundJudge
from ..language import _
from ..paths import Paths
from ..settings import Settings
from ..store import Chat, Signal, Store, StoredMessage, opening
from . import drawing
from .restored import Restored
from .shelving import Shelving
from .text import clean

if TYPE_CHECKING:
    from ..assistant import Adapters, Hints
    from ..idle.handing import Handing
    from ..idle.learning import Learning
    from ..judge.verdict import AnyJudge


class Opened(Restored):
    """An open home folder: chats in a store, and the models that can answer in them."""

    adapters: Adapters
    hints: Hints

    def __init__(
        self,
        paths: Paths,
        settings: Settings,
        model: str | Path | None,
        *,
        store: Store | None = None,
        engines: Engines[Source] | None = None,
    ) -> None:
        self.paths = paths
        self.settings = settings
        self.store = Store(paths) if store is None else store
        self.history = History(self.store)
        self._model = model
        self._engines = engines or Engines(
            self._open_engine, in_memory=lambda source: source.kind == "gguf", most=settings.model.keep_open
        )
        # Beside an encrypted store nothing may lie that tells what was said.
        kept_mb = 0 if opening.is_encrypted(paths.database) else settings.model.kept_mb
        self._shelving: Shelving | None = Shelving(self.store, paths.caches, kept_mb)
        self._handing: Handing | None = None
        # Which adapters are applied is the engine's state: setting them and beginning a reply belong together.
        self._beginning = threading.Lock()
        self._judge = BackgroundJudge(
            self.store,
            self._judging_engine,
            self._make_judge,
            retry_s=settings.judge.retry_s,
            may=lambda: self.learn.enabled,
        )

    if TYPE_CHECKING:

        @property
        def learn(self) -> Learning: ...

    # The model

    @property
    def model_name(self) -> str | Path | None:
        """What this was opened with; None: what the settings say."""
        return self._model

    @property
    def loaded(self) -> bool:
        """Whether the model of chats without one of their own is open."""
        try:
            return self._engines.peek(self._source("")) is not None
        except (ModelError, UsageError):
            return False

    @property
    def model_path(self) -> Path:
        """The model file that is, or would be, loaded. Raises ModelError: there is none, or a server answers."""
        source = self._source("")
        if source.path is None:
            raise ModelError(
                _(
                    "{source} is a model behind a server, and only a model file on this machine "
                    "can learn. Name a GGUF file with --model, or in the settings as model.path.",
                    source=source,
                )
            )
        return source.path

    @property
    def model_sha256(self) -> str:
        """Hash of the model file, to which adapters belong; "" for a model behind a server. Raises ModelError."""
        source = self._source("")
        engine = self._engines.peek(source)
        if engine is not None:
            return engine.info.sha256
        if source.path is None:
            return ""
        from ..engine.models import model_sha256

        return model_sha256(source.path, self.paths.data)

    def load(self) -> ModelInfo:
        """Load the model now. Raises ModelError, EngineError."""
        return self._loaded_engine().info

    def _loaded_engine(self) -> ChatEngine:
        with self._engines.using(self._source("")) as engine:
            return engine

    def _source(self, model: str) -> Source:
        """Where a chat's model is; "" is the one this assistant was opened with."""
        return locate_model(self.settings, self.paths, model or self._model)

    def _open_engine(self, source: Source) -> ChatEngine:
        if source.path is not None:
            self.handing.before_opening(source.path)
        engine = open_engine(source, self.settings, self.paths)
        if isinstance(engine, Remembers) and engine.on_gpu:
            self.handing.watch()
        return engine

    @property
    def handing(self) -> Handing:
        """Who has a GPU's memory: the models that are open here, or a learning run."""
        if self._handing is None:
            from ..idle.handing import Handing

            self._handing = Handing(self.store, self.settings, self._engines)
        return self._handing

    def come_back(self) -> None:
        """The person is here: begin to load what was let go of for a learning run, if anything was. Returns at once."""
        if self._engines.away():
            self.handing.come_back(self._load_again)

    def _load_again(self) -> None:
        for source in self._engines.away():
            self._engines.lease(source).release()

    @contextmanager
    def using_model(self) -> Iterator[Engine]:
        """The model file that is, or would be, loaded, for work beside the chats. Raises ModelError, EngineError."""
        with self._engines.using(Source("gguf", path=self.model_path)) as engine:
            if not has_tokens(engine):
                raise ModelError(_("What answers here is behind a server. Name a GGUF file with --model."))
            yield engine

    @contextmanager
    def _judging_engine(self) -> Iterator[ChatEngine]:
        """The engine that judges: the one the settings name; else the model file in use, else one that is open anyway,
        else the one a chat without a model of its own would load, else the embedded one."""
        named = bool(self.settings.judge.model)
        if named:
            source = self._source(self.settings.judge.model)
        else:
            usual = local_model(self.settings, self.paths, self._model)
            here = [source for source in self._engines.opened() if source.kind == "gguf"]
            source = usual if usual in here or not here else here[0]
        if source in self._engines.away() and self.store.runs.running() is not None:
            # Judging can wait; the run judges what is waiting, too.
            raise EngineError(_("The model has made room for a learning run. The turn is judged later."))
        with self._engines.using(source) as engine:
            if not named and not has_tokens(engine):
                raise ModelError(_("What answers here cannot judge."))
            yield engine

    def _make_judge(self, engine: ChatEngine) -> AnyJudge:
        from ..judge.opening import make_judge  # Judging may take a while to load: nobody waits for it here.

        return make_judge(engine, self.settings.judge, self.store)

    # Chats

    def new_chat(
        self,
        *,
        title: str = "",
        system: str | None = None,
        learn: bool = True,
        model: str = "",
        sampling: Mapping[str, Any] | None = None,
    ) -> Chat:
        """A chat with settings of its own; what is left out is as the settings say.

        Raises:
            UsageError: a model name or a sampling value that cannot be. ModelError: no such model file.
        """
        kept, model = drawing.checked(sampling or {}), self.checked_model(model)
        with self.store.database.write():
            chat = self.store.chats.create(
                title=title, model=model, system=self.settings.model.system if system is None else system, learn=learn
            )
            return self.store.chats.update(chat.id, sampling=kept) if kept else chat

    def set_chat(
        self,
        chat_id: int,
        *,
        model: str | None = None,
        system: str | None = None,
        sampling: Mapping[str, Any] | None = None,
        learn: bool | None = None,
        adapter: int | str | None = None,
    ) -> Chat:
        """Change a chat's own settings, from its next reply on. None leaves one as it is.

        Args:
            model: what answers here, as `--model` takes it; "" is the model of the settings.
            system: the system prompt; "" is the model's own.
            sampling: all that this chat changes of the settings' sampling, by name; {} changes nothing.
            learn: whether this chat may teach.
            adapter: the adapter it keeps to, by id or name, or "base"; "" is the one in use.

        Raises:
            NotFoundError: no such chat or adapter. UsageError: a model name or a sampling value that cannot be.
            ModelError: no such model file.
        """
        changes: dict[str, Any] = {}
        if model is not None:
            changes["model"] = self.checked_model(model)
        if system is not None:
            changes["system"] = clean(system)
        if sampling is not None:
            changes["sampling"] = drawing.checked(sampling)
        if learn is not None:
            changes["learn"] = learn
        if adapter is not None:
            named = adapter not in ("", "base", 0)
            changes["adapter_id"] = self.adapters.get(adapter).id if named else None if adapter == "" else 0
        return self.store.chats.update(chat_id, **changes) if changes else self.chat(chat_id)

    def checked_model(self, model: str) -> str:
        """A model's name as it is kept with a chat; a server is not asked.

        Raises:
            UsageError: a server is named, and no model. ModelError: there is no such file.
        """
        model = model.strip()
        if model and read_name(model)[0] == "gguf":
            path = self._source(model).path
            if path is None or not path.is_file():
                raise ModelError(
                    _("There is no model file {model}. `claw-local models list` shows those there are.", model=model)
                )
        return model

    def chats(self, *, limit: int = 200, archived: bool = False) -> list[Chat]:
        """Newest first."""
        return self.store.chats.list(limit=limit, archived=archived)

    def chat(self, chat_id: int) -> Chat:
        """Raises NotFoundError."""
        return self.store.chats.get(chat_id)

    def messages(self, chat_id: int) -> list[StoredMessage]:
        """The branch that is shown, oldest first."""
        return self.store.messages.branch(self.chat(chat_id).head_id)

    def said(self, *, limit: int = 200) -> list[str]:
        """What the person said last, in any chat, newest first, each once: for the Up key."""
        return self.store.messages.said(limit)

    def noted(self, name: str) -> str:
        """What `note` kept under this name; "" if nothing."""
        return self.store.flags.get(f"note.{name}")

    def note(self, name: str, value: str) -> None:
        """Keep a small thing for whoever shows the chats, such as what a person has seen already."""
        self.store.flags.set(f"note.{name}", value)

    def signals(self, message_ids: Sequence[int]) -> dict[int, list[Signal]]:
        return self.store.signals.of(message_ids)

    def rename_chat(self, chat_id: int, title: str) -> Chat:
        return self.store.chats.update(chat_id, touch=False, title=clean(title))

    def delete_chat(self, chat_id: int) -> None:
        self.store.chats.delete(chat_id)

    def default_sampling(self, **changes: Any) -> Sampling:
        """The settings' sampling, with changes (None leaves one as it is)."""
        return drawing.draw(self.settings.sampling, changes)
