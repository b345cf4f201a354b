"""Replies laid out as lines: what each kind of block looks like, and that growing text ends up as whole text does."""

from __future__ import annotations

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


def test_nothing_gives_no_lines() -> None:
    assert lines("") == lines("\n\n") == []


def test_a_table_as_wide_as_a_message_is_narrowed_at_once() -> None:
    assert _fit([10**6, 3] * 20, 78) == [2] * 40
    assert _fit([10**6, 3], 78) == [72, 3]
