"""One process looks at all that learning needs; only where it fails is each part tried alone. Stand-ins for the
processes, whose imports take long; `test_diagnosis` starts them."""

from __future__ import annotations

import importlib.util
import json

import pytest

from claw_local.doctor import learning
from claw_local.doctor.child import Outcome
from claw_local.doctor.learning import PARTS, check_learning, learning_outcomes

LINES = "\n".join(json.dumps({"part": part, "version": "1"}) for part in ("torch", "bitsandbytes", "peft"))


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    return []


def ends(monkeypatch: pytest.MonkeyPatch, begun: list[str], shared: Outcome) -> None:
    def run(name: str, *parts: str, timeout_s: float) -> Outcome:
        begun.append(name)
        return shared if name == "together" else Outcome(-11)

    monkeypatch.setattr(learning, "run_probe", run)


def test_where_all_work_one_process_is_enough(monkeypatch: pytest.MonkeyPatch, begun: list[str]) -> None:
    ends(monkeypatch, begun, Outcome(0, output=f"a warning\n{LINES}\n"))
    found = learning_outcomes()
    assert begun == ["together"] and list(found) == list(PARTS)
    assert all(check_learning(part, outcome).state == "ok" for part, outcome in found.items())


def test_after_a_crash_only_what_was_not_done_is_tried_alone(monkeypatch: pytest.MonkeyPatch, begun: list[str]) -> None:
    ends(monkeypatch, begun, Outcome(-11, output=LINES.splitlines()[0]))
    found = learning_outcomes()
    assert begun == ["together", "bitsandbytes", "peft"]
    assert [check_learning(part, found[part]).state for part in PARTS] == ["ok", "problem", "problem"]


def test_what_ran_out_of_time_says_so_and_is_not_waited_for_again(
    monkeypatch: pytest.MonkeyPatch, begun: list[str]
) -> None:
    ends(monkeypatch, begun, Outcome(None, output=LINES.splitlines()[0], limit_s=120.0))
    found = learning_outcomes()
    assert begun == ["together"]
    assert "did not finish in 120 s" in check_learning("peft", found["peft"]).detail
    assert check_learning("torch", found["torch"]).state == "ok"


def test_what_is_not_installed_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert learning_outcomes() == dict.fromkeys(PARTS)
