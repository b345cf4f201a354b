"""Sets claw-local up on a fresh machine: `python3 packaging/bootstrap.py chat` (or `learn`, or `test`).

Needs nothing but a Python. This file is kept to what even Python 3.6 can read, so that it can hand over to a newer
one or say what is missing; the work is done in `bootstrapping`.
"""

import os
import subprocess
import sys

OLDEST = (3, 11)
NEWER = ("python3.13", "python3.12", "python3.11", "python3.14")
NO_PYTHON = """claw-local needs Python {0}.{1} or newer; this is {2}.{3} ({4}), and no newer one was found.
Install one, then run the same command with it:
  Debian, Ubuntu   sudo apt install python3.12 python3.12-venv    (or python3.11, python3.13: what yours has)
  Fedora           sudo dnf install python3.12
  macOS            brew install python@3.12
  Windows          winget install Python.Python.3.12
"""


def newer_python():
    """Path of a Python that is new enough, or None. It is started once: a name on the PATH may be an empty shim."""
    import shutil

    for name in NEWER:
        path = shutil.which(name)
        if path is None:
            continue
        probe = f"import sys; sys.exit(0 if sys.version_info[:2] >= {OLDEST} else 1)"
        try:
            if subprocess.call([path, "-c", probe], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0:
                return path
        except OSError:
            continue
    return None


def main():
    if sys.version_info[:2] >= OLDEST:
        from bootstrapping.verbs import main as run

        return run(sys.argv[1:])
    found = newer_python()
    if found is None:
        sys.stderr.write(NO_PYTHON.format(*OLDEST, *sys.version_info[:2], sys.executable))
        return 1
    sys.stderr.write(f"This Python is too old; going on with {found}\n")
    return subprocess.call([found, os.path.abspath(__file__), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
