"""Runs all checks, the slow ones side by side, and hands each finding over in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from ..errors import ClawError
from ..language import _
from ..paths import Paths
from ..settings import Settings
from .check import Check, from_error
from .database import check_database
from .engine import check_engine, check_gpu, check_memory, check_served, check_token, engine_outcome, find
from .home import check_home
from .learning import PARTS, check_learning, learning_outcomes
from .machine import check_disk, check_folder, check_python, check_settings

CHILDREN_AT_ONCE = 2


def checks(
    paths: Paths, settings: Settings | None = None, *, on_start: Callable[[str], None] | None = None
) -> Iterator[Check]:
    """Look at everything; yields each finding as soon as it and those before it are known.

    Args:
        paths: where this person's files live.
        settings: used instead of what the settings file says (which is checked all the same).
        on_start: called with the name of what is looked at next.
    """
    import psutil

    from ..engine.gguf_file import read_header
    from ..engine.opening import read_name
    from ..idle.vram import trains_on

    def begin(name: str) -> None:
        if on_start is not None:
            on_start(name)

    with ThreadPoolExecutor(CHILDREN_AT_ONCE) as pool:
        engine_future = pool.submit(engine_outcome)
        learning = pool.submit(learning_outcomes)
        begin("python")
        yield check_python()
        found, from_file = check_settings(paths)
        yield found
        yield check_folder(paths)
        yield check_disk(paths)
        begin("database")
        yield check_database(paths)
        yield from check_home(paths)
        begin("engine")
        outcome = engine_future.result()
        engine = check_engine(outcome)
        yield engine
        begin("model")
        used = settings or from_file
        model = None
        try:
            if read_name(used.model.path)[0] == "gguf":
                model = find(paths, used, outcome)
                yield check_token(model, engine, gpu_layers=used.model.gpu_layers)
            else:
                yield check_served(paths, used)
        except ClawError as error:
            yield from_error("model", error, _("Name a GGUF file with model.path in the settings."))
        memory = psutil.virtual_memory()
        yield check_memory(model, total=memory.total, available=memory.available)
        begin("gpu")
        yield check_gpu(outcome)
        learns_on = trains_on(used, read_header(model.path) if model is not None else None)
        for part in PARTS:
            begin(part)
            yield check_learning(part, learning.result()[part], learns_on=learns_on)


def home_checks(paths: Paths) -> Iterator[Check]:
    """What is quick and can be mended: settings, database and what lies in the home. Each looks when it is asked for,
    so that what was mended before is seen."""
    yield check_settings(paths)[0]
    yield check_database(paths)
    yield from check_home(paths)


def run_checks(paths: Paths, settings: Settings | None = None) -> list[Check]:
    """All findings, see `checks`."""
    return list(checks(paths, settings))
