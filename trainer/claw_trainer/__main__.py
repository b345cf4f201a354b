"""`python -m claw_trainer`: one learning run as a process. The core starts it; a person need not."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType


class Stopped(BaseException):
    """The run was asked to end."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped


def _with_parent(parent: int) -> Callable[[], None]:
    """A check that ends the run when the process that started it is gone: nobody could stop it any more."""

    def check() -> None:
        if os.getppid() != parent:
            raise Stopped

    return check


def main() -> int:
    """Run, and leave the outcome in the store. Exit status: 0 done, 1 failed, 3 stopped."""
    parser = argparse.ArgumentParser(prog="claw_trainer", description=__doc__)
    parser.add_argument("--run", type=int, required=True, help="id of the run in the store")
    parser.add_argument("--request", type=Path, required=True, help="JSON file with the model and the settings")
    parser.add_argument("--judge", action="store_true", help="improve the judge instead of the assistant")
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"  # Nothing a library does may reach for the network.

    from claw_local.errors import ClawError, LearnError
    from claw_local.paths import locate
    from claw_local.store import Store

    paths = locate()
    store = Store(paths)
    store.runs.take_over(options.run)
    try:
        signal.signal(signal.SIGTERM, _stop)
        from .run import read_request, run

        if options.judge:
            from .judge_joint import run
        model, settings = read_request(options.request)
        run(store, paths, settings, model, options.run, check=_with_parent(os.getppid()))
        return 0
    except Stopped:
        store.runs.finish(options.run, "stopped", result={}, detail="The learning run was stopped.")
        return 3
    except ClawError as error:
        store.runs.finish(options.run, "failed", result={}, detail=str(error))
        return 1
    except MemoryError:
        words = (
            "Memory ran out while learning. Close other programs, or set learning.rollouts and learning.replay lower."
        )
        store.runs.finish(options.run, "failed", result={}, detail=str(LearnError(words)))
        return 1
    finally:
        store.close()


if __name__ == "__main__":
    sys.exit(main())
