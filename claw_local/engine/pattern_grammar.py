"""From a regular expression to rules (GBNF) of the JSON string whose text it fits: quotes, backslashes and control
characters stand in it as JSON writes them. It must never know of schemas.
"""

from __future__ import annotations

from .automaton import Branch, State, TooIntricate, automaton
from .regex import Anchor, Chars, Choice, Node, PatternError, Ranges, Repeat, Sequence, parsed, without

MOST_PLACES = 600
"""Characters of a pattern once its counts are written out."""
MOST_ENDS = 32
"""Alternatives that may begin or end differently (`^a|b$`)."""
_SHORT = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 0x22: '"', 0x5C: "\\"}
"""What stands after the backslash in JSON; other control characters are written as u0001."""
_NEVER_RAW: Ranges = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0xD800, 0xDFFF))


def string_rules(pattern: str, name: str) -> dict[str, str]:
    """Rules for a JSON string, quotes included, whose text the pattern is found in; the first one is the whole.

    Args:
        name: what the rules' names begin with.

    Raises:
        PatternError: it is no regular expression, or one that cannot be kept to.
    """
    node = parsed(pattern)
    if _places(node) > MOST_PLACES:
        raise PatternError(f"The pattern {pattern!r} stands for too long a text: {MOST_PLACES} characters at most.")
    try:
        states = automaton(_branches(node))
    except TooIntricate:
        raise PatternError(f"The pattern {pattern!r} is too intricate. Ask for a simpler one.") from None
    if not states:
        raise PatternError(f"The pattern {pattern!r} fits no text.")
    names = [f"{name}-{number}" for number in range(len(states))]
    rules = {name: rf'"\"" {names[0]}'}
    return rules | {names[number]: _rule(state, names) for number, state in enumerate(states)}


def _branches(node: Node) -> list[Branch]:
    """The pattern with its `^` and `$` resolved."""
    found = []
    for parts in _ends(node):
        begins = bool(parts) and _is(parts[0], "^")
        while parts and _is(parts[0], "^"):
            parts = parts[1:]
        ends = bool(parts) and _is(parts[-1], "$")
        while parts and _is(parts[-1], "$"):
            parts = parts[:-1]
        if any(map(_anchored, parts)):
            raise PatternError("A pattern has ^ only where it begins and $ only where it ends.")
        found.append(Branch(Sequence(parts), begins, ends))
    return found


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
        return max(1, sum(map(_places, node.parts)))
    return 1


def _rule(state: State, names: list[str]) -> str:
    """What may come in a state. All that JSON escapes is one way on: the fewer there are, the less is looked at."""
    ways: list[str] = []
    escaped: list[str] = []
    for number, ranges in state.ways.items():
        if raw := without(ranges, _NEVER_RAW):
            inside = (_code(low) + (f"-{_code(high)}" if high > low else "") for low, high in raw)
            ways.append(f"[{''.join(inside)}] {names[number]}")
        codes = [code for code in (*range(0x20), 0x22, 0x5C) if any(low <= code <= high for low, high in ranges)]
        escaped += [f"{how} {names[number]}" for how in _escapes(codes)]
    if escaped:
        ways.append(r'"\\" (' + " | ".join(escaped) + ")")
    if state.ends:
        ways.append(r'"\""')
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
