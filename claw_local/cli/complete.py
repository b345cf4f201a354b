"""What the shell offers when Tab is pressed: settings, models, adapters, hints, chats, runs.

It must be quick, must never make a file or a folder, and must never show an error: where nothing can be offered, it
offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..paths import Paths, locate
from .common import short

if TYPE_CHECKING:
    from ..store import Store

Offer = tuple[str, str]
"""What is put in, and what the shell may show beside it."""

MOST = 50


def setting_names(incomplete: str) -> list[Offer]:
    return _offer(_settings, incomplete)


def model_names(incomplete: str) -> list[Offer]:
    """Models found here by what `--model` takes; then files and folders, as for any path."""
    return _offer(_models, incomplete) or _offer(lambda paths: _files(incomplete), incomplete)


def adapter_ids(incomplete: str) -> list[Offer]:
    return _offer(_adapters, incomplete)


def hint_ids(incomplete: str) -> list[Offer]:
    return _offer(_hints, incomplete)


def chat_ids(incomplete: str) -> list[Offer]:
    return _offer(_chats, incomplete)


def run_ids(incomplete: str) -> list[Offer]:
    return _offer(_runs, incomplete)


def _offer(find: Callable[[Paths], Iterator[Offer]], incomplete: str) -> list[Offer]:
    found: list[Offer] = []
    try:
        for word, about in find(locate()):
            if word.startswith(incomplete):
                found.append((word, about))
            if len(found) >= MOST:
                break
    except Exception:  # A traceback between a person and their prompt helps nobody.
        return []
    return found


def _settings(paths: Paths) -> Iterator[Offer]:
    from ..settings_file import names

    for key in names():
        yield key, ""


def _models(paths: Paths) -> Iterator[Offer]:
    from ..engine.catalog import Models
    from ..settings import Settings

    for name in Models(paths, Settings()).names():
        yield name, ""


def _files(incomplete: str) -> Iterator[Offer]:
    typed = Path(incomplete).expanduser()
    folder, begun = (typed, "") if incomplete.endswith("/") else (typed.parent, typed.name)
    kept = incomplete[: len(incomplete) - len(begun)]
    for path in sorted(folder.iterdir()):
        if path.name.startswith(begun) and (path.is_dir() or path.suffix.lower() == ".gguf"):
            yield kept + path.name + ("/" if path.is_dir() else ""), ""


def _adapters(paths: Paths) -> Iterator[Offer]:
    with _opened(paths) as store:
        yield "base", "the base model"
        for adapter in store.adapters.list():
            yield str(adapter.id), short(f"{adapter.state} {adapter.reason}")
            if adapter.name:
                yield adapter.name, f"adapter {adapter.id}, {adapter.state}"


def _hints(paths: Paths) -> Iterator[Offer]:
    with _opened(paths) as store:
        for hint in store.hints.list(state=None):
            yield str(hint.id), short(hint.text)


def _chats(paths: Paths) -> Iterator[Offer]:
    with _opened(paths) as store:
        for chat in store.chats.list(limit=MOST):
            yield str(chat.id), short(chat.title or "untitled")


def _runs(paths: Paths) -> Iterator[Offer]:
    with _opened(paths) as store:
        for run in store.runs.list():
            yield str(run.id), short(f"{run.started_at[:16]} {run.state}")


@contextmanager
def _opened(paths: Paths) -> Iterator[Store]:
    """The store, if there is one already."""
    from ..store import Store

    if not paths.database.is_file():
        raise FileNotFoundError(paths.database)
    store = Store(paths)
    try:
        yield store
    finally:
        store.close()
