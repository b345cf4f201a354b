"""Kills in one home that stays, with the app and the server open beside each command that is killed."""

from __future__ import annotations

import json
import random
import re
import threading
import time
import urllib.request
from pathlib import Path

from claw_local.paths import Paths

from .looking import Shown, export_faults, home_faults
from .programs import COMMAND, Program, drawn

KINDS = ("ask", "export", "merge", "train", "app", "judge", "serve", "backup")
_FORMATS = ("claw", "gguf", "peft")


class Together:
    """One home, and the programs that are open in it.

    Attributes:
        shown: every reply that a person saw, with as much of it as they saw.
        caught: how many were still at work when they were killed.
    """

    def __init__(self, paths: Paths, outside: Path, chance: random.Random) -> None:
        self.paths, self.outside, self.chance = paths, outside, chance
        self.shown: list[Shown] = []
        self.caught = 0
        self._app: Program | None = None
        self._server: Program | None = None
        self._number = 0
        # How long each takes from beginning to end, in seconds; learned from those that ended.
        self._lasts = {"ask": 4.0, "export": 2.5, "merge": 3.0, "train": 25.0, "judge": 6.0, "backup": 2.5}

    def kill(self, kind: str) -> list[str]:
        """Let one kind of work begin, kill it at a random moment, and look. Returns what does not hold."""
        self._number += 1
        self._open_beside(kind)
        all_of_it = self.chance.random() < 0.5
        if kind == "app":
            self._kill_app(all_of_it)
        elif kind == "serve":
            self._kill_server(all_of_it)
        else:
            self._kill_command(kind, all_of_it)
        found = home_faults(self.paths, self.shown, self.outside, working=True)
        return [*found, *export_faults(self.paths, self.outside)] if kind in ("export", "merge") else found

    def end(self) -> None:
        """End what stands open."""
        for one in (self._app, self._server):
            if one is not None:
                one.kill(all_of_it=True)
        self._app = self._server = None

    def _open_beside(self, kind: str) -> None:
        if self._app is None or not self._app.lives:
            self._app = Program(self.paths.data, [*COMMAND, "chat"], on_terminal=True)
            self._app.wait_for(b"Ask anything", 60)
        if self._server is None or not self._server.lives:
            self._server = Program(self.paths.data, [*COMMAND, "serve", "--port", "0", "--learn"])
            self._server.wait_for(b"http://", 60)

    def _kill_command(self, kind: str, all_of_it: bool) -> None:
        question = f"What is number q{self._number}x?"
        chat = ["--chat", "1"] if self._number % 2 else []
        target = self.outside / f"{kind}-{self.chance.randrange(4)}"
        form = self.chance.choice(_FORMATS)
        arguments = {
            "ask": ["ask", *chat, "--seed", str(self._number), question],
            # What is said next of a reply goes to the judge, after the answer.
            "judge": ["ask", "--chat", "1", "--seed", str(self._number), f"Shorter, please. {question}"],
            "train": ["learn", "now"],
            "export": ["adapters", "export", "1", f"{target}.{form}", "--format", form, "--force"],
            "merge": ["adapters", "merge", "1", f"{target}.merged", "--force", "--no-check"],
            "backup": ["backup", f"{target}.backup", "--force"],
        }[kind]
        if kind == "export" and form == "peft":
            arguments = ["adapters", "export", "1", f"{target}.peft-{self._number}", "--format", form]
        program = Program(self.paths.data, [*COMMAND, *arguments])
        # Where something is shown at the end, moments near the end are the interesting ones.
        earliest = 0.4 if kind in ("ask", "judge") else 0.0
        moment = self.chance.uniform(earliest, 1.0) * self._lasts[kind]
        ended = program.wait(moment)
        if ended:
            self._lasts[kind] = max(0.3, time.monotonic() - program.began)
        else:
            self.caught += 1
            self._lasts[kind] *= 1.03
        program.kill(all_of_it=all_of_it)
        if kind in ("ask", "judge"):
            # A character that was cut in the middle is nothing a person saw; nor is the last newline the reply's.
            text = program.said.decode("utf-8", "ignore").removesuffix("\n")
            if text:
                self.shown.append(Shown(arguments[-1], text))

    def _kill_app(self, all_of_it: bool) -> None:
        """A message is typed and sent, and the app killed while it answers, or before."""
        app = self._app
        assert app is not None
        word = f"zq{self._number}x{self.chance.randrange(10**6)}"
        app.type(word)
        app.wait_for(word[-1].encode(), 3)
        time.sleep(0.3)
        before = len(app.said)
        app.type("\r")
        time.sleep(self.chance.random() * 2.5)
        self.caught += app.lives
        app.kill(all_of_it=all_of_it)
        self._app = None
        if word.encode() in drawn(app.said[before:]):
            self.shown.append(Shown(word))

    def _kill_server(self, all_of_it: bool) -> None:
        """Two turns of a program's conversation, and the server killed while it answers."""
        server = self._server
        assert server is not None
        found = re.search(rb"http://[0-9.]+:(\d+)", server.said)
        if found is None:
            raise RuntimeError(f"the server does not say where it listens: {server.said[-300:]!r}")
        port = int(found[1])
        question = f"What is number s{self._number}x?"
        pieces: list[str] = []
        asker = threading.Thread(target=_ask, args=(port, question, pieces), daemon=True)
        asker.start()
        time.sleep(self.chance.random() * 2.0)
        self.caught += asker.is_alive()
        server.kill(all_of_it=all_of_it)
        self._server = None
        asker.join(5)
        if text := "".join(pieces):
            self.shown.append(Shown(question, text))


def _ask(port: int, question: str, pieces: list[str]) -> None:
    """A streamed answer over HTTP, piece by piece, until it ends or the server is gone."""
    body = {"model": "claw-local", "stream": True, "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            for line in answer:
                if line.startswith(b"data: {"):
                    delta = json.loads(line[6:])["choices"][0]["delta"]
                    pieces.append(delta.get("content") or "")
    except (OSError, ValueError, KeyError, IndexError):
        return
