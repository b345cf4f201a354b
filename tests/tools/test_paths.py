"""Nothing outside the folder: by name, by link, by a link that comes while one looks, by device."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import threading
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw_local.errors import UsageError
from claw_local.paths import Paths
from claw_local.tools.base import ToolError
from claw_local.tools.folder import Folder, parts_of
from claw_local.tools.toolbox import workspace_of
from tests.tools.conftest import Tried

posix = pytest.mark.skipif(sys.platform == "win32", reason="links and devices as POSIX has them")


@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt",
        "sub/../../outside.txt",
        "sub/../a.txt",
        "./../outside.txt",
        "/etc/passwd",
        "//etc/passwd",
        "~/x",
        "a\0b",
        "a\nb",
        "x" * 2000,
        "\u202etxt.a",
        "\ud800",
    ],
)
def test_a_path_that_leads_out_or_is_none_is_refused(tried: Tried, path: str) -> None:
    for name, more in (("read", {}), ("write", {"content": "x"}), ("append", {"content": "x"}), ("list", {})):
        result = tried(name, path=path, **more)
        assert result.text.startswith("error: ") and "SECRET" not in result.text and result.score == -1


def test_a_whole_path_into_the_workspace_is_taken(tried: Tried, root: Path) -> None:
    assert tried("read", path=str(root / "sub" / "b.txt")).text == "deep"
    assert "not in the workspace" in tried("read", path=f"{root}2/b.txt").text


@posix
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nope", "There is no nope in the workspace."),
        ("nope/at/all", "There is no nope"),
        ("sub/nope", "There is no sub/nope in the workspace."),
        ("sub", "sub is a folder."),
        ("a.txt/b", "a.txt is no folder"),
        ("sock", "sock is no file but a device"),
        ("n" * 300, f"{'n' * 199}… is too long a name"),
        ("n" * 2000, "nnn'… is too long"),
    ],
)
def test_what_cannot_be_read_or_written_is_named(tried: Tried, root: Path, path: str, said: str) -> None:
    with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(root):
        listening.bind("sock")
        calls = [tried("read", path=path)]
        if not said.startswith("There is no"):
            calls += [tried("write", path=path, content="x"), tried("append", path=path, content="x")]
    for result in calls:
        assert said in result.text and "the workspace is" not in result.text and "no the" not in result.text
        assert result.score == -1


@posix
def test_links_are_not_followed_wherever_they_stand(tried: Tried, root: Path) -> None:
    (root / "file").symlink_to(root.parent / "outside.txt")
    (root / "folder").symlink_to(root.parent)
    (root / "inside").symlink_to(root / "a.txt")
    (root / "dangling").symlink_to(root.parent / "new.txt")
    os.link(root.parent / "outside.txt", root / "hard")
    for path in ("file", "folder/outside.txt", "inside", "dangling", "hard"):
        assert "link" in tried("read", path=path).text
        written = tried("write", path=path, content="mine")
        assert "link" in written.text and written.score == -1
    assert (root.parent / "outside.txt").read_text() == "SECRET\n"
    assert not (root.parent / "new.txt").exists()
    assert "SECRET" not in tried("search", text="SECRET").text
    listed = tried("list", depth=3).text
    assert "folder (a link, not followed)" in listed and "folder/outside" not in listed


@posix
def test_a_link_that_comes_after_the_diff_was_shown_is_replaced_or_refused_never_followed(
    tried: Tried, root: Path
) -> None:
    prepared = tried.prepare("write", path="sub/b.txt", content="mine\n")
    (root / "sub" / "b.txt").unlink()
    (root / "sub" / "b.txt").symlink_to(root.parent / "outside.txt")
    assert "link" in tried.box.perform(prepared).text
    prepared = tried.prepare("write", path="sub/new.txt", content="mine\n")
    os.rename(root / "sub", root / "old")
    (root / "sub").symlink_to(root.parent)
    assert "link" in tried.box.perform(prepared).text
    assert not (root.parent / "new.txt").exists()
    assert (root.parent / "outside.txt").read_text() == "SECRET\n"


@posix
def test_a_folder_swapped_for_a_link_again_and_again_never_gives_what_is_outside(tried: Tried, root: Path) -> None:
    """A race, for a while: one thread swaps sub for a link to outside and back, another reads and writes through it."""
    (root.parent / "b.txt").write_text("SECRET\n")
    stop = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        while not stop.is_set():
            os.rename(root / "sub", root / "aside")
            try:
                os.symlink(root.parent, root / "sub")
                os.unlink(root / "sub")
                os.rename(root / "aside", root / "sub")
                swaps += 1
            except OSError:  # A write made the folder anew meanwhile, and may put a file in it at any moment.
                while (root / "aside").exists():
                    shutil.rmtree(root / "sub", ignore_errors=True)
                    with contextlib.suppress(OSError):
                        os.rename(root / "aside", root / "sub")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for number in range(400):
            assert "SECRET" not in tried("read", path="sub/b.txt").text
            tried("write", path=f"sub/w{number % 7}.txt", content=f"{number}\n")
            assert "SECRET" not in tried("search", text="secret", path="sub").text
    finally:
        stop.set()
        swapping.join()
    assert swaps > 10
    assert (root.parent / "b.txt").read_text() == "SECRET\n"
    assert not list(root.parent.glob("w*.txt")) and not list(root.parent.glob(".claw-*"))


@posix
def test_devices_pipes_and_folders_are_no_files(tried: Tried, root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert "pipe" in tried("read", path="pipe").text and tried("read", path="pipe").score == -1
    assert tried("write", path="pipe", content="x").score == -1
    assert "folder" in tried("read", path="sub").text
    assert tried("write", path="sub", content="x").score == -1
    assert "no file" in tried("list").text
    assert tried("search", text="x").text == "Nothing was found."


def test_the_same_name_in_other_code_points_is_found(tried: Tried, root: Path) -> None:
    composed, apart = "Über.txt", unicodedata.normalize("NFD", "Über.txt")
    (root / apart).write_text("umlaut\n", "utf-8")
    assert tried("read", path=composed).text == "umlaut"
    tried("write", path=composed, content="new\n")
    assert [name for name in os.listdir(root) if unicodedata.normalize("NFC", name) == composed] == [apart]


def test_large_and_binary_files_are_refused_kindly(tried: Tried, root: Path) -> None:
    with (root / "large.txt").open("wb") as file:
        file.truncate(5 * 1024 * 1024)
    (root / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (root / "latin.txt").write_bytes("Über".encode("latin-1"))
    assert "bytes; at most" in tried("read", path="large.txt").text
    for name in ("picture.png", "latin.txt"):
        assert "no text" in tried("read", path=name).text
        assert tried("write", path=name, content="x").score == -1
    assert (root / "picture.png").read_bytes().startswith(b"\x89PNG")


@posix
@given(st.text(max_size=30))
@settings(max_examples=300, deadline=None)
def test_whatever_is_asked_for_stays_below_the_folder(path: str) -> None:
    root = Path("/somewhere/work")
    try:
        parts = parts_of(path, root)
    except ToolError:
        return
    assert not any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts)
    assert Path(os.path.normpath(root.joinpath(*parts))).is_relative_to(root)


def test_what_may_be_a_workspace(tmp_path: Path) -> None:
    home = tmp_path / "home" / "data"
    home.mkdir(parents=True)
    paths = Paths(data=home, config=home)
    for folder, said in (
        (tmp_path / "none", "no folder"),
        (Path(tmp_path.anchor), "whole disk"),
        (home, "own folders"),
        (tmp_path, "own files"),
    ):
        with pytest.raises(UsageError, match=said):
            workspace_of(folder, paths)
    work = tmp_path / "work"
    work.mkdir()
    assert workspace_of(work, paths) == Path(os.path.realpath(work))
    with pytest.raises(ToolError, match="cannot be opened"):
        Folder(tmp_path / "none")


@posix
@pytest.mark.parametrize("folder", ["", "  "])
def test_no_folder_is_not_the_one_the_program_happens_to_be_in(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UsageError, match="Name the folder"):
        workspace_of(folder, Paths(data=tmp_path / "data", config=tmp_path / "data"))


def test_the_workspace_itself_may_not_become_a_link(tmp_path: Path, root: Path, tried: Tried) -> None:
    os.rename(root, tmp_path / "moved")
    root.symlink_to(tmp_path)
    assert "SECRET" not in tried("read", path="outside.txt").text
    assert tried("run", command="cat outside.txt").text.startswith("error: ")
