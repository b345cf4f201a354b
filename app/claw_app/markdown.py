"""Markdown laid out as lines for a width. It must never know about widgets, nor whose text it is.

A reply as one widget of lines, instead of one widget a paragraph, list item and bullet, is what makes a long chat cheap
to open, to scroll, and to draw thirty times a second while it grows.

Importing this imports the parser, which takes a tenth of the time to the first paint: import it where it is used.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len
from textual.content import Content, Span
from textual.highlight import highlight
from textual.style import Style

from claw_local.language import _

_LONG_CODE = 20_000
"""Code longer than this is shown without colours: they would take longer than reading it."""
_NARROWEST_CELL = 7
"""Cells that a column takes at least, the line beside it included."""
_LEAST = 8
"""Columns that are left for text, however deep a list is nested."""
_TAB = 4
_BULLETS = "•◦▪"
_LINES_AT_ONCE = re.compile(r"\s+")
_STYLES = {"strong": "bold", "em": "italic", "s": "strike"}
_CODE_STYLE = "$accent on $panel"
_HEADINGS = {"h1": "bold underline $primary", "h2": "bold $primary"}

_parsers = threading.local()


def parser() -> MarkdownIt:
    """This thread's parser. HTML stays text: a reply's tags are meant to be read."""
    found: MarkdownIt | None = getattr(_parsers, "parser", None)
    if found is None:
        found = _parsers.parser = MarkdownIt("gfm-like", {"html": False})
    return found


@dataclass
class _Group:
    """One block at the top level with all that is in it, and its lines for the width they were last asked for.

    Attributes:
        start: the source line it begins at.
        number: how many blocks of code stand before it.
    """

    tokens: list[Token]
    start: int
    number: int
    codes: list[str]
    width: int = 0
    lines: list[Content] = field(default_factory=list)

    def lay_out(self, width: int) -> list[Content]:
        if width != self.width:
            self.width, self.lines = width, _Page(width, self.number).blocks(self.tokens)
        return self.lines


class Document:
    """A text that may grow at its end. Only its last block is read and laid out again then."""

    def __init__(self, source: str = "") -> None:
        self.source = ""
        self._groups: list[_Group] = []
        self.append(source)

    @property
    def codes(self) -> list[str]:
        """The text of each block of code, in order."""
        return [code for group in self._groups for code in group.codes]

    def append(self, text: str) -> None:
        """Add text at the end."""
        self.source += text
        last = self._groups.pop() if self._groups else None
        start = last.start if last is not None else 0
        number = last.number if last is not None else 0
        for group in _groups(parser().parse("\n".join(self.source.split("\n")[start:]))):
            codes = [token.content.rstrip("\n") for token in group if token.type in ("fence", "code_block")]
            first = group[0].map[0] if group[0].map else 0
            self._groups.append(_Group(group, start + first, number, codes))
            number += len(codes)

    def lines(self, width: int) -> list[Content]:
        """The text as lines of at most `width` cells, with no empty ones at the end."""
        lines = [line for group in self._groups for line in group.lay_out(width)]
        while lines and not lines[-1].plain.strip():
            lines.pop()
        return lines


def _groups(tokens: Sequence[Token]) -> list[list[Token]]:
    groups: list[list[Token]] = []
    for token in tokens:
        if token.level == 0 and token.nesting >= 0:
            groups.append([])
        groups[-1].append(token)
    return groups


class _Page:
    """Lays out tokens. `_first` stands before the next line, `_rest` before those after it."""

    def __init__(self, width: int, number: int) -> None:
        self._width, self._number = width, number
        self._lines: list[Content] = []
        self._first = self._rest = Content("")
        self._counters: list[int | None] = []

    def blocks(self, tokens: Sequence[Token]) -> list[Content]:
        place = 0
        outer: list[Content] = []
        while place < len(tokens):
            token = tokens[place]
            kind = token.type
            if kind == "inline":
                self._inline(token, tokens[place - 1])
            elif kind in ("fence", "code_block"):
                self._code(token)
            elif kind == "hr":
                self._put(Content.styled("─" * self._room, "$quiet"))
                self._gap()
            elif kind == "table_open":
                end = next(n for n in range(place, len(tokens)) if tokens[n].type == "table_close")
                self._table(tokens[place:end])
                place = end
            elif kind in ("bullet_list_open", "ordered_list_open"):
                start = token.attrGet("start")
                self._counters.append(None if kind.startswith("bullet") else int(1 if start is None else start))
            elif kind in ("bullet_list_close", "ordered_list_close"):
                self._counters.pop()
                if not self._counters:
                    self._gap()
            elif kind == "list_item_open":
                outer.append(self._rest)
                self._indent(*self._bullet())
            elif kind == "blockquote_open":
                outer.append(self._rest)
                self._indent(Content.styled("▌ ", "$secondary"), Content.styled("▌ ", "$secondary"))
            elif kind in ("list_item_close", "blockquote_close"):
                if self._first is not self._rest:  # an item with nothing in it: its bullet stands alone
                    self._put(Content(""))
                self._first = self._rest = outer.pop()
                if kind == "blockquote_close" and self._lines and not self._lines[-1].plain.strip(" ▌"):
                    self._lines[-1] = Content(self._rest.plain.rstrip())
            place += 1
        return self._lines

    @property
    def _room(self) -> int:
        return max(_LEAST, self._width - self._rest.cell_length)

    def _bullet(self) -> tuple[Content, Content]:
        number = self._counters[-1]
        if number is None:
            mark = _BULLETS[(sum(one is None for one in self._counters) - 1) % len(_BULLETS)] + " "
        else:
            mark = f"{number}. "
            self._counters[-1] = number + 1
        return Content.styled(mark, "$secondary"), Content(" " * cell_len(mark))

    def _indent(self, first: Content, rest: Content) -> None:
        # What has not been used yet stays: the first line of a list in a list has both bullets.
        self._first, self._rest = self._first + first, self._rest + rest

    def _put(self, content: Content, room: int | None = None) -> None:
        for line in content.wrap(room or self._room) or [Content("")]:
            self._line(line)

    def _line(self, line: Content) -> None:
        self._lines.append(self._first + line)
        self._first = self._rest

    def _gap(self) -> None:
        if self._lines and self._lines[-1].plain.strip(" ▌"):
            self._lines.append(self._rest.rstrip(" "))

    def _inline(self, token: Token, opening: Token) -> None:
        text = inline(token)
        if opening.type == "heading_open":
            self._put(text.stylize_before(_HEADINGS.get(opening.tag, "bold $primary")))
        else:
            self._put(text)
            if not opening.hidden:
                self._gap()

    def _code(self, token: Token) -> None:
        self._number += 1
        named = token.info.strip("{}. \t").split()
        language = named[0].lower() if named else ""
        room = self._room
        link = Style.from_meta({"@click": f"copy_code({self._number})"})
        head = Content.assemble((f" {self._number}", "$secondary"), f" {language}".rstrip(), "  ", (_("copy"), link))
        self._line(_on(head.stylize_before("$quiet"), room, "$panel"))
        code = token.content.rstrip("\n").expandtabs(_TAB)
        # Without a language nothing is guessed: guessing tries hundreds of lexers at every new piece.
        coloured = highlight(code, language=language or "text") if len(code) <= _LONG_CODE else Content(code)
        for line in coloured.split("\n", allow_blank=True):
            for part in line.fold(room - 2) if line.cell_length > room - 2 else [line]:
                self._line(_on(Content(" ") + part, room, "$surface"))
        self._gap()

    def _table(self, tokens: Sequence[Token]) -> None:
        rows: list[list[Content]] = []
        right: list[bool] = []
        for token, opening in zip(tokens[1:], tokens, strict=False):
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(inline(token))
                if len(rows) == 1:
                    right.append("right" in str(opening.attrGet("style") or ""))
        if not rows:
            return
        if len(rows[0]) * _NARROWEST_CELL > self._room:
            self._records(rows)
            return
        widths = _fit(
            [max(row[n].cell_length for row in rows if n < len(row)) for n in range(len(rows[0]))], self._room
        )
        bar = Content.styled(" │ ", "$quiet")
        for number, row in enumerate(rows):
            cells = [cell.wrap(width) for cell, width in zip(row, widths, strict=False)]
            for parts in zip_longest(*cells, fillvalue=Content("")):
                padded = [
                    _pad(part, width, to_right) for part, width, to_right in zip(parts, widths, right, strict=False)
                ]
                line = bar.join(padded)
                self._line(line.stylize_before("bold $primary") if number == 0 else line)
            if number == 0:
                self._line(Content.styled("─┼─".join("─" * width for width in widths), "$quiet"))
        self._gap()

    def _records(self, rows: list[list[Content]]) -> None:
        """A table with more columns than there is room for: each row as lines of name and value."""
        names = [name.stylize_before("bold $primary") for name in rows[0]]
        for row in rows[1:]:
            for name, cell in zip(names, row, strict=False):
                self._put(Content.assemble(name, ": ", cell))
            self._gap()
        if len(rows) == 1:
            self._put(Content(", ").join(names))
            self._gap()


def _fit(widths: list[int], room: int) -> list[int]:
    """Column widths that fit beside each other: the widest give way."""
    # None can stay wider than all there is, and a cell may be as long as a message.
    widths = [max(1, min(width, max(2, room))) for width in widths]
    while sum(widths) + 3 * (len(widths) - 1) > room and max(widths) > 2:
        widths[widths.index(max(widths))] -= 1
    return widths


def _pad(text: Content, width: int, right: bool) -> Content:
    space = Content(" " * max(0, width - text.cell_length))
    return space + text if right else text + space


def _on(line: Content, width: int, colour: str) -> Content:
    if line.cell_length > width:
        line = line.fold(width)[0]
    return _pad(line, width, False).stylize_before(f"on {colour}")


def inline(token: Token) -> Content:
    """The text within a block, with its styles and links."""
    texts: list[str] = []
    spans: list[Span] = []
    open_styles: list[tuple[int, str | Style]] = []
    length = 0

    def add(text: str, style: str | Style | None = None) -> None:
        nonlocal length
        texts.append(text)
        if style is not None:
            spans.append(Span(length, length + len(text), style))
        length += len(text)

    adding: dict[str, Callable[[Token], None]] = {
        "text": lambda child: add(_LINES_AT_ONCE.sub(" ", child.content)),
        "hardbreak": lambda __: add("\n"),
        "softbreak": lambda __: add(" "),
        "code_inline": lambda child: add(child.content, _CODE_STYLE),
        "image": lambda child: add(
            _("[image: {description}]", description=child.content or _("no description")), "$quiet"
        ),
    }
    for child in token.children or ():
        if child.type in adding:
            adding[child.type](child)
        elif child.type == "link_open":
            meta = Style.from_meta({"@click": f"open_link({str(child.attrGet('href') or '')!r})"})
            open_styles += [(length, "underline $secondary"), (length, meta)]
        elif child.type.endswith("_open"):
            open_styles.append((length, _STYLES.get(child.type.removesuffix("_open"), "")))
        elif child.type.endswith("_close"):
            for __ in range(2 if child.type == "link_close" else 1):
                start, style = open_styles.pop()
                spans.append(Span(start, length, style))
    return Content("".join(texts), spans=spans)
