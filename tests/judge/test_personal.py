"""The judge's adapters by their files alone: which is used, which is not, and what they are together. No model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from claw_local.engine.base import AdapterSlot
from claw_local.errors import AdapterError
from claw_local.judge import changes, personal
from claw_local.judge.opening import CAPABLE, make_judge
from claw_local.judge.personal import JudgeAdapters, PersonalAdapter
from claw_local.judge.unheard import UnheardJudge
from claw_local.judge.voting import VotingJudge
from claw_local.paths import Paths
from claw_local.settings import JudgeSettings
from claw_local.store import Store
from claw_local.store.records import ExamRecord

from .known import Known

MODEL = "f00d"


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


def lora(folder: Path, name: str) -> tuple[Path, str]:
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.gguf"
    file.write_bytes(name.encode())
    return file, hashlib.sha256(name.encode()).hexdigest()


def own_of(file: Path, sha256: str, over: str = "") -> PersonalAdapter:
    return PersonalAdapter(str(file), sha256, over, (3, 5), {"auc": 0.8}, {"auc": 0.9})


def test_the_package_has_adapters_for_the_models_its_records_name() -> None:
    records = [
        json.loads(file.read_text("utf-8"))
        for file in resources.files("claw_local.data").joinpath("judge").iterdir()
        if file.name.endswith(".json")
    ]
    models = {record["model_sha256"] for record in records if "model_sha256" in record}
    found = {sha256: personal.shipped(sha256) for sha256 in models}
    assert found and all(file is not None and file.suffix == ".gguf" and file.is_file() for file in found.values())
    assert personal.shipped(MODEL) is None


def test_the_one_in_the_settings_goes_before_the_shipped_one(tmp_path: Path) -> None:
    file, sha256 = lora(tmp_path, "named")
    assert personal.without_own(MODEL, JudgeSettings()) == JudgeAdapters()
    named = personal.without_own(MODEL, JudgeSettings(adapter=str(file)))
    assert named == JudgeAdapters((AdapterSlot(file),), True, sha256)
    with pytest.raises(AdapterError, match=r"^There is no judge's adapter nowhere\.gguf\. Set judge\.adapter"):
        personal.without_own(MODEL, JudgeSettings(adapter="nowhere.gguf"))


def test_what_lies_on_top_is_asked_as_what_lies_below(tmp_path: Path) -> None:
    (low, low_hash), (high, high_hash) = lora(tmp_path, "low"), lora(tmp_path, "high")
    below = JudgeAdapters((AdapterSlot(low),), True, low_hash)
    together = hashlib.sha256(f"{low_hash}{high_hash}".encode()).hexdigest()
    slots = (AdapterSlot(low), AdapterSlot(high))
    assert personal.on_top(below, high, high_hash) == JudgeAdapters(slots, True, together)
    assert personal.on_top(JudgeAdapters(), high, high_hash) == JudgeAdapters((AdapterSlot(high),), False, high_hash)


def test_the_persons_own_one_is_used_where_it_is_as_it_was_and_lies_on_what_it_was_trained_on(
    store: Store, tmp_path: Path
) -> None:
    settings = JudgeSettings()
    file, sha256 = lora(tmp_path, "own")
    assert personal.adapters_of(MODEL, settings, store) == JudgeAdapters()
    own = own_of(file, sha256)
    before = changes.state(store)
    personal.keep(store, MODEL, own)
    assert personal.personal(store, MODEL) == own and personal.personal(store, "beef") is None
    assert changes.state(store) != before, "every open program makes its judge anew"
    used = JudgeAdapters((AdapterSlot(file),), False, sha256)
    assert personal.adapters_of(MODEL, settings, store) == used
    assert personal.adapters_of(MODEL, settings, None) == JudgeAdapters()
    file.write_bytes(b"changed")
    assert personal.adapters_of(MODEL, settings, store) == JudgeAdapters(), "it is another one now"
    file.unlink()
    assert personal.adapters_of(MODEL, settings, store) == JudgeAdapters(), "it is gone"
    low, low_hash = lora(tmp_path, "low")
    over = JudgeSettings(adapter=str(low))
    file, sha256 = lora(tmp_path, "own")
    below = personal.without_own(MODEL, over)
    assert personal.adapters_of(MODEL, over, store) == below, "it was trained on top of nothing"
    personal.keep(store, MODEL, own_of(file, sha256, low_hash))
    assert personal.adapters_of(MODEL, over, store) == personal.on_top(below, file, sha256)
    personal.keep(store, MODEL, None)
    assert personal.personal(store, MODEL) is None and personal.adapters_of(MODEL, over, store) == below


def test_its_files_are_deleted_and_nobody_elses(tmp_path: Path) -> None:
    adapters = tmp_path / "adapters"
    adapters.mkdir()
    inside, outside = lora(adapters / "judge-1", "own")[0], lora(tmp_path / "elsewhere", "own")[0]
    personal.remove(own_of(outside, ""), adapters)
    assert outside.is_file(), "it lies outside of the adapters' folder"
    personal.remove(own_of(inside, ""), adapters)
    assert not inside.parent.exists() and adapters.is_dir()
    personal.remove(own_of(inside, ""), adapters)


def test_each_change_is_another_state(store: Store) -> None:
    seen = {changes.state(store)}
    for _ in range(3):
        changes.note_change(store)
        assert changes.state(store) not in seen
        seen.add(changes.state(store))


# From these to the judge


def test_adapters_are_set_and_say_how_it_is_asked(store: Store, tmp_path: Path) -> None:
    file, sha256 = lora(tmp_path, "named")
    engine = Known()
    judge = make_judge(engine, JudgeSettings(adapter=str(file)), store)  # type: ignore[arg-type]
    assert engine.judge_adapters == (AdapterSlot(file),)
    assert judge.identity.adapter == sha256 and judge.identity.version.startswith("trained-")
    bare = make_judge(engine, JudgeSettings(), store)  # type: ignore[arg-type]
    assert engine.judge_adapters == () and bare.identity.version.startswith("few-shot-")
    given = JudgeAdapters((AdapterSlot(file),), True, "abc")
    assert make_judge(engine, JudgeSettings(), store, adapters=given).identity.adapter == "abc"  # type: ignore[arg-type]
    voting = make_judge(engine, JudgeSettings(votes=5), store)  # type: ignore[arg-type]
    assert isinstance(voting, VotingJudge) and voting.identity.version.startswith("votes-1x5-")


def test_one_behind_a_server_votes(store: Store) -> None:
    judge = make_judge(Known(sha256=""), JudgeSettings(), store)  # type: ignore[arg-type]
    assert isinstance(judge, VotingJudge) and judge.identity.version.startswith("votes-1x3-")
    assert judge.identity.adapter == ""


@pytest.mark.parametrize(
    ("setting", "parameters", "writes"),
    [("on", 1, True), ("off", CAPABLE, False), ("auto", CAPABLE, True), ("auto", CAPABLE - 1, False)],
)
def test_large_models_write_hints_unless_the_settings_say_otherwise(
    store: Store, setting: str, parameters: int, writes: bool
) -> None:
    logits = {" positive": 0.0, " neutral": 0.0, " negative": 0.0}
    engine = Known(lambda text: logits, says='{"hint": ["Please write without lists."]}', parameters=parameters)
    judge = make_judge(engine, JudgeSettings(writes_hints=setting), store)  # type: ignore[arg-type]
    assert judge.judge("How?", "1. So", "no lists please").written is writes


def test_one_that_failed_its_exam_is_not_heard_except_to_take_another(store: Store) -> None:
    engine = Known()
    who = make_judge(engine, JudgeSettings(confidence=0.7), store).identity  # type: ignore[arg-type]
    record = ExamRecord(
        model=who.model, adapter=who.adapter, version=who.version, question="next", auc=0.5, accuracy=0.5,
        threshold=0.5, examples=60, passed=False, groups={}, seconds_per_example=0.1,
    )  # fmt: skip
    store.exams.put(record)
    unheard = make_judge(engine, JudgeSettings(confidence=1.0), store)  # type: ignore[arg-type]
    assert isinstance(unheard, UnheardJudge) and unheard.identity == who
    assert unheard.judge("How?", "So.", "Perfect, thank you!").score == 0, "as sure as the settings ask"
    assert not isinstance(make_judge(engine, JudgeSettings(), store, examining=True), UnheardJudge)  # type: ignore[arg-type]
    assert not isinstance(make_judge(engine, JudgeSettings(), None), UnheardJudge)  # type: ignore[arg-type]
