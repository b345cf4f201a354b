"""`python -m claw_local`, which is `claw-local`."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run the command line. `--version` answers before anything else is imported, and `chat` alone is on the screen
    before the other commands are known."""
    closed = sys.stdout is None
    try:
        _mend_streams()
        if sys.argv[1:] in (["--version"], ["-V"]):
            from . import __version__

            try:
                print(f"claw-local {__version__}", flush=True)
            except OSError as error:
                sys.exit(f"The version could not be written: {error.strerror}.")
            if closed:
                sys.exit("Standard output is closed, so there is nowhere to put the answer.")
            return
        if sys.argv[1:] == ["chat"] and sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty():
            sys.exit(_chat())
        from .cli.main import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:  # So early that no command has begun.
        print("Stopped.", file=sys.stderr)
        sys.exit(130)


def _mend_streams() -> None:
    """Where the input is closed, nothing comes from it, and what is written to a closed output goes nowhere: its number
    would be given to the next file or pipe. A letter that the output's encoding lacks ends no command."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 It stays open.
    if sys.stdout is None:
        from .nowhere import nowhere

        sys.stdout = nowhere()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace" if stream.encoding.lower() == "utf-8" else "replace")


def _chat() -> int:
    """As `cli.chat` without options."""
    from .cli.passphrase import ask
    from .cli.plainly import wished
    from .errors import ClawError
    from .prompting import ask_with

    ask_with(ask)
    try:
        if wished():
            from .cli.plain import run as run_plain

            return run_plain()
        from claw_app import run

        return run()
    except ClawError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    except Exception as error:
        print(
            f"Something unexpected went wrong: {error!r}. `claw-local doctor` checks the set-up; "
            "`claw-local --debug chat` shows where it happened.",
            file=sys.stderr,
        )
        return 1


if __name__ == "__main__":
    main()
