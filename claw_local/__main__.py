"""`python -m claw_local`, which is `claw-local`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. `--version` answers before anything else is imported, and `chat` alone is on the screen
    before the other commands are known."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from . import __version__

        print(f"claw-local {__version__}")
        return
    if sys.argv[1:] == ["chat"] and sys.stdin.isatty() and sys.stdout.isatty():
        sys.exit(_chat())
    from .cli.main import run

    sys.exit(run(sys.argv[1:]))


def _chat() -> int:
    """As `cli.chat` without options."""
    from .cli.plainly import wished
    from .errors import ClawError

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
