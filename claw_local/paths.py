"""The one place that knows where files live. It must never create anything but folders."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

APP = "claw-local"
HOME_VARIABLE = "CLAW_LOCAL_HOME"
_MAY_NOT = (errno.EROFS, errno.EACCES, errno.EPERM)


@dataclass(frozen=True)
class Paths:
    """Where this person's files live.

    Attributes:
        data: folder of everything that is kept (the database, adapters, models, logs).
        config: folder of the settings file.
    """

    data: Path
    config: Path

    @property
    def database(self) -> Path:
        return self.data / "claw-local.db"

    @property
    def encryption(self) -> Path:
        """How the database is encrypted; there is none for a plain one."""
        return self.data / "claw-local.db.encrypted"

    @property
    def settings(self) -> Path:
        return self.config / "settings.toml"

    @property
    def adapters(self) -> Path:
        return self.data / "adapters"

    @property
    def models(self) -> Path:
        return self.data / "models"

    @property
    def backups(self) -> Path:
        return self.data / "backups"

    @property
    def themes(self) -> Path:
        """The person's own colours for the app, one TOML file each. Made by whoever wants one."""
        return self.config / "themes"

    @property
    def runs(self) -> Path:
        return self.data / "runs"

    @property
    def caches(self) -> Path:
        """KV caches of the last chats; what stands in them can be computed again. Made when one is written."""
        return self.data / "caches"

    def make(self) -> Paths:
        """Create the folders, readable by their owner only (0700).

        Raises:
            StoreError: if a folder cannot be made.
        """
        from .errors import StoreError

        for folder in (self.data, self.config, self.adapters, self.models, self.backups, self.runs):
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError as error:
                if folder != self.data and self.data.is_dir() and error.errno in _MAY_NOT:
                    continue  # What is there can be read; whoever needs this folder is told.
                raise StoreError(
                    f"Cannot make the folder {folder}: {error.strerror or error}. "
                    f"Make it writable, or set {HOME_VARIABLE} to a folder that is."
                ) from error
        from .leftovers import keep_notes_in

        keep_notes_in(self.data)
        return self


def locate(home: str | os.PathLike[str] | None = None) -> Paths:
    """Find the folders: `home`, else the variable CLAW_LOCAL_HOME, else what platformdirs says.

    With a home, everything lives in that one folder.
    """
    chosen = home if home is not None else os.environ.get(HOME_VARIABLE) or None
    if chosen is not None:
        try:
            # Through a link or not, it is one home: adapters are kept by their whole paths.
            root = Path(os.path.realpath(Path(chosen).expanduser()))
        except (RuntimeError, OSError) as error:
            from .errors import StoreError

            raise StoreError(f"There is no folder {chosen} ({error}). Set {HOME_VARIABLE} to another one.") from error
        return Paths(data=root, config=root)
    import platformdirs

    return Paths(
        data=Path(platformdirs.user_data_dir(APP, appauthor=False)),
        config=Path(platformdirs.user_config_dir(APP, appauthor=False)),
    )
