"""Finding what was said, whatever was typed."""

from __future__ import annotations

import unicodedata

import pytest

from claw_local.history import History
from claw_local.store import Store


def say(store: Store, *texts: str, title: str = "") -> list[int]:
    chat = store.chats.create(title=title)
    ids: list[int] = []
    for place, text in enumerate(texts):
        role = "assistant" if place % 2 else "user"
        ids.append(store.messages.add(chat.id, role, text, parent_id=ids[-1] if ids else None))
    return ids


def hits(history: History, text: str) -> list[str]:
    return [found.snippet[start:end] for found in history.search(text) for start, end in found.marks]


@pytest.mark.parametrize(
    ("said", "typed", "marked"),
    [
        ("Kites fly by lift", "kit", ["Kit"]),
        ("Kites fly by lift", "lift kites", ["Kites", "lift"]),
        ("Kites fly by lift", '"fly by"', ["fly by"]),
        ("Übung macht den Meister", "ubung", ["Übung"]),
        ("U\u0308bung, geu\u0308bt wie neu\u0308", "übung", ["Übung"]),
        ("ge\u0308u\u0308", "geü", ["gëü"]),
        ("die lange Straße hinauf", "strasse", ["Straße"]),
        ("東京都に行きました", "東京", ["東京"]),
        ("東京都に行きました", "京都", ["京都"]),
        ("東京都に行きました", "都", ["都"]),
        ("住在东京", "京", ["京"]),
        ("iPhone版もあります", "iphone版", ["iPhone版"]),
        ("ｉＰｈｏｎｅ", "iphone", ["ｉＰｈｏｎｅ"]),
        ("한국어를 공부합니다", "국어", ["국어"]),
        ("สวัสดีครับ", "สดี", ["สดี"]),
        ("नमस्ते दुनिया", "नमस्", ["नमस्"]),
        ("well done 😀!", "😀", ["😀"]),
        ("call foo_bar() twice", "foo_bar", ["foo_bar"]),
        ("Привет, мир", "прив", ["Прив"]),
    ],
)
def test_finds_words_in_every_writing_system_and_marks_them(
    store: Store, history: History, said: str, typed: str, marked: list[str]
) -> None:
    say(store, said, "nothing of the kind")
    assert [unicodedata.normalize("NFC", hit) for hit in hits(history, typed)] == [
        unicodedata.normalize("NFC", mark) for mark in marked
    ]


@pytest.mark.parametrize(
    "typed", ['"', "'", "AND", "NOT (", "a OR", "NEAR(a b)", "col:x", "^a", "a*", "-a", "{}", "\\", "%"]
)
def test_nothing_that_is_typed_is_an_error(store: Store, history: History, typed: str) -> None:
    say(store, "a and or not near x")
    history.search(typed)


def test_operators_are_words_like_any_other(store: Store, history: History) -> None:
    (both, _) = say(store, "rock AND roll", "rock only")
    assert [found.message_id for found in history.search("rock and")] == [both]


@pytest.mark.parametrize("typed", ["", "   ", "???", '""'])
def test_a_query_without_words_finds_nothing(store: Store, history: History, typed: str) -> None:
    say(store, "anything")
    assert history.search(typed) == []


def test_whole_words_come_before_longer_ones_and_newer_before_older(store: Store, history: History) -> None:
    old, other, new = say(store, "a test", "testing", "the test again")
    assert [found.message_id for found in history.search("test")] == [new, old, other]
    assert [found.message_id for found in history.search("test", limit=1)] == [new]


def test_if_no_whole_word_is_there_every_word_may_go_on(store: Store, history: History) -> None:
    (flying,) = say(store, "kites flying high")
    assert [found.message_id for found in history.search("kite fly")] == [flying]
    (exact,) = say(store, "a kite flying")
    assert [found.message_id for found in history.search("kite fly")] == [exact]


def test_titles_are_found_and_lead_to_the_first_message(store: Store, history: History) -> None:
    first, _ = say(store, "hello", "hi", title="About Kites")
    (found,) = history.search("kites")
    assert (found.role, found.message_id, found.snippet) == ("title", first, "About Kites")
    store.chats.update(found.chat_id, title="About boats")
    assert history.search("kites") == []
    assert history.search("boats")


def test_a_hit_deep_in_a_long_message_is_shown_with_its_surroundings(store: Store, history: History) -> None:
    say(store, "größer " * 3000 + "the needle is here" + " straw" * 3000)
    (found,) = history.search("needle")
    assert "the needle is here" in found.snippet
    assert found.snippet.startswith("… ") and found.snippet.endswith(" …")
    assert len(found.snippet) < 200
    assert [found.snippet[start:end] for start, end in found.marks] == ["needle"]


def test_a_reply_is_found_once_it_is_written_and_side_turns_never(store: Store, history: History) -> None:
    from tests.store.test_chats import generation

    chat = store.chats.create()
    _, reply = store.messages.begin_turn(chat.id, "hi", parent_id=None)
    assert history.search("hello") == []
    store.messages.finish(reply, generation("hello"), state="done", timings={})
    store.messages.add(chat.id, "assistant", "hello side", parent_id=None, turn_type="side")
    assert [found.message_id for found in history.search("hello")] == [reply]


def test_what_a_killed_reply_had_shown_is_found(store: Store, history: History) -> None:
    chat = store.chats.create()
    _, reply = store.messages.begin_turn(chat.id, "hi", parent_id=None)
    store.messages.append_piece(reply, "half a wor")
    store.messages.fail(reply, "interrupted")
    assert [found.message_id for found in history.search("half")] == [reply]
