"""The real gate, asked about planted adapters as it is asked about learned ones. It must never know what is good.

Each wish has a person of its own: a store with a few chats about everyday questions, whose replies are the base model's
and marked by whether they keep the wish. They are the turns that no adapter here was taught on.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from claw_local.adapters import checking, gate
from claw_local.adapters.lessons import Lesson, lessons_of
from claw_local.engine.base import AdapterSlot, Engine, Generation, Message
from claw_local.memory import fast
from claw_local.paths import locate
from claw_local.settings import Settings
from claw_local.signals import turns
from claw_local.signals.checks import infer_checks, score
from claw_local.store import Store

from ..first_light import ASKED_LATER, TAUGHT

OWN = 5
"""The person's own turns that the gate is shown."""


def answers_of(engine: Engine, settings: Settings, folder: Path, wish: str = "") -> dict[str, dict[str, Any]]:
    """The base model's answer to each question, told the wish if there is one; from the folder if they are there."""
    file = folder / f"answers-{hashlib.sha256(wish.encode()).hexdigest()[:12] if wish else 'untold'}.json"
    if file.is_file():
        kept: dict[str, dict[str, Any]] = json.loads(file.read_text("utf-8"))
        return kept
    questions = TAUGHT if wish else [*TAUGHT, *ASKED_LATER[:OWN]]
    engine.set_adapters([])
    made = engine.generate_many(
        [
            engine.render([Message("user", fast.with_hints(question, [wish] if wish else []))]).token_ids
            for question in questions
        ],
        checking.fresh_sampling(settings),
    )
    answers = {
        question: {"text": one.text, "tokens": list(one.response_ids), "logprobs": list(one.logprobs)}
        for question, one in zip(questions, made, strict=True)
    }
    file.write_text(json.dumps(answers, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return answers


class Person:
    """Somebody with one wish, and the gate's word on adapters for them."""

    def __init__(self, engine: Engine, settings: Settings, wish: str, answers: dict[str, dict[str, Any]]) -> None:
        self.wish = wish
        self._engine, self._settings = engine, settings
        self._hints = [wish]
        self._checks = infer_checks(self._hints)
        self._examiner = checking.Examiner(
            settings, engine, self._turns(answers), self._hints, self._checks, current=[]
        )

    def ask(self, candidate: AdapterSlot) -> tuple[gate.GateReport, float]:
        """The gate's report on an adapter against the base model, and the seconds it took. What the base model says is
        asked with the first adapter, and not again."""
        began = time.perf_counter()
        verdict, _ = self._examiner.ask([candidate])
        return verdict, time.perf_counter() - began

    def _turns(self, answers: dict[str, dict[str, Any]]) -> Sequence[Lesson]:
        with tempfile.TemporaryDirectory(prefix="claw-planted-") as home:
            store = Store(locate(Path(home)))
            try:
                for question in ASKED_LATER[:OWN]:
                    self._one_turn(store, question, answers[question])
                return lessons_of(store, self._engine, turns.pair(store), self._hints)
            finally:
                store.close()

    def _one_turn(self, store: Store, question: str, answer: dict[str, Any]) -> None:
        chat = store.chats.create()
        _, reply = store.messages.begin_turn(chat.id, question, parent_id=None)
        made = Generation(
            prompt_ids=self._engine.render([Message("user", question)]).token_ids,
            sampling=checking.fresh_sampling(self._settings),
            response_ids=list(answer["tokens"]),
            logprobs=list(answer["logprobs"]),
            text=answer["text"],
        )
        store.messages.finish(reply, made, state="done", timings={})
        kept = score(answer["text"], self._checks) == 1.0
        store.signals.add(reply, "judge", 1 if kept else -1, hint="" if kept else self._hints[0])
