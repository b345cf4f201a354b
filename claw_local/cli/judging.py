"""What the judge's commands share: opening the judge that is asked for, and showing how far it is."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .waiting import bars

if TYPE_CHECKING:
    from ..idle.job import Progress
    from ..judge.verdict import AnyJudge
    from ..store import Store


@dataclass(frozen=True)
class OpenedJudge:
    """A judge, ready to be asked.

    Attributes:
        judge: as it judges, what its exam says being heeded.
        examined: the same judge as it takes an exam: heard.
        name: of its model. adapter: path of its lowest adapter, "" without one.
        store: where exams are kept; None if there is none yet.
    """

    judge: AnyJudge
    examined: AnyJudge
    name: str
    adapter: str
    store: Store | None


@contextmanager
def opened(
    model: str | None, adapter: Path | None, *, bare: bool = False, keeps: bool = False
) -> Iterator[OpenedJudge]:
    """The judge of the settings, with another model or adapter if one is named.

    Args:
        bare: without any adapter.
        keeps: open the store even if it has to be made.

    Raises:
        UsageError: an adapter is named for a model behind a server, or beside `bare`.
    """
    from ..adapters.registry import file_sha256
    from ..engine.base import AdapterSlot
    from ..engine.opening import local_model, locate_model, open_engine
    from ..errors import AdapterError, UsageError
    from ..judge.opening import make_judge
    from ..judge.personal import JudgeAdapters
    from ..paths import locate
    from ..settings import load
    from ..store import Store

    paths = locate()
    settings = load(paths)
    named = model or settings.judge.model
    source = locate_model(settings, paths, named) if named else local_model(settings, paths, None)
    own: JudgeAdapters | None = JudgeAdapters() if bare else None
    if adapter is not None:
        if bare:
            raise UsageError("--adapter and --bare contradict each other: name an adapter, or go without any.")
        if source.path is None:
            raise UsageError(f"{source} is behind a server, which takes no judge's adapter. Leave --adapter out.")
        if not adapter.is_file():
            raise AdapterError(f"There is no judge's adapter {adapter}. Name a GGUF LoRA that was trained to judge.")
        own = JudgeAdapters((AdapterSlot(adapter),), True, file_sha256(adapter))
    with ExitStack() as stack:
        engine = open_engine(source, settings, paths)
        stack.callback(engine.close)
        store = Store(paths) if keeps or paths.database.is_file() else None
        if store is not None:
            stack.callback(store.close)
        examined = make_judge(engine, settings.judge, store, adapters=own, examining=True)
        judge = make_judge(engine, settings.judge, store, adapters=own)
        yield OpenedJudge(judge, examined, engine.info.name, str(adapter or ""), store)


@contextmanager
def progress(total: int, *, quiet: bool) -> Iterator[Any]:
    """A bar on standard error, where a person sits there."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with bars() as bar:
        task = bar.add_task("judging", total=total)
        yield lambda done, _: bar.update(task, completed=done)


@contextmanager
def following(*, quiet: bool) -> Iterator[tuple[Callable[[Progress], None] | None, threading.Event]]:
    """A bar for a training run, and the event that stops it. A closed terminal stops it as Ctrl-C does."""
    cancel = threading.Event()
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.default_int_handler)
    if quiet or not sys.stderr.isatty():
        yield None, cancel
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with bars(*columns, TimeElapsedColumn()) as bar:
        task = bar.add_task("starting", total=1.0)

        def show(progress: Progress) -> None:
            words = f"{progress.phase}: {progress.detail}" if progress.detail else progress.phase
            bar.update(task, completed=progress.fraction, description=words)

        yield show, cancel
