"""Where the build without Python begins: `claw-local`, and `-m MODULE` for what the program starts as processes."""

from __future__ import annotations

import multiprocessing
import runpy
import sys


def main() -> None:
    """Be Python for the program's own modules, else the program."""
    multiprocessing.freeze_support()
    # Options of Python's own, which say how to find modules: here they are all inside.
    while sys.argv[1:2] in (["-P"], ["-I"], ["-u"]):
        del sys.argv[1]
    if sys.argv[1:2] == ["-m"] and sys.argv[2:3] and sys.argv[2].partition(".")[0] in ("claw_local", "claw_app"):
        module = sys.argv[2]
        sys.argv = [module, *sys.argv[3:]]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    from claw_local.__main__ import main as run

    run()


if __name__ == "__main__":
    main()
