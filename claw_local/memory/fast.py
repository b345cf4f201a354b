"""Fast memory: which hints are active, and how they enter the prompt. It must never know how hints are found.

A hint stands at the end of the person's last message, the place where the teacher of on-policy distillation sees it
too (DESIGN §5): what fast memory shows at once is what training later makes unnecessary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from ..signals.checks import infer_checks
from ..store import Hint, Store

TokenCounter = Callable[[str], int]

_COMPLAINT = re.compile(
    r"\b(?:too|i (?:really )?(?:don't|do not|didn't) (?:like|want|need)|i (?:hate|dislike))\b", re.I
)
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+")

SAME_WISH = 0.6
"""Share of common words (Jaccard) from which two hints without checks count as the same wish."""


def with_hints(question: str, hints: Sequence[str]) -> str:
    """The person's message with the hints appended. No hints: the message as it is."""
    if not hints:
        return question
    return f"{question}\n\n{' '.join(wording(hint) for hint in hints)}"


def wording(hint: str) -> str:
    """A hint as it stands in the prompt: the person's words, but a complaint as the wish it comes down to.

    Under a new question "way too long, two sentences max" reads as if there were a text to shorten, and a small model
    answers that instead; "Please answer with at most 2 sentences." does not.
    """
    parts = [part for part in _BETWEEN_SENTENCES.split(" ".join(hint.split())) if part]
    said = []
    for part in parts:
        checks = infer_checks([part]) if _COMPLAINT.search(part) else []
        if checks:
            said.append(f"Please answer with {', '.join(check.describe() for check in checks)}.")
        else:
            said.append(part if part.endswith((".", "!", "?", "。", "！", "？")) else part + ".")
    return " ".join(said)


def choose(
    store: Store,
    *,
    chat_id: int | None,
    budget_tokens: int,
    count: TokenCounter,
    learned: bool = False,
    without: Collection[int] = (),
) -> list[Hint]:
    """The active hints for a prompt of this chat, newest first, as many as the budget holds; returned oldest first.

    `learned`: those too that an adapter has learned, which no longer stand in prompts but still hold. `without`: ids of
    those that are not wanted.
    """
    chosen: list[Hint] = []
    left = budget_tokens
    for hint in store.hints.list(state=None if learned else "active"):
        if (
            hint.id in without
            or hint.state == "dropped"
            or hint.scope == "turn"
            or (hint.scope == "chat" and hint.chat_id != chat_id)
        ):
            continue
        cost = count(hint.text) + 1
        if cost <= left:
            chosen.append(hint)
            left -= cost
    return chosen[::-1]


def remember(store: Store, new: Hint) -> list[Hint]:
    """Make room for a new hint: an older one that says the same or less, or the opposite, is dropped; if an older one
    says the same and more, the new one is not needed. Returns those dropped.

    A wish that an adapter has learned makes no new one needless: whoever says it again has missed it.
    """
    if new.scope == "turn":
        return []
    others = [
        old
        for old in store.hints.list(state=None)
        if old.state != "dropped" and old.id != new.id
        if old.scope == new.scope and (new.scope != "chat" or old.chat_id == new.chat_id)
    ]
    if any(old.state == "active" and _words(old.text) == _words(new.text) for old in others):
        return [store.hints.set_state(new.id, "dropped")]  # Said once more in the same words: it stands already.
    replaced = [old for old in others if replaces(new.text, old.text)]
    if not replaced and any(old.state == "active" and _says_all_of(old.text, new.text) for old in others):
        replaced = [new]
    return [store.hints.set_state(hint.id, "dropped") for hint in replaced]


def replaces(new: str, old: str) -> bool:
    """Whether the new hint says all that the old one says, or something that contradicts it."""
    if _words(new) == _words(old):
        return True
    new_checks, old_checks = infer_checks([new]), infer_checks([old])
    if new_checks and old_checks:
        # Both together: of clashing ones only the newer survives. So if the old adds nothing, it is not needed.
        together = infer_checks([old, new])
        return all(check in new_checks for check in together)
    if new_checks or old_checks:
        return False
    mine, theirs = _words(new), _words(old)
    return len(mine & theirs) >= SAME_WISH * len(mine | theirs) if mine | theirs else False


def made_room(before: Sequence[Hint], after: Sequence[Hint]) -> list[tuple[Hint, Hint]]:
    """Which hints that stood in prompts are off now, each with the newer one that took its place: nobody's wish is
    switched off without a word.

    Args:
        before, after: the active hints then and now.
    """
    kept, known = {hint.id for hint in after}, {hint.id for hint in before}
    arrived = [hint for hint in after if hint.id not in known]
    gone = (hint for hint in before if hint.id not in kept)
    return [(old, new) for old in gone if (new := next((one for one in arrived if replaces(one.text, old.text)), None))]


def _says_all_of(old: str, new: str) -> bool:
    checks = infer_checks([new])
    return bool(checks) and set(checks) <= set(infer_checks([old]))


def _words(text: str) -> frozenset[str]:
    return frozenset("".join(c.lower() if c.isalnum() else " " for c in text).split())
