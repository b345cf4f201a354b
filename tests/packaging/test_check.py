"""What the checks say of tests that this machine cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH, empty."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def install(folder: Path, name: str) -> None:
    (folder / name).write_text("#!/bin/sh\n", "utf-8")
    (folder / name).chmod(0o755)


def test_what_could_not_be_looked_at_is_named_with_the_remedy(tools: Path) -> None:
    from check import unseen

    browser, terminal = unseen()
    assert browser.startswith("Not tested: the chat in a browser") and "apt install chromium" in browser
    assert terminal.startswith("Not tested: the chat in a real terminal") and "apt install tmux" in terminal
    install(tools, "google-chrome")
    assert unseen() == [terminal]
    install(tools, "tmux")
    assert unseen() == []


def test_the_words_come_at_the_end_of_the_checks(
    tools: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import check

    monkeypatch.setattr(check, "CHECKS", {"lint": ["this", "--help"]})
    assert check.main([]) == 0
    *_, second, first, last = capsys.readouterr().out.splitlines()
    assert second.startswith("Not tested") and first.startswith("Not tested") and last == "All checks passed"
