"""What holds for all commands: those there are, `--json`, `--help`, and exit status 2 for wrong use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from claw_local.cli.main import app, run
from claw_local.paths import Paths

WANTED = """
ask chat feedback
learn on|off|status|now|pause|resume|log
learn schedule install|status|remove
hints list|add|off|on|remove
adapters list|show|use|rollback|export|import
models list|add|pull|use|show|remove
history list|search|show|export|import|delete
forget serve
judge eval|explain|exam|train
config list|get|set|edit|path
doctor bench
"""
ITS_OWN = {("chat",): "a screen", ("history", "export"): "a file", ("config", "edit"): "an editor"}
"""Commands whose answer is something else than words that another program could want as JSON."""
LISTS = ("adapters list", "hints list", "history list", "models list", "config list", "tools list", "serve keys list")
SHOWS = ("learn status", "learn log", "learn likes", "learn schedule status", "config path", "forget --receipts")


def leaves() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with its words."""

    def within(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        parts = getattr(command, "commands", {})
        if words and (not parts or (command.params and command.invoke_without_command)):
            yield words, command
        for name, part in parts.items():
            if not part.hidden:
                yield from within(part, (*words, name))

    return within(typer.main.get_command(app), ())


COMMANDS = dict(leaves())


def test_every_command_there_should_be_is_there() -> None:
    names = {" ".join(words) for words in COMMANDS}
    for line in WANTED.strip().splitlines():
        *group, last = line.split()
        wanted = {" ".join([*group, name]) for name in last.split("|")} if "|" in last else set(line.split())
        assert wanted <= names, wanted - names


@pytest.mark.parametrize("words", [words for words in COMMANDS if words not in ITS_OWN], ids=" ".join)
def test_it_can_answer_another_program(words: tuple[str, ...]) -> None:
    assert any("--json" in parameter.opts for parameter in COMMANDS[words].params)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_option_that_is_not_there_is_wrong_use_said_without_a_traceback(
    words: tuple[str, ...], home: Paths, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--no-such-option"]) == 2
    said = capfd.readouterr()
    assert said.out == "" and "--no-such-option" in said.err and "Traceback" not in said.err
    assert not home.database.exists(), "nothing was begun"


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_says_what_it_does(words: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "--help"]) == 0
    said = capfd.readouterr().out
    assert "Usage: claw-local " + " ".join(words) in said
    about = " ".join(said.partition("\n\n")[2].partition("\n\n")[0].split())
    assert len(about) > 10 and about.endswith((".", "…"))


@pytest.mark.parametrize("line", [*LISTS, *SHOWS])
def test_lists_are_json_that_can_be_read_before_there_is_anything(
    line: str, home: Paths, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([*line.split(), "--json"]) == 0
    json.loads(capfd.readouterr().out)
