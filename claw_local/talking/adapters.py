"""`assistant.adapters`: the personal adapters, bound to the model in use. It must never hold how any of it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..adapters.naming import checked_name, weighted
from ..adapters.registry import AdapterChoice, Registry
from ..errors import AdapterError, UsageError
from ..language import _
from ..store import AdapterRecord, Chat
from ..targets import check_target

if TYPE_CHECKING:
    from ..adapters.differing import Difference
    from ..adapters.exporting import Format
    from ..adapters.gate import GateReport
    from ..adapters.gguf import BaseShape
    from ..adapters.importing import Imported
    from ..assistant import Assistant
    from ..store import Store

PROFILE = "profile."
"""Flag of a profile's adapter: its name and the model's hash follow, with a dot between."""


class Adapters:
    """The registry, bound to the model in use."""

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant
        self._store = assistant.store
        self._registry = Registry(assistant.store)

    def list(self) -> list[AdapterRecord]:
        """Newest first."""
        return self._registry.list()

    def get(self, adapter: int | str) -> AdapterRecord:
        """By id or by name. Raises NotFoundError."""
        return self._registry.get(adapter)

    def active(self) -> AdapterRecord | None:
        """The adapter in use; None means the base model."""
        return self._registry.active(self._assistant.model_sha256)

    # Choosing

    def use(
        self, choice: int | str | Sequence[str], *, chat: int | None = None, profile: str | None = None
    ) -> AdapterRecord | None:
        """Put an adapter or the base into use, from every open program's next turn on; a reply under way is not cut.

        Args:
            choice: an id, a name, "base", or several with weights, as in ["work:0.7", "home:0.3"]; several become one
                adapter, the mix. "default" ends what a chat or profile keeps to.
            chat: for this chat alone.
            profile: for programs that go by this profile alone.

        Raises:
            NotFoundError: no such adapter or chat. UsageError: that is no choice.
            AdapterError: it belongs to another base model, or its file is gone or was changed.
        """
        own = chat is not None or profile is not None
        profile = None if profile is None else checked_name(profile)
        chat = None if chat is None else self._assistant.chat(chat).id
        if choice in ("default", ["default"]):
            if not own:
                raise UsageError(_("`default` ends what a chat or a profile keeps to: add --chat or --profile."))
            record, kept = self.active(), ""
        else:
            record = self._resolved(choice)
            kept = str(record.id) if record else "0"
        if chat is not None:
            changed = int(kept) if kept else None
            self._store.chats.update(chat, touch=False, adapter_id=changed)
        if profile is not None:
            self._store.flags.set(f"{PROFILE}{profile}.{self._assistant.model_sha256}", kept)
        if not own:
            return self._registry.use(record.id if record else "base", self._assistant.model_sha256)
        return record

    def _resolved(self, choice: int | str | Sequence[str]) -> AdapterRecord | None:
        """One adapter that can be used with the model; None is the base."""
        model = self._assistant.model_sha256
        if isinstance(choice, int):
            return self._registry.checked(choice, model) if choice else None
        parts = weighted([choice] if isinstance(choice, str) else choice)
        if [name for name, _weight in parts] == ["base"]:
            if parts[0][1] != 1.0:
                raise UsageError(_("The base takes no weight: it answers as it is. Leave the weight out."))
            return None
        if any(name == "base" for name, _weight in parts):
            raise UsageError(_("The base is in every mix as it is. Name adapters only: work:0.7 home:0.3"))
        records = [(self._registry.checked(name, model), weight) for name, weight in parts]
        if len({record.id for record, _weight in records}) < len(records):
            raise UsageError(_("One adapter stands there twice. Name each once, with the whole of its weight."))
        if len(records) == 1 and records[0][1] == 1.0:
            return records[0][0]
        from ..adapters.mixing import mixed

        return mixed(self._store, self._assistant.paths, self._base(), records)

    def rollback(self) -> AdapterRecord | None:
        """One step back to the parent; None means the base model."""
        return self._registry.rollback(self._assistant.model_sha256)

    def choose(self, choice: AdapterChoice, model_sha256: str) -> AdapterRecord | None:
        """The adapter a reply of that model is to be written with. None means the base model."""
        return self._registry.choose(choice, model_sha256)

    def choose_for(self, chat: Chat, model_sha256: str, choice: AdapterChoice = None) -> AdapterRecord | None:
        """The same in a chat; where nothing is named, its own, else the profile's, else the one in use."""
        if choice is not None:
            return self.choose(choice, model_sha256)
        kept = chat.adapter_id
        if kept is None and (profile := self._assistant.settings.adapters.profile):
            kept = self._of_profile(profile, model_sha256)
        return self._registry.choose_for(kept, model_sha256)

    def profiles(self) -> dict[str, dict[str, int]]:
        """What profiles keep to: name -> model's hash -> adapter's id, 0 for the base."""
        return profiles_in(self._store)

    def check_profile(self) -> None:
        """Raises UsageError: the settings name a profile that there is not."""
        if profile := self._assistant.settings.adapters.profile:
            self._of_profile(profile, "")

    def _of_profile(self, profile: str, model_sha256: str) -> int | None:
        known = self.profiles()
        if profile not in known:
            raise UsageError(
                _(
                    "There is no profile {profile!r}. Make it with: claw-local adapters use ID --profile NAME",
                    profile=profile[:60],
                )
            )
        return known[profile].get(model_sha256)

    # Keeping

    def rename(self, adapter: int | str, name: str) -> AdapterRecord:
        """Give an adapter a name; "" takes it away. Raises NotFoundError, UsageError."""
        return self._registry.rename(adapter, name)

    def remove(self, adapter: int | str) -> AdapterRecord:
        """Delete an adapter for good, with its files. Raises NotFoundError; AdapterError: it is in use."""
        return self._registry.remove(adapter, self._assistant.paths.adapters)

    def diff(self, first: int | str, second: int | str) -> Difference:
        """What differs between two adapters; "base" is one too. Raises NotFoundError, AdapterError."""
        from ..adapters.differing import differ

        one, other = (None if name in ("base", 0) else self.get(name) for name in (first, second))
        return differ(one, other)

    def check(
        self, adapter: int | str, on_progress: Callable[[float, str], None] = lambda fraction, words: None
    ) -> GateReport:
        """Ask the gate about an adapter, as a training run does: against what is in use, on turns held out and on
        shipped prompts. The report is kept with the adapter; nothing is put into use.

        Raises:
            NotFoundError: there is no such adapter. AdapterError: its files are damaged, or the report cannot be
                written. ModelError: no model. EngineError: the engine failed.
        """
        from ..adapters.checking import check

        record = self._registry.checked(adapter, self._assistant.model_sha256)
        with self._assistant.using_model() as engine:
            return check(self._store, self._assistant.settings, engine, record, on_progress)

    # Carrying

    def export(
        self,
        adapter: int | str,
        target: Path,
        form: Format = "claw",
        *,
        passphrase: str = "",
        force: bool = False,
        with_base: bool = False,
        on_progress: Callable[[float, str], None] = lambda fraction, words: None,
    ) -> Path:
        """Write an adapter for another machine or program. No chat is in what is written.

        Args:
            form: "claw" (one file), "peft" (a folder), "gguf" (a file), "ollama" (a folder), or "merged" (a whole model
                with the adapter in its weights, as a GGUF file).
            passphrase: seals a claw pack.
            force: write over a file that exists.
            with_base: copy the base model into Ollama's folder.

        Raises:
            NotFoundError; AdapterError: its files are gone, or `target` cannot be written; UsageError: it exists.
        """
        from ..adapters import exporting, modelfile

        record = self.get(adapter)
        if passphrase and form != "claw":
            raise UsageError(_("Only a claw pack can be sealed with a passphrase. Leave --passphrase out."))
        check_target(target, self._assistant.paths, streams=form in ("claw", "gguf"))
        if form == "claw":
            return exporting.export_pack(self._store, record, target, passphrase=passphrase, force=force)
        if form == "peft":
            return exporting.export_peft(record, target)
        if form == "gguf":
            return exporting.export_gguf(record, target, force=force)
        if form == "ollama":
            self._of_this_model(record)
            parameters = modelfile.parameters(self._assistant.settings)
            return exporting.export_ollama(record, target, self._assistant.model_path, parameters, with_base=with_base)
        if form == "merged":
            from ..adapters.merge import merge
            from ..adapters.registry import slots

            self._of_this_model(record)
            merge(
                self._assistant.model_path,
                slots(record),
                target,
                force=force,
                check=False,  # `adapters merge` measures; here the file is wanted.
                report=lambda words, fraction: on_progress(fraction, words),
            )
            return target
        raise UsageError(_("There is no format {form!r}. Choose claw, peft, gguf, ollama or merged.", form=form))

    def import_file(
        self, source: Path, *, name: str = "", force: bool = False, passphrase: Callable[[], str] | None = None
    ) -> Imported:
        """Take an adapter in from a claw pack, a PEFT folder or a GGUF LoRA, as a candidate. It is not put into use.

        Args:
            name: what to call it; "" takes the pack's own name where that is free.
            force: take one that was made for another base, if its shapes fit.
            passphrase: asked for where the pack is sealed.

        Raises:
            AdapterError: it is refused, and nothing of it is left. UsageError: name or passphrase cannot be.
            ModelError: there is no model file it could belong to.
        """
        from ..adapters.importing import take

        assistant = self._assistant
        return take(
            self._store,
            assistant.paths,
            source,
            self._base(),
            assistant.model_sha256,
            name=name,
            force=force,
            passphrase=passphrase,
        )

    def publish_ollama(
        self,
        name: str,
        adapter: int | str | None = None,
        on_progress: Callable[[str], None] = lambda words: None,
        *,
        force: bool = False,
        elsewhere: bool = False,
    ) -> AdapterRecord:
        """Create a model in the running Ollama: the base with an adapter (None: the one in use).

        Args:
            force: make a model that is there anew.
            elsewhere: also if Ollama runs on another machine, to which the adapter would go.

        Raises:
            EngineError: Ollama does not answer, or refuses. UsageError: the name cannot be or is taken, or Ollama is
                elsewhere. NotFoundError, AdapterError, ModelError: as for `check`.
        """
        from ..adapters import modelfile
        from ..engine.ollama_publishing import publish

        record = self.active() if adapter is None else self.get(adapter)
        if record is None:
            raise AdapterError(_("The base model is in use, without an adapter to publish. Name one with --adapter."))
        self._registry.checked(record.id, self._assistant.model_sha256)
        publish(
            name,
            self._assistant.model_path,
            Path(record.gguf_path),
            modelfile.parameters(self._assistant.settings),
            self._assistant.settings.ollama,
            on_progress,
            force=force,
            elsewhere=elsewhere,
        )
        return record

    def _base(self) -> BaseShape:
        from ..adapters.gguf import BaseShape

        return BaseShape.of(self._assistant.model_path)

    def _of_this_model(self, record: AdapterRecord) -> None:
        self._registry.checked(record.id, self._assistant.model_sha256)


def profiles_in(store: Store) -> dict[str, dict[str, int]]:
    """See `Adapters.profiles`; no model is needed."""
    found: dict[str, dict[str, int]] = {}
    for rest, kept in store.flags.beginning(PROFILE).items():
        name, _dot, model = rest.rpartition(".")
        if kept:
            found.setdefault(name, {})[model] = int(kept)
    return found
