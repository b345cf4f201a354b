"""The words of the person's language: which one it is, and what a sentence is called in it. It must never know what the
sentences are about.

Texts stand in the code in English, each in `_()` or `ngettext()` where it is shown, or in `N_()` where it only stands.
What they are in the other languages stands in `data/locale`. Until `use` is called, everything is English.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gettext import NullTranslations

    from .paths import Paths

LANGUAGES = {
    "en": "English",
    "zh": "中文",
    "de": "Deutsch",
    "es": "Español",
    "fr": "Français",
    "ja": "日本語",
}
"""Code of each language there is, and what it calls itself."""
DOMAIN = "claw_local"
LOCALE = Path(__file__).parent / "data" / "locale"
_THOUSANDS = {"de": ".", "es": ".", "fr": "\u202f"}

_code = "en"
_words: NullTranslations | None = None


def N_(message: str) -> str:
    """Mark a text that is shown elsewhere, by `_()`. Gives it back as it is."""
    return message


def _(message: str, /, **values: object) -> str:
    """A text in the language in use, with these values put into its `{names}`."""
    said = _words.gettext(message) if _words is not None and message else message
    return said.format(**values) if values else said


def ngettext(one: str, many: str, count: int, /, **values: object) -> str:
    """A text that speaks of `count` things, in the form that this number takes; `{number}` in it is the number."""
    if _words is not None:
        said = _words.ngettext(one, many, count)
    else:
        said = one if count == 1 else many
    return said.format(number=number(count), **values)


def number(count: int) -> str:
    """A whole number as the language in use writes it: 1,234."""
    return f"{count:,}".replace(",", _THOUSANDS.get(_code, ","))


def current() -> str:
    """The code of the language in use."""
    return _code


def use(code: str) -> None:
    """Speak this language from now on; an unknown code means English."""
    global _code, _words  # noqa: PLW0603 - one process speaks one language
    _code, _words = (code, None) if code in LANGUAGES else ("en", None)
    if _code != "en":
        import gettext

        _words = gettext.translation(DOMAIN, LOCALE, [_code])


def begin(paths: Paths) -> None:
    """Speak the language that the setting app.language names, or the system's. Reads nothing else."""
    from .glimpse import glimpse

    use(choose(str(glimpse(paths, "app", "language") or "auto").strip().lower()))


def choose(setting: str, environment: Mapping[str, str] = os.environ) -> str:
    """The code of the language that a setting means: a code; or `auto`, and whatever is no code, for the system's.

    For the system speaks the first of LC_ALL, LC_MESSAGES and LANG that says something (POSIX, 8.2); where none does,
    on Windows, the language of its menus. One that is not there means English.
    """
    if setting in LANGUAGES:
        return setting
    said = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := environment.get(name))), "")
    code = _plain(said or _of_the_system())
    return code if code in LANGUAGES else "en"


def _plain(locale: str) -> str:
    """`de` of de_DE.UTF-8, zh of zh-Hans-CN."""
    return re.split("[_.@-]", locale.strip().lower(), maxsplit=1)[0]


def _of_the_system() -> str:
    """What Windows is set to; elsewhere the variables say it, or nobody does."""
    if sys.platform != "win32":
        return ""
    import ctypes
    import locale

    return locale.windows_locale.get(ctypes.windll.kernel32.GetUserDefaultUILanguage(), "")
