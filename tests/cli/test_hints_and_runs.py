"""`claw-local hints`, `learn log` and `feedback --edit`, run in this process."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest

from claw_local.assistant import Assistant
from claw_local.cli.common import print_table
from claw_local.cli.main import run
from claw_local.engine.base import Generation, Sampling
from claw_local.idle import kept
from claw_local.paths import Paths
from claw_local.store import Store


def answered(home: Paths) -> int:
    store = Store(home)
    _, _, reply = store.messages.go_on(store.chats.create().id, "What is rain?", learn="yes")
    made = Generation(prompt_ids=(1,), sampling=Sampling())
    made.text, made.response_ids, made.logprobs = "Water.", [5], [-1.0]
    store.messages.finish(reply, made, state="done", timings={})
    store.close()
    return reply


def hints(capsys: pytest.CaptureFixture[str], *options: str) -> dict[int, tuple[str, str]]:
    capsys.readouterr()
    assert run(["hints", "list", "--json", *options]) == 0
    return {one["id"]: (one["state"], one["text"]) for one in json.loads(capsys.readouterr().out)["hints"]}


def test_a_hint_is_switched_off_and_on_again(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hints", "add", "Talk like a pirate"]) == 0
    assert run(["hints", "off", "1"]) == 0
    assert hints(capsys) == {}
    assert hints(capsys, "--all") == {1: ("dropped", "Talk like a pirate")}
    assert run(["hints", "list", "--all"]) == 0
    assert "off" in capsys.readouterr().out
    assert run(["hints", "on", "1"]) == 0
    assert hints(capsys) == {1: ("active", "Talk like a pirate")}
    assert run(["hints", "drop", "1"]) == 0, "what it was called first still works"
    assert hints(capsys) == {}


def test_a_replaced_hint_is_named_and_can_come_back(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hints", "add", "At most two sentences, please."]) == 0
    assert run(["hints", "add", "At most four sentences, please."]) == 0
    assert "replaces hint 1, your own, which is off now (claw-local hints on 1)" in capsys.readouterr().out
    assert list(hints(capsys)) == [2]
    assert run(["hints", "on", "1"]) == 0
    assert "replaces hint 2" in capsys.readouterr().out
    assert list(hints(capsys)) == [1]


def test_feedback_says_which_of_your_hints_it_switches_off(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    reply = answered(home)
    assert run(["hints", "add", "At most two sentences, please."]) == 0
    assert run(["feedback", str(reply), "bad", "--hint", "At most four sentences, please."]) == 0
    assert "replaces hint 1, your own, which is off now (claw-local hints on 1): At most two" in capsys.readouterr().err


def test_feedback_is_taken_back_with_its_hint(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    reply = str(answered(home))
    assert run(["feedback", reply, "bad", "--hint", "Talk like a pirate."]) == 0
    assert run(["feedback", reply, "none", "--hint", "x"]) == 2
    assert "goes without --hint" in capsys.readouterr().err
    assert run(["feedback", reply, "none"]) == 0
    told = capsys.readouterr().out
    assert f"what you said about message {reply} counts no more. The hint is gone too: Talk like a pirate." in told
    assert hints(capsys, "--all") == {}
    assert run(["feedback", reply, "none"]) == 0
    assert "nothing to take back" in capsys.readouterr().out
    assert run(["feedback", reply, "good"]) == run(["feedback", reply, "none", "--json"]) == 0
    out = capsys.readouterr().out
    taken = json.loads(out[out.index("{") :])
    assert [(one["source"], one["score"]) for one in taken["signals"]] == [("thumb", 1)]
    assert run(["feedback", "99", "none"]) == 1


def test_a_hint_that_says_no_more_than_another_comes_back_all_the_same(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["hints", "add", "No lists, please. At most two sentences."]) == 0
    assert run(["hints", "add", "Please no lists."]) == 0
    assert run(["hints", "on", "2"]) == 0
    assert hints(capsys)[2][0] == "active"


def test_a_hint_is_said_in_other_words_and_what_was_learned_stands_in_prompts_again(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["hints", "add", "Talk like a pirate"]) == 0
    store = Store(home)
    store.hints.set_state(1, "consolidated")
    assert run(["hints", "list", "--all"]) == 0
    assert "learned" in capsys.readouterr().out
    assert run(["hints", "edit", "1", "Talk like\na captain"]) == 0
    assert hints(capsys) == {1: ("active", "Talk like a captain")}
    capsys.readouterr()
    assert run(["hints", "edit", "1", "  "]) == 2
    told = capsys.readouterr().err
    assert "no new words" in told and "hints add" not in told
    assert run(["hints", "edit", "9", "x"]) == 1


def test_a_hint_that_is_off_stays_off_when_it_is_edited(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    run(["hints", "add", "Talk like a pirate"])
    run(["hints", "off", "1"])
    run(["hints", "edit", "1", "Talk like a captain"])
    assert hints(capsys, "--all") == {1: ("dropped", "Talk like a captain")}


def test_removing_a_hint_takes_its_lesson_away_too(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    reply = answered(home)
    assert run(["feedback", str(reply), "bad", "--hint", "Use one sentence."]) == 0
    store = Store(home)
    store.samples.put(reply, "train", -1, "Use one sentence.")
    assert run(["hints", "remove", "1"]) == 0
    assert hints(capsys, "--all") == {}
    (signal,) = store.signals.of([reply])[reply]
    assert (signal.score, signal.hint) == (-1, "")
    assert store.samples.list()[0].hint == ""
    assert run(["hints", "remove", "1"]) == 1


def test_the_answer_as_it_should_have_been_is_read_from_a_pipe(
    home: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = answered(home)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO("Wässer, that falls.\n".encode())))
    assert run(["feedback", str(reply), "--edit", "-", "--json"]) == 0
    store = Store(home)
    message = store.messages.get(reply)
    shown = store.messages.branch(store.chats.get(message.chat_id).head_id)
    assert shown[-1].content == "Wässer, that falls."
    for data, word in ((b"", "empty"), (b"\xff\xfe", "UTF-8")):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert run(["feedback", str(reply), "--edit", "-"]) == 2
        assert word in capsys.readouterr().err


def test_runs_are_listed_with_their_results_and_their_logs_printed(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["learn", "log"]) == 0
    assert "Nothing was learned yet" in capsys.readouterr().out
    store = Store(home)
    first = store.runs.begin()
    store.runs.finish(first, "done", result={"adapter": 3, "accepted": False, "reason": "It got shorter."})
    second = store.runs.begin()
    store.runs.finish(second, "failed", result={}, detail="It ran out of memory.")
    assert run(["learn", "log"]) == 0
    newest, oldest = capsys.readouterr().out.splitlines()
    assert "failed" in newest and "out of memory" in newest
    assert "adapter 3 not taken: It got shorter." in oldest
    (home.runs / f"{second}.log").write_text("".join(f"line {n}\n" for n in range(100)) + "evil \x1b[2J\n")
    assert run(["learn", "log", str(second), "--lines", "3"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["line 98", "line 99", "evil [2J"]
    assert run(["learn", "log", str(second), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["log"]) == 40
    assert run(["learn", "log", str(first)]) == 0
    assert "no log" in capsys.readouterr().out
    assert run(["learn", "log", "9"]) == 1


def test_tables_are_cut_at_the_terminal_s_width_and_whole_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.cells import cell_len

    rows = [("1", "word", "x" * 60), ("20", "字字", "字" * 60)]
    print_table(rows, right={0})
    first, second = capsys.readouterr().out.splitlines()
    assert first == " 1  word  " + "x" * 60
    assert second == "20  字字  " + "字" * 60
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(rows, right={0})
    cut = capsys.readouterr().out.splitlines()
    assert all(cell_len(line) <= 40 and line.endswith("…") for line in cut)


def test_likes_are_said_in_plain_words_and_can_be_denied(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "likes"]) == 0
    assert "Nothing is known yet" in capsys.readouterr().out
    assert run(["hints", "add", "No lists, please. At most two sentences."]) == 0
    capsys.readouterr()
    assert run(["learn", "likes"]) == 0
    shown = capsys.readouterr().out
    assert "You like: no lists, at most 2 sentences." in shown and "you said" in shown
    assert run(["learn", "likes", "--not", "no lists", "--json"]) == 0
    (left,) = json.loads(capsys.readouterr().out)["likes"]
    assert (left["words"], left["source"], left["confidence"]) == ("at most 2 sentences", "hint", 1.0)
    assert run(["learn", "likes", "--not", "no songs"]) == 2
    assert "at most 2 sentences" in capsys.readouterr().err


def test_a_hint_that_another_says_all_of_is_not_said_to_be_in_the_prompt(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["hints", "add", "Answer in at most two sentences and without lists."]) == 0
    capsys.readouterr()
    assert run(["hints", "add", "No lists please."]) == 0
    assert "Hint 2 is kept, but off" in capsys.readouterr().out
    assert list(hints(capsys)) == [1]


def paused_run(home: Paths) -> int:
    """A run that was left, begun with all lasting hints there are; on the disk it keeps what a real one does."""
    with Assistant.open(home.data) as assistant:
        store = assistant.store
        run_id = store.runs.begin()
        began = kept.beginning(store, assistant.settings, assistant.model_sha256)
        kept.write_beginning(home, run_id, began)
        lasting = [{"id": hint.id, "text": hint.text} for hint in store.hints.list()]
        plan = json.dumps({"lasting": lasting, "lessons": []})
        (kept.folder_of(home, run_id) / kept.PLAN).write_text(plan, "utf-8")
        store.runs.set_checkpoint(run_id, "training", 2, 8)
        store.runs.pause(run_id)
        assert assistant.learn.paused().run is not None
    return run_id


@pytest.mark.parametrize("change", [["remove", "1"], ["edit", "1", "Talk like a parrot"]])
def test_a_hint_that_a_paused_run_learns_from_ends_that_run_and_it_is_said(
    home: Paths, capsys: pytest.CaptureFixture[str], change: list[str]
) -> None:
    assert run(["hints", "add", "Talk like a pirate"]) == 0
    assert run(["hints", "add", "At most two sentences"]) == 0
    run_id = paused_run(home)
    capsys.readouterr()
    assert run(["hints", "edit", "2", "At most two sentences", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["given_up"] == [], "the same words change nothing"
    assert run(["hints", *change]) == 0
    said = capsys.readouterr().out
    assert f"The paused learning run {run_id} does not go on: a hint it learns from was removed or changed" in said
    store = Store(home)
    assert store.runs.get(run_id).state == "dropped"
    store.close()


def test_switching_a_hint_off_says_that_a_paused_run_teaches_it_all_the_same(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["hints", "add", "Talk like a pirate"]) == 0
    run_id = paused_run(home)
    assert run(["hints", "add", "Always rhyme"]) == 0
    capsys.readouterr()
    assert run(["hints", "off", "2"]) == 0
    assert "paused" not in capsys.readouterr().out
    assert run(["hints", "off", "1"]) == 0
    assert f"The paused learning run {run_id} was begun with it" in capsys.readouterr().out
    assert run(["hints", "off", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["still_taught_by"] == run_id
    assert run(["hints", "remove", "1", "--json"]) == 0
    assert "does not go on" in json.loads(capsys.readouterr().out)["given_up"][0]


def test_turning_learning_off_says_what_becomes_of_a_run(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = paused_run(home)
    assert run(["learn", "on"]) == 0
    capsys.readouterr()
    assert run(["learn", "off"]) == 0
    assert f"Run {run_id} stays paused" in (said := capsys.readouterr().out) and "from step 3 of 8" in said
    store = Store(home)
    store.runs.go_on(run_id)
    assert run(["learn", "off"]) == 0
    assert f"Run {run_id}, which is going on, leaves now and keeps what it has reached" in capsys.readouterr().out
    assert store.runs.get(run_id).asked == "leave"
    store.runs.finish(run_id, "done", result={})
    store.close()
    assert run(["learn", "off", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"enabled": False, "run": None}


@pytest.mark.parametrize(
    ("hint", "where"),
    [("At most two sentences, please.", "for every chat"), ("No, I meant Canberra.", "for this answer alone")],
)
def test_feedback_says_in_which_chats_its_hint_holds(
    home: Paths, capsys: pytest.CaptureFixture[str], hint: str, where: str
) -> None:
    reply = answered(home)
    with Assistant.open() as assistant:
        assistant.learn.on()
    assert run(["feedback", str(reply), "bad", "--hint", hint]) == 0
    assert f"scores -1. Hint, {where}: {hint}" in capsys.readouterr().out


def test_the_list_of_chats_says_on_a_terminal_how_many_are_archived(
    home: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(home)
    last = "1 archived: claw-local history list --archived\n"
    assert run(["history", "archive", "1"]) == 0
    assert run(["history", "list"]) == 0
    assert last not in capsys.readouterr().out, "no terminal"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run(["history"]) == 0
    assert capsys.readouterr().out.endswith(last)
    assert run(["history", "list", "--archived"]) == 0
    assert last not in capsys.readouterr().out
    assert run(["history", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"chats": []}


def test_a_run_that_ctrl_c_leaves_is_told_of_in_one_sentence(
    home: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paused_run(home)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("claw_local.cli.learn._run", interrupted)
    capsys.readouterr()
    assert run(["learn", "now"]) == 130
    said = capsys.readouterr()
    assert (said.out + said.err).splitlines() == ["Paused; `claw-local learn now` goes on from step 3 of 8."]


def test_turning_learning_on_for_the_past_says_how_much_teaches_now(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(home)
    _, _, reply = store.messages.go_on(store.chats.create().id, "What is rain?", learn="off")
    store.messages.fail(reply, "interrupted")
    chat = store.chats.create().id
    for text in ("marked", "read next", "the last"):
        _, _, reply = store.messages.go_on(chat, text, learn="off")
        made = Generation(prompt_ids=(1,), sampling=Sampling())
        made.text, made.response_ids, made.logprobs = "yes", [5], [-1.0]
        store.messages.finish(reply, made, state="done", timings={})
        if text == "marked":
            store.signals.add(reply, "thumb", 1)
    store.close()
    assert run(["learn", "on", "--past"]) == 0
    said = capsys.readouterr().out
    assert "4 earlier answers may teach now, too." in said
    assert "lessons waiting: 1, not judged yet: 1 " in said and "nothing to learn from: 2 " in said
    assert run(["learn", "on", "--past"]) == 0
    assert "0 earlier answers may teach now, too." in capsys.readouterr().out
