"""Regular expressions as JSON Schema has them (ECMA-262), read into a tree. It must never know what is made of it.

https://json-schema.org/understanding-json-schema/reference/regular_expressions. Read are characters, `.`, classes,
groups, `|`, `? * + {m,n}`, escapes, and `^` and `$` at the ends. What looks around or back is refused in a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import EngineError

LONGEST = 200
"""Characters of a pattern."""
MOST_COUNTED = 99
"""How far `{m,n}` counts."""
DEEPEST = 30
"""Groups inside each other."""
LAST = 0x10FFFF
Ranges = tuple[tuple[int, int], ...]
"""Code points, from and to, in order and apart from each other."""


class PatternError(EngineError):
    """It is no regular expression, or one that no grammar can be made of."""


@dataclass(frozen=True, eq=False)
class Chars:
    """One character of these."""

    ranges: Ranges


@dataclass(frozen=True, eq=False)
class Sequence:
    """One after the other; none: nothing."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Choice:
    """One of these."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Repeat:
    """The same several times. `most`: None for any number."""

    part: Node
    least: int
    most: int | None


@dataclass(frozen=True, eq=False)
class Anchor:
    """`^` or `$`."""

    mark: str


Node = Chars | Sequence | Choice | Repeat | Anchor


def joined(ranges: list[tuple[int, int]]) -> Ranges:
    """The same code points, in order."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def without(ranges: Ranges, taken: Ranges) -> Ranges:
    """The code points of the first that are none of the second's."""
    left: list[tuple[int, int]] = []
    for low, high in ranges:
        for cut_low, cut_high in taken:
            if cut_high < low or cut_low > high:
                continue
            if low < cut_low:
                left.append((low, cut_low - 1))
            low = cut_high + 1
        if low <= high:
            left.append((low, high))
    return tuple(left)


