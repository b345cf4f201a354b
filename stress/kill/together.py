"""Kills in one home that stays, with the app, the server and a learning run open beside each command that is killed."""

from __future__ import annotations

import json
import random
import re
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path

from claw_local import Assistant
from claw_local.paths import Paths

from ..homes import WISH
from .looking import Shown, export_faults, home_faults, run_at_work
from .nursery import Nursery
from .programs import Program, drawn

KINDS = ("ask", "export", "merge", "train", "app", "judge", "serve", "backup", "all")
PHASES = ("loading", "practising", "training", "gate")
"""Of a learning run, as its row says."""
PATIENCE_S = 150.0
"""How long a run is waited for to come to a phase."""
_FORMATS = ("claw", "gguf", "peft")


class Together:
    """One home, and the programs that are open in it.

    Attributes:
        shown: every reply that a person saw, with as much of it as they saw.
        caught: how many of each kind were still at work when they were killed; of learning runs, in which phase.
        beside: how many kills saw a learning run at work, whatever was killed.
    """

    def __init__(self, paths: Paths, outside: Path, chance: random.Random, nursery: Nursery | None = None) -> None:
        self.paths, self.outside, self.chance, self.nursery = paths, outside, chance, nursery
        self.shown: list[Shown] = []
        self.caught: Counter[str] = Counter()
        self.beside = 0
        self._app: Program | None = None
        self._server: Program | None = None
        self._run: Program | None = None
        self._number = 0
        # How long each takes from beginning to end, in seconds; learned from those that ended.
        self._lasts = {"ask": 4.0, "export": 2.5, "merge": 3.0, "judge": 6.0, "backup": 2.5, "serve": 1.0}

    def kill(self, kind: str) -> list[str]:
        """Let one kind of work begin, kill it at a random moment, and look. Returns what does not hold."""
        self._number += 1
        self._open_beside()
        all_of_it = self.chance.random() < 0.5
        if kind == "app":
            self._kill_app(all_of_it)
        elif kind == "serve":
            self._kill_server(all_of_it)
        elif kind == "train":
            self._kill_run(all_of_it)
        elif kind == "all":
            self._kill_all()
        else:
            self._kill_command(kind, all_of_it)
        found = home_faults(self.paths, self.shown, self.outside, working=True)
        return [*found, *export_faults(self.paths, self.outside)] if kind in ("export", "merge") else found

    def end(self) -> None:
        """End what stands open."""
        for one in (self._app, self._server, self._run):
            if one is not None:
                one.kill(all_of_it=True)
        self._app = self._server = self._run = None

    def _open_beside(self) -> None:
        if self._app is None or not self._app.lives:
            self._app = Program(self.paths.data, ["chat"], on_terminal=True, nursery=self.nursery)
            self._app.wait_for(b"Ask anything", 60)
        if self._server is None or not self._server.lives:
            self._server = Program(self.paths.data, ["serve", "--port", "0", "--learn"], nursery=self.nursery)
            self._server.wait_for(b"http://", 60)
        if self._run is None or not self._run.lives:
            if self._run is not None:  # It came to its end by itself.
                self._run.kill(all_of_it=True)
            self._teach()
            self._run = Program(self.paths.data, ["learn", "now"], nursery=self.nursery)

    def _teach(self) -> None:
        """Something new to learn, so that a run has work."""
        with Assistant.open(self.paths.data) as assistant:
            answer = assistant.ask(f"What is cloud {self._number}?", sampling={"max_tokens": 12, "seed": self._number})
            assistant.feedback(answer.message_id, "bad", hint=WISH)

    def _kill_run(self, all_of_it: bool) -> None:
        """The learning run, soon after it has come to one of its phases: all of it, or only the command that began it.
        What it takes most of its time for is loading; so each phase gets its share."""
        run = self._run
        assert run is not None
        wanted = self.chance.choice(PHASES)
        end = time.monotonic() + PATIENCE_S
        while run.lives and run_at_work(self.paths) != wanted and time.monotonic() < end:
            time.sleep(0.02)
        run.wait(self.chance.random() * 0.5)
        if run.lives and (phase := run_at_work(self.paths)):
            self.caught["train"] += 1
            self.caught[f"train in {phase}"] += 1
        run.kill(all_of_it=all_of_it)
        self._run = None

    def _kill_all(self) -> None:
        """The app, the server and a command answer, a run learns, and all four are killed in the same moment."""
        app, server, run = self._app, self._server, self._run
        assert app is not None and server is not None and run is not None
        word, typed = self._type_and_send(app)
        question = f"What is number s{self._number}x?"
        asker, pieces = self._begin_asking(server, question)
        asked = f"What is number q{self._number}x?"
        command = Program(self.paths.data, ["ask", "--seed", str(self._number), asked], nursery=self.nursery)
        time.sleep(self.chance.uniform(0.3, 1.0) * self._lasts["ask"])
        phase = run_at_work(self.paths)
        self.caught["all"] += bool(phase) and app.lives and command.lives
        programs = [app, server, run, command]
        self.chance.shuffle(programs)
        for program in programs:
            program.strike()
        for program in programs:
            program.kill(all_of_it=True)
        self._app = self._server = self._run = None
        asker.join(5)
        self._note_shown_by_app(word, app, typed)
        for asking, text in ((question, "".join(pieces)), (asked, _text_of(command))):
            if text:
                self.shown.append(Shown(asking, text))

    def _kill_command(self, kind: str, all_of_it: bool) -> None:
        question = f"What is number q{self._number}x?"
        chat = ["--chat", "1"] if self._number % 2 else []
        target = self.outside / f"{kind}-{self.chance.randrange(4)}"
        form = self.chance.choice(_FORMATS)
        arguments = {
            "ask": ["ask", *chat, "--seed", str(self._number), question],
            # What is said next of a reply goes to the judge, after the answer.
            "judge": ["ask", "--chat", "1", "--seed", str(self._number), f"Shorter, please. {question}"],
            "export": ["adapters", "export", "1", f"{target}.{form}", "--format", form, "--force"],
            "merge": ["adapters", "merge", "1", f"{target}.merged", "--force", "--no-check"],
            "backup": ["backup", f"{target}.backup", "--force"],
        }[kind]
        if kind == "export" and form == "peft":
            arguments = ["adapters", "export", "1", f"{target}.peft-{self._number}", "--format", form]
        program = Program(self.paths.data, arguments, nursery=self.nursery)
        # Where something is shown at the end, moments near the end are the interesting ones.
        earliest = 0.4 if kind in ("ask", "judge") else 0.0
        moment = self.chance.uniform(earliest, 1.0) * self._lasts[kind]
        ended = program.wait(moment)
        if ended:
            self._lasts[kind] = max(0.3, time.monotonic() - program.began)
        else:
            self.caught[kind] += 1
            self._lasts[kind] *= 1.03
        self.beside += bool(run_at_work(self.paths))
        program.kill(all_of_it=all_of_it)
        if kind in ("ask", "judge") and (text := _text_of(program)):
            self.shown.append(Shown(arguments[-1], text))

    def _kill_app(self, all_of_it: bool) -> None:
        """A message is typed and sent, and the app killed while it answers, or before."""
        app = self._app
        assert app is not None
        word, typed = self._type_and_send(app)
        time.sleep(self.chance.random() * 2.5)
        self.caught["app"] += app.lives
        self.beside += bool(run_at_work(self.paths))
        app.kill(all_of_it=all_of_it)
        self._app = None
        self._note_shown_by_app(word, app, typed)

    def _type_and_send(self, app: Program) -> tuple[str, int]:
        """A word that is like no other, and how much the app had drawn when it was sent."""
        word = f"zq{self._number}x{self.chance.randrange(10**6)}"
        app.type(word)
        app.wait_for(word[-1].encode(), 3)
        time.sleep(0.3)
        before = len(app.said)
        app.type("\r")
        return word, before

    def _note_shown_by_app(self, word: str, app: Program, sent: int) -> None:
        if word.encode() in drawn(app.said[sent:]):
            self.shown.append(Shown(word))

    def _kill_server(self, all_of_it: bool) -> None:
        """Two turns of a program's conversation, and the server killed while it answers."""
        server = self._server
        assert server is not None
        question = f"What is number s{self._number}x?"
        began = time.monotonic()
        asker, pieces = self._begin_asking(server, question)
        asker.join(self.chance.random() * self._lasts["serve"])
        if asker.is_alive():
            self.caught["serve"] += 1
            self._lasts["serve"] *= 1.03
        else:
            self._lasts["serve"] = max(0.1, time.monotonic() - began)
        self.beside += bool(run_at_work(self.paths))
        server.kill(all_of_it=all_of_it)
        self._server = None
        asker.join(5)
        if text := "".join(pieces):
            self.shown.append(Shown(question, text))

    @staticmethod
    def _begin_asking(server: Program, question: str) -> tuple[threading.Thread, list[str]]:
        found = re.search(rb"http://[0-9.]+:(\d+)", server.said)
        if found is None:
            raise RuntimeError(f"the server does not say where it listens: {server.said[-300:]!r}")
        pieces: list[str] = []
        asker = threading.Thread(target=_ask, args=(int(found[1]), question, pieces), daemon=True)
        asker.start()
        return asker, pieces


def _text_of(program: Program) -> str:
    """What a command showed of its answer. A character that was cut in the middle is nothing a person saw; nor is the
    last newline the reply's."""
    return program.said.decode("utf-8", "ignore").removesuffix("\n")


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
