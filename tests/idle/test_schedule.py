"""The system's timers: what is written, whether the system's own checkers take it, and that nothing is left behind.

systemctl, launchctl and schtasks are scripts here that write down how they were called: no user's session runs where
tests do. The units themselves are looked at by `systemd-analyze` where it is there.
"""

from __future__ import annotations

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from claw_local.errors import LearnError
from claw_local.idle.schedule import Plan, make_plan
from claw_local.idle.schedule.launchd import Launchd
from claw_local.idle.schedule.plan import template
from claw_local.idle.schedule.systemd import Systemd, quoted
from claw_local.idle.schedule.windows import NAMESPACE, TaskScheduler
from claw_local.paths import Paths, locate

AWKWARD = '/home/me/my "own" 100% $HOME \\ folder & <more>'
PLAN = Plan(
    "claw-local-learn-12345678",
    (sys.executable, "-P", "-m", "claw_local", "learn", "tick", "--home", AWKWARD),
    {"PYTHONPATH": f"{AWKWARD}:/b"},
)
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Callable[[], list[str]]]:
    """Puts a program of that name into the PATH, which notes its calls; gives what reads them."""

    def put(name: str, script: str = "exit 0") -> Callable[[], list[str]]:
        folder, log = tmp_path / "bin", tmp_path / f"{name}.log"
        folder.mkdir(exist_ok=True)
        file = folder / name
        file.write_text(f'#!/bin/sh\necho "$*" >> {shlex.quote(str(log))}\n{script}\n')
        file.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
        return lambda: log.read_text().splitlines() if log.exists() else []

    return put


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# systemd


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    systemd = Systemd(PLAN, environment={"XDG_CONFIG_HOME": str(tmp_path)})
    systemd.folder.mkdir(parents=True)
    for file, text in systemd.texts().items():
        file.write_text(text)
    files = [str(systemd.service), str(systemd.timer)]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], check=False, capture_output=True, text=True, timeout=60
    )
    about_ours = [line for line in done.stderr.splitlines() if PLAN.name in line]
    assert done.returncode == 0 and not about_ours, done.stderr


def test_nothing_in_a_path_means_anything_else_to_systemd() -> None:
    assert quoted('a "b" %h $X \\') == '"a \\"b\\" %%h $X \\\\"'
    assert quoted("$X", command=True) == '"$$X"'
    service = Systemd(PLAN, environment={}).texts()[Systemd(PLAN, environment={}).service]
    (line,) = [line for line in service.splitlines() if line.startswith("ExecStart=")]
    assert line.startswith(f'ExecStart="{sys.executable}" "-P" "-m" "claw_local" "learn" "tick" "--home" ')
    assert "100%% $$HOME" in line
    assert "100%% $HOME" in service.partition("Environment=")[2], "no variables there"


@posix
def test_systemd_is_told_and_nothing_stays_after_remove(
    tmp_path: Path, calls: Callable[..., Callable[[], list[str]]]
) -> None:
    told = calls("systemctl")
    home = tmp_path / "config"
    systemd = Systemd(PLAN, environment={"XDG_CONFIG_HOME": str(home)})
    assert not systemd.status().installed
    state = systemd.install()
    assert (state.installed, state.active, state.current) == (True, True, True)
    assert f"--user enable {PLAN.name}.timer" in told()
    systemd.service.write_text("[Service]\nExecStart=/bin/true\n")
    assert not systemd.status().current
    assert systemd.install().current, "installing again brings it up to date"
    wants = systemd.folder / "timers.target.wants"
    wants.mkdir()
    (wants / systemd.timer.name).symlink_to(systemd.timer)  # As systemctl enable makes it.
    assert systemd.remove()
    assert everything(home) == []
    assert f"--user disable --now {PLAN.name}.timer" in told()
    assert not systemd.remove()


@posix
def test_what_else_is_in_systemd_s_folder_stays(tmp_path: Path, calls: Callable[..., Callable[[], list[str]]]) -> None:
    calls("systemctl")
    systemd = Systemd(PLAN, environment={"XDG_CONFIG_HOME": str(tmp_path / "config")})
    systemd.folder.mkdir(parents=True)
    (systemd.folder / "mine.service").write_text("x")
    systemd.install()
    systemd.remove()
    assert everything(systemd.folder) == ["mine.service"]


@posix
@pytest.mark.parametrize("refuses", ["show-environment", "enable"])
def test_a_systemd_that_refuses_leaves_nothing_behind(
    tmp_path: Path, calls: Callable[..., Callable[[], list[str]]], refuses: str
) -> None:
    calls("systemctl", f'case "$*" in *{refuses}*) echo "Failed to connect to bus" >&2; exit 1;; esac')
    home = tmp_path / "config"
    systemd = Systemd(PLAN, environment={"XDG_CONFIG_HOME": str(home)})
    with pytest.raises(LearnError, match=r"no timer to set up|Failed to connect"):
        systemd.install()
    assert not home.exists() or everything(home) == []


