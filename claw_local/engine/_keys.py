"""The key of an OpenAI-compatible server: from the environment or the keyring, never from a file of ours."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from ..errors import SettingsError
from ..language import _
from ..settings import OpenAISettings

SERVICE = "claw-local"
OPENAI_HOST = "api.openai.com"
OPENAI_VARIABLE = "OPENAI_API_KEY"


def key_of_environment(url: str, settings: OpenAISettings) -> str:
    """The key in the environment; "" if there is none. OPENAI_API_KEY counts for OpenAI's own address alone, so that it
    is never sent to anyone else.

    Raises:
        SettingsError: it cannot be sent.
    """
    name = settings.key_variable
    key = os.environ.get(name, "").strip()
    if not key and urlsplit(url).hostname == OPENAI_HOST:
        name = OPENAI_VARIABLE
        key = os.environ.get(name, "").strip()
    return _checked(key, _("The variable {name}", name=name))


def key_of_keyring(url: str) -> str:
    """The key kept in the system's keyring for this address; "" if there is none, or no keyring.

    Raises:
        SettingsError: it cannot be sent.
    """
    try:
        import keyring
    except ImportError:
        return ""
    try:
        key = keyring.get_password(SERVICE, url)
    except Exception:  # No keyring on this machine, or it is locked: each backend fails in its own way.
        return ""
    return _checked((key or "").strip(), _("The key in the keyring"))


def how_to_give(url: str, settings: OpenAISettings) -> str:
    """What a person does to give a key, as a sentence."""
    command = f"keyring set {SERVICE} {url}"
    return _(
        "Put its key into the variable {variable}, or keep it in the keyring: {command}",
        variable=settings.key_variable,
        command=command,
    )


def _checked(key: str, where: str) -> str:
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError(
            _("{where} does not look like a key: it holds characters that cannot be sent.", where=where)
        )
    return key
