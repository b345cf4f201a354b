"""MCP servers in processes of their own, over their standard input and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from claw_local.errors import SettingsError
from claw_local.paths import Paths
from claw_local.settings import ToolsSettings
from claw_local.tools.base import Call, Result
from claw_local.tools.mcp_servers import McpServers
from claw_local.tools.mcp_settings import filled_in, read_servers
from claw_local.tools.toolbox import Toolbox

pytest.importorskip("mcp")
SERVER = Path(__file__).parent / "small_mcp_server.py"
LOCAL = {"command": sys.executable, "args": [str(SERVER)], "env": {"CHOSEN": "yes"}, "timeout_s": 3, "trusted": ["add"]}


def write(config: Path, servers: dict[str, Any]) -> None:
    config.mkdir(exist_ok=True)
    (config / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")


def box_with(tmp_path: Path, servers: dict[str, Any]) -> Toolbox:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir(exist_ok=True)
    write(home, servers)
    return Toolbox(work, Paths(data=home, config=home), ToolsSettings())


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toolbox]:
    broken = {"command": "no-such-program-anywhere"}
    made = box_with(
        tmp_path_factory.mktemp("mcp"), {"small": LOCAL, "broken": broken, "off": {**LOCAL, "disabled": True}}
    )
    yield made
    made.close()


def call(box: Toolbox, name: str, **arguments: object) -> Result:
    return box.perform(box.prepare(Call(name, dict(arguments))))


def test_tools_are_named_after_their_server_and_stand_beside_the_own_ones(box: Toolbox) -> None:
    names = [spec.name for spec in box.specs]
    assert names[:3] == ["list", "read", "search"]
    assert {"small__add", "small__where", "small__fail", "small__slow"} <= set(names)
    add = next(spec for spec in box.specs if spec.name == "small__add")
    assert add.description == "Add two numbers." and set(json.loads(add.parameters)["required"]) == {"a", "b"}
    assert not any(name.startswith("off__") for name in names)


def test_a_server_that_does_not_start_is_said_and_the_others_work(box: Toolbox) -> None:
    (problem,) = box.problems
    assert "MCP server broken could not be used" in problem and "mcp.json" in problem


def test_calls_ask_unless_their_tool_is_trusted(box: Toolbox) -> None:
    prepared = box.prepare(Call("small__where", {}))
    assert prepared.asks and prepared.key == "small__where" and "where of the MCP server small" in prepared.preview
    assert not box.prepare(Call("small__add", {"a": 1, "b": 2})).asks
    assert call(box, "small__add", a=20, b=22).text == "42"


def test_nothing_in_what_a_call_says_is_hidden_from_who_agrees_to_it(box: Toolbox) -> None:
    hidden = "a\u202eb\u200b\x7f\U000e0041\ud800 ü"
    preview = box.prepare(Call("small__add", {"a": hidden})).preview
    assert "a\\u202eb\\u200b\\u007f\\udb40\\udc41\\ud800 ü" in preview
    assert all(letter.isprintable() or letter == "\n" for letter in preview)


def test_a_server_whose_task_is_cancelled_is_said_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def cancelled(*_: object) -> AsyncIterator[None]:
        raise asyncio.CancelledError
        yield

    monkeypatch.setattr("claw_local.tools.mcp_servers.connected", cancelled)
    made = box_with(tmp_path, {"small": LOCAL})
    try:
        assert made.problems == ["The MCP server small ended while it started. See mcp.json."]
    finally:
        made.close()


def test_what_ends_in_the_last_moment_has_not_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(Future[int]):
        def result(self, timeout: float | None = None) -> int:
            if not self.done():
                self.set_result(7)
                raise TimeoutError
            return super().result(timeout)

    monkeypatch.setattr("asyncio.run_coroutine_threadsafe", lambda *_: Late())
    servers = McpServers({}, tmp_path)
    servers._loop = asyncio.new_event_loop()
    work = asyncio.sleep(0, 7)
    try:
        assert servers._wait(work, 1.0, None) == 7
    finally:
        work.close()
        servers._loop.close()


def test_two_tools_never_share_a_name(tmp_path: Path) -> None:
    made = box_with(tmp_path, {"a": LOCAL, "a__twin": LOCAL})
    try:
        names = [spec.name for spec in made.specs]
        assert len(names) == len(set(names)) and "a__twin__name" in names
        assert any("second a__twin__name" in problem for problem in made.problems)
    finally:
        made.close()


def test_a_server_starts_in_the_workspace_without_the_secrets_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hidden")
    made = box_with(tmp_path, {"small": LOCAL})
    try:
        said = call(made, "small__where").text
        assert said.startswith(str(tmp_path / "work")) and "CHOSEN" in said and "OPENAI_API_KEY" not in said
        died = call(made, "small__die")
        assert died.score == -1 and "It said last: gone to the moon" in died.text
        assert call(made, "small__add", a=1, b=2).text == "3", "it was started again"
    finally:
        made.close()


def test_what_fails_there_is_a_failure_here_and_what_is_said_is_bounded(box: Toolbox) -> None:
    failed = call(box, "small__fail")
    assert failed.score == -1 and "fail" in failed.text
    refused = call(box, "small__refuse")
    assert refused.score == -1 and "the moon is late" in refused.text, "its own error, whatever its number"
    assert call(box, "small__add", a="one").score == -1
    assert len(call(box, "small__wish").text) < 6200


def test_a_call_that_takes_too_long_is_given_up_and_can_be_stopped(box: Toolbox) -> None:
    began = time.monotonic()
    late = call(box, "small__slow")
    assert late.score == -1 and time.monotonic() - began < 8
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    began = time.monotonic()
    result = box.perform(box.prepare(Call("small__slow", {})), stop)
    assert "stopped" in result.text and result.stopped and result.score == 0
    assert time.monotonic() - began < 2


def test_a_server_at_an_address_is_spoken_to_over_http(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = subprocess.Popen(
        [sys.executable, str(SERVER), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 0.2).close()
                break
            except OSError:
                assert running.poll() is None and time.monotonic() < until
                time.sleep(0.1)
        made = box_with(tmp_path, {"far": {"url": f"http://127.0.0.1:{port}/mcp", "timeout_s": 10}})
        try:
            assert made.problems == [] and call(made, "far__add", a=1, b=2).text == "3"
        finally:
            made.close()
    finally:
        running.terminate()
        running.wait()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "JSON"),
        ("[]", "has to look like"),
        ('{"mcpServers": {"a b": {"command": "x"}}}', "no name"),
        ('{"mcpServers": {"a": {}}}', "either a command or a url"),
        ('{"mcpServers": {"a": {"command": "x", "url": "http://y"}}}', "either a command or a url"),
        ('{"mcpServers": {"a": {"url": "http://me:secret@host"}}}', "without a name or a password"),
        ('{"mcpServers": {"a": {"url": "file:///x"}}}', "http"),
        ('{"mcpServers": {"a": {"command": "x", "timeout_s": 0}}}', "a.timeout_s"),
    ],
)
def test_a_file_that_cannot_be_names_itself_and_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mcp.json").write_text(text)
    with pytest.raises(SettingsError, match=r"mcp\.json") as found:
        read_servers(tmp_path)
    assert said in str(found.value) and "secret" not in str(found.value)


def test_no_file_is_no_server_and_keys_come_from_the_environment(tmp_path: Path) -> None:
    assert read_servers(tmp_path) == {}
    assert filled_in({"Authorization": "Bearer ${TOKEN}"}, {"TOKEN": "t"}) == {"Authorization": "Bearer t"}
    with pytest.raises(SettingsError, match="TOKEN, which is not set"):
        filled_in({"Authorization": "Bearer ${TOKEN}"}, {})


def test_a_broken_file_leaves_the_workspace_its_own_tools(tmp_path: Path) -> None:
    made = box_with(tmp_path, {})
    (tmp_path / "home" / "mcp.json").write_text("{")
    assert [spec.name for spec in made.specs] == ["list", "read", "search", "write", "append", "run"]
    assert "mcp.json" in made.problems[0]


def test_one_server_that_cannot_be_leaves_the_others(tmp_path: Path) -> None:
    write(tmp_path, {"a b": {"command": "x"}, "no": {}, "good": {"command": "y"}})
    problems: list[str] = []
    assert list(read_servers(tmp_path, problems)) == ["good"]
    assert len(problems) == 2 and "'a b' is no name" in problems[0] and "either a command or a url" in problems[1]


def test_a_server_that_writes_anything_but_messages_is_left_without_a_word_on_the_screen(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    noise = tmp_path / "noise.py"
    noise.write_text("import time\nwhile True:\n    print('not json', flush=True)\n    time.sleep(0.001)\n")
    made = box_with(tmp_path, {"noisy": {"command": sys.executable, "args": ["-S", str(noise)]}})
    try:
        (problem,) = made.problems
        assert "noisy" in problem and "does not speak MCP" in problem and "mcp.json" in problem
        assert [spec.name for spec in made.specs] == ["list", "read", "search", "write", "append", "run"]
    finally:
        made.close()
    assert capfd.readouterr() == ("", "")
    assert not _running(noise)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing can see to it")
def test_a_server_that_hangs_at_its_start_does_not_outlive_the_program(tmp_path: Path) -> None:
    hangs = tmp_path / "hangs.py"
    hangs.write_text("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(1000)\n")
    write(tmp_path / "home", {"hanging": {"command": sys.executable, "args": ["-S", str(hangs)]}})
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, pathlib\n"
        "from claw_local.tools.mcp_servers import McpServers\n"
        "from claw_local.tools.mcp_settings import read_servers\n"
        "here = pathlib.Path(sys.argv[1])\n"
        "McpServers(read_servers(here / 'home'), here).open()\n"
    )
    root = str(Path(__file__).parents[2])
    leaving = subprocess.Popen([sys.executable, str(program), str(tmp_path)], env={**os.environ, "PYTHONPATH": root})
    try:
        _until(lambda: _running(hangs))
    finally:
        leaving.kill()
        leaving.wait()
    _until(lambda: not _running(hangs))


def test_a_server_at_an_address_that_answers_nonsense_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    class Nonsense(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b"{'not': json")

        def log_message(self, *_: object) -> None:
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Nonsense)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    made = box_with(tmp_path, {"far": {"url": f"http://127.0.0.1:{web.server_port}/mcp", "timeout_s": 2}})
    try:
        (problem,) = made.problems
        assert "far" in problem
    finally:
        made.close()
        web.shutdown()
        web.server_close()
    assert capfd.readouterr() == ("", "")


def _running(script: Path) -> bool:
    """Whether a process of this script is there."""
    words = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    return any(str(script) in line for line in words)


def _until(true: Callable[[], bool], most_s: float = 20.0) -> None:
    until = time.monotonic() + most_s
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)
