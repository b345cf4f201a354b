"""After a kill: is everything there, whole and free? It opens the home as the next start does."""

from __future__ import annotations

import re
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

from claw_local import Assistant
from claw_local.adapters.gguf import BaseShape
from claw_local.adapters.registry import verify_all
from claw_local.adapters.sources import read_source
from claw_local.cli.common import harmless
from claw_local.engine.gguf_file import read_header
from claw_local.errors import ClawError
from claw_local.paths import Paths
from claw_local.store import opening

from ..homes import faults

LEFT = re.compile(r"\..*\.tmp|\.restore-.*|\.import-.*|\.export-.*|.*\.tmp", re.DOTALL)


class Shown:
    """What was shown of a reply on the way, and the question it answers."""

    def __init__(self, question: str, text: str = "") -> None:
        self.question, self.text = question, text
        self.reported = False


def home_faults(paths: Paths, shown: list[Shown], outside: Path, *, working: bool) -> list[str]:
    """What does not hold in a home.

    Args:
        shown: must be in the store.
        outside: a folder of exports.
        working: other programs are at work here: then half-made files and a learning run may be theirs.
    """
    found = faults(paths.database)
    try:
        with Assistant.open(paths.data) as assistant:
            found += _lost(assistant, shown)
            active = assistant.adapters.active()
            if active is None:
                found.append("no adapter is in use any more")
            else:
                verify_all(active)
                read_header(Path(active.gguf_path))
            if not working:
                assistant.store.runs.bury()
                if (run := assistant.store.runs.running()) is not None:
                    found.append(f"run {run.id} still counts as running")
            streaming = assistant.store.database.db.table("messages").count_where("state = 'streaming'")
            if streaming and not working:
                found.append(f"{streaming} replies still count as being written")
    except (ClawError, OSError, ValueError) as error:
        found.append(f"the next start fails: {error}")
    if not working:
        found += [f"left lying: {path}" for path in leavings(paths.data, outside)]
    return found


def run_at_work(paths: Paths) -> str:
    """The phase of the learning run that is going on, as its row says; "" for none."""
    with closing(opening.connect(paths.database)) as connection:
        row = connection.execute("select phase from runs where state = 'running' order by id desc limit 1").fetchone()
    return str(row[0]) if row else ""


def leavings(*folders: Path) -> list[Path]:
    """Half-made files and folders."""
    return [path for folder in folders for path in sorted(folder.rglob("*")) if LEFT.fullmatch(path.name)]


def export_faults(paths: Paths, outside: Path) -> list[str]:
    """Exported files are whole, or not there: each is read to its end as an import reads it."""
    found = []
    model = paths.models / "tiny.gguf"
    base = BaseShape.of(model)
    for file in sorted(outside.glob("*")):
        if file.name.startswith("."):
            continue
        try:
            if file.suffix == ".merged":
                read_header(file)
            elif file.suffix != ".backup":
                scratch = Path(tempfile.mkdtemp(prefix="claw-stress-"))
                try:
                    read_source(file, base, "", scratch / "given", force=True, passphrase=None)
                finally:
                    shutil.rmtree(scratch, ignore_errors=True)
        except (ClawError, OSError, ValueError) as error:
            found.append(f"{file.name} is not whole: {error}")
    return found


def _lost(assistant: Assistant, shown: list[Shown]) -> list[str]:
    """What is not there, each reported once."""
    found = []
    with assistant.store.database.read() as db:
        for one in [one for one in shown if not one.reported]:
            before = len(found)
            rows = list(db.table("messages").rows_where("role = 'user' and content = ?", [one.question], select="id"))
            if not rows:
                found.append(f"the question {one.question!r} is gone")
                one.reported = True
                continue
            replies = list(db.table("messages").rows_where("parent_id = ?", [rows[-1]["id"]], select="content"))
            if one.text and not any(harmless(row["content"]).startswith(harmless(one.text)) for row in replies):
                kept = [row["content"][:80] for row in replies]
                found.append(f"of the reply to {one.question!r}, {one.text[:80]!r} was shown, and {kept} is kept")
            one.reported = len(found) > before
    return found
