"""What a setting may be beyond its type, asked when a person sets it: an address, a file that is there. A file of
settings is read without: what it names may come later. It must never know who uses the value.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .language import _

_UNSEEN = re.compile(r"[\s\x00-\x1f\x7f]")


def is_address(url: str) -> bool:
    """Whether this is where an http or https server is: with its scheme or as a host alone, nothing unseen in it."""
    url = url.strip()
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return fine and _UNSEEN.search(url) is None


def problem(key: str, value: Any, models: Path) -> str:
    """What speaks against a value of a setting, to follow a colon; "" if nothing does.

    Args:
        key: as in `openai.url`. value: as its field takes it; empty text always does. models: the folder of models,
            whose files go by their names alone.
    """
    if not value or not isinstance(value, str):
        return ""
    if key in ("openai.url", "ollama.url") and not is_address(value):
        return _("it is no address like http://127.0.0.1:11434")
    if key in ("model.path", "judge.model"):
        return _no_model(value, models)
    if key == "learning.accelerate" and not _is_file(value):
        return _("there is no such file; `accelerate config` writes one")
    return ""


def _no_model(name: str, models: Path) -> str:
    prefix, colon, rest = name.partition(":")
    if colon and prefix.strip().lower() in ("ollama", "openai"):
        return "" if rest.strip() else _("it names no model of that server; `claw-local models list` shows them")
    path = next((path for path in (name, str(models / name)) if _is_file(path)), None)
    if path is None:  # It may be a name that the list of models has.
        is_path = any(sign in name for sign in "/\\") or name.lower().endswith(".gguf")
        missing = _("there is no such file; `claw-local models list` shows the models there are")
        return missing if is_path else ""
    try:
        with Path(path).expanduser().open("rb") as file:
            gguf = file.read(4) == b"GGUF"
    except OSError as error:
        return _("it cannot be read ({reason})", reason=error.strerror or error)
    return "" if gguf else _("it is no GGUF file; `claw-local models list` shows the models there are")


def _is_file(path: str) -> bool:
    try:
        return Path(path).expanduser().is_file()
    except (OSError, RuntimeError, ValueError):
        return False
