"""Replies laid out as lines: what each kind of block looks like, and that growing text ends up as whole text does."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from rich.cells import cell_len

from claw_app.markdown import Document, _fit

TEXT = """# Title

Some **bold** and `code` and a [link](https://example.org) in a line that has to wrap.

1. one
   - inner
   - inner too
2. two

> A quote that is long enough to wrap at the width we use here.
> - with an item

| name | value |
|:-----|------:|
| 日本語 | 1 |
| b | 22 |

```python title="x"
def f():
\treturn 1

```

<b>tags</b> stay

-
- last
"""


def lines(text: str, width: int = 40) -> list[str]:
    return [line.plain.rstrip() for line in Document(text).lines(width)]


def test_each_kind_of_block_has_its_lines() -> None:
    assert lines(TEXT) == [
        "Title",
        "Some bold and code and a link in a line",
        "that has to wrap.",
        "",
        "1. one",
        "   • inner",
        "   • inner too",
        "2. two",
        "",
        "▌ A quote that is long enough to wrap at",
        "▌ the width we use here.",
        "▌",
        "▌ • with an item",
        "",
        "name   │ value",
        "───────┼──────",
        "日本語 │     1",
        "b      │    22",
        "",
        " 1 python  copy",
        " def f():",
        "     return 1",
        "",
        "<b>tags</b> stay",
        "",
        "•",
        "• last",
    ]


@pytest.mark.parametrize("step", [1, 3, 17])
def test_text_that_comes_in_pieces_ends_up_as_if_it_had_come_whole(step: int) -> None:
    growing = Document()
    for place in range(0, len(TEXT), step):
        growing.append(TEXT[place : place + step])
        growing.lines(40)
    assert [line.plain for line in growing.lines(40)] == [line.plain for line in Document(TEXT).lines(40)]
    assert growing.codes == Document(TEXT).codes == ["def f():\n\treturn 1"]
    assert growing.source == TEXT


@pytest.mark.parametrize("width", [12, 20, 33, 80])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    wide = (
        TEXT
        + "\n```\n"
        + "漢字" * 60
        + "\n```\n\n"
        + "🎉👩‍👩‍👧‍👦" * 30
        + "\n\n| "
        + " | ".join(["long cell"] * 3)
        + " |\n|-|-|-|\n"
    )
    assert max(cell_len(line) for line in lines(wide, width)) <= width


def test_blocks_of_code_are_numbered_through() -> None:
    text = "```\na\n```\n\ntext\n\n- item\n\n  ```sh\n  b\n  ```\n"
    assert Document(text).codes == ["a", "b"]
    heads = [line for line in lines(text) if line.endswith("copy")]
    assert [head.split()[0] for head in heads[:1]] == ["1"] and "2 sh" in heads[1]


def test_a_table_too_wide_for_the_screen_is_shown_row_by_row_and_quickly() -> None:
    def table(columns: int, cell: str) -> str:
        return "\n".join(
            f"| {' | '.join(row)} |"
            for row in (
                [f"c{n}" for n in range(columns)],
                ["-"] * columns,
                [f"{cell}{n}" for n in range(columns)],
                ["*b*"] * columns,
            )
        )

    assert lines(table(8, "x"), 40)[:3] == ["c0: x0", "c1: x1", "c2: x2"]
    assert lines(table(8, "x"), 40)[9] == "c0: b"
    assert "│" in lines(table(3, "x"), 40)[0]
    started = time.thread_time()
    assert len(lines(table(100, "word " * 400), 80)) > 2500
    assert time.thread_time() - started < 3.0


def test_nothing_gives_no_lines() -> None:
    assert lines("") == lines("\n\n") == []


def test_a_table_as_wide_as_a_message_is_narrowed_at_once() -> None:
    assert _fit([10**6, 3] * 20, 78) == [2] * 40
    assert _fit([10**6, 3], 78) == [72, 3]


def blocks(lines: list[str]) -> list[str]:
    """All lines but those of the last block, which may still become something else."""
    return lines[: max((place for place, line in enumerate(lines) if not line.strip()), default=0)]


def test_what_is_drawn_stays_as_it_is_while_more_comes() -> None:
    text = "# Title\n\nA paragraph that has to wrap here.\n\n```python\nx = 1\n\ny = 2\n```\n\n- one\n- two\n\nEnd."
    growing, before, heights = Document(), list[str](), [0]
    for letter in text:
        growing.append(letter)
        now = [line.plain for line in growing.lines(30)]
        kept = blocks(before)
        assert now[: len(kept)] == kept, "a block that is done moved or changed"
        heights.append(len(now))
        before = now
    # A mark that turns out to be the beginning of something else may take a line back, never more.
    assert min(later - earlier for earlier, later in pairwise(heights)) >= -1


def test_code_is_coloured_while_it_is_still_coming() -> None:
    growing = Document()
    growing.append("```python\ndef f():\n    return 'x'  # wh")
    *_, last = growing.lines(40)
    assert last.plain.strip() == "return 'x'  # wh"
    assert len({str(span.style) for span in last.spans}) >= 3, "a keyword, a string and a comment"
