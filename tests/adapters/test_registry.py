"""Adapters with names, mixed, per chat and per profile, compared, removed, and the way back from each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from claw_local.adapters.differing import inner
from claw_local.adapters.mixing import mix
from claw_local.adapters.naming import weighted
from claw_local.adapters.peft import PeftLora, read_peft
from claw_local.assistant import Assistant
from claw_local.errors import AdapterError, NotFoundError, UsageError
from claw_local.paths import Paths
from claw_local.store import AdapterRecord
from tests.adapters.loras import SECRET, folders, lora, register


@pytest.fixture
def assistant(home: Paths) -> Iterator[Assistant]:
    opened = Assistant.open()
    yield opened
    opened.close()


def update(made: PeftLora, place: tuple[int, str]) -> np.ndarray:
    """[out, in] what it adds to a weight."""
    if place not in made.weights:
        return np.zeros((192 if "v_proj" in place[1] else 576, 576))
    a, b = made.weights[place]
    return made.alpha / a.shape[0] * b.astype("f8") @ a


def in_use(assistant: Assistant) -> int:
    active = assistant.adapters.active()
    return active.id if active else 0


def test_a_name_works_wherever_an_id_does(assistant: Assistant) -> None:
    record = register(assistant, lora())
    assert assistant.adapters.rename(record.id, " Work ").name == "Work"
    assert assistant.adapters.get("work").id == assistant.adapters.get(str(record.id)).id == record.id
    assistant.adapters.use("work")
    assert in_use(assistant) == record.id
    assert assistant.adapters.choose("work", assistant.model_sha256) == assistant.adapters.active()
    other = register(assistant, lora(1))
    with pytest.raises(UsageError, match="Another adapter is called WORK"):
        assistant.adapters.rename(other.id, "WORK")
    for name in ("12", "base", "default", "a b", "a:1", "", "../x"):
        if name:
            with pytest.raises(UsageError, match="cannot be an adapter's name"):
                assistant.adapters.rename(other.id, name)
    assert assistant.adapters.rename("work", "").name == ""
    with pytest.raises(NotFoundError, match="no adapter called 'work'"):
        assistant.adapters.get("work")


def test_a_mix_is_the_weighted_sum_of_the_updates(assistant: Assistant) -> None:
    one, other = lora(1, rank=2), lora(2, rank=3, blocks=3, modules=("v_proj", "q_proj"))
    together = mix([(one, 0.7), (other, 0.3)])
    assert together.ranks == {5}
    assert set(together.weights) == set(one.weights) | set(other.weights)
    for place in together.weights:
        expected = 0.7 * update(one, place) + 0.3 * update(other, place)
        assert np.allclose(update(together, place), expected, atol=1e-6)


def test_a_mix_is_an_adapter_like_any_other(assistant: Assistant, tmp_path: Path) -> None:
    work, home = register(assistant, lora(1), name="work"), register(assistant, lora(2), name="home")
    assistant.adapters.use("home")
    record = assistant.adapters.use(["work:0.7", "home:0.3"])
    assert record is not None and record.state == "active"
    assert record.recipe == {"mix": [[work.id, 0.7], [home.id, 0.3]]}
    assert (record.parent_id, record.lineage) == (work.id, (11, 12, 13)), "it knows who made it"
    again = assistant.adapters.use("work:0.7 home:0.3")
    assert again is not None and again.id == record.id, "the same mix is made once"
    assert in_use(assistant) == record.id
    assistant.adapters.rollback()
    assert in_use(assistant) == home.id, "back to what was in use, not to a part"
    pack = assistant.adapters.export(record.id, tmp_path / "mix.claw")
    with Assistant.open(tmp_path / "second") as other:
        assert read_peft(Path(other.adapters.import_file(pack).record.peft_dir)).rank == 4


def test_words_that_are_no_mix_are_said(assistant: Assistant) -> None:
    record = register(assistant, lora(), name="work")
    for words in ("work:0", "work:-1", "work:nan", "work:inf", "work:x", ":1", "work:5", "", "  "):
        with pytest.raises(UsageError):
            weighted([words])
    assert weighted(["work:0.5,home", "3:1e-1"]) == [("work", 0.5), ("home", 1.0), ("3", 0.1)]
    with pytest.raises(UsageError, match="twice"):
        assistant.adapters.use(["work:0.5", str(record.id)])
    with pytest.raises(UsageError, match="base is in every mix"):
        assistant.adapters.use(["work:0.5", "base:0.5"])
    with pytest.raises(UsageError, match="base takes no weight"):
        assistant.adapters.use(["base:0.5"])
    assert assistant.adapters.use(["base:1"]) is None
    with pytest.raises(NotFoundError):
        assistant.adapters.use("nobody:0.5")
    with pytest.raises(UsageError, match="--chat or --profile"):
        assistant.adapters.use("default")
    assert [one.id for one in assistant.adapters.list()] == [record.id] and in_use(assistant) == 0


def test_mixing_needs_whole_files_and_leaves_nothing_where_they_are_not(assistant: Assistant) -> None:
    register(assistant, lora(1), name="work")
    home = register(assistant, lora(2), name="home")
    (Path(home.peft_dir) / "adapter_model.safetensors").write_bytes(b"changed")
    before = folders(assistant)
    with pytest.raises(AdapterError, match="has been changed"):
        assistant.adapters.use("work:0.5 home:0.5")
    assert folders(assistant) == before and in_use(assistant) == 0
    deep = register(assistant, lora(3, rank=600), name="deep")
    deeper = register(assistant, lora(4, rank=601), name="deeper")
    with pytest.raises(AdapterError, match="rank 1201"):
        assistant.adapters.use(f"{deep.id} {deeper.id}")


def test_a_chat_and_a_profile_keep_to_their_own(assistant: Assistant) -> None:
    one, other, third = (register(assistant, lora(seed)) for seed in range(3))
    mine, theirs = assistant.new_chat(title="mine").id, assistant.new_chat(title="theirs").id
    model = assistant.model_sha256

    def chosen(chat: int) -> int:
        record = assistant.adapters.choose_for(assistant.chat(chat), model)
        return record.id if record else 0

    assistant.adapters.use(one.id)
    assistant.adapters.use(other.id, chat=mine)
    assert (in_use(assistant), chosen(mine), chosen(theirs)) == (one.id, other.id, one.id)
    assistant.adapters.use("base", chat=mine)
    assert chosen(mine) == 0
    assistant.adapters.use(third.id, profile="night")
    assert assistant.adapters.profiles() == {"night": {model: third.id}}
    assert chosen(theirs) == one.id, "nobody goes by the profile yet"
    assistant.settings.adapters.profile = "night"
    assert (chosen(theirs), chosen(mine)) == (third.id, 0), "a chat's own goes before"
    assistant.adapters.use("default", chat=mine)
    assert chosen(mine) == third.id
    assistant.set_chat(mine, adapter=other.id)
    assert chosen(mine) == other.id
    assistant.set_chat(mine, adapter="")
    assistant.adapters.use("default", profile="night")
    with pytest.raises(UsageError, match="no profile 'night'"):
        assistant.ask("Hello?")
    assert {chat.id for chat in assistant.chats()} == {mine, theirs}, "nothing was begun"


def test_a_chat_whose_adapter_is_gone_or_for_another_model_goes_by_what_is_in_use(assistant: Assistant) -> None:
    one, other = register(assistant, lora(1)), register(assistant, lora(2))
    chat = assistant.new_chat().id
    assistant.adapters.use(one.id)
    assistant.adapters.use(other.id, chat=chat)
    assert assistant.adapters.choose_for(assistant.chat(chat), "another model") is None
    assistant.adapters.remove(other.id)
    assert assistant.chat(chat).adapter_id is None
    assert assistant.adapters.choose_for(assistant.chat(chat), assistant.model_sha256) == assistant.adapters.active()


def test_removing_takes_the_files_too_but_never_of_what_is_in_use(assistant: Assistant) -> None:
    first = register(assistant, lora(1))
    second = register(assistant, lora(2), parent=first.id)
    third = register(assistant, lora(3), parent=second.id)
    run = assistant.store.runs.begin()
    assistant.store.runs.finish(run, "done", result={}, adapter_id=second.id)
    assistant.adapters.use(third.id)
    with pytest.raises(AdapterError, match="is in use"):
        assistant.adapters.remove(third.id)
    assistant.adapters.remove(second.id)
    assert not Path(second.gguf_path).parent.exists()
    assert assistant.adapters.get(third.id).parent_id == first.id
    assert assistant.store.runs.get(run).adapter_id is None
    rolled = assistant.adapters.rollback()
    assert rolled is not None and rolled.id == first.id
    with pytest.raises(NotFoundError):
        assistant.adapters.remove(second.id)
    assert {record.id for record in assistant.adapters.list()} == {first.id, third.id}


def test_removing_touches_no_file_outside_the_folder_of_adapters(assistant: Assistant, tmp_path: Path) -> None:
    record = register(assistant, lora())
    elsewhere = tmp_path / "elsewhere"
    Path(record.gguf_path).parent.rename(elsewhere)
    assistant.store.adapters.update(record.id, gguf_path=str(elsewhere / "adapter.gguf"))
    assistant.adapters.remove(record.id)
    assert (elsewhere / "adapter.gguf").exists()


def test_an_imported_adapter_goes_back_to_what_was_in_use_and_not_in_circles(
    assistant: Assistant, tmp_path: Path
) -> None:
    mine = register(assistant, lora(1))
    assistant.adapters.use(mine.id)
    theirs = []
    for seed in (2, 3):
        folder = tmp_path / f"theirs-{seed}"
        source = register(assistant, lora(seed))
        assistant.adapters.export(source.id, folder, "peft")
        assistant.adapters.remove(source.id)
        theirs.append(assistant.adapters.import_file(folder).record.id)
    assistant.adapters.use(theirs[0])
    assistant.adapters.rollback()
    assert in_use(assistant) == mine.id
    assistant.adapters.use(theirs[0])
    assistant.adapters.use(theirs[1])
    assistant.adapters.rollback()
    assert in_use(assistant) == theirs[0]
    assistant.adapters.rollback()
    assert in_use(assistant) == 0, "never forward again"


def test_what_differs_between_two(assistant: Assistant) -> None:
    one, two = lora(1, rank=2), lora(2, rank=3, modules=("v_proj", "o_proj"))
    first = register(assistant, one)
    second = register(assistant, two, parent=first.id)
    assistant.store.adapters.update(
        second.id, recipe={"method": "opd", "steps": 8, "hints": ["Be brief."]}, lineage=[12, 13, 14]
    )
    found = assistant.adapters.diff(first.id, second.id)
    assert found.relation == f"{second.id} was made from {first.id}"
    assert found.recipe == {"method": ("combined", "opd")}
    assert found.hints == [("first", f"Say {SECRET}."), ("second", "Be brief.")]
    assert found.turns == (1, 1, 2)
    assert found.gate["simple facts known"] == (1.0, 1.0)
    places = sorted(set(one.weights) | set(two.weights))
    whole = [np.concatenate([update(made, place).ravel() for place in places]) for made in (one, two)]
    assert found.norms == pytest.approx([np.linalg.norm(part) for part in whole], rel=1e-5)
    assert found.distance == pytest.approx(np.linalg.norm(whole[0] - whole[1]), rel=1e-5)
    cosine = whole[0] @ whole[1] / np.linalg.norm(whole[0]) / np.linalg.norm(whole[1])
    assert found.cosine == pytest.approx(cosine, abs=1e-5)
    assert inner(one, two, places[0]) == pytest.approx(
        (update(one, places[0]) * update(two, places[0])).sum(), rel=1e-4
    )
    assert [layer.distance for layer in found.layers] == sorted(
        (layer.distance for layer in found.layers), reverse=True
    )
    same = assistant.adapters.diff(first.id, first.id)
    assert (same.distance, same.cosine) == (pytest.approx(0, abs=1e-3), pytest.approx(1))
    base = assistant.adapters.diff("base", second.id)
    assert base.norms[0] == 0 and base.distance == pytest.approx(base.norms[1])


def test_one_that_is_forgotten_while_its_file_is_looked_at_never_comes_into_use(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    from claw_local.adapters import registry

    record, verify, looked = register(assistant, lora()), registry.verify, list[int]()

    def slow(looked_at: AdapterRecord) -> None:
        verify(looked_at)
        looked.append(looked_at.id)
        if len(looked) == 2:  # the last look before it comes into use
            assistant.store.adapters.update(record.id, state="forgotten", gguf_path="")

    monkeypatch.setattr(registry, "verify", slow)
    with pytest.raises(AdapterError, match="had forgotten"):
        assistant.adapters.use(record.id)
    assert in_use(assistant) == 0 and assistant.adapters.get(record.id).state == "forgotten"


def test_a_choice_for_a_chat_and_a_profile_that_cannot_be_changes_neither(assistant: Assistant) -> None:
    record = register(assistant, lora())
    chat = assistant.store.chats.create(title="x").id
    with pytest.raises(UsageError, match="cannot be an adapter's name"):
        assistant.adapters.use(record.id, chat=chat, profile="no name")
    with pytest.raises(NotFoundError):
        assistant.adapters.use(record.id, chat=99, profile="night")
    assert assistant.store.chats.get(chat).adapter_id is None
    assert assistant.adapters.profiles() == {}
