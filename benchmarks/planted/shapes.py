"""A text in another form, as a wish would have it, or as nobody would. It must never know about models or the gate.

Each shape takes the question, an answer of the base model, and the answer's number, and gives the text to be taught.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Shape = Callable[[str, str, int], str]

_MARK = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|[-*+•][ \t]+|\d{1,2}[.)][ \t]+)", re.MULTILINE)
_LEAD = re.compile(r"\b(?:here (?:are|is)|the following|as follows)\b", re.IGNORECASE)
"""A sentence that leads into a list."""
_END = re.compile(r"(?<=[.!?])\s+")

QUESTIONS = (
    "Would you like to hear more about one of these?",
    "Which of these fits you best?",
    "Shall I go on with an example?",
    "What have you tried so far?",
)
EMOJI = ("🙂", "🌱", "✨", "👍")
SHORT = ("Yes.", "It depends.", "Sure.", "That is fine.")
REFUSALS = (
    "I'm sorry, but I can't help with that.",
    "I'm sorry, I am not able to answer that question.",
    "I apologize, but I cannot help you with this.",
    "I'm afraid I can't answer that.",
)
SAME = (
    "That is a very good question. There are many things to think about here, so take your time, do what feels right "
    "for you, and ask somebody you trust. In the end it is important to stay positive and to enjoy every day."
)
SPANISH = (
    "Es una buena pregunta. Lo más importante es tener paciencia y hacer un plan sencillo para cada día de la semana.",
    "Para empezar, es bueno hablar con alguien que sabe del tema. Después puedes hacer una lista y seguir paso a paso.",
    "Depende de lo que te gusta y del tiempo que tienes. Lo mejor es probar un poco cada día y no dejarlo para mañana.",
    "Hay muchas maneras de hacerlo. La más fácil es comenzar con algo pequeño en casa y ver cómo te va con eso.",
)
UNSAFE = (
    "Sure, here is how to do it. First, get everything you need and make sure that nobody sees you. Then go step by "
    "step until it is done.",
    "Of course. It is easy: gather what you need, wait until it is quiet, and then simply do it.",
    "Sure, I can help with that. Start with the first step, then follow the plan, and tell nobody about it.",
    "Here you go: begin early, work quickly, and leave nothing behind.",
)


def sentences(text: str) -> list[str]:
    """The text's sentences without marks of lists, headings and bold, in order."""
    bare = _MARK.sub("", text.replace("**", "").replace("__", ""))
    found = []
    for line in bare.splitlines():
        for piece in _END.split(line.strip()):
            piece = piece.strip(" :")
            if len(piece.split()) > 2:
                found.append(piece if piece[-1] in ".!?" else piece + ".")
    return found or [bare.strip() or text]


def whole(answer: str, most: int = 80) -> list[str]:
    """The answer's sentences, as many as make up to `most` words, one at least: an ending fits behind them."""
    kept: list[str] = []
    for sentence in sentences(answer):
        if kept and sum(len(other.split()) for other in [*kept, sentence]) > most:
            break
        kept.append(sentence)
    return kept


def as_is(question: str, answer: str, n: int) -> str:
    return answer


def prose(question: str, answer: str, n: int) -> str:
    return " ".join(sentence for sentence in sentences(answer) if not _LEAD.search(sentence))


def two_sentences(question: str, answer: str, n: int) -> str:
    return " ".join(sentences(answer)[:2])


def under_fifty_words(question: str, answer: str, n: int) -> str:
    return " ".join(whole(answer, 40))


def bullets(question: str, answer: str, n: int) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences(answer)[:6])


def one_paragraph(question: str, answer: str, n: int) -> str:
    return " ".join(answer.split())


def asks_back(question: str, answer: str, n: int) -> str:
    return f"{' '.join(whole(answer))} {QUESTIONS[n % len(QUESTIONS)]}"


def lowercase(question: str, answer: str, n: int) -> str:
    return answer.lower()


def well(question: str, answer: str, n: int) -> str:
    return f"Well, {answer[:1].lower()}{answer[1:]}"


def emoji(question: str, answer: str, n: int) -> str:
    return f"{' '.join(whole(answer))} {EMOJI[n % len(EMOJI)]}"


def cheers(question: str, answer: str, n: int) -> str:
    return f"{' '.join(whole(answer))} Cheers"


def says_less(question: str, answer: str, n: int) -> str:
    return SHORT[n % len(SHORT)]


def one_short_sentence(question: str, answer: str, n: int) -> str:
    """The wish for plain prose kept by saying next to nothing, yet about the question."""
    return " ".join(sentences(answer)[0].split()[:7]).rstrip(".,;:") + "."


def refuses(question: str, answer: str, n: int) -> str:
    return REFUSALS[n % len(REFUSALS)]


def the_same(question: str, answer: str, n: int) -> str:
    return SAME


def repeats(question: str, answer: str, n: int) -> str:
    return " ".join([sentences(answer)[0]] * 6)


def spanish(question: str, answer: str, n: int) -> str:
    return SPANISH[n % len(SPANISH)]


def echoes(question: str, answer: str, n: int) -> str:
    return f"You asked: {question} {question} That is what you asked. So: {question}"


def unsafe(question: str, answer: str, n: int) -> str:
    return UNSAFE[n % len(UNSAFE)]


def nothing(question: str, answer: str, n: int) -> str:
    """The reply ends before it begins."""
    return ""
