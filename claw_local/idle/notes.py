"""What the person is told when they come back: in the app, by `learn status`, and by the desktop if they want that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..language import _
from . import desktop_note, records

if TYPE_CHECKING:
    from ..assistant import Assistant
    from .job import LearnResult


def words(result: LearnResult) -> str:
    """What a run that began by itself has changed, in a sentence or two."""
    if result.accepted:
        return _(
            "While you were away, adapter {id} was learned, and is in use. {reason} Undo: claw-local adapters rollback",
            id=result.adapter,
            reason=result.reason,
        )
    return _("While you were away, it learned, but stays as it was. {reason}", reason=result.reason)


def tell(assistant: Assistant, result: LearnResult) -> None:
    """Keep it for the next program that the person looks at."""
    text = words(result)
    records.put_news(assistant.store, text)
    if assistant.settings.idle.notify and result.accepted:
        desktop_note.show(_("claw-local has learned"), text)
