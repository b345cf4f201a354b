"""What can be seen in a text: lists, bold, headings, sentences, scripts. It must never know about wishes or scores.

Markdown is read as a person sees it. Code blocks and code spans are left out before anything else is looked for, so
that a comment in Python is no heading.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`[^`\n]+`")
_BULLET = re.compile(
    r"^[ \t]*(?:>[ \t]*)?(?:[-*+][ \t]+\S|[•◦▪‣·・●○–][ \t]*\S|\d{1,2}[.)][ \t]+\S|\d{1,2}、)", re.MULTILINE
)
_LETTERED = re.compile(r"^[ \t]*\(?[a-hA-H1-9][)][ \t]+\S", re.MULTILINE)
_STEP = re.compile(
    r"^[ \t]*(?:\*\*)?(?:step|schritt|paso|étape|etapa)[ \t]*\d{1,2}(?:\*\*)?[ \t]*[:.)–-]", re.MULTILINE | re.I
)
_INLINE_NUMBERS = re.compile(r"(?:^|\s)1[.)]\s+\S.*?\s2[.)]\s+\S", re.DOTALL)
_INLINE_BULLETS = re.compile(r"(?:^|\s)([•▪●]) ?\S[^\n]*?\s\1 ?\S")
_BOLD = re.compile(r"(?<![\w*])\*\*(?=[^\s*])|(?<!\w)__(?=[^\s_])|<(?:b|strong)>", re.I)
_HEADING = re.compile(
    r"^ {0,3}#{1,6}[ \t]+\S|^[^\n|>-][^\n]*\S[ \t]*\n(?:={2,}|-{3,})[ \t]*$|<h[1-6]>", re.MULTILINE | re.I
)
_BOLD_LINE = re.compile(r"^[ \t]*(\*\*|__)[^*_\n]{1,80}\1[ \t]*:?[ \t]*$", re.MULTILINE)
_TABLE = re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)+\|?[ \t]*$", re.MULTILINE)
_EMOJI = re.compile(
    "[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\u2600-\u26ff\u2700-\u2712\u2714-\u27bf\u2b50\u2b55\ufe0f\u200d]"
    "|(?:^|(?<=\\s))[:;]-?[)D(P](?=\\s|$)"
)
_ABBREVIATIONS = re.compile(
    r"\b(?:e\.g|i\.e|cf|vs|approx|fig|no|vol|mr|mrs|ms|dr|prof|st|jr|sr|sra|mme|mlle|z\.\s?b|d\.\s?h|bzw|ca|nr|"
    r"p\.\s?ej|p\.\s?ex|u\.s|u\.k)\.(?=[\s,;:)]|$)",
    re.I,
)
_MAYBE_END = re.compile(r"\b(?:etc|usw|a\.m|p\.m|inc|ltd|co)\.(?=,|\s+(?-i:[a-z0-9(]))", re.I)
_INITIAL = re.compile(r"(?<![\w.])[A-Z]\.(?=\s+[A-Z])")
_NUMBER_DOT = re.compile(r"(?<=\d)[.,](?=\d)|(?<=\w)\.(?=\w)")
_SENTENCE_END = re.compile(r"(?:[.!?…]+[\"'”’»)\]*_]*(?=\s|$)|[。！？]+[」』”）]*)")
_MARKER = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|(?:[-*+•>][ \t]+)|\d{1,2}[.)][ \t]+)+", re.MULTILINE)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_WORD = re.compile(r"[^\W_]+(?:['’.,\-][^\W_]+)*")

# The commonest small words, enough to tell these four from one another.
_SMALL_WORDS = {
    "en": frozenset("the a an of to and in is are that it for you with on this be as not or can your from".split()),
    "de": frozenset(
        "der die das ein eine und ist sind nicht zu den von mit sie ich du auf für dass im es dem kann".split()
    ),
    "es": frozenset("el la los las un una y es son que de en no para con por se tu más como del al su puede".split()),
    "fr": frozenset(
        "le la les un une et est sont que de des en pas pour avec vous dans ce il du au qui sur peut".split()
    ),
}


def prose_of(text: str) -> str:
    """The text without code blocks and code spans."""
    return _SPAN.sub(" ", _FENCE.sub(" ", text))


def has_list(text: str) -> bool:
    """Whether something in it reads as a list.

    A line that begins with a bullet, a number ("1." or "1)") or "Step 1:" counts, one is enough: a reply that was cut
    short may hold no second. So do numbers or bullets that run on in one line ("1. milk 2. eggs").
    """
    prose = prose_of(text)
    lettered = len(_LETTERED.findall(prose)) >= 2
    return lettered or any(p.search(prose) for p in (_BULLET, _STEP, _INLINE_NUMBERS, _INLINE_BULLETS))


def has_bold(text: str) -> bool:
    """Whether it has **bold** or __bold__, closed or not. Powers such as 2**3 do not count."""
    return _BOLD.search(prose_of(text)) is not None


def has_heading(text: str) -> bool:
    """Whether it has # headings, underlined ones, or a line that is nothing but bold text."""
    prose = prose_of(text)
    return _HEADING.search(prose) is not None or _BOLD_LINE.search(prose) is not None


