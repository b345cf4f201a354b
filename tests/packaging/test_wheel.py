"""What `pip install` would put on someone's machine: built once from a copy of the tree, and looked into."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

PACKAGES = {"claw_local": ".", "claw_app": "app", "claw_trainer": "trainer"}
CLUTTER = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "tests", "benchmarks")


@pytest.fixture(scope="module")
def tree(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project: a build leaves files behind."""
    return shutil.copytree(root, tmp_path_factory.mktemp("project") / "tree", ignore=CLUTTER)


@pytest.fixture(scope="module")
def wheel(tree: Path) -> zipfile.ZipFile:
    folder = tree.parent
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(tree)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return zipfile.ZipFile(next(folder.glob("claw_local-*.whl")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_it_holds_the_three_packages_and_nothing_else(wheel):
    top = {name.split("/")[0] for name in wheel.namelist()}
    info = {name for name in top if name.endswith(".dist-info")}
    assert top - info == set(PACKAGES)
    assert len(info) == 1


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_is_in_it(wheel, tree, package):
    parent = tree / PACKAGES[package]
    modules = {file.relative_to(parent).as_posix() for file in (parent / package).rglob("*.py")}
    assert modules
    assert modules <= set(wheel.namelist())


def test_the_data_files_and_styles_are_in_it(wheel, tree):
    data = {f"claw_local/data/{file.name}" for file in (tree / "claw_local" / "data").iterdir() if file.is_file()}
    styles = {file.relative_to(tree / "app").as_posix() for file in (tree / "app" / "claw_app").rglob("*.tcss")}
    assert data
    assert styles
    assert data | styles | {"claw_local/py.typed"} <= set(wheel.namelist())


def test_it_brings_the_command_and_the_licence(wheel):
    names = wheel.namelist()
    entry = next(name for name in names if name.endswith("entry_points.txt"))
    assert "claw-local = claw_local.__main__:main" in wheel.read(entry).decode()
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_torch_comes_with_the_train_extra_only(metadata):
    required = metadata.get_all("Requires-Dist") or []
    torch = [line for line in required if line.startswith("torch")]
    assert torch
    assert all('extra == "train"' in line for line in torch)
    assert {"tiny", "train", "dev"} <= set(metadata.get_all("Provides-Extra") or [])


def test_the_version_is_the_one_the_package_tells(metadata):
    import claw_local

    assert metadata["Version"] == claw_local.__version__
