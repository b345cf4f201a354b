"""The manual's pages, section 1: one for `claw-local` and one for each command and group (man(7) macros)."""

from __future__ import annotations

import datetime
import os

from .commands import Command


def pages(root: Command, version: str) -> dict[str, str]:
    """File name -> page. The date is that of SOURCE_DATE_EPOCH, where it is set, so that builds can be repeated."""
    now = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now(datetime.UTC).timestamp())
    day = datetime.datetime.fromtimestamp(now, datetime.UTC).date().isoformat()
    return {f"{_page(command)}.1": _written(command, root, version, day) for command in root.walk()}


def _page(command: Command) -> str:
    return command.name.replace(" ", "-")


def _written(command: Command, root: Command, version: str, day: str) -> str:
    about = " ".join(command.about.split())
    first = about.split(". ")[0].removesuffix(".")
    lines = [f'.TH "{_page(command).upper()}" "1" "{day}" "claw-local {version}" "claw-local"', ".nh"]
    lines += [".SH NAME", f"{_plain(_page(command))} \\- {_plain(first)}"]
    lines += [".SH SYNOPSIS", f".B {_plain(command.name)}", _plain(command.usage)]
    lines += [".SH DESCRIPTION"]
    for paragraph in command.about.split("\n\n"):
        lines += [".PP", _plain(" ".join(paragraph.split()))]
    for title, pairs in (("ARGUMENTS", command.arguments), ("OPTIONS", command.options)):
        if pairs:
            lines.append(f".SH {title}")
            for name, meaning in pairs:
                lines += [".TP", f".B {_plain(name)}", _plain(meaning) or "\\&"]
    if command.parts:
        lines.append(".SH COMMANDS")
        for part in command.parts:
            lines += [".TP", f".BR {_plain(_page(part))} (1)", _plain(" ".join(part.about.split()).split(". ")[0])]
    if command is root:
        lines += [
            ".SH EXIT STATUS",
            _plain("0 done, 1 it could not be done, 2 it was put wrongly, 130 stopped with Ctrl-C."),
        ]
        lines += [".SH ENVIRONMENT", ".TP", ".B CLAW_LOCAL_HOME", "One folder for everything: chats, models, settings."]
        lines += [".TP", ".B CLAW_LOCAL_SECTION__NAME", "A setting for this one call, such as CLAW_LOCAL_MODEL__PATH."]
        lines += [".TP", ".B NO_COLOR", "No colours."]
    others = [other for other in root.walk() if command in other.parts] or ([] if command is root else [root])
    if others:
        lines += [".SH SEE ALSO", f".BR {_plain(_page(others[0]))} (1)"]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text in which troff sees no request and no escape; hyphens can be copied as they are."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...").replace("`", "\\(ga")
    safe = safe.replace("'", "\\(aq").replace('"', "\\(dq")
    return f"\\&{safe}" if safe.startswith(".") else safe
