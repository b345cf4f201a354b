"""What the probes answer: on this machine, and to what other systems and desktops say."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from claw_local.idle import desktop_note
from claw_local.idle.probes import Load, Machine, gpu, linux, macos, power, temperature, windows
from claw_local.idle.probes.commands import NoAnswer, ask
from tests.idle import buses

needs_bus = pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="needs dbus-daemon")
NOBODY = "unix:path=/nowhere/at/all"


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with buses.bus(tmp_path_factory.mktemp("bus")) as address:
        yield address


def test_this_machine_answers_within_a_few_seconds_and_every_unknown_has_its_reason() -> None:
    began = time.monotonic()
    readings = Machine().read(None)
    assert time.monotonic() - began < 10
    for reading in vars(readings).values():
        assert reading.known or reading.why
    assert readings.load.known and 0.0 <= (readings.load.value or 0.0) <= 1.0


def test_the_work_of_the_run_itself_is_no_load_of_others() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        load = Load()
        load.share(busy.pid)
        time.sleep(1.0)
        used_by_run = psutil.Process(busy.pid).cpu_times()
        without = load.share(busy.pid).value
        load.share(None)
        time.sleep(1.0)
        with_it = load.share(None).value
    finally:
        busy.kill()
        busy.wait()
    assert used_by_run.user > 0
    assert without is not None and with_it is not None
    # Other programs may come and go meanwhile, so this is about the run's own share only.
    assert without < with_it + 0.5 and with_it > 0.2 / psutil.cpu_count()


def battery(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    def sensors() -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(psutil, "sensors_battery", sensors, raising=False)


def test_power(monkeypatch: pytest.MonkeyPatch) -> None:
    left = psutil.POWER_TIME_UNKNOWN
    for answer, expected in (
        (None, True),
        (SimpleNamespace(percent=50, secsleft=left, power_plugged=True), True),
        (SimpleNamespace(percent=50, secsleft=3600, power_plugged=False), False),
        (SimpleNamespace(percent=50, secsleft=left, power_plugged=None), None),
        (SimpleNamespace(percent=100, secsleft=left, power_plugged=None), True),
        (OSError("no"), None),
    ):
        battery(monkeypatch, answer)
        assert power.on_mains().value is expected
    monkeypatch.delattr(psutil, "sensors_battery")
    assert not power.on_mains().known


def test_temperature_is_that_of_the_processor_and_nonsense_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def entries(*values: float | None) -> list[Any]:
        return [SimpleNamespace(current=value) for value in values]

    found = {"nvme": entries(99.0), "coretemp": entries(55.0, 61.5, -128.0, None), "k10temp": entries(float("nan"))}
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: found, raising=False)
    assert temperature.hottest().value == 61.5
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: {"nvme": entries(40.0)}, raising=False)
    assert not temperature.hottest().known
    monkeypatch.delattr(psutil, "sensors_temperatures")
    assert not temperature.hottest().known


def program(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name in the PATH."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_the_busiest_gpu_counts_and_a_driver_that_fails_or_hangs_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gpu.busiest("no-such-program").why == gpu.ABSENT
    program(tmp_path, "a-smi", "printf '3\\n41\\n[N/A]\\n'", monkeypatch)
    assert gpu.busiest("a-smi").value == 0.41
    program(tmp_path, "b-smi", "exit 9", monkeypatch)
    assert gpu.busiest("b-smi").why == "b-smi failed"
    program(tmp_path, "c-smi", "exec sleep 30", monkeypatch)
    with pytest.raises(NoAnswer, match="did not answer"):
        ask("c-smi", timeout_s=0.2)


def test_what_ioreg_prints_on_a_mac_is_read() -> None:
    text = '  | |   "HIDIdleTime" = 12345678901\n  | |   "HIDIdleTime" = 98765432109\n'
    assert macos.read(text).value == pytest.approx(12.345678901)
    assert not macos.read("nothing").known


@pytest.mark.parametrize(("last", "now", "expected"), [(1000, 61_000, 60.0), (2**32 - 1000, 4000, 5.0)])
def test_windows_counts_over_the_end_of_its_counter(last: int, now: int, expected: float) -> None:
    def get_last_input_info(pointer: Any) -> int:
        info = ctypes.cast(pointer, ctypes.POINTER(windows._LastInput)).contents
        assert info.cbSize == 8
        info.dwTime = last
        return 1

    windll = SimpleNamespace(
        user32=SimpleNamespace(GetLastInputInfo=get_last_input_info),
        kernel32=SimpleNamespace(GetTickCount=lambda: now),
    )
    assert windows.idle_s(windll).value == expected
    windll.user32.GetLastInputInfo = lambda pointer: 0
    assert not windows.idle_s(windll).known


# Linux desktops. The services are played, since no desktop runs where tests do; the bus between is a real one.


def test_without_any_bus_it_is_unknown() -> None:
    assert not linux.idle_s(session=NOBODY, system=NOBODY).known


@needs_bus
def test_on_a_bus_where_nobody_answers_it_is_unknown(bus: str) -> None:
    assert not linux.idle_s(session=bus, system=bus).known


@needs_bus
def test_gnome_tells_it_in_milliseconds(bus: str) -> None:
    answers: buses.Answers = {("/org/gnome/Mutter/IdleMonitor/Core", "GetIdletime"): lambda: ("t", (90_500,))}
    with buses.service(bus, "org.gnome.Mutter.IdleMonitor", answers):
        reading = linux.idle_s(session=bus, system=NOBODY)
    assert (reading.value, reading.why) == (90.5, "Mutter")


@needs_bus
def test_the_usual_place_is_looked_at_where_nobody_named_one(bus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(Path(bus.partition("path=")[2]).parent))
    answers: buses.Answers = {("/org/gnome/Mutter/IdleMonitor/Core", "GetIdletime"): lambda: ("t", (2_000,))}
    with buses.service(bus, "org.gnome.Mutter.IdleMonitor", answers):
        assert linux.idle_s(system=NOBODY).value == 2.0


@needs_bus
@pytest.mark.parametrize("per_second", [1, 1000])
def test_a_screensaver_s_unit_is_found_out(bus: str, per_second: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "_per_second", {})
    began = time.monotonic() - 120
    answers: buses.Answers = {
        ("/org/freedesktop/ScreenSaver", "GetSessionIdleTime"): lambda: (
            "u",
            (int((time.monotonic() - began) * per_second),),
        )
    }
    with buses.service(bus, "org.freedesktop.ScreenSaver", answers) as asked:
        for _ in range(2):
            assert linux.idle_s(session=bus, system=NOBODY).value == pytest.approx(121, abs=2.5)
    assert len(asked) == 3, "the unit is found out once"


@needs_bus
def test_somebody_who_moves_while_the_unit_is_found_out_is_there(bus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "_per_second", {})
    values = [500, 3]
    path = "/org/freedesktop/ScreenSaver"
    answers: buses.Answers = {(path, "GetSessionIdleTime"): lambda: ("u", (values.pop(0),))}
    with buses.service(bus, "org.freedesktop.ScreenSaver", answers):
        assert linux.idle_s(session=bus, system=NOBODY).value == 0


def session(kind: str, *, idle: bool, since_s: float | None, state: str = "active", tty: str = "") -> dict[str, Any]:
    """A session as logind has it. `since_s`: seconds ago; None if nobody ever told."""
    return {
        "Class": ("s", "user"),
        "Type": ("s", kind),
        "State": ("s", state),
        "TTY": ("s", tty),
        "IdleHint": ("b", idle),
        "since_s": since_s,
    }


def properties(values: dict[str, Any]) -> dict[str, Any]:
    """The same with the moment that lies so far back now."""
    since_s = values["since_s"]
    since = 0 if since_s is None else int((time.monotonic() - since_s) * 1e6)
    left = {name: value for name, value in values.items() if name != "since_s"}
    return {**left, "IdleSinceHintMonotonic": ("t", since)}


@needs_bus
@pytest.mark.parametrize(
    ("sessions", "expected"),
    [
        ([session("wayland", idle=True, since_s=400)], 400),
        ([session("wayland", idle=False, since_s=400)], 0),
        ([session("wayland", idle=False, since_s=None)], None),
        ([session("tty", idle=False, since_s=30, tty="tty2")], 30),
        ([session("x11", idle=True, since_s=400), session("tty", idle=True, since_s=90, tty="pts/0")], 90),
        ([session("x11", idle=True, since_s=400, state="closing")], None),
        ([], None),
    ],
)
def test_logind_is_believed_where_it_knows(bus: str, sessions: list[dict[str, Any]], expected: float | None) -> None:
    paths = [f"/org/freedesktop/login1/session/_{n}" for n in range(len(sessions))]
    listed = [(str(n), os.getuid(), "me", "seat0", path) for n, path in enumerate(paths)]
    listed.append(("9", os.getuid() + 1, "somebody else", "seat0", "/org/freedesktop/login1/session/_9"))
    answers: buses.Answers = {("/org/freedesktop/login1", "ListSessions"): lambda: ("a(susso)", (listed,))}
    for path, values in zip(paths, sessions, strict=True):
        answers[(path, "GetAll")] = lambda interface, values=values: ("a{sv}", (properties(values),))
    with buses.service(bus, "org.freedesktop.login1", answers):
        reading = linux.idle_s(session=NOBODY, system=bus)
    assert reading.value == (pytest.approx(expected, abs=5) if expected is not None else None)


@needs_bus
def test_a_note_of_the_desktop_is_sent_as_words(bus: str) -> None:
    answers: buses.Answers = {("/org/freedesktop/Notifications", "Notify"): lambda *_: ("u", (1,))}
    with buses.service(bus, "org.freedesktop.Notifications", answers) as asked:
        assert desktop_note.linux("claw-local", "Adapter 3 <b>is</b> in use & better.", bus=bus)
    (call,) = asked
    assert call[5:7] == ("claw-local", "Adapter 3 &lt;b&gt;is&lt;/b&gt; in use &amp; better.")
    assert desktop_note.show("x", "y") in (True, False), "it never fails"
