"""A capable judge, played: it reads the questions as they are asked and answers them rightly, over a real server.

No such model can be had in the tests. It sees what a judge sees: the text of the request, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from claw_local.engine.openai_api import OpenAIEngine
from claw_local.judge import exam
from claw_local.settings import OpenAISettings, Settings
from tests.engine.servers import OPENAI, Script, serving

MODEL = "wise-70b"
Says = Callable[[dict[str, Any]], str]


def parts_of(body: dict[str, Any]) -> list[str]:
    """What stands between the marks of a request, in order."""
    asked: str = body["messages"][-1]["content"]
    return [part.strip() for part in re.findall(r"<<<\n(.*?)\n>>>", asked, re.DOTALL)]


def wise(body: dict[str, Any]) -> str:
    """The right answer to every case of both exams, and "neutral" to what it has never heard of."""
    parts = parts_of(body)
    if "follows" in body["messages"][-1]["content"]:
        hint, reply = parts
        known = {(one.hint, one.reply.strip()): one.follows for one in exam.follows_cases()}
        return json.dumps({"follows": "yes" if known.get((hint, reply), False) else "no"})
    known_verdicts = {one.next: {1: "good", 0: "neutral", -1: "bad"}[one.score] for one in exam.next_cases()}
    return json.dumps({"verdict": known_verdicts.get(parts[2], "neutral"), "hint": []})


def foolish(body: dict[str, Any]) -> str:
    """Says the opposite of what is right."""
    said: dict[str, Any] = json.loads(wise(body))
    turned = {"yes": "no", "no": "yes", "good": "bad", "bad": "good"}
    return json.dumps(
        {name: turned.get(value, value) if isinstance(value, str) else value for name, value in said.items()}
    )


@contextmanager
def served_judge(says: Says) -> Iterator[tuple[OpenAIEngine, Script, Settings]]:
    """An engine whose server answers as `says`, the server's script, and settings that make it the judge."""
    with serving(OPENAI) as (url, script):
        script.models, script.says = [MODEL], says
        settings = Settings(openai=OpenAISettings(url=f"{url}/v1", timeout_s=5.0))
        settings.judge.model = f"openai:{MODEL}"
        yield OpenAIEngine.open(MODEL, settings.openai, context=4096), script, settings
