"""Marks that a model repeats from its prompt, cut out of what it writes. It must never know what stands between them.

Where a model is told in words what a tool returned, that stands between marks which are common text to it: a small
model begins its own answer with them. They are no part of an answer, wherever it is shown, sent or kept.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from .base import Generation, Prompt


class Unmarked:
    """Gives out text without the marks in it, as soon as it is certain to begin none."""

    def __init__(self, marks: Sequence[str]) -> None:
        self._marks = tuple(marks)
        self._held = ""
        self._begun = self._fresh = False
        self.cut = False
        """Whether there was one."""

    def push(self, text: str) -> str:
        """Add text; returns what is certain now, which may be empty."""
        self._held += text
        said = ""
        while met := [(place, mark) for mark in self._marks if (place := self._held.find(mark)) >= 0]:
            place, mark = min(met)
            said += self._give(place)
            self._held = self._held[len(mark) :]
            self.cut = self._fresh = True
        return said + self._give(len(self._held) - self._undecided())

    def finish(self) -> str:
        """What was held back, at the end."""
        return self._give(len(self._held))

    def _give(self, end: int) -> str:
        """That much of the text; the white space behind a mark goes with it, where nothing was said before."""
        text, self._held = self._held[:end], self._held[end:]
        if self._fresh and not self._begun:
            text = text.lstrip()
        self._begun = self._begun or bool(text)
        return text

    def _undecided(self) -> int:
        """Length of the longest end of the text that a mark may begin with."""
        ends = (n for mark in self._marks for n in range(1, len(mark)) if self._held.endswith(mark[:n]))
        return max(ends, default=0)


def without_echoes(prompt: Prompt, generation: Generation, pieces: Iterator[str]) -> Iterator[str]:
    """A reply as it comes, without the marks that its prompt put around results; its record's text, too."""
    return _unmarked(prompt.marks, generation, pieces) if prompt.marks else pieces


def _unmarked(marks: Sequence[str], generation: Generation, pieces: Iterator[str]) -> Iterator[str]:
    unmarked, said = Unmarked(marks), list[str]()
    try:
        for piece in pieces:
            if words := unmarked.push(piece):
                said.append(words)
                yield words
        if words := unmarked.finish():
            said.append(words)
            yield words
    finally:
        if isinstance(pieces, Generator):
            pieces.close()
        if unmarked.cut:
            generation.text, generation.cut = "".join(said).rstrip(), True
