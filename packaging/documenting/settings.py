"""The settings' page, from their typed fields and the docstring under each."""

from __future__ import annotations

import inspect
from itertools import groupby
from pathlib import Path

from .commands import _safe


def as_markdown() -> str:
    """Every section with its settings: default, what it may be, meaning."""
    from claw_local import settings_file
    from claw_local.paths import Paths
    from claw_local.settings import Settings

    nowhere = Paths(data=Path("nowhere"), config=Path("nowhere"))
    lines = [
        "# Settings",
        "",
        "They stand in `settings.toml`; `claw-local config path` says where that is. `claw-local config set KEY VALUE`",
        "changes one and keeps the file's comments, `config edit` opens it in your editor, and `config list --changed`",
        "shows what differs from the defaults. A variable such as `CLAW_LOCAL_MODEL__PATH` sets one for a single call,",
        "and goes before the file. What you change holds for programs that are started from then on. This page is made",
        "from the program.",
        "",
    ]
    listed = settings_file.listing(nowhere)
    for section, settings in groupby(listed, lambda setting: setting.key.partition(".")[0]):
        model = Settings.model_fields[section].annotation
        lines += [f"## {section}", "", _safe(" ".join(inspect.getdoc(model).split())), ""]  # type: ignore[arg-type, union-attr]
        for setting in settings:
            default = settings_file.shown(setting.default)
            lines += [f"### {setting.key}", "", _safe(" ".join(setting.doc.split())), ""]
            lines += [
                f"Default: `{default}`. It takes {_safe(setting.allowed or 'a value')}. Variable: "
                f"`{setting.variable}`.",
                "",
            ]
    return "\n".join(lines)
