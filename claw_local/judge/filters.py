"""What may become a hint (DESIGN §4). It must never know what a hint is used for.

Each filter has a name; a refusal names the filters that failed. Hints enter prompts and teach the model, so secrets
stay out of them, and so does talk that would change what the assistant is rather than how it answers.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from .secrets import has_known_token
from .words import names_form, pattern, tidy

FILTERS = ("too_short", "too_long", "off_topic", "secret", "system_talk", "not_the_person")
"""Every filter there is, in the order in which they are named."""
MIN_CHARACTERS = 11
"""A hint is longer than 10 characters."""
MIN_CJK = 4
"""A Chinese or Japanese character says as much as about three letters."""
MAX_CHARACTERS = 600
"""Longer than that is a text, not a wish."""
MIN_ENTROPY = 3.5
"""Bits a character from which a long token of letters and digits counts as a key."""

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_KNOWN_KEYS = re.compile(
    r"-----BEGIN [A-Z ]*(?:PRIVATE KEY|CERTIFICATE)|\b(?:sk|pk|rk)[-_](?:live|test|proj|ant)?[-_]?[A-Za-z0-9_-]{16,}|"
    r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bAKIA[0-9A-Z]{12,}|\bAIza[\w-]{30,}|"
    r"\bxox[abprs]-[\w-]{10,}|\bhf_[A-Za-z0-9]{20,}|\bya29\.[\w-]{20,}|\beyJ[\w-]{10,}\.[\w-]{10,}|\bnpm_\w{20,}|"
    r"\bssh-(?:rsa|ed25519) [A-Za-z0-9+/]{20,}|\bbearer [A-Za-z0-9._-]{16,}|://[^\s/:@]+:[^\s/@]+@",
    re.I,
)
_PASSWORD = re.compile(
    r"\b(?:pass(?:word|code|phrase|wd)?|pwd|pin(?: code)?|passwor[dt]|kennwort|contraseña|mot de passe|"
    r"api[-_ ]?key|secret(?: key)?|"
    r"access[-_ ]?token|token)\b\s*(?:is|ist|es|est|=|:)\s*[\"'`]?\S{3,}|"
    r"(?:密码|口令|パスワード|暗証番号)\s*(?:是|为|は|:|：|=)\s*\S{3,}",
    re.I,
)
_TOKEN = re.compile(r"[A-Za-z0-9+/_=-]{20,}")
_DIGITS = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?!\d)")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_SYSTEM_TALK = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass|discard)\b[^.!?]{0,40}\b(?:instructions?|prompts?|rules?|"
    r"guidelines?|"
    r"polic(?:y|ies)|restrictions?|filters?|safety|training|programming|everything (?:above|before)|"
    r"all (?:of )?the above)\b|"
    r"\byou are now\b|\bfrom now on,? you(?:'re| are)\b|\bsystem (?:prompt|message|instructions?)\b|\bdeveloper mode\b|"
    r"\bjail ?break|\bdo anything now\b|\byour (?:hidden |secret |initial |original )?(?:instructions|"
    r"guidelines|restrictions|"
    r"safety (?:rules|filters)|programming|prompt)\b|\b(?:pretend|act as (?:if|though)) you (?:are|have|were)\b|"
    r"\bno (?:longer )?(?:restrictions|limits|filters|rules)\b|\bunrestricted\b|\buncensored\b|"
    r"\bnew (?:system )?instructions\b|"
    r"<\|[a-z_]+\|>|\[/?INST\]|<<SYS>>|^\s*#+ ?system\b|^\s*(?:system|assistant)\s*:|"
    r"\b(?:ignoriere|vergiss)\b[^.!?]{0,40}\b(?:anweisungen|regeln|vorgaben)\b|\bdu bist (?:jetzt|nun|"
    r"ab jetzt)\b|\bsystemprompt\b|"
    r"\b(?:ignora|olvida)\b[^.!?]{0,40}\b(?:instrucciones|reglas)\b|\bahora eres\b|"
    r"\b(?:ignore[sz]?|oublie[sz]?)\b[^.!?]{0,40}\b(?:instructions|consignes|règles)\b|\btu es (?:maintenant|"
    r"désormais)\b|"
    r"(?:忽略|无视|忘记|忘掉)[^。！？]{0,20}(?:指令|指示|规则|提示|设定)|你现在是|从现在(?:开始|起)你是|系统提示|"
    r"(?:指示|命令|ルール|プロンプト)[^。！？]{0,12}(?:無視|忘れ)|あなたは(?:今|これ)から|システムプロンプト",
    re.I | re.MULTILINE,
)


def failed(hint: str, *, role: str = "user") -> list[str]:
    """The names of the filters a hint does not pass, none if it may be kept.

    too_short: 10 characters or fewer. too_long: more than MAX_CHARACTERS. off_topic: neither about an answer's form nor
    its content. secret: a key, a password, a card or account number. system_talk: an instruction to the system about
    itself. not_the_person: it comes from a tool, a file or the model.
    """
    text = tidy(hint)
    names = []
    if _weight(text) < MIN_CHARACTERS:
        names.append("too_short")
    if len(hint) > MAX_CHARACTERS:
        names.append("too_long")
    if not is_about_an_answer(text):
        names.append("off_topic")
    if has_secret(hint):
        names.append("secret")
    if is_system_talk(hint):
        names.append("system_talk")
    if role != "user":
        names.append("not_the_person")
    return names


def _weight(text: str) -> int:
    cjk = len(_CJK.findall(text))
    return MIN_CHARACTERS if cjk >= MIN_CJK else len(text)


def is_about_an_answer(text: str) -> bool:
    """Whether it says something about an answer's form or content."""
    return names_form(text) or any(pattern(name).search(text) for name in ("request", "correction", "complaint"))


def has_secret(text: str) -> bool:
    """Whether it holds a key, a password, or a card or account number."""
    if _KNOWN_KEYS.search(text) or _PASSWORD.search(text):
        return True
    if any(_luhn(found.group()) for found in _DIGITS.finditer(text)):
        return True
    if any(_iban(found.group()) for found in _IBAN.finditer(text)):
        return True
    return any(_looks_random(found.group()) for found in _TOKEN.finditer(text)) or has_known_token(text)


def is_system_talk(text: str) -> bool:
    """Whether it instructs the system about itself."""
    return _SYSTEM_TALK.search(text) is not None


def _looks_random(token: str) -> bool:
    if not (re.search(r"\d", token) and re.search(r"[A-Za-z]", token)) or len(re.findall(r"[A-Za-z]{4,}", token)) > 3:
        return False
    counts = Counter(token)
    entropy = -sum(n / len(token) * math.log2(n / len(token)) for n in counts.values())
    return entropy >= MIN_ENTROPY


def _luhn(number: str) -> bool:
    """The check digit of card numbers (ISO/IEC 7812-1)."""
    digits = [int(c) for c in number if c.isdigit()]
    doubled = [sum(divmod(2 * d, 10)) if n % 2 else d for n, d in enumerate(reversed(digits))]
    return len(set(digits)) > 1 and sum(doubled) % 10 == 0


def _iban(text: str) -> bool:
    """The check digits of account numbers (ISO 13616: mod 97)."""
    bare = text.replace(" ", "")
    if not 15 <= len(bare) <= 34:
        return False
    turned = bare[4:] + bare[:4]
    return int("".join(str(int(c, 36)) for c in turned)) % 97 == 1