ANY: Ranges = ((0, LAST),)
_DIGIT: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = (
    *((9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)),
    *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
_DOT = without(ANY, ((10, 10), (13, 13), (0x2028, 0x2029)))
_SETS = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_SETS |= {letter.upper(): without(ANY, ranges) for letter, ranges in _SETS.items()}
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_HEX = {"x": 2, "u": 4}


def parsed(pattern: str) -> Node:
    """The tree of a pattern. Raises PatternError."""
    if len(pattern) > LONGEST:
        raise PatternError(f"A pattern has at most {LONGEST} characters.")
    reader = _Reader(pattern)
    node = reader.choice(0)
    if not reader.ended:  # Only a bracket ends a choice.
        raise reader.wrong("a ) closes nothing")
    return node


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern, self._at = pattern, 0

    @property
    def ended(self) -> bool:
        return self._at >= len(self._pattern)

    def wrong(self, why: str) -> PatternError:
        return PatternError(f"The pattern {self._pattern!r} is no regular expression: {why}.")

    def _refused(self, what: str) -> PatternError:
        return PatternError(f"The pattern {self._pattern!r} has {what}, which cannot be kept to here.")

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        letter = self._next()
        self._at += 1
        return letter

    def _takes(self, text: str) -> bool:
        there = self._pattern.startswith(text, self._at)
        self._at += len(text) if there else 0
        return there

    def choice(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise self._refused("too many groups inside each other")
        parts = [self._sequence(depth)]
        while self._takes("|"):
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while not self.ended and self._next() not in "|)":
            parts.append(self._counted(self._one(depth)))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _one(self, depth: int) -> Node:
        letter = self._take()
        if letter == "(":
            return self._group(depth)
        if letter == "[":
            return Chars(self._class())
        if letter == ".":
            return Chars(_DOT)
        if letter in "^$":
            return Anchor(letter)
        if letter in "*+?":
            raise self.wrong(f"there is nothing for {letter} to repeat")
        if letter == "\\":
            if self._next() in ("b", "B"):
                raise self._refused("a word boundary")
            return Chars(self._escaped())
        return Chars(self._literal(letter))

    def _group(self, depth: int) -> Node:
        if self._takes("?"):
            if self._takes("<"):
                if self._next() in ("=", "!"):
                    raise self._refused("a look behind")
                name, closed, _ = self._pattern[self._at :].partition(">")
                if not closed or not name.isidentifier():
                    raise self.wrong("a group's name does not end")
                self._at += len(name) + 1
            elif self._next() in ("=", "!"):
                raise self._refused("a look ahead")
            elif not self._takes(":"):
                raise self._refused(f"a group of the kind (?{self._next()}")
        node = self.choice(depth + 1)
        if not self._takes(")"):
            raise self.wrong("a ( is not closed")
        return node

    def _counted(self, node: Node) -> Node:
        least: int
        most: int | None
        letter = self._next()
        if letter and letter in "*+?":
            self._at += 1
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[letter]
        elif letter == "{" and (counts := self._counts()) is not None:
            least, most = counts
        else:
            return node
        if isinstance(node, Anchor):
            raise self.wrong(f"{node.mark} cannot be repeated")
        self._takes("?")  # How eager it is changes what is found, not what fits.
        if self._next() and self._next() in "*+?":
            raise self.wrong("one repetition stands right after another")
        return Repeat(node, least, most)

    def _counts(self) -> tuple[int, int | None] | None:
        """What `{m,n}` says; None if this is no such but a { that stands for itself."""
        inside, closed, _ = self._pattern[self._at + 1 :].partition("}")
        first, comma, last = inside.partition(",")
        if not closed or not first.isdecimal() or not first.isascii() or (last and not (last + "0").isdecimal()):
            return None
        self._at += len(inside) + 2
        least = int(first)
        most = least if not comma else int(last) if last else None
        if most is not None and most < least:
            raise self.wrong(f"{{{inside}}} counts backwards")
        if max(least, most or 0) > MOST_COUNTED:
            raise PatternError(f"A pattern counts no further than {MOST_COUNTED} here, and {{{inside}}} does.")
        return least, most

    def _class(self) -> Ranges:
        turned = self._takes("^")
        found: list[tuple[int, int]] = []
        while not self._takes("]"):
            low = self._member()
            if self._next() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._member()
                if not _single(low) or not _single(high):
                    raise self.wrong("a range in a class goes from one character to another")
                if high[0][0] < low[0][0]:
                    raise self.wrong("a range in a class goes backwards")
                found.append((low[0][0], high[0][0]))
            else:
                found += low
        return without(ANY, joined(found)) if turned else joined(found)

    def _member(self) -> Ranges:
        if self.ended:
            raise self.wrong("a [ is not closed")
        letter = self._take()
        if letter != "\\":
            return self._literal(letter)
        if self._takes("b"):
            return ((8, 8),)
        return self._escaped()

    def _escaped(self) -> Ranges:
        """What stands after a backslash."""
        letter = self._take()
        if not letter:
            raise self.wrong("it ends with a backslash")
        if letter in _SETS:
            return _SETS[letter]
        if letter in _CONTROLS:
            code = _CONTROLS[letter]
        elif letter in _HEX:
            code = self._hex(_HEX[letter])
            if 0xD800 <= code < 0xDC00 and self._takes("\\u"):
                code = 0x10000 + ((code - 0xD800) << 10) + ((self._hex(4) - 0xDC00) & 0x3FF)
        elif letter == "0" and not self._next().isdecimal():
            code = 0
        elif letter.isdecimal() or letter == "k":
            raise self._refused("a reference to a group")
        elif letter in "pP":
            raise self._refused("a class of Unicode's")
        elif letter.isascii() and letter.isalpha():
            raise self.wrong(f"\\{letter} means nothing")
        else:
            code = ord(letter)
        return ((code, code),)

    def _hex(self, digits: int) -> int:
        text = self._pattern[self._at : self._at + digits]
        if len(text) < digits or any(letter not in "0123456789abcdefABCDEF" for letter in text):
            raise self.wrong(f"{digits} hexadecimal digits are missing")
        self._at += digits
        return int(text, 16)

    @staticmethod
    def _literal(letter: str) -> Ranges:
        return ((ord(letter), ord(letter)),)


def _single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]
