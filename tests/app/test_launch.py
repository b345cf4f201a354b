"""Where the app draws."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from claw_app.launch import draw_on_the_terminal, hung_up


@pytest.mark.skipif(sys.platform == "win32", reason="terminals are played with a pty")
def test_it_draws_on_the_terminal_also_where_standard_error_leads_into_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pty

    master, slave = pty.openpty()
    with open(slave, "w") as terminal, (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(sys, "__stdout__", terminal)
        monkeypatch.setattr(sys, "__stderr__", log)
        draw_on_the_terminal()
        assert sys.__stderr__ is terminal
        monkeypatch.setattr(sys, "__stderr__", None)  # As `2>&-` leaves it.
        draw_on_the_terminal()
        assert sys.__stderr__ is terminal
        with open(os.dup(slave), "w") as other:
            monkeypatch.setattr(sys, "__stderr__", other)
            draw_on_the_terminal()
            assert sys.__stderr__ is other
    os.close(master)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes tell of their end in another way")
def test_a_page_whose_server_was_killed_leaves() -> None:
    there, here = os.pipe()
    assert not hung_up(there)
    os.close(here)
    assert hung_up(there)
    os.close(there)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes tell of their end in another way")
def test_the_app_of_a_page_ends_with_its_server(tmp_path: Path) -> None:
    page = subprocess.Popen(
        [sys.executable, "-m", "claw_local", "chat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "CLAW_LOCAL_HOME": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver",
        },
    )
    try:
        assert page.stdin is not None and page.stdout is not None
        assert page.stdout.readline() == b"__GANGLION__\n"
        page.stdin.close()
        page.stdout.close()
        page.wait(30)
    finally:
        page.kill()
        page.wait()
