"""`learn pause`, `resume`, `tick`, `schedule`, and what `learn status` says of learning by itself."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest

from claw_local.cli.main import run
from claw_local.idle import records
from claw_local.paths import Paths
from claw_local.store import Store


def printed(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    capsys.readouterr()
    assert run([*command, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_status_says_what_it_waits_for(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "status"]) == 0
    assert "By itself: no, it waits for learning to be turned on" in capsys.readouterr().out
    assert run(["learn", "on"]) == 0
    capsys.readouterr()
    assert run(["learn", "status"]) == 0
    shown = capsys.readouterr().out
    assert "By itself: waits (0 of 120 minutes used today)" in shown
    assert "waits for  4 new lessons (0 so far, with replies not judged yet)" in shown
    assert "ok         learning is on" in shown
    status = printed(capsys, "learn", "status")
    assert status["enabled"] is True and status["idle"]["state"] == "waiting"
    by_name = {one["name"]: one for one in status["idle"]["conditions"]}
    assert by_name["lessons"]["met"] is False and by_name["budget"]["met"] is True
    assert {"away", "desktop", "mains", "load", "temperature", "gpu", "hours", "rest", "held"} <= set(by_name)


def test_pause_holds_across_restarts_until_resume(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "on"]) == 0
    assert printed(capsys, "learn", "pause")["held"] is True
    assert printed(capsys, "learn", "status")["idle"]["state"] == "held"
    assert run(["learn", "status"]) == 0
    assert "held by you" in capsys.readouterr().out
    assert printed(capsys, "learn", "resume") == {"held": False, "was_held": True}
    assert printed(capsys, "learn", "status")["idle"]["state"] == "waiting"
    assert printed(capsys, "learn", "resume")["was_held"] is False


def test_pause_for_a_time(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    until = datetime.fromisoformat(printed(capsys, "learn", "pause", "--for", "2h")["until"])
    assert timedelta(minutes=119) < until - datetime.now().astimezone() <= timedelta(hours=2)
    for wrong in ("soon", "0h", "-1h", "99999h", ""):
        assert run(["learn", "pause", "--for", wrong]) == 2
    assert "Write it like 30m, 2h or 3d" in capsys.readouterr().err


def test_pause_asks_a_run_that_began_by_itself_to_leave_and_only_that(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(home)
    mine = store.runs.begin("person")
    assert run(["learn", "pause"]) == 0
    assert f"Run {mine} was begun by you and goes on" in capsys.readouterr().out
    assert store.runs.get(mine).asked == ""
    store.runs.finish(mine, "done", result={})
    other = store.runs.begin("idle")
    assert run(["learn", "pause"]) == 0
    assert store.runs.get(other).asked == "leave"
    store.runs.finish(other, "done", result={})
    store.close()


def test_a_tick_says_what_it_waits_for_and_begins_nothing(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "on"]) == 0
    capsys.readouterr()
    assert run(["learn", "tick"]) == 0
    assert capsys.readouterr().out == "Waits for 4 new lessons (0 so far, with replies not judged yet).\n"
    told = printed(capsys, "learn", "tick", "--home", str(home.data))
    assert told["run"] is None and "4 new lessons (0 so far, with replies not judged yet)" in told["waits_for"]
    assert Store(home).runs.list() == []
    assert run(["learn", "--help"]) == 0
    assert "tick" not in capsys.readouterr().out, "it is for the timer"


def test_what_was_learned_meanwhile_is_told_once(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(home)
    records.put_news(store, "While you were away, adapter 3 was learned, and is in use.")
    assert run(["learn", "status"]) == 0
    assert capsys.readouterr().out.startswith("While you were away, adapter 3")
    assert run(["learn", "status"]) == 0
    assert "adapter 3" not in capsys.readouterr().out
    store.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks systemd")
def test_schedule_without_a_systemd_of_one_s_own(
    home: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert printed(capsys, "learn", "schedule", "status")["installed"] is False
    assert printed(capsys, "learn", "schedule", "remove") == {"removed": False}
    assert run(["learn", "schedule", "install"]) == 1
    said = capsys.readouterr().err
    assert "no timer to set up" in said and "Traceback" not in said
    assert list(tmp_path.iterdir()) == []
