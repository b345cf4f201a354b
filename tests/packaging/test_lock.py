"""The pinned packages cover what pyproject.toml asks for, each with a hash."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("lock", ROOT / "packaging" / "lock.py")
assert SPEC is not None and SPEC.loader is not None
lock = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(lock)


def pinned(name: str) -> dict[str, str]:
    """The versions in one file; every pin must have a hash."""
    text = (ROOT / "packaging" / "locked" / f"{name}.txt").read_text("utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    found = {}
    for entry in entries:
        match = re.match(r"([\w.-]+)==([^\s;\\]+)", entry)
        assert match is not None, entry[:100]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry[:100]
        found[canonicalize_name(match[1])] = match[2]
    return found


@pytest.mark.parametrize("name", lock.SETS)
def test_what_is_asked_for_is_pinned_to_a_version_that_will_do(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in lock.SETS[name]:
        wanted += project["optional-dependencies"][extra]
    have = pinned(name)
    for line in wanted:
        asked = Requirement(line)
        version = have.get(canonicalize_name(asked.name))
        assert version is not None, f"{asked.name} is not pinned: python packaging/lock.py"
        assert asked.specifier.contains(version, prereleases=True), f"{asked.name} {version}"


def test_no_file_names_where_packages_come_from() -> None:
    for name in lock.SETS:
        text = (ROOT / "packaging" / "locked" / f"{name}.txt").read_text("utf-8")
        assert "://" not in text and "--find-links" not in text
