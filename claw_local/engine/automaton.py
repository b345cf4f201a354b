"""From a regular expression's tree to a deterministic automaton: wherever a text has come to, it goes on in one way.

llama.cpp looks at every way that a grammar leaves open, for each token anew; two ways that take the same characters
double what it does at each of them. So none is left to it. It must never know how characters are written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence as Several
from dataclasses import dataclass

from .regex import ANY, Chars, Choice, Node, Ranges, Repeat, joined

MOST_STATES = 800
MOST_WORK = 400_000
"""Steps that making one may take: a fraction of a second."""


class TooIntricate(Exception):
    """It would have too many states."""


@dataclass(frozen=True)
class Branch:
    """One alternative of a whole pattern. `begins`, `ends`: whether the text does so there; else any may stand."""

    node: Node
    begins: bool
    ends: bool


@dataclass(frozen=True)
class State:
    """What may come: for each state that is next, the characters that lead there. `ends`: whether the text may end."""

    ways: dict[int, Ranges]
    ends: bool


def automaton(branches: Several[Branch]) -> list[State]:
    """The states, the first one being the beginning; from each of them an end can be reached. None: nothing fits.

    Raises:
        TooIntricate
    """
    net = _Net()
    if not all(branch.begins for branch in branches):
        net.lead(net.begin, net.before)
    for branch in branches:
        begin = net.begin if branch.begins else net.before
        net.lead(net.add(branch.node, begin), net.end if branch.ends else net.after)
    return _live(_Determined(net).states)


class _Net:
    """States and what leads from one to the next: nothing (`free`), or a character (`by`)."""

    def __init__(self) -> None:
        self.free: list[list[int]] = []
        self.by: list[tuple[Ranges, int] | None] = []
        self.begin, self.before, self.end, self.after = (self._new() for _ in range(4))
        for anything in (self.before, self.after):
            self.by[anything] = (ANY, anything)

    def lead(self, one: int, other: int) -> None:
        self.free[one].append(other)

    def _new(self) -> int:
        self.free.append([])
        self.by.append(None)
        return len(self.free) - 1

    def _from(self, state: int) -> int:
        new = self._new()
        self.lead(state, new)
        return new

    def add(self, node: Node, begin: int) -> int:
        """Where one is after it."""
        if isinstance(node, Chars):
            place, end = self._from(begin), self._new()
            self.by[place] = (node.ranges, end)
            return end
        if isinstance(node, Choice):
            end = self._new()
            for part in node.parts:
                self.lead(self.add(part, begin), end)
            return end
        if isinstance(node, Repeat):
            return self._repeated(node, begin)
        for part in getattr(node, "parts", ()):
            begin = self.add(part, begin)
        return begin

    def _repeated(self, node: Repeat, begin: int) -> int:
        for _ in range(node.least):
            begin = self.add(node.part, begin)
        if node.most is None:
            again = self._from(begin)
            self.lead(self.add(node.part, again), again)
            return self._from(again)
        end = self._from(begin)
        for _ in range(node.most - node.least):
            begin = self.add(node.part, begin)
            self.lead(begin, end)
        return end


class _Determined:
    """All that a net can be in at once, each as one state; sets of its states are bits of a number."""

    def __init__(self, net: _Net) -> None:
        self._net = net
        self._work = 0
        self._closed: dict[int, int] = {}
        self._classes, self._members = _classes({by[0] for by in net.by if by is not None})
        self._numbers: dict[int, int] = {}
        self.states: list[State] = []
        waiting = [self._closure(net.begin)]
        self._number(waiting[0])
        while waiting:
            self.states.append(self._state(waiting.pop(0), waiting))

    def _number(self, mask: int) -> int:
        if mask not in self._numbers:
            if len(self._numbers) >= MOST_STATES:
                raise TooIntricate
            self._numbers[mask] = len(self._numbers)
        return self._numbers[mask]

    def _state(self, mask: int, waiting: list[int]) -> State:
        after = self._net.after
        goes: dict[int, int] = {}
        rest = mask
        while rest:
            state = (rest & -rest).bit_length() - 1
            rest &= rest - 1
            if (by := self._net.by[state]) is not None:
                target = self._closure(by[1])
                for number in self._classes[by[0]]:
                    self._step()
                    goes[number] = goes.get(number, 0) | target
        ways: dict[int, list[tuple[int, int]]] = {}
        for number, there in goes.items():
            there = self._closure(after) if there >> after & 1 else there  # Whatever else: anything may follow.
            if there not in self._numbers:
                waiting.append(there)
            ways.setdefault(self._number(there), []).extend(self._members[number])
        ends = bool(mask >> self._net.end & 1 or mask >> after & 1)
        return State({state: joined(ranges) for state, ranges in ways.items()}, ends)

    def _closure(self, state: int) -> int:
        """Where one also is who is in a state."""
        if state not in self._closed:
            found, waiting = 0, [state]
            while waiting:
                one = waiting.pop()
                if not found >> one & 1:
                    self._step()
                    found |= 1 << one
                    waiting += self._net.free[one]
            self._closed[state] = found
        return self._closed[state]

    def _step(self) -> None:
        self._work += 1
        if self._work > MOST_WORK:
            raise TooIntricate


def _classes(sets: set[Ranges]) -> tuple[dict[Ranges, list[int]], list[list[tuple[int, int]]]]:
    """All characters in classes, no two of which any set tells apart: the classes of each set, and what is in each."""
    cuts = sorted({edge for ranges in sets for low, high in ranges for edge in (low, high + 1)})
    inside: list[list[int]] = [[] for _ in cuts]
    order = list(sets)
    for number, ranges in enumerate(order):
        for low, high in ranges:
            for place in range(bisect_left(cuts, low), bisect_left(cuts, high + 1)):
                inside[place].append(number)
    classes: dict[Ranges, list[int]] = {ranges: [] for ranges in order}
    members: list[list[tuple[int, int]]] = []
    known: dict[tuple[int, ...], int] = {}
    for place, numbers in enumerate(map(tuple, inside)):
        if not numbers:
            continue
        if numbers not in known:
            known[numbers] = len(members)
            members.append([])
            for number in numbers:
                classes[order[number]].append(known[numbers])
        members[known[numbers]].append((cuts[place], cuts[place + 1] - 1))
    return classes, members


def _live(states: list[State]) -> list[State]:
    """Those from which an end can be reached, numbered anew."""
    into: dict[int, list[int]] = {}
    for number, state in enumerate(states):
        for there in state.ways:
            into.setdefault(there, []).append(number)
    live: set[int] = set()
    waiting = [number for number, state in enumerate(states) if state.ends]
    while waiting:
        if (one := waiting.pop()) not in live:
            live.add(one)
            waiting += into.get(one, ())
    if 0 not in live:
        return []
    numbers = {old: new for new, old in enumerate(sorted(live))}
    return [
        State({numbers[there]: ranges for there, ranges in states[old].ways.items() if there in live}, states[old].ends)
        for old in sorted(live)
    ]
