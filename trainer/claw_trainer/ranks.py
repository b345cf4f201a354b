"""Several processes that train one adapter, as `accelerate launch` starts them; a process alone is one of one.

The first process does all of a run. The others wait for what it tells them, and take their share of each step: they
compute the gradients of some micro-batches, and all gradients are added up, so that every process makes the same
update. What goes between processes goes through accelerate. It must never know what is learned.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import torch

from claw_local.errors import LearnError

from .economy import is_out_of_memory

Item = TypeVar("Item")

PATIENCE = timedelta(days=7)
"""How long the others wait while the first process draws answers."""


class OtherFailed(LearnError):
    """Another process could not do its part of a step."""


class Ranks(Protocol):
    """The processes of a run. `number`: this one's, from 0; `count`: how many there are."""

    number: int
    count: int

    def tell(self, word: Any = None) -> Any:
        """Say something to all others, as the first process; what was said, as another one."""

    def share(self, items: Sequence[Item]) -> list[Item]:
        """This process's share of them; all of them are some process's."""

    @contextmanager
    def in_step(self) -> Iterator[None]:
        """Let no process go on from here alone.

        Raises:
            OtherFailed: another one failed in its block; MemoryError: because it ran out of memory.
        """

    def add_up(self, tensors: Sequence[torch.Tensor]) -> None:
        """Put into each tensor the sum of what all processes have there."""

    def add_up_sums(self, sums: dict[str, float]) -> dict[str, float]:
        """The sums of all processes, by name."""

    def end(self) -> None:
        """No more comes: the first process tells the others, which are told None."""


class Alone:
    """One process; implements `Ranks`."""

    number, count = 0, 1

    def tell(self, word: Any = None) -> Any:
        return word

    def share(self, items: Sequence[Item]) -> list[Item]:
        return list(items)

    @contextmanager
    def in_step(self) -> Iterator[None]:
        yield

    def add_up(self, tensors: Sequence[torch.Tensor]) -> None:
        pass

    def add_up_sums(self, sums: dict[str, float]) -> dict[str, float]:
        return sums

    def end(self) -> None:
        pass


class Launched:
    """One of the processes that `accelerate launch` started; implements `Ranks`."""

    def __init__(self) -> None:
        from accelerate import PartialState

        # What they exchange is small: a LoRA's gradients. So it goes through the processor on every kind of machine.
        state = PartialState(cpu=True, timeout=PATIENCE)
        self.number, self.count = state.process_index, state.num_processes
        self._state = state
        self._in_step_with_others = True

    def tell(self, word: Any = None) -> Any:
        from accelerate.utils import broadcast_object_list

        with self._exchange():
            return broadcast_object_list([word])[0]

    def share(self, items: Sequence[Item]) -> list[Item]:
        return list(items[self.number :: self.count])

    @contextmanager
    def in_step(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if self._in_step_with_others:
                self._said("memory" if is_out_of_memory(error) else f"{error}" or type(error).__name__)
            raise
        wrong = [said for said in self._said("") if said]
        if "memory" in wrong:
            raise MemoryError("out of memory in another process")
        if wrong:
            raise OtherFailed(f"Another process of this run failed: {wrong[0]}")

    def _said(self, word: str) -> list[str]:
        from accelerate.utils import gather_object

        with self._exchange():
            said: list[str] = gather_object([word])
        return said

    def add_up(self, tensors: Sequence[torch.Tensor]) -> None:
        from accelerate.utils import reduce

        with self._exchange():
            for tensor in tensors:
                tensor.copy_(reduce(tensor.cpu(), "sum"))

    def add_up_sums(self, sums: dict[str, float]) -> dict[str, float]:
        from accelerate.utils import gather_object

        total: dict[str, float] = {}
        with self._exchange():
            gathered: list[dict[str, float]] = gather_object([sums])
        for one in gathered:
            for name, value in one.items():
                total[name] = total.get(name, 0.0) + value
        return total

    def end(self) -> None:
        # Who was called away in the middle of an exchange just goes: the others see the line break.
        if self._in_step_with_others:
            if self.number == 0:
                self.tell(None)
            self._state.destroy_process_group()

    @contextmanager
    def _exchange(self) -> Iterator[None]:
        self._in_step_with_others = False
        yield
        self._in_step_with_others = True


@functools.cache
def ranks() -> Ranks:
    """Those of this process, as its environment says."""
    return Launched() if int(os.environ.get("WORLD_SIZE") or 1) > 1 else Alone()


def is_first() -> bool:
    """Whether this is the process that does all of a run. Known before torch is imported."""
    return int(os.environ.get("RANK") or 0) == 0
