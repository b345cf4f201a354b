"""Every sentence with which the program says that something went wrong, read from its source.

Counted as such are texts given to an exception that this project defines or to ValueError, to `typer.echo(…,
err=True)`, and to a notice of the app that is a warning or an error. What a sentence fills in (a file, a number)
stands as "…".
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from . import PARENTS, ROOT
from .commands import _safe

GAP = "…"
MOST_VARIANTS = 64
LEAST_WORDS = 2
AREAS = {
    "claw_app": "The app",
    "claw_trainer": "The trainer",
    "packaging": "Setting up",
    "adapters": "Adapters, packs and the gate",
    "backup": "Backups",
    "bench": "Measuring",
    "cli": "Commands",
    "doctor": "The doctor",
    "engine": "Models and engines",
    "forgetting": "Forgetting",
    "history": "Chats, imports and exports",
    "idle": "Learning",
    "judge": "The judge",
    "memory": "Hints",
    "store": "The database",
    "talking": "Chatting",
}
_BUILT_IN = {"ValueError"}
_FILLED = re.compile(r"\{\w[^{}]*\}")
"""What `_()` fills in."""


@dataclass(frozen=True)
class Said:
    """One sentence, and where it comes from. `area`: the part of the program. `kind`: the exception, or ""."""

    text: str
    area: str
    kind: str
    file: str
    line: int


@dataclass
class _Source:
    """The program's modules, parsed, and what can be looked up in them."""

    trees: dict[Path, ast.Module]
    functions: dict[str, list[tuple[Path, ast.FunctionDef]]] = field(default_factory=dict)
    assigned: dict[tuple[Path, str], list[ast.expr]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for file, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    self.functions.setdefault(node.name, []).append((file, node))
                if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                    self.assigned.setdefault((file, node.targets[0].id), []).append(node.value)

    @cached_property
    def errors(self) -> set[str]:
        """Names of the exceptions defined here, and of built-in ones whose text people see."""
        bases = {
            node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
            for tree in self.trees.values()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        }
        known = {"Exception", *_BUILT_IN}
        while more := {name for name, of in bases.items() if of & known} - known:
            known |= more
        return known - {"Exception"}

    def variants(self, node: ast.expr, file: Path, depth: int = 0) -> list[str]:
        """The texts an expression can be; what is not known here is a gap."""
        if depth > 6:
            return [GAP]
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return _joined(self.variants(part, file, depth) for part in parts)
            case ast.FormattedValue(value=ast.Name(id=name)) if name.lstrip("_").isupper():
                # What is filled in is a gap; a part of the sentence that is kept in a constant is not.
                return self._of_name(name, file, depth) or [GAP]
            case ast.FormattedValue(value=ast.IfExp() | ast.BoolOp() as choice):
                return self.variants(choice, file, depth + 1)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _joined([self.variants(left, file, depth), self.variants(right, file, depth)])
            case ast.IfExp(body=one, orelse=other):
                return [*self.variants(one, file, depth), *self.variants(other, file, depth)]
            case ast.BoolOp(values=parts):
                return list(dict.fromkeys(text for part in parts for text in self.variants(part, file, depth)))
            case ast.Name(id=name):
                return self._of_name(name, file, depth) or [GAP]
            case ast.Call(func=ast.Name(id="_" | "N_" | "dressed"), args=[message, *__]):
                return [_FILLED.sub(GAP, text) for text in self.variants(message, file, depth + 1)]
            case ast.Call(func=ast.Name(id="ngettext"), args=[one, many, *__]):
                both = [*self.variants(one, file, depth + 1), *self.variants(many, file, depth + 1)]
                return [_FILLED.sub(GAP, text) for text in both]
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
                if name in self.errors:
                    return [GAP]
                returned = self._returned(name, file, depth)
                return returned or [GAP]
        return [GAP]

    def _of_name(self, name: str, file: Path, depth: int) -> list[str]:
        """What is assigned to a name in its own module; a constant may come from another one."""
        values = self.assigned.get((file, name), [])
        if not values and name.lstrip("_").isupper():
            values = [value for (_, other), found in self.assigned.items() if other == name for value in found]
        return [text for value in values[:8] for text in self.variants(value, file, depth + 1)]

    def _returned(self, name: str, file: Path, depth: int) -> list[str]:
        """What a function of that name can return as text: the one of this module, else those of others."""
        found: list[str] = []
        every = self.functions.get(name, [])
        for where, function in [pair for pair in every if pair[0] == file] or every[:4]:
            if function.returns is not None and "str" not in ast.unparse(function.returns):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    found += self.variants(node.value, where, depth + 1)
        return found[:MOST_VARIANTS]


def _joined(parts: Iterable[list[str]]) -> list[str]:
    return ["".join(choice) for choice in itertools.islice(itertools.product(*parts), MOST_VARIANTS)]


def _source() -> _Source:
    files = [file for package, parent in PARENTS.items() for file in sorted((parent / package).rglob("*.py"))]
    files += sorted((ROOT / "packaging" / "bootstrapping").glob("*.py"))
    return _Source({file: ast.parse(file.read_text("utf-8")) for file in files})


def sayings(source: _Source | None = None) -> Iterator[tuple[Path, ast.Call, str, ast.expr]]:
    """Every place where an error is put into words: file, call, name of the exception or "", the text's expression."""
    source = source or _source()
    for file, tree in source.trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in source.errors:
                yield file, node, name, node.args[0]
            elif _is_warning(name, node):
                yield file, node, "", node.args[0]


def _is_warning(name: str, call: ast.Call) -> bool:
    """Whether a call says something on standard error, or as a notice that is a warning or an error."""
    keywords = {
        keyword.arg: keyword.value.value for keyword in call.keywords if isinstance(keyword.value, ast.Constant)
    }
    if name == "echo":
        return keywords.get("err") is True
    return name in ("say", "notify") and keywords.get("severity") in ("error", "warning")


@functools.cache
def collect() -> tuple[Said, ...]:
    """Every sentence once, in the order of areas and texts."""
    source = _source()
    found: dict[tuple[str, str], Said] = {}
    for file, call, kind, expression in sayings(source):
        area, place = _area(file), file.relative_to(ROOT).as_posix()
        texts = [" ".join(text.split()) for text in source.variants(expression, file)]
        for text in [*texts, *_filled_in(expression, texts)]:
            if len([word for word in text.replace(GAP, " ").split() if word[0].isalpha()]) > 1:
                found.setdefault((area, text), Said(text, area, kind, place, call.lineno))
    return tuple(sorted(found.values(), key=lambda said: (said.area, said.text.lstrip(f"{GAP} “").lower())))


def _filled_in(expression: ast.expr, texts: list[str]) -> list[str]:
    """Words that are written at that place but go through a function into the sentence: a reason, part of a remedy."""
    found = []
    for node in ast.walk(expression):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) > LEAST_WORDS:
            told = _FILLED.sub(GAP, " ".join(node.value.split()))
            if not any(told in text for text in texts):
                found.append(told)
    return found


