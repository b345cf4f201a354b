"""The chat in a browser: one browser, by a token that works once, from this machine, and nobody else."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp.http_exceptions import LineTooLong

from claw_app.web import Door, is_our_fault
from claw_local.paths import locate
from claw_local.store import Store

ROOT = Path(__file__).parents[2]
CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "CLAW_LOCAL_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest_asyncio.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    """The address that `claw-local chat --web` printed."""
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "claw_local", "chat", "--web"),
        stdout=asyncio.subprocess.PIPE,
        env=environment(tmp_path / "home"),
        cwd=ROOT,
    )
    try:
        assert server.stdout is not None
        found = None
        while found is None:
            line = await asyncio.wait_for(server.stdout.readline(), 60)
            assert line, "the server ended"
            found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line.decode())
        yield found.group()
    finally:
        server.terminate()
        await asyncio.wait_for(server.communicate(), 20)


async def test_the_token_opens_once_and_the_cookie_is_needed_for_everything(address: str) -> None:
    origin = address.partition("/?")[0]
    async with aiohttp.ClientSession() as stranger:
        for path in ("/", "/ws", "/static/js/textual.js", "/download/x"):
            assert (await stranger.get(origin + path)).status == 401
        assert (await stranger.get(f"{origin}/?token=guess")).status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await stranger.ws_connect(f"{origin}/ws", origin=origin)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        entered = await browser.get(address, allow_redirects=False)
        assert entered.status == 303 and entered.headers["Location"] == "/"
        cookie = entered.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        page = await browser.get(origin)
        assert page.status == 200
        assert "token" not in str(page.url)
        assert page.headers["Referrer-Policy"] == "no-referrer"
        text = await page.text()
        # Nothing on the page comes from another machine.
        assert not re.findall(r"(?:https?:)?//(?!127\.0\.0\.1)[\w.-]+", text)
        missing = await browser.get(f"{origin}/missing")
        assert missing.status == 404 and missing.headers["X-Frame-Options"] == "DENY"
        assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    async with aiohttp.ClientSession() as second:
        again = await second.get(address)
        assert again.status == 403 and "used already" in await again.text()


async def test_other_hosts_and_other_pages_are_refused_websockets_too(address: str) -> None:
    origin = address.partition("/?")[0]
    port = origin.rpartition(":")[2]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        await browser.get(address)
        for host in (f"evil.example:{port}", "127.0.0.1", f"localhost:{port}"):
            assert (await browser.get(origin, headers={"Host": host})).status == 403
        assert (await browser.get(origin, headers={"Origin": "https://evil.example"})).status == 403
        assert (await browser.post(origin)).status == 403
        for elsewhere in ("https://evil.example", "null", None):
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await browser.ws_connect(f"{origin}/ws", **({"origin": elsewhere} if elsewhere else {}))


async def test_the_app_runs_behind_the_websocket_and_ends_with_it(address: str) -> None:
    origin = address.partition("/?")[0]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        await browser.get(address)
        socket = await browser.ws_connect(f"{origin}/ws?width=80&height=24", origin=origin)
        painted = b""

        async def until(words: bytes) -> None:
            nonlocal painted
            try:
                async with asyncio.timeout(60):
                    while words not in painted:
                        message = await socket.receive()
                        assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), message
                        painted += message.data if isinstance(message.data, bytes) else b""
            except TimeoutError:
                raise AssertionError(painted[-3000:]) from None

        await until(b"attaches a file")
        await socket.send_json(["stdin", "/hel\r"])
        await until(b"arrows scroll")
        await socket.close()


async def test_only_loopback_is_listened_on(address: str) -> None:
    import psutil

    port = int(re.search(r":(\d+)/", address).group(1))  # type: ignore[union-attr]
    heard = {c.laddr.ip for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == port}
    assert heard == {"127.0.0.1"}


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    block = "import sys; sys.modules['textual_serve'] = None; from claw_local.__main__ import main; sys.exit(main())"
    ran = subprocess.run(
        [sys.executable, "-c", block, "chat", "--web"],
        env=environment(tmp_path),
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 1
    assert 'pip install "claw-local[web]"' in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_request_that_is_none_leaves_no_traceback() -> None:
    def logged(error: Exception) -> logging.LogRecord:
        return logging.LogRecord("aiohttp.server", logging.ERROR, "", 1, "x", None, (type(error), error, None))

    assert not is_our_fault(logged(LineTooLong("the line", 8190, 9000)))
    assert is_our_fault(logged(RuntimeError("of our own")))


def test_a_token_is_taken_once_and_a_wrong_one_never() -> None:
    door = Door("127.0.0.1:1")
    token = door.address.partition("token=")[2]
    for wrong in ("", token + "x", "ä", "\ud800"):
        assert not door.takes(wrong) and "is not right" in door.turned_away(wrong)
    assert door.takes(token)
    assert not door.takes(token) and "used already" in door.turned_away(token)
    assert not door.takes("guess") and "is not right" in door.turned_away("guess")
    assert not door.takes("")


def said_in(home: Path) -> list[str]:
    """What the person said, as it stands in the database."""
    store = Store(locate(home))
    try:
        return store.messages.said(10)
    finally:
        store.close()


@contextmanager
def chromium(profile: Path) -> Iterator[str]:
    """A browser that shows nothing on this machine's screen, and where it can be asked what it shows: host:port."""
    options = ["--headless=new", "--disable-gpu", "--window-size=1100,700", "--remote-debugging-port=0"]
    # It is to speak to our page alone.
    options += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--no-sandbox")  # The sandbox does not run as root, as in containers.
    command = [CHROMIUM, *options, f"--user-data-dir={profile}", "about:blank"]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        told, end = profile / "DevToolsActivePort", time.monotonic() + 60
        while not (told.exists() and told.read_text("utf-8").strip()):
            assert browser.poll() is None, f"the browser ended with status {browser.returncode}"
            assert time.monotonic() < end, "the browser does not say where it can be asked"
            time.sleep(0.1)
        yield f"127.0.0.1:{told.read_text('utf-8').split()[0]}"
    finally:
        browser.terminate()
        browser.wait(20)


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine: apt-get install chromium")
async def test_headless_chromium_shows_the_app_and_types_into_it(address: str, tmp_path: Path) -> None:
    with chromium(tmp_path / "profile") as host:
        async with aiohttp.ClientSession() as session:
            pages: list[Any] = await (await session.get(f"http://{host}/json")).json()
            page = next(page for page in pages if page["type"] == "page")
            link = await session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)
            seen: list[str] = []
            problems: list[str] = []
            number = 0

            async def call(method: str, **params: Any) -> Any:
                nonlocal number
                number += 1
                await link.send_json({"id": number, "method": method, "params": params})
                while True:
                    message = await asyncio.wait_for(link.receive_json(), 60)
                    if message.get("method") == "Network.requestWillBeSent":
                        seen.append(message["params"]["request"]["url"])
                    if message.get("method") == "Runtime.exceptionThrown":
                        problems.append(str(message["params"]))
                    if message.get("id") == number:
                        return message["result"]

            for domain in ("Runtime", "Network", "Page"):
                await call(f"{domain}.enable")
            await call("Emulation.setFocusEmulationEnabled", enabled=True)
            await call("Page.navigate", url=address)

            async def shows(expression: str) -> None:
                for _ in range(240):
                    found = await call("Runtime.evaluate", expression=expression)
                    if found["result"].get("value"):
                        return
                    await asyncio.sleep(0.25)
                raise AssertionError(expression)

            async def picture() -> bytes:
                return base64.b64decode((await call("Page.captureScreenshot"))["data"])

            await shows("document.body.classList.contains('-first-byte')")
            empty = await picture()
            # The page has the keyboard without a click, as in a window that has just opened.
            await call("Input.insertText", text="Hello there")
            enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
            await call("Input.dispatchKeyEvent", type="keyDown", **enter)
            await call("Input.dispatchKeyEvent", type="keyUp", **enter)
            for _ in range(240):
                if said_in(tmp_path / "home") == ["Hello there"]:
                    break
                await asyncio.sleep(0.25)
            assert said_in(tmp_path / "home") == ["Hello there"]
            chat = await picture()
            assert chat.startswith(b"\x89PNG") and chat != empty
            assert len(chat) > 5_000, "a page of one colour is a tenth of that"
            origin = address.partition("/?")[0]
            assert all(url.startswith((origin, "data:")) for url in seen)
            assert not problems
