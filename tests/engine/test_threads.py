"""Threads follow what other programs leave free."""

from __future__ import annotations

import time

from claw_local.engine._threads import FixedThreads, FreeThreads, cpu_seconds_of_others, usable_cores


class Machine:
    """A machine whose clock and other programs are moved by hand: a load of given size cannot be had for a test."""

    def __init__(self) -> None:
        self.time = self.used = 0.0

    def run(self, seconds: float, busy_cores: float) -> None:
        self.time += seconds
        self.used += seconds * busy_cores

    def threads(self, most: int, cores: int) -> FreeThreads:
        return FreeThreads(most, cores=cores, others=lambda: self.used, clock=lambda: self.time)


def test_all_cores_are_used_while_they_are_free() -> None:
    machine = Machine()
    threads = machine.threads(4, cores=8)
    assert threads.now() == 4
    machine.run(1.0, 3.0)
    assert threads.now() == 4


def test_busy_cores_are_left_alone_and_taken_back_when_they_are_free() -> None:
    machine = Machine()
    threads = machine.threads(2, cores=2)
    machine.run(1.0, 0.8)
    assert threads.now() == 1
    machine.run(1.0, 2.0)
    assert threads.now() == 1
    machine.run(1.0, 0.1)
    assert threads.now() == 2


def test_it_looks_only_now_and_then() -> None:
    machine = Machine()
    threads = machine.threads(2, cores=2)
    machine.run(0.1, 2.0)
    assert threads.now() == 2


def test_a_number_that_was_set_stays() -> None:
    assert FixedThreads(3).now() == 3


def test_this_machine_can_be_asked() -> None:
    assert usable_cores() >= 1
    before = cpu_seconds_of_others()
    started = time.process_time()
    while time.process_time() - started < 0.2:
        pass
    assert cpu_seconds_of_others() >= before - 0.2


def test_a_single_token_of_a_small_model_takes_one_thread_and_of_a_large_one_all() -> None:
    threads = FreeThreads(4, cores=4, others=lambda: 0.0, clock=lambda: 0.0)
    assert threads.now() == 4
    assert threads.for_one_token(135_000_000) == 1
    assert threads.for_one_token(500_000_000) == 3
    assert threads.for_one_token(8_000_000_000) == 4
    assert FixedThreads(3).for_one_token(135_000_000) == 3
