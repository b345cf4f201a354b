"""What is seen while one waits: a bar that moves, or, for those who wish for plain text, a line now and then."""

from __future__ import annotations

import pytest

from claw_local.cli.waiting import LEAST_BETWEEN_S, Lines, bars
from claw_local.paths import Paths


def test_lines_come_when_something_else_begins_or_a_tenth_more_is_done_and_not_too_often(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = 0.0
    with Lines(clock=lambda: now) as lines:
        task = lines.add_task("starting", total=1.0)
        for tenth in range(101):
            now += LEAST_BETWEEN_S
            lines.update(
                task, completed=tenth / 100, description="writing answers" if tenth < 50 else "asking the gate"
            )
        lines.update(task, description="too soon")
    said = capsys.readouterr().err.splitlines()
    assert said[:3] == ["starting", "writing answers", "writing answers, 10%"]
    assert said[5:7] == ["writing answers, 40%", "asking the gate, 50%"]
    assert said[-1] == "asking the gate, 100%"
    assert len(said) == 12


def test_a_size_that_is_known_later_only(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    lines = Lines(clock=lambda: now)
    task = lines.add_task("asking the hub", total=None)
    for done in (0, 300, 310):
        now += LEAST_BETWEEN_S
        lines.update(task, total=1000, completed=done)
    assert capsys.readouterr().err == "asking the hub\nasking the hub, 30%\n"


def test_lines_take_the_bars_place_for_those_who_wish_for_plain_text(
    home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert not isinstance(bars(), Lines)
    home.make().settings.write_text("[app]\nplain = true\n", "utf-8")
    assert isinstance(bars(), Lines)
