"""Mutation testing: changes the code in small ways and counts how often a test notices.

    .venv/bin/python -m pip install mutmut
    .venv/bin/python packaging/mutants.py            # every part
    .venv/bin/python packaging/mutants.py losses     # one part
    .venv/bin/python packaging/mutants.py gate --survivors  # and what changes no test noticed

It works on a copy in `build/mutants`, in which each package lies at the top: mutmut knows a module by its file's path.
The tests that load a language model are left out: a mutant has to be noticed by arithmetic, in a second or two. What no
test can notice, since the program does the same with it, counts as survived.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutants"
WANTED = 0.85
"""Share of the mutants that the tests have to notice."""
PACKAGES = {"claw_local": ".", "claw_app": "app", "claw_trainer": "trainer"}
"""Every package and the folder it lies in here."""
BESIDE = ("tests", "benchmarks", "packaging", "stress", "docs", "README.md")
"""What the tests look at beside the packages."""
MUTMUT = [sys.executable, "-c", "from mutmut.__main__ import cli; cli()"]
KILLED = {1, 3}
"""pytest's exit statuses of a mutant that a test noticed."""
TIMED_OUT = {24, -24, 36, 152, 255}
"""A mutant that never ends is noticed too."""


@dataclass(frozen=True)
class Part:
    """Files that are changed, and the tests that have to notice. Both are relative to a folder with all packages."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


PARTS = {
    "judge": Part(
        tuple(
            f"claw_local/judge/{name}.py"
            for name in "asking background bounds calibration changes deadline directing evaluation exam examples "
            "explanation feedback filters hints judge opening personal phrases said saying scoring tools trained "
            "unheard voting words written".split()
        ),
        ("tests/judge",),
    ),
    "gate": Part(
        tuple(f"claw_local/adapters/{name}.py" for name in "gate interval qualities".split()),
        ("tests/adapters/test_gate.py", "tests/adapters/test_qualities.py"),
    ),
    "losses": Part(("claw_trainer/losses.py",), ("tests/trainer/test_losses.py",)),
}

LEAVE_OUT = '''

def pytest_collection_modifyitems(config, items):
    """Added by packaging/mutants.py: no test that loads a language model."""
    left_out = [item for item in items if "model_path" in item.fixturenames]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
'''


def lay_out(part: Part) -> None:
    """Copy the project, each package at the top, with mutmut's settings for one part."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    leave = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for package, folder in PACKAGES.items():
        shutil.copytree(ROOT / folder / package, WORK / package, ignore=leave)
    for name in BESIDE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, WORK / name, ignore=leave)
        else:
            shutil.copy(ROOT / name, WORK / name)
    shutil.copy(ROOT / "pyproject.toml", WORK / "pyproject.toml")
    with (WORK / "tests" / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(LEAVE_OUT)
    settings = {
        "source_paths": [f"{package}/" for package in PACKAGES],
        "only_mutate": list(part.files),
        "also_copy": list(BESIDE),
        "pytest_add_cli_args": ["-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": list(part.tests),
        # torch and llama.cpp do not live through a fork; a server that only imports them does.
        "process_isolation": "forkserver",
        "use_git_change_detection": False,
        "track_dependencies": False,
    }
    with (WORK / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n[tool.mutmut]\n")
        file.writelines(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())


def counted(part: Part) -> tuple[Counter[str], dict[str, list[str]]]:
    """How many mutants of each file were noticed and how many were not, and the names of those."""
    counts: Counter[str] = Counter()
    survivors: dict[str, list[str]] = {}
    for file in part.files:
        kept = json.loads((WORK / "mutants" / f"{file}.meta").read_text("utf-8"))
        survivors[file] = []
        for name, status in kept["exit_code_by_key"].items():
            noticed = status in KILLED | TIMED_OUT
            counts[f"{file} {'noticed' if noticed else 'not'}"] += 1
            if not noticed:
                survivors[file].append(name)
    return counts, survivors


def test(name: str, *, show: bool) -> bool:
    """Run one part and print its figures; whether enough was noticed."""
    part = PARTS[name]
    lay_out(part)
    subprocess.call([*MUTMUT, "run"], cwd=WORK, stdout=subprocess.DEVNULL)
    counts, survivors = counted(part)
    noticed = total = 0
    for file in part.files:
        of = counts[f"{file} noticed"] + counts[f"{file} not"]
        print(f"{file}: {counts[f'{file} noticed']} of {of}")
        noticed, total = noticed + counts[f"{file} noticed"], total + of
        for survivor in survivors[file] if show else ():
            subprocess.call([*MUTMUT, "show", survivor], cwd=WORK)
    print(f"{name}: {noticed} of {total} mutants noticed, {noticed / total:.1%}", flush=True)
    return noticed / total >= WANTED


def main(arguments: list[str]) -> int:
    show = "--survivors" in arguments
    names = [one for one in arguments if not one.startswith("--")] or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"There is no part {unknown[0]}. Parts: {', '.join(PARTS)}.", file=sys.stderr)
        return 2
    if importlib.util.find_spec("mutmut") is None:
        print("mutmut is not installed: python -m pip install mutmut", file=sys.stderr)
        return 2
    enough = [test(name, show=show) for name in names]
    return 0 if all(enough) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
