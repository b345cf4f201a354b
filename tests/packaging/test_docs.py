"""What the pages and the README tell a person to type exists: commands, options, settings, files and links."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from claw_local import settings_file
from claw_local.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MADE = {"commands.md", "settings.md", "errors.md", "notices.md", "changes.md", "results.md"}
"""Pages that are made when the site is built."""
_ENDS = re.compile(r"\s(?:#|&&|\|\||\||>|<|;|…)")
"""What ends a command in a line of shell."""


@functools.cache
def program() -> Any:
    """The tree of all commands; making it takes a while."""
    return typer.main.get_command(app)


def code(text: str) -> Iterator[str]:
    """Every line of a block of code, and every piece of code in a sentence."""
    fence = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
    for block in fence.finditer(text):
        if block[2] in ("", "sh", "console", "text"):
            yield from block[3].replace("\\\n", " ").splitlines()
    rest = fence.sub("", text)
    yield from re.findall(r"^ {4}(\S.*)$", rest, re.MULTILINE)
    yield from (" ".join(piece.split()) for piece in re.findall(r"`([^`]+)`", rest))


def commands() -> Iterator[tuple[str, list[str]]]:
    """(page, words after `claw-local`) of every command that is shown."""
    groups = "|".join(program().commands)
    for page in PAGES:
        for line in code(page.read_text("utf-8")):
            for found in re.finditer(r"(?<!inject )(?<!keyring get )(?<![\w-])claw-local (?=[a-z-])(.*)", line):
                words = _ENDS.split(found[1] + " ", maxsplit=1)[0]
                yield page.name, split(words)
            if re.match(rf"(?:{groups}) [a-z-]", line):  # As `hints off ID`, where the program is clear.
                yield page.name, split(line)


def split(words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError:
        return words.split()


def wrong_with(words: list[str]) -> str:
    """What the program does not know of a command; "" if it knows all of it."""
    command = program()
    words = list(words)
    while words and not words[0].startswith("-") and hasattr(command, "commands"):
        name = words.pop(0)
        if name not in command.commands:
            return "" if name.isupper() else f"no command {name}"
        command = command.commands[name]
    options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
    for word in words:
        option = word.split("=")[0].rstrip(".,:")
        if re.fullmatch(r"--?[a-z][a-z-]*", option) and option not in options:
            return f"no option {option}"
    return ""


def test_every_command_on_a_page_exists_with_its_options() -> None:
    shown = list(commands())
    assert len(shown) > 200
    wrong = {f"{page}: claw-local {' '.join(words)}: {said}" for page, words in shown if (said := wrong_with(words))}
    assert not wrong


def test_what_is_wrong_with_a_command_is_seen() -> None:
    assert wrong_with(["learn", "now"]) == "" and wrong_with(["hints", "off", "ID"]) == ""
    assert wrong_with(["learn", "later"]) == "no command later"
    assert wrong_with(["ask", "--loud", "Why?"]) == "no option --loud"


def test_every_setting_on_a_page_exists() -> None:
    known = set(settings_file.names())
    sections = {name.partition(".")[0] for name in known}
    files = {"toml", "json", "jsonl", "db", "py", "log", "md", "gguf", "svg", "exe", "rb", "sh", "json`"}
    wrong = set()
    for page in PAGES:
        for piece in re.findall(r"`([^`\n]+)`", page.read_text("utf-8")):
            for section, name in re.findall(r"(?<![\w./-])([a-z]+)\.([a-z_]+)(?![\w(/.-])", piece):
                full = f"{section}.{name}"
                if section in sections and name not in files and full not in known:
                    wrong.add(f"{page.name}: {full}")
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        if page.parent.name == "docs" and name in MADE:
            continue
        file = (page.parent / name) if name else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            titles = re.findall(r"^#+ (.+)$", file.read_text("utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}
            assert anchor in slugs, target


def test_every_script_and_file_of_the_project_that_is_named_is_there() -> None:
    wrong = set()
    for page in PAGES:
        for line in code(page.read_text("utf-8")):
            for name in re.findall(r"(?<![\w./-])((?:packaging|benchmarks|docs|tests|stress)/[\w./-]*\w)", line):
                if not (ROOT / name).exists():
                    wrong.add(f"{page.name}: {name}")
            for name in re.findall(r"python3? -m ((?:benchmarks|stress)(?:\.\w+)*)", line):
                module = ROOT / name.replace(".", "/")
                if not (module.with_suffix(".py").exists() or (module / "__main__.py").exists()):
                    wrong.add(f"{page.name}: {name}")
    assert not wrong
