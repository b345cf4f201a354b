"""Where the app draws."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from claw_app.launch import draw_on_the_terminal


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
