"""Fetching models, from a hub that is played on loopback through the real huggingface_hub."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from claw_local.engine import pulling
from claw_local.engine.base import Cancelled
from claw_local.engine.hub import RemoteFile
from claw_local.errors import ModelError, UsageError
from tests.engine.hub import PlayedHub, played_hub

ROOT = Path(__file__).parents[2]
DATA = bytes(range(256)) * 40_000  # 10 MB
REPO = "someone/Small-GGUF"
ROOM = 10**12


@pytest.fixture(autouse=True)
def _to_loopback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    monkeypatch.setattr("claw_local.engine.hub.WAIT_S", 0.01)


def fetch(hub: PlayedHub, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> pulling.Pulled:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
    return pulling.pull(text, folder, **{"room": ROOM, **options})


def files(**sizes: int) -> list[RemoteFile]:
    return [RemoteFile(name.replace("__", "."), size, "") for name, size in sizes.items()]


def test_a_file_is_fetched_whole_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[pulling.Fetched] = []
    with played_hub(PlayedHub({REPO: {"small-Q4_K_M.gguf": DATA, "README.md": b"words"}})) as hub:
        pulled = fetch(hub, REPO, tmp_path, monkeypatch, on_progress=seen.append)
    assert pulled.path == tmp_path / "small-Q4_K_M.gguf"
    assert pulled.path.read_bytes() == DATA
    assert not pulled.already
    assert [one.phase for one in seen][-1] == "checking"
    assert max(one.done_bytes for one in seen) == seen[0].total_bytes == len(DATA)
    assert sorted(one.done_bytes for one in seen) == [one.done_bytes for one in seen]
    assert list((tmp_path / pulling.PARTIAL_FOLDER).iterdir()) == []
    assert hub.tokens == ["Bearer hf_mine"]


def test_what_is_here_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with played_hub(PlayedHub({REPO: {"small-Q4_K_M.gguf": DATA}})) as hub:
        fetch(hub, REPO, tmp_path, monkeypatch)
        asked = len(hub.ranges)
        assert fetch(hub, REPO, tmp_path, monkeypatch).already
        assert len(hub.ranges) == asked


def test_a_broken_connection_goes_on_where_it_broke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with played_hub(PlayedHub({REPO: {"small-Q4_K_M.gguf": DATA}}, stop_after=3_000_000)) as hub:
        assert fetch(hub, REPO, tmp_path, monkeypatch).path.read_bytes() == DATA
    first, second = hub.ranges
    assert first == ""
    assert 0 < int(second.removeprefix("bytes=").rstrip("-")) <= 3_000_000


def test_a_server_without_ranges_sends_it_all_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with played_hub(PlayedHub({REPO: {"small-Q4_K_M.gguf": DATA}}, stop_after=3_000_000, knows_range=False)) as hub:
        assert fetch(hub, REPO, tmp_path, monkeypatch).path.read_bytes() == DATA


def test_stopping_keeps_what_was_fetched_and_the_next_try_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel = threading.Event()

    def stop_halfway(fetched: pulling.Fetched) -> None:
        if fetched.done_bytes > len(DATA) // 2:
            cancel.set()

    with played_hub(PlayedHub({REPO: {"small-Q4_K_M.gguf": DATA}})) as hub:
        with pytest.raises(Cancelled):
            fetch(hub, REPO, tmp_path, monkeypatch, on_progress=stop_halfway, cancel=cancel)
        assert not (tmp_path / "small-Q4_K_M.gguf").exists()
        assert fetch(hub, REPO, tmp_path, monkeypatch).path.read_bytes() == DATA
        assert int(hub.ranges[-1].removeprefix("bytes=").rstrip("-")) > len(DATA) // 2


def test_damaged_bytes_are_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        played_hub(PlayedHub({REPO: {"small-Q4_K_M.gguf": DATA}}, lies={"small-Q4_K_M.gguf": "a" * 64})) as hub,
        pytest.raises(ModelError, match="damaged"),
    ):
        fetch(hub, REPO, tmp_path, monkeypatch)
    assert list(tmp_path.rglob("*.gguf")) == [] and list(tmp_path.rglob("*.part")) == []


def test_a_split_model_comes_with_all_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {f"Q8_0/big-Q8_0-0000{n}-of-00002.gguf": DATA[: n * 1000] for n in (1, 2)}
    with played_hub(PlayedHub({REPO: {**parts, "other-Q2_K.gguf": DATA[:10]}})) as hub:
        pulled = fetch(hub, f"{REPO}:q8_0", tmp_path, monkeypatch)
    assert pulled.path == tmp_path / "big-Q8_0-00001-of-00002.gguf"
    assert (tmp_path / "big-Q8_0-00002-of-00002.gguf").read_bytes() == DATA[:2000]
    assert pulled.size_bytes == 3000


def test_another_model_of_that_name_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small-Q4_K_M.gguf").write_bytes(b"another")
    with played_hub(PlayedHub({REPO: {"small-Q4_K_M.gguf": DATA}})) as hub:
        pulled = fetch(hub, REPO, tmp_path, monkeypatch)
    assert pulled.path == tmp_path / "someone--Small-GGUF" / "small-Q4_K_M.gguf"
    assert (tmp_path / "small-Q4_K_M.gguf").read_bytes() == b"another"


def test_a_disk_without_room_is_said_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 1000})())
    with played_hub(PlayedHub({REPO: {"small-Q4_K_M.gguf": DATA}})) as hub, pytest.raises(ModelError, match="of disk"):
        fetch(hub, REPO, tmp_path, monkeypatch)
    assert hub.ranges == []


@pytest.mark.parametrize(
    ("text", "kind", "word"),
    [
        ("someone/Nothing-GGUF", ModelError, "no repository"),
        ("someone/Gated-GGUF", ModelError, "HF_TOKEN"),
        ("someone/Words", ModelError, "no GGUF file"),
        (f"{REPO}:Q9_Z", UsageError, "It has: Q4_K_M"),
        ("small", UsageError, "OWNER/NAME"),
        ("a/b/c", UsageError, "OWNER/NAME"),
    ],
)
def test_what_cannot_be_fetched_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, kind: type[Exception], word: str
) -> None:
    hub = PlayedHub({REPO: {"small-Q4_K_M.gguf": DATA}, "someone/Words": {"README.md": b"words"}})
    hub.gated.add("someone/Gated-GGUF")
    with played_hub(hub), pytest.raises(kind, match=word):
        fetch(hub, text, tmp_path, monkeypatch)


def test_offline_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants as constants

    with pytest.raises(ModelError, match=r"cannot be reached .*offline"):
        fetch(PlayedHub(url="http://127.0.0.1:9"), REPO, tmp_path, monkeypatch)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE is set"):
        fetch(PlayedHub(url="http://127.0.0.1:9"), REPO, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b", ("a/b", "")),
        ("a/b:Q4_K_M", ("a/b", "Q4_K_M")),
        ("https://huggingface.co/a/b", ("a/b", "")),
        ("hf.co/a/b:Q8_0", ("a/b", "Q8_0")),
        ("https://huggingface.co/a/b/resolve/main/sub/x.gguf?download=true", ("a/b", "sub/x.gguf")),
        ("https://huggingface.co/a/b/blob/main/x.gguf", ("a/b", "x.gguf")),
        ("https://huggingface.co/a/b/tree/main", ("a/b", "")),
    ],
)
def test_a_repository_may_be_named_in_many_ways(text: str, expected: tuple[str, str]) -> None:
    assert pulling.wanted(text) == expected


def test_four_bits_are_taken_where_they_fit_and_less_where_not() -> None:
    gb = 10**9
    offered = pulling.choices(
        files(
            **{"m-Q8_0.gguf": 8 * gb, "m-Q4_K_M.gguf": 5 * gb, "m-Q3_K_M.gguf": 4 * gb, "m-Q2_K.gguf": 3 * gb},
            **{"mmproj-F16.gguf": gb, "m.imatrix.gguf": gb},
        )
    )
    assert len(offered) == 4
    names = {room: pulling.choose(offered, "", room * gb).quant for room in (100, 6, 4, 3, 1)}
    assert names == {100: "Q4_K_M", 6: "Q4_K_M", 4: "Q3_K_M", 3: "Q2_K", 1: "Q2_K"}
    assert pulling.choose(offered, "q8_0", gb).quant == "Q8_0"
    assert pulling.choose(offered, "m-Q2_K.gguf", gb).quant == "Q2_K"
    small = pulling.choices(files(**{"s-Q8_0.gguf": gb // 2, "s-Q4_K_M.gguf": gb // 4}))
    assert pulling.choose(small, "", 100 * gb).quant == "Q8_0"


def test_a_split_model_with_a_part_missing_is_not_offered() -> None:
    assert pulling.choices(files(**{"m-00001-of-00002.gguf": 1})) == []


def test_two_pulls_of_one_file_do_not_write_into_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caught: list[str] = []

    def pull_again(fetched: pulling.Fetched) -> None:
        if fetched.phase == "fetching" and not caught:
            try:
                fetch(hub, REPO, tmp_path, monkeypatch)
            except ModelError as error:
                caught.append(str(error))

    with played_hub(PlayedHub({REPO: {"small-Q4_K_M.gguf": DATA}})) as hub:
        assert fetch(hub, REPO, tmp_path, monkeypatch, on_progress=pull_again).path.read_bytes() == DATA
    assert "another program" in caught[0]


def test_the_command_shows_what_it_fetched_and_control_c_leaves_what_can_go_on(tmp_path: Path) -> None:
    large = os.urandom(1 << 20) * 20
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "app", "trainer")),
        "CLAW_LOCAL_HOME": str(tmp_path / "home"),
        "HF_HUB_OFFLINE": "0",
    }
    command = [sys.executable, "-m", "claw_local", "models", "pull", REPO]
    with played_hub(PlayedHub({REPO: {"large-Q4_K_M.gguf": large}}, waits_after=12 << 20)) as hub:
        environment["HF_ENDPOINT"] = hub.url
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        models = tmp_path / "home" / "models"
        until = time.monotonic() + 20
        while not any(part.stat().st_size for part in models.rglob("*.part")) and time.monotonic() < until:
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 130, errors.decode()
        assert b"Traceback" not in errors and b"goes on from there" in errors
        assert not list(models.glob("*.gguf"))
        hub.waits_after = 0
        hub.go_on.set()
        done = subprocess.run([*command, "--json"], env=environment, capture_output=True, timeout=60, check=True)
        assert hub.ranges[-1].startswith("bytes=")
    assert not any("torch" in agent for agent in hub.agents), "what is installed here is not told"
    assert Path(json.loads(done.stdout)["path"]).read_bytes() == large
