"""Full and failing disks: a clear sentence, the chat goes on in memory, and is saved as soon as it can be.

A small tmpfs is filled to the last byte where mounting is allowed; everywhere, a limit on the size of files makes each
write beyond it fail, as a broken disk does. Nothing half-written may count as whole afterwards.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from claw_local import Assistant
from claw_local.adapters import exporting
from claw_local.backup import write_backup
from claw_local.errors import ClawError, DiskError
from claw_local.paths import Paths

from .homes import faults, make
from .kill.looking import leavings
from .outcome import Outcome

PROMISE = "Full or failing disk: a sentence, the chat goes on in memory and is saved when it can be"
TMPFS_BYTES = 12 << 20
FEW_TOKENS = {"max_tokens": 12}


def run(options: argparse.Namespace) -> Outcome:
    """Each kind of disk, each kind of work on it."""
    outcome = Outcome("disk", PROMISE)
    folder = Path(tempfile.mkdtemp(prefix="claw-stress-"))
    try:
        paths = make(folder / "failing")
        for kind in WORKS:
            with failing(paths) as (fill, mend):
                _try(outcome, f"failing, {kind}", paths, kind, fill, mend)
        full = folder / "full"
        full.mkdir()
        if not _mount(full):
            outcome.notes["full disk"] = "not tried: mounting a tmpfs is not allowed here"
            return outcome
        try:
            paths = make(full / "home")
            for kind in WORKS:
                with filled(paths) as (fill, mend):
                    _try(outcome, f"full, {kind}", paths, kind, fill, mend)
        finally:
            subprocess.run(["umount", "-l", str(full)], check=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


@contextlib.contextmanager
def failing(paths: Paths) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """(make every write beyond what the database has now fail, let it work again)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill() -> None:
        with Assistant.open(paths.data) as assistant, assistant.store.database.read() as db:
            db.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))

    def mend() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    try:
        yield fill, mend
    finally:
        mend()


@contextlib.contextmanager
def filled(paths: Paths) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """(fill the disk to the last byte, make room again)."""
    ballast = paths.data.parent / "ballast"

    def fill() -> None:
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            for size in (1 << 16, 4096, 512, 1):
                with contextlib.suppress(OSError):
                    while file.write(b"x" * size):
                        pass

    def mend() -> None:
        ballast.unlink(missing_ok=True)

    try:
        yield fill, mend
    finally:
        mend()


def chat_goes_on(paths: Paths, fill: Callable[[], None], mend: Callable[[], None]) -> None:
    """Two turns and a thumb while nothing can be written; then there is room, and all of it is there."""
    fill()
    with Assistant.open(paths.data) as assistant:
        first = assistant.ask("What is sleet?", sampling=FEW_TOKENS)
        _must(any("in memory" in notice for notice in first.notices), f"no word of it: {first.notices}")
        second = assistant.ask("And frost?", chat=first.chat_id, sampling=FEW_TOKENS)
        assistant.feedback(second.message_id, "good")
        _must(len(assistant.messages(first.chat_id)) == 4, "the chat does not go on in memory")
        mend()
    _is_kept(paths, first.chat_id, ["What is sleet?", first.text, "And frost?", second.text], second.message_id)


def reply_is_cut_off(paths: Paths, fill: Callable[[], None], mend: Callable[[], None]) -> None:
    """The disk is full in the middle of a reply: it goes on to its end, and is saved whole."""
    with Assistant.open(paths.data) as assistant:
        reply = assistant.stream("What is thaw?", sampling={"max_tokens": 40})
        pieces = []
        for number, piece in enumerate(reply):
            pieces.append(piece)
            if number == 1:
                fill()
        answer = reply.answer
        _must("".join(pieces) == answer.text, "what was shown is not the reply")
        mend()
    _is_kept(paths, answer.chat_id, ["What is thaw?", answer.text], 0)


def stays_full(paths: Paths, fill: Callable[[], None], mend: Callable[[], None]) -> None:
    """There is no room until the end: that is said, and what was there before is untouched."""
    fill()
    assistant = Assistant.open(paths.data)
    before = len(assistant.chats())
    assistant.ask("What is slush?", sampling=FEW_TOKENS)
    try:
        assistant.close()
    except DiskError as error:
        _must("not kept" in str(error), f"it does not say what is lost: {error}")
    else:
        raise AssertionError("the loss was not said")
    mend()
    with Assistant.open(paths.data) as again:
        _must(len(again.chats()) == before, "something half-written is there")


def export_fails(paths: Paths, fill: Callable[[], None], mend: Callable[[], None]) -> None:
    """An export, a backup: a sentence, and no file that looks whole."""
    with Assistant.open(paths.data) as assistant:
        record = assistant.adapters.active()
        assert record is not None
        fill()
        out = paths.data.parent / "out.claw"
        for attempt in (
            lambda: exporting.export_pack(assistant.store, record, out),
            lambda: write_backup(assistant.store, paths, out),
        ):
            try:
                attempt()
            except ClawError as error:
                _must(str(error)[:1].isupper() or str(out) in str(error), f"no sentence: {error}")
            else:
                raise AssertionError("it says it was written")
            _must(not out.exists(), "a file is there that is not whole")
        mend()


WORKS: dict[str, Callable[[Paths, Callable[[], None], Callable[[], None]], None]] = {
    "chat": chat_goes_on,
    "reply": reply_is_cut_off,
    "stays": stays_full,
    "export": export_fails,
}


def _try(
    outcome: Outcome, what: str, paths: Paths, kind: str, fill: Callable[[], None], mend: Callable[[], None]
) -> None:
    outcome.count(what)
    try:
        WORKS[kind](paths, fill, mend)
    except Exception as error:
        mend()
        outcome.fail(f"{what}: {type(error).__name__}: {error}")
    mend()
    for line in [*faults(paths.database), *(f"left lying: {path}" for path in leavings(paths.data, paths.data.parent))]:
        outcome.fail(f"{what}: {line}")


def _is_kept(paths: Paths, chat_id: int, texts: list[str], marked: int) -> None:
    with Assistant.open(paths.data) as assistant:
        kept = [message.content for message in assistant.messages(chat_id)]
        _must(kept == texts, f"kept is {kept}, and said was {texts}")
        if marked:
            _must(any(one.source == "thumb" for one in assistant.signals([marked])[marked]), "the thumb is gone")
        hits = assistant.history.search(texts[0].split()[-1].rstrip("?"))
        _must(bool(hits), "it cannot be searched for")


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def _mount(folder: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "none", str(folder)]
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except OSError:
        return False
