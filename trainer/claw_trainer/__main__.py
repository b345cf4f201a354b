"""`python -m claw_trainer`: one learning run as a process. The core starts it; a person need not."""

from __future__ import annotations

import argparse
import errno
import os
import sqlite3
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from claw_local import language
from claw_local.language import _

if TYPE_CHECKING:
    from claw_local.store import Store

DONE, FAILED, STOPPED, LEFT = 0, 1, 3, 4
LONGEST = 160
"""Most characters that are said of an error that was not expected."""
NO_SPACE = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


def main() -> int:
    """Run, and leave the outcome in the store. Exit status: 0 done, 1 failed, 3 stopped, 4 left to go on later."""
    parser = argparse.ArgumentParser(prog="claw_trainer", description=__doc__)
    parser.add_argument("--run", type=int, help="id of the run in the store")
    parser.add_argument("--request", type=Path, help="JSON file with the model and the settings")
    parser.add_argument("--judge", action="store_true", help="improve the judge instead of the assistant")
    parser.add_argument("--join", type=Path, metavar="MODEL", help="help the run of another machine, with this file")
    options = parser.parse_args()
    if options.join is None and (options.run is None or options.request is None):
        parser.error("--run and --request are needed, or --join")
    os.environ["HF_HUB_OFFLINE"] = "1"  # Nothing a library does may reach for the network.

    from .manners import be_modest

    be_modest()
    if options.join is not None or int(os.environ.get("RANK") or 0) > 0:
        return _follow(options.join)
    if shared := int(os.environ.get("WORLD_SIZE") or 1) > 1:
        from .ranks import ranks

        ranks()  # The others wait for it.
    try:
        return _run(options)
    finally:
        if shared:
            ranks().end()


def _follow(model: Path | None) -> int:
    """Be one of several processes of a run, but not the first."""
    from claw_local.errors import ClawError

    from .following import follow
    from .ranks import ranks

    try:
        follow(ranks(), model)
        ranks().end()
        return DONE
    except ClawError as error:
        print(error, file=sys.stderr)
        return FAILED
    except RuntimeError as error:  # The line to the first process broke.
        print(f"The first process of the run is gone: {error}", file=sys.stderr)
        return LEFT


def _run(options: argparse.Namespace) -> int:
    from claw_local.errors import ClawError
    from claw_local.paths import locate
    from claw_local.store import Store

    from .leaving import Leaving

    paths = locate()
    language.begin(paths)
    store = Store(paths)
    starter = store.runs.get(options.run).process
    store.runs.take_over(options.run)
    leaving = Leaving(store, options.run, starter)
    try:
        with leaving:
            from .run import read_request, run

            request = read_request(options.request)
            if options.judge:
                from .judge_joint import run as train_judge

                train_judge(store, paths, request.settings, request.model, options.run)
            else:
                run(store, paths, request, options.run)
        return DONE
    except BaseException as error:
        if leaving.wished:  # Whatever came of it: other code may have taken it for an error, and put it into its own.
            return _left(store, options.run)
        if not isinstance(error, Exception):
            raise
        if not isinstance(error, (ClawError, OSError, MemoryError)):
            traceback.print_exc()
        return _failed(store, options.run, error)
    finally:
        from claw_local.idle import kept

        if store.runs.get(options.run).state not in ("running", "paused"):
            kept.remove(paths, options.run)
        store.close()


def _left(store: Store, run_id: int) -> int:
    run = store.runs.get(run_id)
    if run.state != "running":
        return DONE  # It had just ended.
    if run.asked == "stop" or not run.checkpoint:
        store.runs.finish(run_id, "stopped", result={}, detail=_("The learning run was stopped."))
        return STOPPED
    anew = _("It was left, and begins anew at the next run.")
    store.runs.pause(run_id, anew if run.begins_anew else _("It was left, and goes on from {place}.", place=run.where))
    return LEFT


def _failed(store: Store, run_id: int, error: Exception) -> int:
    """Note what went wrong. What would go wrong again in the same way ends the run; with anything else, such as a full
    disk, it goes on from where it was."""
    from claw_local.errors import LearnError

    run = store.runs.get(run_id)
    if run.state != "running":
        return DONE
    full = _is_full(error)
    kind = "DiskFull" if full else type(error).__name__
    words = _words(error)
    if kind != "NothingNew":  # Which is no failure.
        store.runs.note_failure(run_id, kind, words)
    has_more = run.checkpoint.get("phase", "start") not in ("start", "planned")
    if (full and run.checkpoint) or (has_more and not isinstance(error, LearnError)):
        anew = _("It begins anew at the next run.")
        goes_on = anew if run.begins_anew else _("It goes on from {place}.", place=run.where)
        store.runs.pause(run_id, f"{words} {goes_on}")
    else:
        store.runs.finish(run_id, "failed", result={}, detail=words)
    return FAILED


def _is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, says that the disk is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            return True
        if isinstance(error, sqlite3.OperationalError) and "full" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _words(error: Exception) -> str:
    from claw_local.errors import ClawError

    if isinstance(error, ClawError):
        return str(error)
    if isinstance(error, MemoryError):
        return _("Memory ran out while learning. Close other programs, or learn with a smaller model.")
    if isinstance(error, OSError):
        remedy = _("Make some room on the disk.") if _is_full(error) else _("Run `claw-local doctor`.")
        return _("Learning could not write its files: {error}.", error=error) + " " + remedy
    return _(
        "Learning met an error that was not expected ({kind}: {error}). Its log has the details.",
        kind=type(error).__name__,
        error=_beginning(str(error)),
    )


def _beginning(text: str) -> str:
    """The first line that says something, and not too much of it: the log has all."""
    line = next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # At once: taking torch down takes longer than a person who came back should wait.
