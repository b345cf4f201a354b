"""Private chats: nothing of them is on disk, judged, or learned from. On the embedded model."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.engine.base import Sampling
from claw_local.errors import StoreError
from claw_local.settings import ModelSettings, Settings

SHORT = Sampling(max_tokens=6, seed=3)
PHRASE = "zyzzyva-under-the-floor"


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory, model_path: Path) -> Iterator[Assistant]:
    settings = Settings(model=ModelSettings(context=1024, threads=1))
    with Assistant.open(tmp_path_factory.mktemp("home"), model=model_path, settings=settings) as opened:
        yield opened


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_nothing_that_is_said_reaches_the_disk(owner: Assistant) -> None:
    private = owner.incognito()
    first = private.ask(f"Remember {PHRASE}.", sampling=SHORT, system=f"You know {PHRASE}.")
    private.ask(f"Now {PHRASE} again: no lists please.", chat=first.chat_id, sampling=SHORT)
    private.feedback(first.message_id, "bad", hint=f"Say {PHRASE} more often.", edit=f"Gladly: {PHRASE}")
    private.hints.add(f"Always say {PHRASE}.")
    private.rename_chat(first.chat_id, PHRASE)
    assert len(private.messages(first.chat_id)) == 4
    assert PHRASE.encode() not in on_disk(owner.paths.data)
    private.close()
    assert PHRASE.encode() not in on_disk(owner.paths.data)
    assert all(PHRASE not in hint.text for hint in owner.hints.list(active_only=False))
    with pytest.raises(StoreError, match="closed"):
        private.chats()


def test_closing_leaves_the_owner_and_its_model_as_they_are(owner: Assistant) -> None:
    chats = owner.chats()
    private = owner.incognito()
    private.ask("Hello", sampling=SHORT)
    private.close()
    assert owner.loaded
    assert owner.chats() == chats
    assert owner.ask("Hello", sampling=SHORT).load_s == 0


def test_the_owners_hints_help_and_changing_them_in_private_changes_nothing(owner: Assistant) -> None:
    hint = owner.hints.add("Answer in one short sentence.")
    private = owner.incognito()
    answer = private.ask("What is tea?", sampling=SHORT)
    assert answer.hints == ("Answer in one short sentence.",)
    assert [found.text for found in private.why(answer.message_id).hints] == list(answer.hints)
    private.hints.drop(hint.id)
    private.close()
    kept = owner.store.hints.get(hint.id)
    owner.hints.drop(hint.id)
    assert (kept.state, kept.uses) == ("active", 0), "not even that it was used is noted"


def test_private_chats_are_never_judged_and_never_teach(owner: Assistant) -> None:
    owner.learn.on()
    try:
        private = owner.incognito()
        heard: list[object] = []
        private.on_judged(heard.append)
        first = private.ask("What is snow?", sampling=SHORT)
        private.ask("That is wrong, no lists please.", chat=first.chat_id, sampling=SHORT)
        assert private.learn.enabled
        assert private.wait_judged(1) and heard == []
        assert private.store.messages.teaching_of(first.message_id) == "never"
        assert owner.learn.status().waiting == 0
        private.close()
    finally:
        owner.learn.off()


def test_two_private_assistants_know_nothing_of_each_other(owner: Assistant) -> None:
    one, two = owner.incognito(), owner.incognito()
    one.new_chat(title="mine")
    assert [chat.title for chat in one.chats()] == ["mine"]
    assert two.chats() == []
    one.close()
    two.close()


def test_a_private_store_is_used_from_many_threads(owner: Assistant) -> None:
    private = owner.incognito()
    chat = private.new_chat()
    failed: list[BaseException] = []

    def write(name: str) -> None:
        try:
            for n in range(40):
                private.store.messages.add(chat.id, "user", f"{name} {n}", parent_id=None)
                private.chats()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    ((count,),) = private.store.database.db.execute("select count(*) from messages")
    assert count == 160
    private.close()
