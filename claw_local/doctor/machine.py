"""Python, the settings file, the data folder and the disk."""

from __future__ import annotations

import platform
import shutil
import struct
import sys
import tempfile
from pathlib import Path

from pydantic import ValidationError

from .. import settings as settings_module
from ..errors import SettingsError
from ..language import _
from ..paths import HOME_VARIABLE, Paths
from ..settings import Settings
from .check import Check, from_error, size, tidy

OLDEST = (3, 11)
DISK_PROBLEM_BYTES = 50_000_000
DISK_WARNING_BYTES = 2_000_000_000


def check_python(version: tuple[int, int] = sys.version_info[:2], bits: int = struct.calcsize("P") * 8) -> Check:
    """Is this Python new enough, and a 64-bit one?"""
    detail = f"{platform.python_version()}, {bits}-bit, {platform.system()} {platform.machine()}"
    if version < OLDEST or bits < 64:
        return Check("python", "problem", detail, _("Use a 64-bit Python 3.11 or newer."))
    return Check("python", "ok", detail)


def check_settings(paths: Paths) -> tuple[Check, Settings]:
    """Read the settings file. If it is not valid, the defaults stand in, so that the other checks can go on."""
    try:
        loaded = settings_module.load(paths)
    except SettingsError as error:
        return from_error("settings", error, _("Mend the file, or rename it to go back to the defaults.")), _defaults()
    detail = tidy(paths.settings) if paths.settings.exists() else _("the defaults; there is no settings file yet")
    return Check("settings", "ok", detail), loaded


def check_folder(paths: Paths) -> Check:
    """Can the folders be written? A file is made and removed where they exist; where not, could they be made?"""
    for folder in dict.fromkeys((paths.data, paths.config)):
        existing = nearest(folder)
        try:
            with tempfile.TemporaryFile(dir=existing):
                pass
        except OSError as error:
            return Check(
                "folder",
                "problem",
                _("{folder} cannot be written: {error}", folder=tidy(folder), error=error.strerror or error),
                _("Make it writable, or set {variable} to a folder that is.", variable=HOME_VARIABLE),
            )
    return Check("folder", "ok", tidy(paths.data))


def check_disk(paths: Paths) -> Check:
    """Is there room for chats, and for what learning makes?"""
    try:
        free = shutil.disk_usage(nearest(paths.data)).free
    except OSError as error:
        return Check("disk", "warning", _("free space is not known: {error}", error=error.strerror or error))
    return judge_disk(free)


def judge_disk(free: int) -> Check:
    """Judge the free space, in bytes."""
    if free < DISK_PROBLEM_BYTES:
        return Check(
            "disk", "problem", _("{size} free", size=size(free)), _("Free some space: messages could not be kept.")
        )
    if free < DISK_WARNING_BYTES:
        return Check(
            "disk",
            "warning",
            _("{size} free", size=size(free)),
            _("Enough to chat; a training run may need up to 2 GB."),
        )
    return Check("disk", "ok", _("{size} free", size=size(free)))


def nearest(folder: Path) -> Path:
    """The folder, or the closest one above it that exists."""
    for candidate in (folder, *folder.parents):
        if candidate.exists():
            return candidate
    return folder


def _defaults() -> Settings:
    try:
        return Settings()
    except ValidationError:  # the fault is in the environment
        return Settings.model_construct()