# launchd


def test_the_agent_is_a_property_list_with_what_launchd_knows() -> None:
    agent = plistlib.loads(plistlib.dumps(Launchd(PLAN, folder=Path("/x")).agent()))
    assert agent["ProgramArguments"] == list(PLAN.command)
    assert agent["EnvironmentVariables"] == PLAN.environment
    assert agent["Label"] == f"local.{PLAN.name}" and agent["StartInterval"] == 300
    known = set(
        "Label ProgramArguments StartInterval RunAtLoad ProcessType LowPriorityIO LowPriorityBackgroundIO Nice "
        "ExitTimeOut Umask EnvironmentVariables".split()
    )
    assert set(agent) <= known, "launchd.plist(5) knows these"


@posix
def test_launchd_is_told_and_nothing_stays_after_remove(
    tmp_path: Path, calls: Callable[..., Callable[[], list[str]]]
) -> None:
    told = calls("launchctl")
    launchd = Launchd(PLAN, folder=tmp_path / "agents")
    assert launchd.install().current
    assert f"bootstrap gui/{os.getuid()} {launchd.file}" in told()
    assert launchd.remove()
    assert everything(tmp_path / "agents") == []
    assert told()[-1] == f"bootout gui/{os.getuid()}/local.{PLAN.name}"
    assert not launchd.remove()
    calls("launchctl", 'case "$1" in bootstrap) echo "Bootstrap failed: 5" >&2; exit 5;; esac')
    with pytest.raises(LearnError, match="Bootstrap failed"):
        launchd.install()
    assert everything(tmp_path / "agents") == []


# Windows


def test_the_task_is_xml_in_the_schema_s_namespace_with_the_whole_command() -> None:
    plan = Plan(PLAN.name, ("C:\\Program Files\\py\\python.exe", "-m", "claw_local", "--home", "C:\\a b\\<c> & d"))
    task = ElementTree.fromstring(TaskScheduler(plan).xml().partition("?>")[2])
    assert task.tag == f"{{{NAMESPACE}}}Task" and task.get("version") == "1.2"
    parts = [child.tag.partition("}")[2] for child in task]
    assert parts == ["RegistrationInfo", "Triggers", "Principals", "Settings", "Actions"], "in the schema's order"
    found = {node.tag.partition("}")[2]: node.text for node in task.iter()}
    assert found["Command"] == "C:\\Program Files\\py\\python.exe"
    assert found["Arguments"] == '-m claw_local --home "C:\\a b\\<c> & d"'
    assert (found["MultipleInstancesPolicy"], found["ExecutionTimeLimit"], found["Interval"]) == (
        "IgnoreNew",
        "PT0S",
        "PT5M",
    )
    trigger = task.find(f".//{{{NAMESPACE}}}TimeTrigger")
    assert trigger is not None
    assert [child.tag.partition("}")[2] for child in trigger] == ["Repetition", "StartBoundary", "Enabled"]


def test_a_task_cannot_call_what_is_not_installed() -> None:
    with pytest.raises(LearnError, match="Install it first"):
        TaskScheduler(PLAN).xml()


@posix
def test_the_task_scheduler_is_told(calls: Callable[..., Callable[[], list[str]]], tmp_path: Path) -> None:
    plan = Plan(PLAN.name, PLAN.command)
    kept = shlex.quote(str(tmp_path / "task.xml"))
    script = f"""
case "$1" in
/Create) iconv -f utf-16 -t utf-8 "$5" > {kept} 2>/dev/null || cp "$5" {kept};;
/Query) cat {kept} 2>/dev/null;;
/Delete) rm {kept};;
esac"""
    told = calls("schtasks", script)
    tasks = TaskScheduler(plan)
    assert not tasks.status().installed
    assert tasks.install().current
    assert tasks.remove()
    assert told()[-1] == f"/Delete /TN {plan.name} /F"
    assert not tasks.remove()


# What is called


def test_each_home_folder_has_a_timer_of_its_own(home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(home)
    assert plan.command[-2:] == ("--home", str(home.data))
    monkeypatch.setenv("CLAW_LOCAL_HOME", str(tmp_path / "other"))
    assert make_plan(locate()).name not in (plan.name, "claw-local-learn")
    monkeypatch.delenv("CLAW_LOCAL_HOME")
    usual = make_plan(locate())
    assert usual.name == "claw-local-learn" and "--home" not in usual.command


def test_what_is_called_runs_from_anywhere(home: Paths, tmp_path: Path) -> None:
    plan = make_plan(home)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **plan.environment}
    done = subprocess.run(
        plan.command, cwd="/", env=environment, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Waits for learning to be turned on")


@pytest.mark.parametrize("name", ["service", "timer", "plist", "xml"])
def test_the_templates_are_found(name: str) -> None:
    assert template(f"claw-local-learn.{name}")