def _area(file: Path) -> str:
    parts = file.relative_to(ROOT).parts
    top = {"app": "claw_app", "trainer": "claw_trainer", "packaging": "packaging"}.get(parts[0], "")
    name = top or (parts[1].removesuffix(".py"))
    return AREAS.get(name, "Everything else" if len(parts) == 2 else name.capitalize())


def remedies() -> list[tuple[str, str]]:
    """Pairs of a part of a message and what more there is to say about it, from docs/remedies.toml."""
    listed = tomllib.loads((ROOT / "docs" / "remedies.toml").read_text("utf-8"))["remedy"]
    return [(entry["message"], entry["text"]) for entry in listed]


def as_markdown() -> str:
    """The list of all messages, by area, each with the remedy that is written for it, if one is."""
    lines = [
        "# Error messages",
        "",
        f"What the program may say when something does not go, by part; {GAP} stands for what it fills in.",
        "Most messages hold their own remedy. Search for the words you see, at the top of this page.",
        "Where that does not help: `claw-local doctor`, then [troubleshooting](troubleshooting.md). This page is made",
        "from the program's source.",
    ]
    written = remedies()
    for area, group in itertools.groupby(collect(), lambda said: said.area):
        lines += ["", f"## {area}", ""]
        for said in group:
            lines.append(f"- {_safe(said.text)}")
            lines += [f"\n    {_safe(text)}\n" for part, text in written if part in said.text]
    return "\n".join(lines) + "\n"
