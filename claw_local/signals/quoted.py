"""What a person says in a message, apart from what they only show: quotes, code, text that was pasted under a colon.

Attachments are marked (see `attached`); this is for what stands in the message without a mark. It is about verdicts and
wishes only: what the model reads is the whole message.
"""

from __future__ import annotations

import re

from .attached import own_words

LONGEST_QUOTE = 40
"""Characters; what stands in longer quotation marks was said by somebody else."""

_FENCED = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?(?:^\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CITED = re.compile(r"^[ \t]{0,3}>.*$", re.MULTILINE)
_PAIRS = (('"', '"'), ("“", "”"), ("«", "»"), ("„", "“"), ("「", "」"))
_MARKS = re.compile("|".join(f"{begin}[^{end}\n]{{{LONGEST_QUOTE},}}{end}" for begin, end in _PAIRS))
_MARKUP = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|template)\b.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_BLANK = re.compile(r"\n[ \t]*\n")


def spoken(message: str) -> str:
    """The person's own words in a message; "" if it only shows something."""
    text = own_words(message)
    for pattern in (_FENCED, _MARKUP, _CITED):
        text = pattern.sub("", text)
    text = _MARKS.sub("…", text)  # The sentence around it stays one.
    # "Summarise this:", a blank line, and what is to be summarised.
    parts = [part for part in _BLANK.split(text.strip("\n")) if part.strip()]
    for number, part in enumerate(parts[:-1]):
        if part.rstrip().endswith((":", "：")):
            return "\n\n".join(parts[: number + 1]).strip()
    return text.strip() if text.strip() != own_words(message).strip() else own_words(message)
