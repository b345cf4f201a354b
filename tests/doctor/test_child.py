"""Child processes that crash, hang or babble, for real."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from claw_local.doctor.child import run_child, run_probe

KILL_SELF = "import os, signal, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.kill(os.getpid(), {})"

posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


def python(code: str, timeout_s: float = 30.0):
    return run_child([sys.executable, "-c", code], timeout_s=timeout_s)


@posix
def test_an_illegal_instruction_is_recognised():
    outcome = python(KILL_SELF.format("signal.SIGILL"))
    assert outcome.illegal_instruction
    assert not outcome.worked
    assert outcome.ending == "it died of an illegal instruction"


@posix
def test_another_deadly_signal_is_named_by_its_number():
    outcome = python(KILL_SELF.format("signal.SIGSEGV"))
    assert not outcome.illegal_instruction
    assert outcome.ending == f"it was killed by signal {int(signal.SIGSEGV)}"


def test_a_child_that_hangs_is_killed():
    started = time.monotonic()
    outcome = python("import time; time.sleep(60)", timeout_s=0.5)
    assert outcome.ending == "it did not finish in 0.5 s"
    assert time.monotonic() - started < 20


def test_the_last_line_is_the_result_whatever_libraries_print_before():
    outcome = python("print('loading...'); print('{\"version\": \"1\"}')")
    assert outcome.worked
    assert outcome.result == {"version": "1"}


def test_a_failure_is_told_by_its_last_line():
    outcome = python("import sys; print('first'); sys.exit('the reason')")
    assert outcome.ending == "the reason"


def test_a_program_that_does_not_exist_is_an_outcome_too():
    outcome = run_child(["/no/such/program"], timeout_s=5)
    assert not outcome.worked
    assert "could not be started" in outcome.ending


def test_a_probe_that_fails_says_why_in_one_line(tmp_path):
    outcome = run_probe("token", str(tmp_path / "no.gguf"), timeout_s=60)
    assert outcome.returncode == 1
    assert "no.gguf" in outcome.ending
