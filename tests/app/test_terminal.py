"""The app in a real terminal, as a person has it: tmux shows what is on the screen. The model is the embedded one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from claw_local.engine.base import Generation, Sampling
from claw_local.paths import locate
from claw_local.store import Store, StoredMessage

TMUX = shutil.which("tmux") or ""
PATIENCE_S = 90.0
pytestmark = pytest.mark.skipif(not TMUX, reason="no tmux on this machine: install it")


class Terminal:
    """A terminal of its own, 80x24 at first, in a tmux server of its own."""

    def __init__(
        self, home: Path, folder: Path, arguments: str = "chat", variables: dict[str, str] | None = None
    ) -> None:
        self._socket = str(folder / "tmux")
        self.ended = folder / "ended"
        path = os.pathsep.join(sys.path)
        program = (
            f"{shlex.quote(sys.executable)} -m claw_local {arguments}; echo $? > {shlex.quote(str(self.ended))}; cat"
        )
        environment = {**os.environ, "CLAW_LOCAL_HOME": str(home), "PYTHONPATH": path, "COLORTERM": "truecolor"}
        environment |= variables or {}
        environment.pop("TMUX", None)
        environment.pop("NO_COLOR", None)
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", "80", "-y", "24", program, environment=environment)

    def _tmux(self, *words: str, environment: dict[str, str] | None = None) -> str:
        command = [TMUX, "-S", self._socket, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=20).stdout

    def screen(self) -> str:
        """What a person sees."""
        return self._tmux("capture-pane", "-p")

    def colours(self) -> str:
        """The same with its escape sequences."""
        return self._tmux("capture-pane", "-p", "-e")

    def ask(self, form: str) -> str:
        """What tmux knows of the pane."""
        return self._tmux("display-message", "-p", form).strip()

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def until(self, true: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < end, self.screen()
            time.sleep(0.1)

    def shows(self, words: str) -> None:
        self.until(lambda: words in self.screen())

    def close(self) -> None:
        subprocess.run([TMUX, "-S", self._socket, "kill-server"], check=False, capture_output=True, timeout=20)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path / "home", tmp_path)
    yield opened
    opened.close()


def test_a_conversation_in_a_real_terminal(terminal: Terminal, tmp_path: Path) -> None:
    terminal.shows("Ask anything")
    terminal.type("Say hello.")  # The model may still be loading.
    terminal.shows("Say hello.")
    terminal.press("Enter")
    terminal.shows("base model")
    store = Store(locate(tmp_path / "home"))

    def said() -> list[StoredMessage]:
        return [one for chat in store.chats.list() for one in store.messages.branch(chat.head_id)]

    try:
        terminal.until(lambda: [one.state for one in said()] == ["done", "done"])
        reply = said()[1]
        terminal.shows(reply.content.split()[0])
        terminal.press("C-g")
        terminal.until(lambda: [one.score for one in store.signals.of([reply.id])[reply.id]] == [1])
        terminal.shows("▲")
        assert "38;2;" in terminal.colours(), "in true colour"

        terminal.press("F1")
        terminal.shows("Type to search")
        terminal.press("Escape")
        terminal.until(lambda: "Type to search" not in terminal.screen())
        terminal.resize(200, 60)
        terminal.shows("/ finds a chat")
        lines = terminal.screen().splitlines()
        assert len(lines) == 60 and max(map(len, lines)) > 100, "the whole width is used"
        terminal.type("/learned")
        terminal.shows("/learned")
        terminal.press("Enter")
        terminal.shows("Score over time")
        terminal.press("Escape")
        terminal.resize(80, 24)
        terminal.until(lambda: "/ finds a chat" not in terminal.screen() and "▲" in terminal.screen())

        terminal.press("C-q")
        terminal.until(terminal.ended.exists)
        assert terminal.ended.read_text().strip() == "0"
        terminal.until(lambda: not terminal.screen().strip())  # The terminal is as it was before.
        terminal.type("echoed")
        terminal.shows("echoed")
    finally:
        store.close()


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        ("chat --model nope.gguf", "1", "There is no model file nope.gguf"),
        ("chat --profile nope", "2", "There is no profile 'nope'"),
    ],
)
def test_what_is_named_and_not_there_ends_it_with_a_sentence(
    tmp_path: Path, arguments: str, status: str, says: str
) -> None:
    terminal = Terminal(tmp_path / "home", tmp_path, arguments)
    try:
        terminal.until(terminal.ended.exists)
        terminal.shows(says)
        assert terminal.ended.read_text().strip() == status
    finally:
        terminal.close()


def test_the_whole_terminal_is_used_whatever_the_shell_exports_and_whether_or_not_a_signal_comes(
    tmp_path: Path,
) -> None:
    terminal = Terminal(tmp_path / "home", tmp_path, variables={"COLUMNS": "50", "LINES": "20"})
    try:
        terminal.shows("Ask anything")
        pid = int(terminal.ask("#{pane_pid}"))
        app = next(child for child in psutil.Process(pid).children(recursive=True) if "claw_local" in child.cmdline())
        terminal.until(lambda: max(map(len, terminal.screen().splitlines())) > 70)
        app.suspend()  # Signals that come while it is stopped are one when it goes on.
        terminal.resize(200, 60)
        terminal.resize(120, 40)
        app.resume()
        terminal.until(lambda: 110 < max(map(len, terminal.screen().splitlines())) <= 120)
    finally:
        terminal.close()


def test_what_is_typed_in_one_go_is_what_is_done_in_a_real_terminal(tmp_path: Path) -> None:
    store = Store(locate(tmp_path / "home"))
    chat = store.chats.create()
    _, _, reply = store.messages.go_on(chat.id, "What is rain?", learn="yes")
    made = Generation(prompt_ids=(1,), sampling=Sampling())
    made.text, made.response_ids, made.logprobs = "Water that falls.", [5], [-1.0]
    store.messages.finish(reply, made, state="done", timings={})
    terminal = Terminal(tmp_path / "home", tmp_path, f"chat --chat {chat.id}")

    def hints() -> list[str]:
        return [hint.text for hint in store.hints.every()]

    try:
        terminal.shows("Water that falls.")
        for number, hint in enumerate(("Always answer in capitals", "Use no lists at all")):
            terminal.press("Tab")
            terminal.shows("h hint")
            terminal.type(f"/hint {hint}")
            terminal.press("Enter")
            terminal.until(lambda number=number: len(hints()) > number or "stands alone" in terminal.screen())
            assert hints()[-1] == hint
        terminal.press("Tab")
        terminal.shows("h hint")
        terminal.type("great work")  # The first letter of it gives no hint, and nothing else either.
        terminal.shows("great work")
        terminal.press("C-u")
        terminal.press("F1")
        terminal.shows("Type to search")
        terminal.press("Escape")
        terminal.type("right behind")  # So the terminal sends Alt+R.
        terminal.until(lambda: "Type to search" not in terminal.screen() and "right behind" in terminal.screen())
        terminal.press("C-u")
        terminal.press("F1")
        terminal.shows("Type to search")
        terminal.press("Escape")
        terminal.type("/learned")
        terminal.press("Enter")
        terminal.shows("Score over time")
    finally:
        terminal.close()
        store.close()
