"""The house stays as it was drawn: arrows run one way, and the core stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = {"claw_local": ROOT, "claw_app": ROOT / "app", "claw_trainer": ROOT / "trainer"}

LAYERS = {
    "errors": 0,
    "extras": 0,
    "files": 0,
    "glimpse": 0,
    "invalid": 0,
    "heap": 0,
    "hours": 0,
    "language": 0,
    "leftovers": 0,
    "named_text": 0,
    "nowhere": 0,
    "paths": 0,
    "prompting": 0,
    "sizes": 0,
    "targets": 0,
    "installed": 1,
    "settings": 1,
    "settings_checks": 1,
    "settings_file": 1,
    "engine": 2,
    "store": 2,
    "tools": 2,
    "signals": 3,
    "judge": 3,
    "memory": 3,
    "adapters": 3,
    "history": 3,
    "forgetting": 3,
    "backup": 3,
    "idle": 3,
    "reply": 3,
    "talking": 4,
    "assistant": 4,
    "bench": 5,
    "doctor": 5,
    "server": 5,
    "cli": 5,
}
"""Each part of claw_local may import parts of its own layer and of lower ones."""


def imports_of(file: Path, package: str) -> set[str]:
    """The modules a file imports at run time, as absolute names."""
    found: set[str] = set()
    tree = ast.parse(file.read_text("utf-8"))
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")
            start = base[: len(base) - node.level + 1] if node.level else []
            module = ".".join([*start, node.module or ""]).strip(".")
            found.update({f"{module}.{alias.name}" for alias in node.names} | {module})
    return found


def modules(package: str) -> list[tuple[Path, str]]:
    root = FOLDERS[package]
    return [(f, ".".join(f.relative_to(root).parent.parts)) for f in (root / package).rglob("*.py")]


def test_core_parts_import_only_their_own_layer_and_lower_ones() -> None:
    wrong = []
    for file, package in modules("claw_local"):
        part = file.relative_to(ROOT / "claw_local").parts[0].removesuffix(".py")
        if part not in LAYERS:
            assert part in ("__init__", "__main__", "data"), f"{part} has no place in the house yet"
            continue
        for name in imports_of(file, package):
            other = name.split(".")[1] if name.startswith("claw_local.") else ""
            if LAYERS.get(other, -1) > LAYERS[part]:
                wrong.append(f"{file.relative_to(ROOT)} imports {name}")
    assert not wrong


@pytest.mark.parametrize(
    ("package", "never"),
    [
        ("claw_local", ("torch", "peft", "transformers", "textual", "claw_trainer")),
        ("claw_app", ("torch", "claw_trainer", "sqlite_utils", "llama_cpp")),
        ("claw_trainer", ("textual", "claw_app")),
    ],
)
def test_packages_never_import_what_is_not_theirs(package: str, never: tuple[str, ...]) -> None:
    allowed = {"claw_local/doctor"}  # It looks whether torch works, in a child process.
    for file, name in modules(package):
        if any(file.as_posix().find(part) >= 0 for part in allowed):
            continue
        for imported in imports_of(file, name):
            assert imported.split(".")[0] not in never, f"{file.relative_to(ROOT)} imports {imported}"


def test_importing_the_core_is_quick_and_light() -> None:
    script = """
import sys, time
start = time.perf_counter()
import claw_local
taken = time.perf_counter() - start
heavy = {"torch", "textual", "llama_cpp", "numpy", "pydantic", "claw_trainer"} & set(sys.modules)
print(taken, sorted(heavy))
"""
    best = min(
        float(
            subprocess.run(
                [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
            ).stdout.split()[0]
        )
        for _ in range(3)
    )
    assert best < 0.15
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert out.strip().endswith("[]")
