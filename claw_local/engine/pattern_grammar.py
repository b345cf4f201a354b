"""From a regular expression to rules (GBNF) of the JSON string whose text it fits: quotes, backslashes and control
characters stand in it as JSON writes them. It must never know of schemas.
"""

from __future__ import annotations

from collections.abc import Callable

from .regex import ANY, Anchor, Chars, Choice, Node, PatternError, Ranges, Repeat, Sequence, parsed, without

MOST_PLACES = 600
"""Characters that a pattern may stand for once its counts are written out: each may be looked at at each token."""
MOST_RULES = 400
MOST_ENDS = 32
"""Alternatives that may begin or end differently (`^a|b$`)."""
_SHORT = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 0x22: '"', 0x5C: "\\"}
"""What stands after the backslash in JSON; other control characters are written as u0001."""
_NEVER_RAW: Ranges = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0xD800, 0xDFFF))
_NOTHING = Sequence(())


def string_rule(pattern: str, add: Callable[[str], str]) -> str:
    """The right side of a rule for a JSON string, quotes included, whose text the pattern is found in.

    Args:
        add: takes the right side of a further rule, and returns the name under which it now stands.

    Raises:
        PatternError: it is no regular expression, or one that cannot be kept to.
    """
    whole = _whole(parsed(pattern))
    if _places(whole) > MOST_PLACES:
        raise PatternError(f"The pattern {pattern!r} stands for too long a text: {MOST_PLACES} characters at most.")
    return rf'"\"" {_Writer(pattern, add).written(_Lean().lean(whole))} "\""'


def _whole(node: Node) -> Node:
    """The pattern with its `^` and `$` resolved: where they are missing, any text may stand."""
    anything = Repeat(Chars(ANY), 0, None)
    whole: list[Node] = []
    for parts in _ends(node):
        begins = bool(parts) and _is(parts[0], "^")
        while parts and _is(parts[0], "^"):
            parts = parts[1:]
        ends = bool(parts) and _is(parts[-1], "$")
        while parts and _is(parts[-1], "$"):
            parts = parts[:-1]
        inside = Sequence((*(() if begins else (anything,)), *parts, *(() if ends else (anything,))))
        if _anchored(inside):
            raise PatternError("A pattern has ^ only where it begins and $ only where it ends.")
        whole.append(inside)
    return whole[0] if len(whole) == 1 else Choice(tuple(whole))


def _ends(node: Node) -> list[tuple[Node, ...]]:
    """A pattern as alternatives whose own beginnings and ends show: a group there that has anchors is written out."""
    done: list[tuple[Node, ...]] = []
    waiting: list[tuple[Node, ...]] = [(node,)]
    while waiting:
        parts = waiting.pop(0)
        first = next((n for n, part in enumerate(parts) if not _is(part, "^")), 0)
        last = next((n for n in reversed(range(len(parts))) if not _is(parts[n], "$")), 0)
        for place in {first, last} if parts else ():
            part = parts[place]
            if isinstance(part, (Choice, Sequence)) and _anchored(part):
                choices = part.parts if isinstance(part, Choice) else (part,)
                for one in choices:
                    inner = one.parts if isinstance(one, Sequence) else (one,)
                    waiting.append((*parts[:place], *inner, *parts[place + 1 :]))
                break
        else:
            done.append(parts)
        if len(done) + len(waiting) > MOST_ENDS:
            raise PatternError(f"A pattern begins and ends in at most {MOST_ENDS} ways.")
    return done


def _is(node: Node, mark: str) -> bool:
    return isinstance(node, Anchor) and node.mark == mark


def _anchored(node: Node) -> bool:
    if isinstance(node, Anchor):
        return True
    if isinstance(node, Repeat):
        return _anchored(node.part)
    return not isinstance(node, Chars) and any(_anchored(part) for part in node.parts)


def _places(node: Node) -> int:
    if isinstance(node, Repeat):
        return _places(node.part) * max(node.least, node.most or 0, 1)
    if isinstance(node, (Sequence, Choice)):
        return sum(map(_places, node.parts))
    return 1


