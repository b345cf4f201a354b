"""Main line or side: whether a request of another program is part of a conversation, or housekeeping about one.

Web interfaces ask for titles, tags, summaries, search words and what to say next, and agents let a model route their
tools. What follows says nothing of such an answer, so it never teaches. It must never know who asks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_OPENS = 600
"""Characters at the beginning of a text that say what it wants; a person may quote anything further down."""

_HOUSEKEEPING = re.compile(
    r"""
    ^\s*\#{2,3}\s*task:\s*\n                                    # Open WebUI, all its tasks
    | \b(?:generate|write|create|provide|give|suggest|come\ up\ with|make|return|output)\b[^.\n?!]{0,80}
      \b(?:title|tags?|chat\ name|conversation\ name|name\ for\ (?:this|the)\ (?:chat|conversation|thread)
        |follow-?up\ (?:questions?|prompts?)|search\ quer(?:y|ies)|autocompletion|emoji)\b
      [^.\n?!]{0,60}\b(?:conversation|chat|messages?|history|thread|dialogue|discussion|exchange|session|query)\b
    | \b(?:give|provide)\ (?:this|the)\ (?:conversation|chat)\ a\ (?:name|title)\b
    | \b(?:concise|short|brief)\b[^.\n]{0,30}\btitle\b[^.\n]{0,40}\b(?:conversation|chat|messages?|message|session)\b
    | \b(?:summari[sz]e|compress|condense|compact)\b[^.\n?!]{0,50}
      \b(?:(?:this|the|our|above|following|previous)\b[^.\n?!]{0,20}\b(?:conversation|chat|dialogue)
         |conversation\ (?:so\ far|history)|chat\ history|session)\b
    | \bsummary\ of\ (?:the|this|our)\ (?:conversation|chat|session)\b
    | \byour\ task\ is\ to\ (?:choose|select|create)\b[^\n]{0,80}\b(?:tools?|summary\ of\ the\ conversation)\b
    | \bavailable\ tools:[\s\S]{0,200}\b(?:choose|select|return)\b
    | \banalyze\ (?:if\ this|the)\ (?:message|chat\ history)\b[^\n]{0,80}\b(?:new\ conversation\ topic|search|queries)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def looks_aside(system: str, said: Sequence[tuple[str, str]]) -> bool:
    """Whether a request looks like housekeeping.

    Args:
        system: the system prompt.
        said: (role, text) of the other messages, oldest first.
    """
    if not said or said[-1][0] == "tool":
        return False
    if _HOUSEKEEPING.search(said[-1][1][:_OPENS]):
        return True
    # A system prompt that wants a title wants it of all that is said: only without a conversation before.
    own = sum(role == "assistant" for role, _ in said) == 0
    return own and bool(_HOUSEKEEPING.search(system[:_OPENS]))
