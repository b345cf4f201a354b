"""Python, settings, folder, disk: fine, and with a fault planted in each."""

from __future__ import annotations

import dataclasses
import os

import pytest

from claw_local.doctor.machine import check_disk, check_folder, check_python, check_settings, judge_disk
from claw_local.paths import locate


def test_this_python_will_do():
    assert check_python().state == "ok"


@pytest.mark.parametrize(("version", "bits"), [((3, 10), 64), ((3, 12), 32)])
def test_an_old_or_a_32_bit_python_will_not(version, bits):
    assert check_python(version, bits).state == "problem"


def test_no_settings_file_is_fine(home):
    check, settings = check_settings(home)
    assert check.state == "ok"
    assert settings.model.context == 4096


def test_a_settings_file_is_read(home):
    home.make().settings.write_text("[model]\ncontext = 2048\n")
    check, settings = check_settings(home)
    assert check.state == "ok"
    assert settings.model.context == 2048


@pytest.mark.parametrize(
    ("text", "named"), [("[model\n", "TOML"), ("[model]\ncontext = 1\n", "model.context"), ("[modle]\n", "modle")]
)
def test_a_broken_settings_file_is_named_and_the_defaults_stand_in(home, text, named):
    home.make().settings.write_text(text)
    check, settings = check_settings(home)
    assert check.state == "problem"
    assert named in check.detail
    assert check.remedy
    assert settings.model.context == 4096


def test_a_fault_in_the_environment_does_not_stop_the_doctor(home, monkeypatch):
    monkeypatch.setenv("CLAW_LOCAL_MODEL__CONTEXT", "many")
    check, settings = check_settings(home)
    assert check.state == "problem"
    assert settings.model.context == 4096


def test_a_folder_that_does_not_exist_yet_is_fine_and_is_not_made(home):
    assert check_folder(home).state == "ok"
    assert not home.data.exists()


def test_a_folder_that_can_be_written_is_fine_and_nothing_is_left_in_it(home):
    home.make()
    before = sorted(home.data.iterdir())
    assert check_folder(home).state == "ok"
    assert sorted(home.data.iterdir()) == before


def test_a_home_that_is_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    check = check_folder(locate(tmp_path / "file" / "home"))
    assert check.state == "problem"
    assert "CLAW_LOCAL_HOME" in check.remedy


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_home_cannot_be_written(home):
    home.make().data.chmod(0o500)
    try:
        assert check_folder(home).state == "problem"
    finally:
        home.data.chmod(0o700)


def test_a_settings_folder_that_cannot_be_written_counts_too(home, tmp_path):
    (tmp_path / "file").touch()
    split = dataclasses.replace(home, config=tmp_path / "file" / "config")
    assert check_folder(split).state == "problem"


def test_the_disk_has_room_here_and_thresholds_are_kept(home):
    assert check_disk(home).state in ("ok", "warning")
    assert [judge_disk(free).state for free in (10**6, 10**9, 10**11)] == ["problem", "warning", "ok"]
