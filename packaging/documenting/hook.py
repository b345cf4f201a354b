"""MkDocs calls this while it builds the site: pages made from the program join those that are written by hand."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from documenting import ROOT, commands, errors, inserted, licences, reach_packages, settings

GENERATED: dict[str, Callable[[], str]] = {
    "commands.md": lambda: commands.as_markdown(commands.read()),
    "settings.md": settings.as_markdown,
    "errors.md": errors.as_markdown,
    "notices.md": licences.as_markdown,
}
COPIED = {"changes.md": ROOT / "CHANGELOG.md", "results.md": ROOT / "benchmarks" / "RESULTS.md"}
"""Pages that lie elsewhere in the project."""

# In the folder these links lead to what the pages are made of, so that they hold there, too.
_LINKS = {
    "../CHANGELOG.md": "changes.md",
    "../benchmarks/RESULTS.md": "results.md",
    "../README.md": "index.md",
    "../claw_local/settings.py": "settings.md",
    "../docs/remedies.toml": "errors.md",
}


def on_files(files: Any, config: Any) -> Any:
    """Add the generated and the copied pages."""
    from mkdocs.structure.files import File

    reach_packages()  # MkDocs has put sys.path back since this module was loaded.
    for name, make in GENERATED.items():
        files.append(File.generated(config, name, content=make()))
    for name, path in COPIED.items():
        files.append(File.generated(config, name, content=path.read_text("utf-8")))
    _reach_all(config, {file.src_uri for file in files.documentation_pages()})
    return files


def _reach_all(config: Any, pages: set[str]) -> None:
    """No page without a way to it: what the navigation in mkdocs.yml does not name stands under "More"."""
    named = set(_named(config.nav))
    left = sorted(pages - named)
    if left:
        config.nav.append({"More": left})


def _named(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [page for part in (nav.values() if isinstance(nav, dict) else nav) for page in _named(part)]


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Draw the map and the like, and lead links out of docs/ to the site's own pages."""
    # In a page from elsewhere, links are as seen from there.
    if page.file.src_uri in COPIED:
        markdown = re.sub(r"\]\((?:\.\./)?docs/", "](", markdown)
    return inserted.fill(re.sub(r"\[([^\]]+)\]\((\.\./[^)#]+)(#[^)]*)?\)", _led, markdown))


def _led(link: re.Match[str]) -> str:
    """A link out of docs/: to the page that stands for it; where none does, the file's name is all there is to say."""
    text, target, part = link[1], link[2], link[3] or ""
    if target in _LINKS:
        return f"[{text}]({_LINKS[target]}{part})"
    name = target.removeprefix("../")
    return text if name in text else f"{text} (`{name}`)"
