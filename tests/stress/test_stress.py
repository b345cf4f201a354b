"""Each stress run in small, so that what it tries holds, and so that the runs themselves stay whole."""

from __future__ import annotations

import json
import random
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claw_local.paths import Paths
from stress import __main__ as command
from stress import disk, fuzz, load, poison
from stress.fuzz.target import Target
from stress.homes import make

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals, limits and terminals are POSIX")


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    return {target.name: target for target in fuzz.targets(tmp_path_factory.mktemp("fuzz"), [])}


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return make(tmp_path / "home", lessons=1)


def test_damaged_input_is_refused_by_every_reader(targets: dict[str, Target]) -> None:
    outcome = fuzz.go(list(targets.values()), 1500, seed=7)
    assert outcome.failures == []
    assert set(outcome.kinds) == set(targets)


def test_a_reader_that_fails_is_reported_with_its_input() -> None:
    def read(data: bytes) -> None:
        raise KeyError(data[:1])

    line = fuzz.attempt(Target("bad", read, [b"x"]), b"x")
    assert line.startswith("bad: KeyError") and "b'x'" in line


@pytest.mark.parametrize("name", ["gguf", "pack", "sealed", "chats-json", "tool-calls", "terminal", "template", "said"])
def test_nothing_at_all_and_anything_is_refused_too(targets: dict[str, Target], name: str) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(st.binary(max_size=300), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))))
    def each(data: bytes) -> None:
        targets[name].read(data)

    each()


def test_the_same_seed_tries_the_same(targets: dict[str, Target]) -> None:
    one, two = (
        [targets["api-openai"].input(chance) for _ in range(50)] for chance in (random.Random(3), random.Random(3))
    )
    assert one == two and len(set(one)) > 20


def test_planted_attacks_get_nothing_in() -> None:
    outcome = poison.run(Namespace(tries=3))
    assert outcome.failures == []
    assert "3 of 3 without the filters, 0 with them" in outcome.notes["attached file"]


@pytest.mark.parametrize("work", sorted(disk.WORKS))
def test_a_failing_disk(paths: Paths, work: str) -> None:
    with disk.failing(paths) as (fill, mend):
        disk.WORKS[work](paths, fill, mend)


def test_processes_that_write_at_once_lose_nothing() -> None:
    outcome = load.go(2.0, processes=3, chats=5)
    assert outcome.failures == []
    assert outcome.tries > 0


@pytest.mark.slow
def test_killed_anywhere_in_small(capsys: pytest.CaptureFixture[str]) -> None:
    only = ["ask", "migrate", "restore"]
    assert command.main(["kill", "--tries", "3", "--json", "--only", *only]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["failures"] == [] and found["tries"] == 3


def test_memory_is_bounded_only_while_it_tries() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    with fuzz._bounded_memory():
        assert resource.getrlimit(resource.RLIMIT_AS)[0] == fuzz.MOST_MEMORY
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_an_unknown_kind_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["fuzz", "--only", "nonsense"]) == 2
    assert "There is no kind nonsense" in capsys.readouterr().err
