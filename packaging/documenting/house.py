"""The map of the project's parts, drawn from what they really import when they run."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from html import escape

from . import PARENTS

Arrows = dict[str, set[str]]
"""Part -> the parts it imports. A part is a package or module of `claw_local`, or one of the other two packages."""

_NO_PARTS = ("__init__", "__main__", "data")
_BOX_WIDTH, _BOX_HEIGHT, _GAP, _ROW = 104, 30, 14, 84


def arrows() -> Arrows:
    """What each part imports at run time; imports for types alone do not count."""
    found: Arrows = {}
    for package, parent in PARENTS.items():
        for file in sorted((parent / package).rglob("*.py")):
            module = file.relative_to(parent).with_suffix("").parts
            part = _part(module)
            if part is None:
                continue
            others = found.setdefault(part, set())
            for name in _imports(ast.parse(file.read_text("utf-8")), module):
                other = _part(tuple(name.split(".")))
                if other is not None and other != part:
                    others.add(other)
    return {part: {other for other in others if other in found} for part, others in found.items()}


def _part(module: tuple[str, ...]) -> str | None:
    if module[0] not in PARENTS:
        return None
    if module[0] != "claw_local":
        return module[0]
    return module[1] if len(module) > 1 and module[1] not in _NO_PARTS else None


def _imports(tree: ast.Module, module: tuple[str, ...]) -> set[str]:
    """Absolute names of what a module imports, but for blocks under TYPE_CHECKING."""
    found: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # A package's own __init__ counts as a module in it here, too.
            start = module[: -node.level] if node.level else ()
            base = ".".join([*start, *([node.module] if node.module else [])])
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
        waiting += ast.iter_child_nodes(node)
    return found


def rows(drawn: Mapping[str, set[str]]) -> list[list[str]]:
    """The parts from the lowest row up: each above all that it imports. Parts that import each other share a row."""
    rings = _rings(drawn)
    levels: dict[frozenset[str], int] = {}

    def level(ring: frozenset[str]) -> int:
        if ring not in levels:
            below = {rings[other] for part in ring for other in drawn[part]} - {ring}
            levels[ring] = max((level(other) + 1 for other in below), default=0)
        return levels[ring]

    height = {part: level(rings[part]) for part in drawn}
    return [sorted(part for part in drawn if height[part] == row) for row in range(max(height.values()) + 1)]


def _rings(drawn: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    """Part -> the parts that it imports and that import it, by whatever way; at least itself."""
    reached = {part: _reached(drawn, part) for part in drawn}
    return {part: frozenset({part} | {other for other in reached[part] if part in reached[other]}) for part in drawn}


def _reached(drawn: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(drawn[start])
    while waiting:
        part = waiting.pop()
        if part not in seen:
            seen.add(part)
            waiting += drawn[part]
    return seen


def _needed(drawn: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The arrows that are drawn: those that no way over other arrows says already, and all within a ring."""
    rings = _rings(drawn)
    below = {ring: {rings[other] for part in ring for other in drawn[part]} - {ring} for ring in rings.values()}

    def follows(ring: frozenset[str], other: frozenset[str]) -> bool:
        between = [third for third in below[ring] if third != other]
        return any(other <= _reached(drawn, next(iter(third))) for third in between)

    return [
        (part, other)
        for part, others in sorted(drawn.items())
        for other in sorted(others)
        if rings[part] == rings[other] or not follows(rings[part], rings[other])
    ]


def as_svg(drawn: Mapping[str, set[str]]) -> str:
    """The map. Colours are those of the page around it."""
    placed: dict[str, tuple[float, float]] = {}
    levels = rows(drawn)
    width = max(len(row) for row in levels) * (_BOX_WIDTH + _GAP) + _GAP
    for number, row in enumerate(reversed(levels)):
        left = (width - len(row) * (_BOX_WIDTH + _GAP) + _GAP) / 2
        for place, part in enumerate(row):
            placed[part] = (left + place * (_BOX_WIDTH + _GAP), 10 + number * _ROW)
    height = len(levels) * _ROW - (_ROW - _BOX_HEIGHT) + 20
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        'font-family="sans-serif" font-size="12" style="max-width:100%">',
        "<title>The parts of the project; an arrow goes from a part to one that it imports</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="currentColor"/></marker></defs>',
    ]
    for part, other in _needed(drawn):
        (x1, y1), (x2, y2) = placed[part], placed[other]
        x1, x2 = x1 + _BOX_WIDTH / 2, x2 + _BOX_WIDTH / 2
        top, bottom = y1 + _BOX_HEIGHT, y2
        if y1 == y2:
            low, middle = top + 26, (x1 + x2) / 2
            path = f"M{x1:.0f} {top:.0f}Q{middle:.0f} {low:.0f} {x2:.0f} {top:.0f}"
        else:
            path = f"M{x1:.0f} {top:.0f}C{x1:.0f} {top + 30:.0f} {x2:.0f} {bottom - 30:.0f} {x2:.0f} {bottom:.0f}"
        lines.append(f'<path d="{path}" fill="none" stroke="currentColor" opacity="0.55" marker-end="url(#tip)"/>')
    for part, (x, y) in placed.items():
        lines.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="6" '
            'fill="var(--md-default-bg-color, #fff)" stroke="currentColor"/>'
            f'<text x="{x + _BOX_WIDTH / 2:.0f}" y="{y + 19:.0f}" text-anchor="middle" fill="currentColor">'
            f"{escape(part)}</text>"
        )
    return "\n".join([*lines, "</svg>"])


def as_table(drawn: Mapping[str, set[str]], about: Mapping[str, str]) -> str:
    """Every part with what it is for and all that it imports, from the top row down."""
    lines = ["| part | what it is for | imports |", "|---|---|---|"]
    for row in reversed(rows(drawn)):
        for part in row:
            others = ", ".join(f"`{other}`" for other in sorted(drawn[part])) or "nothing of ours"
            lines.append(f"| `{part}` | {about.get(part, '')} | {others} |")
    return "\n".join(lines)


def purposes() -> dict[str, str]:
    """Part -> the first sentence of its docstring."""
    found: dict[str, str] = {}
    for part in arrows():
        parent = PARENTS.get(part, PARENTS["claw_local"] / "claw_local")
        files = [parent / f"{part}.py", parent / part / "__init__.py"]
        text = next(
            (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "" for file in files if file.is_file()), ""
        )
        found[part] = " ".join(text.split()).split(". ")[0].removesuffix(".").replace("|", "\\|")
    return found


def drawn() -> str:
    """The map as a part of a page: on one line, because Markdown takes what is inside for its own otherwise."""
    return f"<div>{as_svg(arrows()).replace(chr(10), '')}</div>"


def listed() -> str:
    """The table of parts."""
    return as_table(arrows(), purposes())
