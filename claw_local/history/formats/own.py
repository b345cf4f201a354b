"""Our own JSON, as it is written and read back.

The format, version 1: one object with `format` ("claw-local-chats"), `version`, `exported_at` and `chats`, a list of
objects with

    origin, origin_id   which chat it is, wherever it is carried; together they are unique
    title, system, model, learn, archived, sampling, created_at, updated_at      as in the store; times in UTC, ISO 8601
    head                the key of the last message of the branch that is shown
    messages            the whole tree, each message after its parent: key, parent (null for the first), role, content,
                        state, model, adapter (0: none), finish_reason, sampling, created_at, and signals, a list of
                        objects with source, score (-1, 0, 1) and hint

Readers must ignore names they do not know. A message without `key` is known by its place; one without
`parent` follows the one before it. Token ids and log-probabilities are not in it: what was said can be carried
to another machine, what a model is trained on stays where it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from pydantic import ValidationError

from ...settings import SamplingSettings
from ...store.records import Chat, GivenChat, MessageState, Signal, SignalSource, StoredMessage
from ..report import BROKEN, Skips
from .tree import Said, entries, fields, grow, key_of, latest, moment, title, words

FORMAT = "claw-local-chats"
VERSION = 1
ORIGIN = "claw-local"

_ROLES = ("user", "assistant", "tool", "system")
_STATES = ("done", "interrupted", "failed")
_SOURCES = ("judge", "thumb", "edit", "regenerate", "tool", "copy")


def header(moment: str) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "exported_at": moment}


def written(
    chat: Chat,
    messages: Sequence[StoredMessage],
    signals: Mapping[int, Sequence[Signal]],
    origins: Mapping[int, str],
    store_name: str,
) -> dict[str, Any]:
    """One chat as it is exported."""
    keys = {message.id: origins.get(message.id) or f"{store_name}/{message.id}" for message in messages}
    return {
        "origin": chat.origin or ORIGIN,
        "origin_id": chat.origin_id or f"{store_name}/{chat.id}/{chat.created_at}",
        "title": chat.title,
        "system": chat.system,
        "model": chat.model,
        "learn": chat.learn,
        "archived": chat.archived,
        "sampling": chat.sampling,
        "created_at": chat.created_at,
        "updated_at": chat.updated_at,
        "head": keys.get(chat.head_id or 0),
        "messages": [
            {
                "key": keys[message.id],
                "parent": keys.get(message.parent_id or 0),
                "role": message.role,
                "content": message.content,
                "state": "interrupted" if message.state == "streaming" else message.state,
                "model": message.model,
                "adapter": message.adapter_id,
                "finish_reason": message.finish_reason,
                "sampling": message.sampling,
                "created_at": message.created_at,
                "signals": [
                    {"source": signal.source, "score": signal.score, "hint": signal.hint}
                    for signal in signals.get(message.id, ())
                ],
            }
            for message in messages
        ],
    }


def is_chat(item: dict[str, Any]) -> bool:
    return isinstance(item.get("messages"), list) and bool(key_of(item.get("origin_id")))


def chat(item: dict[str, Any], skips: Skips, store_name: str) -> GivenChat:
    """One chat as it was exported; `store_name`: of the store it is read into."""
    said = [_said(message) for message in _linked(entries(item["messages"]), key_of(item.get("origin_id")))]
    skips.add(BROKEN, len(item["messages"]) - len(said) + sum(not entry.role for entry in said))
    begun = moment(item.get("created_at"))
    messages, head = grow(said, key_of(item.get("head")) or None, begun)
    origin, origin_id = words(item.get("origin")) or ORIGIN, key_of(item.get("origin_id"))
    whose, _, rest = origin_id.partition("/")
    number = rest.partition("/")[0]
    mine = origin == ORIGIN and whose == store_name and number.isdecimal() and len(number) < 19
    return GivenChat(
        origin=origin,
        origin_id=origin_id,
        title=title(item.get("title")),
        messages=messages,
        head=head,
        system=words(item.get("system")),
        model=words(item.get("model")),
        created_at=begun,
        updated_at=moment(item.get("updated_at")) or latest(messages),
        archived=item.get("archived") is True,
        learn=item.get("learn") is not False,
        sampling=_sampling(item),
        chat_id=int(number) if mine else 0,
    )


def _linked(messages: list[dict[str, Any]], origin_id: str) -> list[dict[str, Any]]:
    """Messages without a key, as other programs may write them, get one by their place, so that none takes another's
    and the same file again doubles nothing. Where nothing is said of a parent, each follows the one before it."""
    linked: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        key = key_of(message.get("key")) or f"{origin_id}#{place}"
        linked.append({"parent": linked[-1]["key"] if linked else None, **message, "key": key})
    return linked


def _said(message: dict[str, Any]) -> Said:
    role, state = words(message.get("role")), words(message.get("state"))
    return Said(
        key_of(message.get("key")),
        key_of(message.get("parent")) or None,
        role if role in _ROLES else "",
        words(message.get("content")) if role in _ROLES else "",
        created_at=moment(message.get("created_at")),
        model=words(message.get("model")),
        state=cast(MessageState, state) if state in _STATES else "done",
        finish_reason=words(message.get("finish_reason")),
        signals=tuple(_signals(message)),
        alone=True,
    )


def _sampling(item: dict[str, Any]) -> dict[str, Any]:
    """Those values that can be: with another one the chat could never answer again."""
    found: dict[str, Any] = {}
    for name, value in fields(item.get("sampling")).items():
        if name in SamplingSettings.model_fields:
            with suppress(ValidationError):
                found[name] = getattr(SamplingSettings.model_validate({name: value}), name)
        elif name == "seed" and type(value) is int and 0 <= value < 2**32:
            found[name] = value
        elif name == "stop" and isinstance(value, list) and all(isinstance(text, str) and text for text in value):
            found[name] = [kept for text in value if (kept := words(text))]
    return found


def _signals(message: dict[str, Any]) -> list[tuple[SignalSource, int, str]]:
    found = []
    for signal in entries(message.get("signals")):
        source, score = signal.get("source"), signal.get("score")
        if source in _SOURCES and score in (-1, 0, 1):
            found.append((cast(SignalSource, source), int(score), words(signal.get("hint"))))
    return found
