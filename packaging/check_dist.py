"""Builds sdist and wheel, and looks whether they are whole. `python packaging/check_dist.py FOLDER` leaves them there.

1. both are built from a copy of the tree, the wheel from the sdist, as `python -m build` does;
2. twine checks what an index would show of them;
3. the sdist holds what is needed to build, test and document;
4. the wheel is installed, without dependencies, into an empty environment; every module and data file must be there to
   the byte, the command must tell its version, and what it says without its dependencies must be no riddle.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"claw_local": ROOT, "claw_app": ROOT / "app", "claw_trainer": ROOT / "trainer"}
CLUTTER = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "site")
NEEDED = (
    *("LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "mkdocs.yml", "packaging/bootstrap.py"),
    *("packaging/desktop/local.claw.ClawLocal.desktop", "docs/index.md", "docs/chat.svg", "tests/conftest.py"),
    *("tests/store/data/before_m007.db.gz", "benchmarks/RESULTS.md"),
)


class Broken(Exception):
    """Something is missing or wrong; the message says what."""


def main(arguments: list[str]) -> int:
    """Build and check; returns 1 if something is wrong."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(arguments[0]).resolve() if arguments else Path(scratch) / "dist"
        try:
            sdist, wheel = build(Path(scratch), out)
            look_good(sdist, wheel)
            sdist_is_whole(sdist)
            wheel_is_whole(wheel, Path(scratch) / "empty")
        except Broken as error:
            print(f"Broken: {error}", file=sys.stderr)
            return 1
        print(
            f"{sdist.name} ({sdist.stat().st_size:,} bytes) and {wheel.name} ({wheel.stat().st_size:,} bytes) are whole"
        )
    return 0


def build(scratch: Path, out: Path) -> tuple[Path, Path]:
    """sdist and wheel, from a copy of the tree: a build leaves files behind."""
    tree = shutil.copytree(ROOT, scratch / "tree", ignore=CLUTTER)
    _call(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(tree))
    return _only(out, "claw_local-*.tar.gz"), _only(out, "claw_local-*.whl")


def look_good(*files: Path) -> None:
    """What an index would show of them. Raises Broken."""
    _call(sys.executable, "-m", "twine", "check", "--strict", *map(str, files))


def sdist_is_whole(sdist: Path) -> None:
    """Raises Broken: a file is missing that is needed to build, test or document, or one is there that is nobody's."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {*NEEDED, *(f"{place}{name}" for place, name, _ in _shipped())}
    if missing := sorted(wanted - names):
        raise Broken(f"the sdist lacks {', '.join(missing[:5])}")
    if strange := [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".db"))]:
        raise Broken(f"the sdist holds {strange[0]}")


def wheel_is_whole(wheel: Path, folder: Path) -> None:
    """Raises Broken: the installed package differs from the tree, or its command does not start."""
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pip = (sys.executable, "-m", "pip", "--python", str(python))
    _call(*pip, "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel))
    site = Path(_call(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    for _, name, file in _shipped():
        installed = site / name
        if not installed.is_file():
            raise Broken(f"the wheel lacks {name}")
        if _sum(installed) != _sum(file):
            raise Broken(f"{name} in the wheel is another file")
    command = python.parent / ("claw-local.exe" if sys.platform == "win32" else "claw-local")
    said = _call(str(command), "--version", cwd=folder)
    if not said.startswith("claw-local "):
        raise Broken(f"the command says {said!r} instead of its version")


def _shipped() -> Iterator[tuple[str, str, Path]]:
    """(folder in the sdist, path in the wheel, file) of every module and data file of the packages."""
    for package, parent in PACKAGES.items():
        place = "" if parent == ROOT else f"{parent.name}/"
        for file in sorted((parent / package).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and not file.name.startswith("."):
                yield place, file.relative_to(parent).as_posix(), file


def _sum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise Broken(f"{folder} holds {len(found)} files {pattern} instead of one: empty it first")
    return found[0]


def _call(*command: str, cwd: Path | None = None) -> str:
    """Standard output of a command. Raises Broken: it failed."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace", cwd=cwd)
    if done.returncode != 0:
        raise Broken(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