class _Lean:
    """Rewrites a tree so that nothing that may be empty is repeated: a grammar would go round there for ever."""

    def __init__(self) -> None:
        self._empty: dict[int, bool] = {}
        self._leaned: dict[int, Node] = {}
        self._fulls: dict[int, Node] = {}
        self._kept: list[Node] = []
        """Nodes are known by where they are in memory."""

    def lean(self, node: Node) -> Node:
        if id(node) not in self._leaned:
            self._kept.append(node)
            self._leaned[id(node)] = self._lean(node)
        return self._leaned[id(node)]

    def _lean(self, node: Node) -> Node:
        if isinstance(node, Sequence):
            return Sequence(tuple(map(self.lean, node.parts)))
        if isinstance(node, Choice):
            return Choice(tuple(map(self.lean, node.parts)))
        if isinstance(node, Repeat):
            part = self.lean(node.part)
            return self._repeated(part, node.least, node.most)
        return node

    def _repeated(self, part: Node, least: int, most: int | None) -> Node:
        if not self._may_be_empty(part):
            return Repeat(part, least, most)
        full = self._full(part)
        return _NOTHING if full is None else Repeat(full, 0, most)

    def _may_be_empty(self, node: Node) -> bool:
        if id(node) not in self._empty:
            self._kept.append(node)
            if isinstance(node, Sequence):
                found = all(map(self._may_be_empty, node.parts))
            elif isinstance(node, Choice):
                found = any(map(self._may_be_empty, node.parts))
            else:
                found = isinstance(node, Repeat) and (node.least == 0 or self._may_be_empty(node.part))
            self._empty[id(node)] = found
        return self._empty[id(node)]

    def _full(self, node: Node) -> Node | None:
        """The texts of a lean node but the empty one; None if there are no others."""
        if not self._may_be_empty(node):
            return node
        if id(node) in self._fulls:
            return self._fulls[id(node)]
        found: Node | None = None
        if isinstance(node, Repeat):
            most = None if node.most is None else node.most - 1
            if node.most != 0:
                found = Sequence((node.part, Repeat(node.part, 0, most)))
        elif isinstance(node, Choice):
            parts = [full for part in node.parts if (full := self._full(part)) is not None]
            found = Choice(tuple(parts)) if parts else None
        elif isinstance(node, Sequence) and node.parts:
            # The first that is not empty is this one, or it is a later one.
            rest = Sequence(node.parts[1:])
            first, later = self._full(node.parts[0]), self._full(rest)
            ways = ([Sequence((first, rest))] if first is not None else []) + ([later] if later is not None else [])
            found = Choice(tuple(ways)) if ways else None
        if found is not None:
            self._fulls[id(node)] = found
            self._kept += [node, found]
        return found


class _Writer:
    """Writes a tree down, each part that stands in several places as one rule."""

    def __init__(self, pattern: str, add: Callable[[str], str]) -> None:
        self._pattern, self._add = pattern, add
        self._names: dict[int, str] = {}
        self._chars: dict[Ranges, str] = {}
        self._kept: list[Node] = []

    def written(self, node: Node) -> str:
        """One element of GBNF."""
        if isinstance(node, Chars):
            if node.ranges not in self._chars:
                self._chars[node.ranges] = self._rule(self._characters(node.ranges))
            return self._chars[node.ranges]
        if isinstance(node, Sequence) and not node.parts:
            return '""'
        if id(node) not in self._names:
            self._kept.append(node)
            self._names[id(node)] = self._rule(self._inside(node))
        return self._names[id(node)]

    def _inside(self, node: Node) -> str:
        if isinstance(node, Sequence):
            return " ".join(map(self.written, node.parts))
        if isinstance(node, Choice):
            return " | ".join(map(self.written, node.parts))
        assert isinstance(node, Repeat)
        part, least, most = self.written(node.part), node.least, node.most
        if most == 0:
            return '""'
        if most is None:
            return part + {0: "*", 1: "+"}.get(least, f"{{{least},}}")
        return part if least == most == 1 else f"{part}{{{least},{most}}}"

    def _rule(self, right: str) -> str:
        if len(self._names) + len(self._chars) > MOST_RULES:
            raise PatternError(f"The pattern {self._pattern!r} is too intricate. Ask for a simpler one.")
        return self._add(right)

    def _characters(self, ranges: Ranges) -> str:
        ways: list[str] = []
        if raw := without(ranges, _NEVER_RAW):
            ways.append(
                "[" + "".join(_code(low) + ("-" + _code(high) if high > low else "") for low, high in raw) + "]"
            )
        # As one way on: the fewer there are, the less has to be looked at for each token.
        if escaped := [code for code in (*range(0x20), 0x22, 0x5C) if any(low <= code <= high for low, high in ranges)]:
            ways.append(r'"\\" (' + " | ".join(_escapes(escaped)) + ")")
        if not ways:
            raise PatternError(f"The pattern {self._pattern!r} has a class that no character is in.")
        return " | ".join(ways)


def _escapes(codes: list[int]) -> list[str]:
    """What may stand after a backslash, for characters that JSON has to escape."""
    found = []
    if short := "".join(_code(ord(_SHORT[code])) for code in codes if code in _SHORT):
        found.append(f"[{short}]")
    for high in "01":
        if low := "".join(f"{code & 15:x}" for code in codes if code not in _SHORT and code >> 4 == int(high)):
            found.append(f'"u00{high}" [{low}]')
    return found


def _code(code: int) -> str:
    """A character in a class of GBNF."""
    letter = chr(code)
    return letter if letter.isascii() and letter.isalnum() else f"\\U{code:08x}"
