"""Text made fit for a terminal and for people. It must never know where the text comes from."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len

from claw_local.language import N_, _, ngettext

if TYPE_CHECKING:
    from textual.content import Content

    from claw_local.store import AdapterRecord

# ECMA-48 control sequences, control strings (OSC, DCS, SOS, PM, APC) and two-character escapes, 7-bit and 8-bit.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,2048}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
# The beginning of one of these, of a character reference, or of a line end, at the end of a piece.
_UNFINISHED = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,2048}\x1b?"
    r"|\x1b[ -/]*"
    r"|&#?[xX]?[0-9a-fA-F]{0,8}"
    r"|\r)\Z"
)
# C0 (without tab and newline), DEL, C1, and the invisible marks that reorder what is read.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Numeric references that Markdown would turn back into such characters.
_REFERENCE = re.compile(r"&#(?:x0*(?:d|202[a-e]|206[6-9])|0*(?:13|823[4-8]|829[4-7]));", re.IGNORECASE)
_LINE_END = re.compile("[\r\u2028\u2029]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_WEEKDAYS = (
    *(N_("Monday"), N_("Tuesday"), N_("Wednesday"), N_("Thursday"), N_("Friday")),
    *(N_("Saturday"), N_("Sunday")),
)
_MONTHS = (
    *(N_("January"), N_("February"), N_("March"), N_("April"), N_("May"), N_("June")),
    *(N_("July"), N_("August"), N_("September"), N_("October"), N_("November"), N_("December")),
)
_SHORT_MONTHS = (
    *(N_("Jan"), N_("Feb"), N_("Mar"), N_("Apr"), N_("May"), N_("Jun")),
    *(N_("Jul"), N_("Aug"), N_("Sep"), N_("Oct"), N_("Nov"), N_("Dec")),
)
_SHOWN_CHARACTERS = 6000
_SHOWN_LINES = 60


def clean(text: str) -> str:
    """Take out what could drive a terminal: escape sequences, control characters, lone surrogates. Keep \\n, \\t."""
    text = _SEQUENCE.sub("", text.replace("\r\n", "\n"))
    # Line and paragraph separators too: Markdown does not count them as line ends, Python does.
    text = _CONTROL.sub("", _LINE_END.sub("\n", text))
    return _SURROGATE.sub("\ufffd", _REFERENCE.sub("\ufffd", text))


def one_line(text: str) -> str:
    """Clean text with every run of white space as one space."""
    return " ".join(clean(text).split())


class Cleaner:
    """`clean` for text that comes in pieces: an escape sequence cut in two is still taken out whole."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Clean a piece; what may be the start of an escape sequence waits for the next one."""
        text = self._held + piece
        unfinished = _UNFINISHED.search(text)
        cut = unfinished.start() if unfinished is not None else len(text)
        self._held = text[cut:]
        return clean(text[:cut])

    def flush(self) -> str:
        """What was still held back, cleaned."""
        text, self._held = self._held, ""
        return clean(text)


def excerpt(text: str, limit: int = _SHOWN_CHARACTERS, lines: int = _SHOWN_LINES) -> str:
    """The beginning of a long text, with a line that says how much follows. A terminal need not draw a megabyte."""
    shown = "".join(text[:limit].splitlines(keepends=True)[:lines])
    left = len(text) - len(shown)
    if not left:
        return text
    return f"{shown.rstrip()}\n" + ngettext("… and {number} more character", "… and {number} more characters", left)


def at_home(path: Path) -> str:
    """A folder as a person calls it: what lies in their own begins with ~."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path != home and path.is_relative_to(home) else str(path)


def padded(text: str, cells: int) -> str:
    """Text with blanks behind it up to so many cells; a Chinese character takes two."""
    return text + " " * max(0, cells - cell_len(text))


def dressed(message: str, /, **parts: Content) -> Content:
    """A text in the language in use, with these styled pieces in place of its `{names}`."""
    from string import Formatter

    from textual.content import Content

    pieces = []
    for words, name, __, __ in Formatter().parse(_(message)):
        pieces.append(Content(words))
        if name is not None:
            pieces.append(parts[name])
    return Content("").join(pieces)


def wrapped(text: str, cells: int) -> list[str]:
    """Text in lines of at most so many cells: broken at blanks, and inside of what has none that long."""
    from textual.content import Content

    return [line.plain.rstrip() for line in Content(text).wrap(cells)]


def local_time(stamp: str) -> datetime:
    """A stored ISO 8601 time in this machine's time zone; without a zone it is UTC. Unreadable: the epoch."""
    try:
        time = datetime.fromisoformat(stamp)
        return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).astimezone()
    except (ValueError, OverflowError):  # The first and the last day there are have no time in every zone.
        return datetime.fromtimestamp(0, UTC).astimezone()


def day_name(stamp: str, today: date) -> str:
    """The heading a chat is listed under: Today, Yesterday, Friday, 21 November, 21 November 2025."""
    day = local_time(stamp).date()
    days = (today - day).days
    if days <= 1:
        return _("Today") if days <= 0 else _("Yesterday")
    if days < 7:
        return _(_WEEKDAYS[day.weekday()])
    if day.year <= 1970:  # what `local_time` makes of a time it cannot read
        return _("Earlier")
    month = _(_MONTHS[day.month - 1])
    if day.year == today.year:
        return _("{day} {month}", day=day.day, month=month)
    return _("{day} {month} {year}", day=day.day, month=month, year=day.year)


def moment(stamp: str, *, year: bool = False) -> str:
    """A stored time, short: 21 Nov 14:05; with the year where it is asked for."""
    time = local_time(stamp)
    month, clock = _(_SHORT_MONTHS[time.month - 1]), f"{time:%H:%M}"
    if year:
        return _("{day:02} {month} {year} {time}", day=time.day, month=month, year=time.year, time=clock)
    return _("{day:02} {month} {time}", day=time.day, month=month, time=clock)


def adapter_name(record: AdapterRecord) -> str:
    """An adapter by its id, and by the name it was given: adapter 3 “work”."""
    name = _("adapter {id}", id=record.id)
    return f"{name} “{one_line(record.name)}”" if record.name else name
