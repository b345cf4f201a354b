"""What is installed beside the package, and the recipes for other ways to install it."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import recipes
import share

import claw_local
from claw_local.installed import APP_ID, outside, take_out

DESKTOP = Path(share.__file__).parent / "desktop"


def test_what_is_put_below_a_prefix_is_found_by_uninstall_and_can_be_taken_away(tmp_path: Path) -> None:
    prefix = tmp_path / ".local"
    assert share.main([str(prefix)]) == 0
    written = {file for file in prefix.rglob("*") if file.is_file()}
    assert len(written) == len(share.files())
    found = {piece.path for piece in outside(tmp_path, {})}
    assert found == written
    assert share.main([str(prefix), "--remove"]) == 0
    assert list(prefix.rglob("*")) == [prefix / "share"]


def test_uninstall_leaves_no_folder_that_was_made_for_it(tmp_path: Path) -> None:
    share.main([str(tmp_path / ".local")])
    others = tmp_path / ".local" / "share" / "man" / "man1" / "other.1"
    others.write_text("theirs", "utf-8")
    for piece in outside(tmp_path, {}):
        take_out(piece)
    assert {path for path in (tmp_path / ".local" / "share").rglob("*") if path.is_file()} == {others}
    assert {path.name for path in (tmp_path / ".local" / "share").iterdir()} == {"man"}


def test_taking_away_leaves_what_others_keep_in_the_same_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(share, "files", lambda: {share.NOTICES: "x", "man/man1/claw-local.1": "x"})
    (tmp_path / "share" / "man" / "man1").mkdir(parents=True)
    (tmp_path / "share" / "man" / "man1" / "other.1").write_text("x", "utf-8")
    (tmp_path / "share" / "icons").mkdir()
    assert share.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip().endswith(str(tmp_path / "share" / share.NOTICES))
    assert (tmp_path / "share" / share.NOTICES).is_file()
    assert share.main([str(tmp_path), "--remove"]) == 0
    left = {path.relative_to(tmp_path / "share").as_posix() for path in (tmp_path / "share").rglob("*")}
    assert left == {"man", "man/man1", "man/man1/other.1", "icons"}


def test_a_prefix_that_cannot_be_written_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "share").write_text("a file", "utf-8")
    assert share.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.endswith("Choose a folder that you may write to.\n")


def test_the_desktop_entry_opens_the_chat_in_a_terminal() -> None:
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str  # type: ignore[assignment,method-assign]
    entry.read(DESKTOP / f"{APP_ID}.desktop", "utf-8")
    told = dict(entry["Desktop Entry"])
    assert (told["Type"], told["Exec"], told["Terminal"], told["Icon"]) == (
        *("Application", "claw-local chat", "true", APP_ID),
    )
    assert all(told[key].endswith(";") for key in ("Categories", "Keywords"))
    if shutil.which("desktop-file-validate"):
        subprocess.run(["desktop-file-validate", str(DESKTOP / f"{APP_ID}.desktop")], check=True)


def test_the_catalogue_entry_names_what_is_there_and_this_version() -> None:
    file = DESKTOP / f"{APP_ID}.metainfo.xml"
    entry = ET.parse(file).getroot()
    assert entry.tag == "component"
    for tag in ("id", "metadata_license", "project_license", "name", "summary", "description", "content_rating"):
        assert entry.find(tag) is not None, tag
    assert entry.findtext("id") == APP_ID
    assert entry.findtext("launchable") == f"{APP_ID}.desktop"
    assert entry.findtext("project_license") == "Apache-2.0"
    release = entry.find("releases/release")
    assert release is not None and release.get("version") == claw_local.__version__
    if shutil.which("appstreamcli"):
        done = subprocess.run(
            ["appstreamcli", "validate", "--no-net", str(file)], check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout


def test_the_icon_is_a_square_drawing_that_fetches_nothing() -> None:
    text = (DESKTOP / f"{APP_ID}.svg").read_text("utf-8")
    icon = ET.fromstring(text)
    assert icon.get("viewBox") == "0 0 128 128"
    assert "href" not in text and "url(" not in text


def test_the_formula_is_filled_in_for_an_sdist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sdist = tmp_path / "claw_local-0.1.0.tar.gz"
    sdist.write_bytes(b"abc")
    options = ["--url", "https://example.org/a.tar.gz", "--homepage", "https://example.org"]
    assert recipes.main([str(sdist), *options]) == 0
    formula = capsys.readouterr().out
    assert 'sha256 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"' in formula
    assert "@" not in formula.replace("python@3.12", "").split("class", 1)[1]
    assert recipes.main([str(tmp_path / "none"), *options]) == 1
    assert "Build it" in capsys.readouterr().err


def test_the_container_is_told_apart_and_keeps_data_outside_the_image(root: Path) -> None:
    text = (root / "packaging" / "Dockerfile").read_text("utf-8")
    assert "CLAW_LOCAL_HOME=/data" in text and "VOLUME /data" in text and "USER claw" in text
    assert "CLAW_LOCAL_CONTAINER=1" in text


def test_a_report_of_a_fault_asks_for_what_the_doctor_says(root: Path) -> None:
    yaml = pytest.importorskip("yaml")
    form = yaml.safe_load((root / ".github" / "ISSUE_TEMPLATE" / "fault.yml").read_text("utf-8"))
    asked = {part["id"]: part for part in form["body"] if "id" in part}
    assert "doctor --json" in asked["doctor"]["attributes"]["label"]
    assert asked["doctor"]["validations"]["required"] is True


def test_the_start_of_the_build_without_python_is_also_python_for_our_modules(root: Path, tmp_path: Path) -> None:
    start = root / "packaging" / "pyinstaller" / "start.py"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(start), *arguments]
        environment = {"PYTHONPATH": f"{root}:{root / 'app'}", "CLAW_LOCAL_HOME": str(tmp_path), "PATH": ""}
        return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)

    assert run("--version").stdout == f"claw-local {claw_local.__version__}\n"
    assert run("-m", "claw_local", "--version").stdout == f"claw-local {claw_local.__version__}\n"
    assert run("-P", "-m", "claw_local", "--version").returncode == 0, "as the program starts its parts"
    assert run("-m", "os").returncode == 2, "other modules are not its own"
