"""A program that is open while a backup is restored writes nothing into chats that only have the numbers it knew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from claw_local.assistant import Assistant
from claw_local.backup import restore, restoring
from claw_local.backup.writing import write_backup
from claw_local.cli import plain
from claw_local.errors import BackupError, RestoredError
from claw_local.judge.background import judge_turn
from claw_local.paths import Paths, locate
from claw_local.reply import Draft, Reply
from claw_local.settings import Settings
from claw_local.signals.turns import Turn
from claw_local.store import Store
from claw_local.talking.asked import Asked, Caller, Said
from claw_local.talking.keeping import Keeping


def told(paths: Paths) -> list[tuple[Any, ...]]:
    """Everything that is in the chats of a home."""
    store = Store(paths)
    try:
        with store.database.read() as db:
            query = "select chats.id, title, draft, content, state from chats left join messages on chat_id = chats.id"
            return [*db.execute(query).fetchall(), *db.execute("select message_id, score from signals").fetchall()]
    finally:
        store.close()


@pytest.fixture
def home(tmp_path: Path) -> Paths:
    return locate(tmp_path / "home")


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Of another home, whose chat 1 is another chat."""
    other = Store(locate(tmp_path / "other"))
    chat = other.chats.create(title="about boats")
    _, reply = other.messages.begin_turn(chat.id, "Which boat?", parent_id=None)
    other.messages.add(chat.id, "user", "And why?", parent_id=reply)
    made = write_backup(other, locate(tmp_path / "other"), tmp_path / "other.backup").path
    other.close()
    return made


@pytest.fixture
def window(home: Paths) -> Iterator[Assistant]:
    """Open, with a chat, a reply in it and what was said to that."""
    assistant = Assistant(home, Settings(), None)
    chat = assistant.new_chat(title="about rain")
    _, reply = assistant.store.messages.begin_turn(chat.id, "What is rain?", parent_id=None)
    assistant.store.messages.add(chat.id, "user", "Shorter.", parent_id=reply)
    with ExitStack() as stack:
        stack.callback(assistant.close)
        yield assistant


def test_a_message_never_lands_in_a_chat_that_has_the_number_of_another(
    window: Assistant, home: Paths, backup: Path
) -> None:
    home.caches.mkdir()
    restore(home, backup)
    assert not home.caches.exists(), "they are of chats that are not here any more"
    before = told(home)
    for _ in range(2):  # Asking again makes it no better.
        with pytest.raises(RestoredError, match="put back from a backup meanwhile, so nothing was written"):
            window.stream("And snow?", chat=1)
    for write in (
        lambda: window.feedback(2, "bad"),
        lambda: window.history.set_draft(1, "half a thought"),
        lambda: window.history.rename(1, "about snow"),
        lambda: window.history.delete_for_good(1),
        lambda: window.store.adapters.add(parent_id=None, model_sha256="m", architecture="llama"),
    ):
        with pytest.raises(RestoredError):
            write()
    assert told(home) == before
    assert window.restored()
    window.accept(window.restored())
    assert window.restored() == ""
    window.history.rename(1, "about sails")
    assert window.chat(1).title == "about sails"


def test_a_reply_under_way_stays_out_of_it_also_once_the_new_chats_are_accepted(
    window: Assistant, home: Paths, backup: Path
) -> None:
    def begin(_: object) -> Any:
        return SimpleNamespace(text="Water.", first_token_s=0.0), iter(["Wa", "ter."])

    let_go: list[int] = []
    draft = Draft("m", begin, lambda: let_go.append(1), 0, (), 0.0)
    reply = Reply(window.store, chat_id=1, user_message_id=1, message_id=2, prepare=lambda: draft, begun=lambda: None)
    assert next(iter(reply)) == "Wa"
    restore(home, backup)
    before = told(home)
    window.accept()
    with pytest.raises(RestoredError):
        list(reply)
    reply.close()
    assert told(home) == before
    assert let_go == [1]


def test_a_verdict_on_a_reply_that_is_gone_is_not_given_to_another(
    window: Assistant, home: Paths, backup: Path
) -> None:
    question, reply, answer = window.store.messages.some([1, 2, 3])
    turn = Turn((question,), reply, answer, None, "", "", only_turn=True)
    restore(home, backup)
    window.accept()
    verdict = SimpleNamespace(score=-1, hint="", probabilities={}, version="v", votes=(), scope="turn")
    judge: Any = SimpleNamespace(judge=lambda *_, **__: verdict)
    assert judge_turn(window.store, judge, turn) is None
    assert not window.store.signals.of([2])[2]
    there = replace(turn, reply=window.store.messages.get(2))
    assert judge_turn(window.store, judge, there) is not None, "the one that is there now can be judged"


def test_a_private_chat_goes_on(window: Assistant, home: Paths, backup: Path) -> None:
    private = window.incognito()
    try:
        restore(home, backup)
        chat = private.new_chat(title="between us")
        private.store.messages.add(chat.id, "user", "It still writes.", parent_id=None)
        assert private.restored() == ""
    finally:
        private.close()


def test_restoring_the_same_backup_twice_is_noticed_twice(window: Assistant, home: Paths, backup: Path) -> None:
    restore(home, backup)
    window.accept()
    restore(home, backup)
    with pytest.raises(RestoredError):
        window.history.rename(1, "once more")


def test_the_plain_chat_leaves_its_chat_and_begins_another(
    window: Assistant, home: Paths, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = plain.Talk(window, 1)
    restore(home, backup)
    before = told(home)
    lines = iter(["And snow?", "/chats", "/open 1"])
    monkeypatch.setattr(plain, "_line", lambda: next(lines))
    words: list[str] = []
    monkeypatch.setattr(plain, "_say", words.append)
    assert talk.turn()
    assert "nothing was written" in words[0]
    assert (talk._chat_id, told(home), window.restored()) == (None, before, "")
    assert talk.turn() and talk.turn()
    assert talk._chat_id == 1, "opened anew, it is the one that is there now"


def test_a_run_that_begins_while_a_backup_is_unpacked_ends_the_restore(
    window: Assistant, home: Paths, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = restoring.tables.check

    def slow(path: Path) -> None:
        check(path)
        window.store.runs.begin("person")

    monkeypatch.setattr(restoring.tables, "check", slow)
    with pytest.raises(BackupError, match="learning run is going on"):
        restore(home, backup)
    assert window.chat(1).title == "about rain" and window.restored() == ""


def test_what_was_said_to_the_server_is_not_put_where_it_had_its_place(
    window: Assistant, home: Paths, backup: Path
) -> None:
    asked = Asked(Caller(0, "", True, ""), (Said("user", "And snow?"),))
    keeping = Keeping(window)
    place = keeping.place(asked)
    content = window.content
    restore(home, backup)
    before = told(home)
    window.accept()  # Another request came first.
    with window.meaning(content), pytest.raises(RestoredError):
        keeping.put(asked, place, bound=False)
    assert told(home) == before
    assert keeping.put(asked, keeping.place(asked), bound=False).chat_id == 2
