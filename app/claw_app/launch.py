"""Starting and leaving the app. It must never know about screens and widgets."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from claw_local.errors import ClawError, UsageError

if TYPE_CHECKING:
    from claw_local.assistant import Assistant
    from claw_local.settings import Settings

CLOSE_TIMEOUT_S = 0.6
LATE_S = 3.0


def in_browser() -> bool:
    """Whether this process draws for a browser: `web.py` starts it so, through textual-serve."""
    return "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")


def launch(
    home: str | os.PathLike[str] | None,
    *,
    model: str | Path | None,
    settings: Settings | None,
    chat_id: int | None,
    workspace: str = "",
    debug: bool,
) -> int:
    """See `claw_app.run`."""
    if not in_browser() and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The chat needs a terminal, and input or output is not one. "
            'Use `claw-local ask "..."` in pipes and scripts, or run this in a terminal.'
        )
    if os.environ.get("NO_COLOR") == "":
        # Empty means unset (no-color.org); the libraries look only whether it is there.
        del os.environ["NO_COLOR"]
    if not in_browser():
        for name in ("COLUMNS", "LINES"):
            # Exported by some shells: they would be taken for the size of the terminal, whatever becomes of that.
            os.environ.pop(name, None)
        draw_on_the_terminal()
    from claw_local import language
    from claw_local.paths import locate

    paths = locate(home)
    language.begin(paths)
    if paths.encryption.exists():
        from claw_local.store import opening

        opening.key_of(paths.database)  # Asked for now: the screen is not the app's yet.

    from .app import ClawApp
    from .escapes import keep_escapes
    from .pastes import guard_pastes
    from .themes import Look

    guard_pastes()
    keep_escapes()

    def open_assistant() -> Assistant:
        from claw_local.assistant import Assistant

        assistant = Assistant.open(home, model=model, settings=settings)
        try:
            if model:
                assistant.checked_model(str(model))
            assistant.adapters.check_profile()
        except ClawError:
            assistant.close()
            raise
        return assistant

    app = ClawApp(open_assistant, chat_id=chat_id, workspace=workspace, debug=debug, look=Look(paths), front=True)
    app.run()
    return leave(app.take_assistant(), app.return_code or 0, app.opening_error)


def draw_on_the_terminal() -> None:
    """Textual draws on standard error. Where that leads elsewhere (`chat 2>log`), it draws on standard output: that is
    the terminal. What programs write to standard error still goes where the person sent it."""
    there = sys.__stderr__
    if there is None or there.closed or not there.isatty():
        sys.__stderr__ = sys.__stdout__  # type: ignore[misc]


def when_ended(leave: Callable[[], None]) -> Callable[..., None]:
    """Have `leave` called in this event loop when the terminal is closed, or the system wants an end; or when what is
    returned is called."""
    loop = asyncio.get_running_loop()

    def ended(*_: object) -> None:
        # The loop may be busy; and a terminal that is gone takes no writing, so who waits for it waits for ever.
        late = threading.Timer(LATE_S, os._exit, (1,))
        late.daemon = True
        late.start()
        with suppress(RuntimeError):  # It is closed: the app is leaving anyway.
            loop.call_soon_threadsafe(leave)

    for name in ("SIGTERM", "SIGHUP"):
        # Windows lacks one of them, and only the main thread may ask for them.
        with suppress(AttributeError, ValueError):
            signal.signal(getattr(signal, name), ended)
    return ended


def hung_up(descriptor: int) -> bool:
    """Whether nobody holds the other end of a pipe any more. Not known on Windows."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(descriptor, 0)  # What is asked for is nothing: an end is told all the same.
    return any(told & (select.POLLHUP | select.POLLERR) for _, told in poll.poll(0))


def leave(assistant: Assistant | None, status: int, error: BaseException | None = None) -> int:
    """Close the assistant, but let nobody wait for a model that is still loading.

    What has been said is in the database already, so a computation that cannot be interrupted may be left where it is.

    Raises:
        BaseException: `error`, if there is one.
    """
    if assistant is not None:

        def close() -> None:
            nonlocal error
            try:
                assistant.close()
            except Exception as failed:  # Such as what was said while the disk was full, and could not be saved.
                error = error or failed

        closing = threading.Thread(target=close, daemon=True, name="close")
        closing.start()
        closing.join(CLOSE_TIMEOUT_S)
        if closing.is_alive():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    if error is not None:
        raise error
    return status
