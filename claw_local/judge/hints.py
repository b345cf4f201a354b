"""Hints in the person's own words: which sentences say how the answer should have been, and where that holds.

It must never know whether the reply pleased: the judge decides whether a hint is taken at all.
"""

from __future__ import annotations

import re
from typing import Literal

from ..signals.checks import infer_checks
from .words import find_praise, is_task, names_form, pattern, tidy

Scope = Literal["everywhere", "turn"]

MAX_SENTENCES = 3

_SENTENCE = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bz\.B)(?<=[.!?…])\s+|(?<=[。！？])\s*|\s*;\s+")
_AFTER_PRAISE = re.compile(
    r"^[\s,.!;:–—-]*(?:(?:a lot|so much|very much|a million|though|für die \w+|beaucoup|de l'aide)[\s,.!]*)*", re.I
)
_HINGE = re.compile(
    r"^(?:but|however|just|only|except(?: that)?|aber|nur|pero|mais|但是?|不过|只是|でも|ただ|けど)[\s,，、]*", re.I
)
_OPENER = re.compile(
    r"^(?:(?:no|nope|nah|nein|nee|non|yes|yeah|well|oh|ugh|so|ok(?:ay)?|不|不是|不对|いいえ|いや|違います)\s?[,.!:;，。、！]+\s*(?=\S)|"
    r"(?:hi|hello|hey|hm+|sorry|hallo|bonjour|salut|hola|你好|こんにちは)(?: there| again)?[\s,.!，。、！]+(?=\S))+",
    re.I,
)
_EMPTY_COMPLAINT = re.compile(
    r"^(?:(?:that|this|it|you|das|das ist|c'est|eso|es)?\s*(?:'s|is|are|was|were|ist)?\s*(?:still |just |also |"
    r"all |really )?"
    r"(?:wrong|not (?:right|true|correct|good|helpful|it|what i (?:asked|wanted|meant)(?: for)?)|incorrect|bad|"
    r"terrible|"
    r"useless|nonsense|meh|falsch|stimmt nicht|faux|incorrecto|错了|不对|違います|違う)|"
    r"(?:it |this |that )?(?:doesn't|didn't|does not|did not|won't) (?:work|help)|i don't (?:understand|get it|"
    r"like (?:it|this|that)))"
    r"[\s.!。！]*$",
    re.I,
)
_COMPLAINT_OF_FORM = re.compile(
    r"\b(?:too|zu|trop|demasiad[oa]s?|i don't like|i hate|i dislike|looks like|reads like|sounds like|"
    r"nobody talks|why the|"
    r"you (?:used|keep|always|write|talk|sound))\b|太|すぎ",
    re.I,
)
_NO_FORM = re.compile(r"(?:no|not|nicht|non)\s+\w", re.I)
"""A wish in short that begins with its "no": no pause follows it, as one does in "No, Canberra"."""
_SHORT = 4
_PAUSES = (",", ".", "，", "。", "、")
_BOUND = re.compile(
    r"\b(?:at (?:least|most)|max(?:imum)?|min(?:imum)?|mindestens|wenigstens|höchstens|al menos|como (?:máximo|mínimo)|"
    r"au (?:moins|plus))\b|至少|最多|以上|以内",
    re.I,
)
"""Behind a wish about form, a sentence with one of these goes on with it: "Give me four at least."."""


def sentences(text: str) -> list[str]:
    """The message's sentences, tidied."""
    return [part.strip() for part in _SENTENCE.split(tidy(text)) if part.strip()]


def _without_courtesy(sentence: str) -> str:
    """The sentence without greetings, thanks and praise around it; "" if nothing else is in it."""
    rest = _OPENER.sub("", sentence)
    while True:
        praise = find_praise(rest)
        if not praise or _words_before(rest, praise[0].start()) > 2:
            break
        shorter = _AFTER_PRAISE.sub("", rest[praise[0].end() :])
        if shorter == rest or (not shorter.strip("！。，、") and rest[: praise[0].start()].rstrip().endswith(_PAUSES)):
            break  # Thanks at the end are below: "shorter, thanks" is a wish.
        rest = shorter
    rest = _HINGE.sub("", _OPENER.sub("", rest))
    # Thanks at the end: "no lists please, thanks".
    for praise_at in reversed(find_praise(rest)):
        if len(rest[praise_at.end() :].split()) <= 2 and rest[: praise_at.start()].rstrip().endswith(_PAUSES):
            rest = rest[: praise_at.start()].rstrip(" ,，、")
    return rest.strip(" ,，、")


def _words_before(text: str, end: int) -> int:
    return len(text[:end].split())


def is_directive(sentence: str) -> bool:
    """Whether a sentence says how an answer should be: a wish, a complaint about its form, or a correction."""
    if _EMPTY_COMPLAINT.search(sentence):
        return False
    form = names_form(sentence)
    wish = pattern("request").search(sentence) is not None
    if form and (wish or pattern("complaint").search(sentence) or _COMPLAINT_OF_FORM.search(sentence)):
        return True
    if pattern("correction").search(sentence):
        return True
    if pattern("question_start").search(sentence) and not wish:
        return False
    return wish or (form and pattern("question_start").search(sentence) is None)


def extract(message: str) -> str:
    """The hint in a message: its directive sentences, three at most, in the person's own words; "" if there is none."""
    kept: list[str] = []
    for sentence in sentences(message):
        opened = _OPENER.match(sentence) is not None
        bare = _without_courtesy(sentence)
        if bare and (is_directive(bare) or (kept and _BOUND.search(bare))):
            kept.append(bare)
        elif bare and opened and is_directive(sentence) and not _EMPTY_COMPLAINT.search(bare):
            kept.append(sentence)  # "No, Canberra": without its "no" it would say nothing.
    return " ".join(kept[:MAX_SENTENCES])


def scope_of(hint: str) -> Scope:
    """Where a hint holds: "everywhere" if it is a wish about form or manner, else only for the turn it was said about.

    A form's name alone is not enough: "That sorts the list", "That's Spanish!" and "let the function return a list"
    speak of content. Neither is a task of its own, however long its outcome shall be: "Write a short poem about rain".
    """
    if not names_form(hint) or pattern("content").search(hint) or any(is_task(part) for part in sentences(hint)):
        return "turn"
    wish = pattern("request").search(hint) or _COMPLAINT_OF_FORM.search(hint) or infer_checks([hint])
    return "everywhere" if wish else "turn"


def is_about_content(hint: str) -> bool:
    """Whether a hint that was given outright speaks of one answer's content ("it's Canberra") rather than of manner.

    A wish about form is one of manner, though it begins as a correction does: "no lists".
    """
    if pattern("content").search(hint):
        return True
    return pattern("correction").search(hint) is not None and not _refuses_form(_OPENER.sub("", hint.strip()))


def _refuses_form(hint: str) -> bool:
    """Whether it is a wish in short to be spared some form: "no lists", "not so long"; but not "no French"."""
    if _NO_FORM.match(hint) is None or not names_form(hint):
        return False
    words = hint.split()
    short = len(words) <= _SHORT and not any(word[0].isupper() for word in words[1:])
    return short or (scope_of(hint) == "everywhere" and bool(infer_checks([hint])))


def clear_wish(message: str) -> str:
    """The hint in a message that also pleased: only a wish about form counts ("great, but shorter next time")."""
    hint = extract(message)
    wished = hint and scope_of(hint) == "everywhere" and pattern("request").search(hint) is not None
    asks = pattern("question_start").search(hint) is not None
    return hint if wished and not asks else ""