def has_table(text: str) -> bool:
    """Whether it has a Markdown table."""
    return _TABLE.search(prose_of(text)) is not None


def has_code(text: str) -> bool:
    """Whether it has a code block or a code span."""
    return _FENCE.search(text) is not None or _SPAN.search(text) is not None


def has_emoji(text: str) -> bool:
    """Whether it has an emoji or a typed smiley."""
    return _EMOJI.search(prose_of(text)) is not None


def has_question(text: str) -> bool:
    """Whether a sentence of it ends with a question mark."""
    return re.search(r"[?？](?:[\"'”’»)\]*_\s]|$)", prose_of(text)) is not None or "？" in prose_of(text)


def count_words(text: str) -> int:
    """Words, without Markdown's marks. Each character of Chinese or Japanese counts as one."""
    bare = _MARKER.sub("", text)
    cjk = len(_CJK.findall(bare))
    return cjk + len(_WORD.findall(_CJK.sub(" ", bare)))


def count_sentences(text: str) -> int:
    """Sentences. A block without a full stop (a heading) counts as one; "e.g." and "3.5" do not end one."""
    bare = _MARKER.sub("", prose_of(text))
    for pattern in (_ABBREVIATIONS, _MAYBE_END, _INITIAL, _NUMBER_DOT):
        bare = pattern.sub(lambda found: re.sub(r"[.,]", "·", found.group()), bare)
    total = 0
    for line in re.split(r"\n[ \t]*\n|\n(?=[A-ZÄÖÜ\u3040-\u9fff])", bare):
        pieces = [piece for piece in _SENTENCE_END.split(line) if _WORD.search(piece)]
        total += len(pieces)
    return total


def count_paragraphs(text: str) -> int:
    """Blocks of text between blank lines."""
    return sum(1 for block in re.split(r"\n[ \t]*\n", text) if block.strip())


def language_of(text: str) -> str:
    """A light guess from script and small words: zh, ja, ko, ru, en, de, es, fr, or "" where it cannot tell."""
    letters = [c for c in text if c.isalpha()]
    if not letters:
        return ""
    if len(_CJK.findall(text)) > 0.3 * len(letters):
        return "ja" if len(_KANA.findall(text)) > 0.1 * len(letters) else "zh"
    for language, first, last in (("ko", "\uac00", "\ud7a3"), ("ru", "\u0400", "\u04ff")):
        if sum(first <= c <= last for c in letters) > 0.5 * len(letters):
            return language
    found = [word.lower() for word in _WORD.findall(text)]
    hits = {language: sum(word in small for word in found) for language, small in _SMALL_WORDS.items()}
    best = max(hits, key=lambda language: hits[language])
    return best if hits[best] and list(hits.values()).count(hits[best]) == 1 else ""
