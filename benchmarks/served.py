"""The product as other programs meet it: `claw-local serve` in a process of its own, and a client's side of a session.

What the client knows, it knows through the `openai` package alone; tools run here, in a folder of the client's.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openai import OpenAI

from claw_local.paths import HOME_VARIABLE

START_S = 120.0
"""Longest wait for the server to answer."""
CALL_TOKENS = 60
"""What a call takes beside the text in it."""


@contextmanager
def serving(home: Path, arguments: Sequence[str] = ()) -> Iterator[str]:
    """The server over this home folder, until the block ends. Yields its address. Raises as `started`."""
    with started(home, arguments) as (url, _):
        yield url


@contextmanager
def started(home: Path, arguments: Sequence[str] = ()) -> Iterator[tuple[str, int]]:
    """The same; yields its address and the process's id.

    Raises:
        RuntimeError: it did not start; what it said is in the message.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    home.mkdir(parents=True, exist_ok=True)
    log = home / "serve.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "claw_local", "serve", "--port", str(port), *arguments],
            env={**os.environ, HOME_VARIABLE: str(home)},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        until = time.monotonic() + START_S
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server did not start:\n{log.read_text('utf-8', 'replace')}")
            time.sleep(0.2)
        yield url, process.pid
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


class Desk:
    """A folder with homework on the client's side, and the two tools that work in it.

    Args:
        folder: it is made; files go into its folder `homework`.
        texts: what each file says; file n, from 1, is `homework/n.txt`.
    """

    def __init__(self, folder: Path, texts: Sequence[str]) -> None:
        self._folder = folder
        (folder / "homework").mkdir(parents=True)
        self.names = [f"homework/{n}.txt" for n in range(1, len(texts) + 1)]
        for name, text in zip(self.names, texts, strict=True):
            (folder / name).write_text(text + "\n", "utf-8")

    def tools(self) -> list[dict[str, Any]]:
        """As OpenAI's API takes them."""
        path = {"type": "string", "enum": self.names}
        text = {"type": "string"}
        return [
            _tool("read_file", "Read a text file.", {"path": path}),
            _tool("append_file", "Write a text at the end of a file.", {"path": path, "text": text}),
        ]

    def read(self, name: str) -> str:
        return (self._folder / name).read_text("utf-8")

    def run(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """What the tool says: a result, or an error."""
        name, text = arguments.get("path"), arguments.get("text")
        if name not in self.names:
            return f"Error: there is no file {name}."
        if tool == "read_file":
            return self.read(name)
        if not isinstance(text, str) or not text.strip():
            return "Error: there is no text to write."
        with (self._folder / name).open("a", encoding="utf-8") as file:
            file.write(text + "\n")
        return f"Wrote {len(text)} characters at the end of {name}."


def _tool(name: str, description: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


@dataclass(frozen=True)
class Called:
    """A call the model made, and what the tool said. `tool` is "" if it made none."""

    tool: str
    arguments: Mapping[str, Any]
    result: str

    @property
    def worked(self) -> bool:
        return bool(self.tool) and not self.result.startswith("Error")


@dataclass
class Session:
    """One conversation of a client that keeps the history itself, as such clients do.

    Attributes:
        name: sent as X-Session-Id.
        model: the model's name, as the server lists it.
        tokens: longest answer.
        prompt_tokens: of the last request.
    """

    client: OpenAI
    desk: Desk
    name: str
    model: str
    tokens: int
    seed: int
    messages: list[dict[str, Any]] = field(default_factory=list)
    prompt_tokens: int = 0

    def says(self, text: str) -> None:
        """The person says something."""
        self.messages.append({"role": "user", "content": text})

    def answer(self, *, done: bool = False) -> str:
        """The model answers in words. `done`: no more comes of this session."""
        message = self._ask(self.tokens, {"tool_choice": "none"}, done=done)
        self.messages.append({"role": "assistant", "content": message.content or ""})
        return str(message.content or "")

    def call(self, tool: str) -> Called:
        """The model has to call this tool, in its own words; the tool runs, and what it says goes into the history."""
        choice = {"type": "function", "function": {"name": tool}}
        message = self._ask(self.tokens + CALL_TOKENS, {"tool_choice": choice})
        if not message.tool_calls:
            self.messages.append({"role": "assistant", "content": message.content or ""})
            return Called("", {}, "Error: no call")
        call = message.tool_calls[0]
        try:
            arguments = json.loads(call.function.arguments)
        except ValueError:
            arguments = {}
        result = self.desk.run(call.function.name, arguments)
        made = {"name": call.function.name, "arguments": call.function.arguments}
        self.messages += [
            {
                "role": "assistant",
                "content": message.content or "",
                "tool_calls": [{"id": call.id, "type": "function", "function": made}],
            },
            {"role": "tool", "tool_call_id": call.id, "content": result},
        ]
        return Called(call.function.name, arguments, result)

    def _ask(self, most: int, choice: dict[str, Any], *, done: bool = False) -> Any:
        headers = {"X-Session-Id": self.name} | ({"X-Session-Done": "1"} if done else {})
        completion = self.client.chat.completions.create(
            model=self.model,
            messages=self.messages,  # type: ignore[arg-type]  # Plain dictionaries, as over the wire.
            tools=self.desk.tools(),  # type: ignore[arg-type]
            parallel_tool_calls=False,
            max_tokens=most,
            seed=self.seed + len(self.messages),
            extra_headers=headers,
            **choice,
        )
        self.prompt_tokens = completion.usage.prompt_tokens if completion.usage is not None else 0
        return completion.choices[0].message
