"""Merging an adapter into the embedded model: what changes, what stays, how much memory it takes, what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from claw_local import Assistant
from claw_local.adapters import blocks, merge_layout
from claw_local.adapters.lora_file import open_lora
from claw_local.adapters.merge import Merged, merge
from claw_local.adapters.merge_check import Distance
from claw_local.adapters.registry import file_sha256
from claw_local.adapters.rounding import Rounding, codes_of
from claw_local.cli.main import app
from claw_local.engine.base import AdapterSlot
from claw_local.engine.gguf_file import read_header
from claw_local.errors import AdapterError, ModelError, UsageError
from claw_local.paths import Paths
from tests.engine.conftest import LINEAR, write_lora

Q4_0, Q4_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS = 2, 3, 8, 10, 11, 12, 13, 14, 20, 23
STRENGTH = 0.002


@pytest.fixture(scope="module")
def lora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lora(tmp_path_factory.mktemp("lora") / "all.gguf", modules=tuple(LINEAR), strength=STRENGTH)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that changes two blocks only, where what is said does not depend on how many."""
    return write_lora(tmp_path_factory.mktemp("lora") / "small.gguf", modules=tuple(LINEAR), layers=2)


@pytest.fixture(scope="module")
def merged(model_path: Path, lora: Path, tmp_path_factory: pytest.TempPathFactory) -> Merged:
    target = tmp_path_factory.mktemp("merged") / "merged.gguf"
    return merge(model_path, [AdapterSlot(lora)], target, check=False)


def test_it_says_how_close_the_merged_model_is_to_the_model_with_its_adapter(
    model_path: Path, lora: Path, tmp_path: Path
) -> None:
    heard: list[float] = []
    target, slots = tmp_path / "f16.gguf", [AdapterSlot(lora)]
    done = merge(model_path, slots, target, quant="f16", report=lambda words, fraction: heard.append(fraction))
    distance = done.distance
    assert distance is not None
    assert distance.tokens >= 32
    assert distance.adapters > 0.15, "the adapter does something at all"
    assert distance.mean < 0.12, "as near as llama.cpp's own rounding of activations lets it be"
    assert 0.85 < distance.kept < 1.15
    assert f"{distance.mean:.3f} nats" in distance.sentence() and "That is little" not in distance.sentence()
    assert heard == sorted(heard) and heard[-1] == 1.0
    assert "That is little" in Distance(64, 0.2, 1.0, 0.2, 0.1).sentence()


def test_metadata_tokenizer_and_untouched_tensors_stay_byte_for_byte(merged: Merged, model_path: Path) -> None:
    done = merged
    base, made = read_header(model_path), read_header(done.path)
    old, new = model_path.read_bytes(), done.path.read_bytes()
    assert len(new) == len(old) == done.size
    assert new[: base.data_start] == old[: base.data_start]
    assert made == base
    changed = 0
    for name, tensor in base.tensors.items():
        assert tensor.size is not None
        place = slice(base.data_start + tensor.offset, base.data_start + tensor.offset + tensor.size)
        same = new[place] == old[place]
        changed += not same
        assert same or name.split(".")[2] in LINEAR
    assert changed == done.changed == 30 * len(LINEAR)
    assert [file.name for file in done.path.parent.iterdir()] == ["merged.gguf"]


def test_each_weight_is_the_old_one_plus_the_update(merged: Merged, model_path: Path, lora: Path) -> None:
    header = read_header(model_path)
    for name in ("blk.3.attn_q.weight", "blk.17.ffn_down.weight"):
        a, b = open_lora(lora).pair(name)
        update = b[0] @ a[0]
        change = blocks.read(merged.path, header, name) - blocks.read(model_path, header, name)
        assert np.sum(change * update) / np.sum(update * update) == pytest.approx(1.0, abs=0.08)


def test_a_small_update_survives_in_four_bits(model_path: Path) -> None:
    header = read_header(model_path)
    weights = blocks.read(model_path, header, "blk.9.ffn_up.weight")
    random = np.random.default_rng(0)
    update = random.normal(0, 1, (1536, 16)) @ random.normal(0, 1, (16, 576))
    update = (update * 0.28 / np.linalg.norm(update)).astype(np.float32)  # a few thousandths of a step

    def share(change: np.ndarray) -> float:
        return float(np.sum(change * update) / np.sum(update * update))

    data = blocks.make(weights, Q4_1)
    nearest = blocks.undo(blocks.make(weights + update, Q4_1), Q4_1, 576) - weights
    ours = Rounding(Q4_1, keeps_grid=True, name="blk.9").made(data.reshape(-1), weights, update)
    assert share(nearest) < 0.2, "this is what rounding to the nearest leaves of it"
    assert share(blocks.undo(ours.reshape(1536, -1), Q4_1, 576) - weights) == pytest.approx(1.0, abs=0.1)
    again = Rounding(Q4_1, keeps_grid=True, name="blk.9").made(data.reshape(-1), weights, update)
    assert np.array_equal(ours, again), "the same input gives the same bytes"


@pytest.mark.parametrize("kind", [Q4_0, Q4_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS])
@pytest.mark.parametrize("size", [0.002, 0.2])
def test_updates_small_and_large_arrive_in_every_common_type(kind: int, size: float) -> None:
    random = np.random.default_rng(1)
    data = blocks.make(random.standard_normal((128, 768)).astype(np.float32) * 0.1, kind)
    values = blocks.undo(data, kind, 768)
    update = (random.standard_normal((128, 768)) * size * 0.1).astype(np.float32)
    made = Rounding(kind, keeps_grid=True, name="x").made(data.reshape(-1), values, update)
    change = blocks.undo(made.reshape(128, -1), kind, 768) - values
    slope = float(np.sum(change * update) / np.sum(update * update))
    # Two bits have little room at the ends of their range.
    assert slope == pytest.approx(1.0, abs=0.35 if kind == Q2_K else 0.25 if kind == Q3_K else 0.15)


def test_codes_are_found_where_the_format_has_them() -> None:
    q4_1 = codes_of(Q4_1)
    assert q4_1 is not None and not q4_1.signed and q4_1.even
    # A block of Q4_1: two half floats, then 16 bytes; byte j holds value j in its low half and j + 16 in its high one.
    assert q4_1.bits[:, 0].tolist() == [32, 33, 34, 35]
    assert q4_1.bits[:, 16].tolist() == [36, 37, 38, 39]
    q8_0 = codes_of(Q8_0)
    assert q8_0 is not None and q8_0.signed
    assert q8_0.bits[:, 5].tolist() == list(range(16 + 40, 16 + 48))
    nl = codes_of(IQ4_NL)
    assert nl is not None and not nl.even


def test_no_update_changes_no_byte() -> None:
    for kind in (Q4_0, Q4_1, Q8_0, Q4_K, Q6_K):
        data = blocks.make(np.random.default_rng(2).standard_normal((4, 512)).astype(np.float32), kind)
        values = blocks.undo(data, kind, 512)
        made = Rounding(kind, keeps_grid=True, name="x").made(data.reshape(-1), values, np.zeros_like(values))
        assert np.array_equal(made.reshape(data.shape), data)


def test_memory_stays_below_the_bound(model_path: Path, small: Path, tmp_path: Path) -> None:
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("only Linux says how much memory a process alone had at most")
    script = """
import sys
from pathlib import Path
from claw_local.adapters.merge import merge
from claw_local.engine.base import AdapterSlot
merge(Path(sys.argv[1]), [AdapterSlot(Path(sys.argv[2]))], Path(sys.argv[3]), quant=sys.argv[4], check=False)
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""
    largest = max(tensor.size or 0 for tensor in read_header(model_path).tensors.values())
    for quant in ("", "f32"):
        command = [sys.executable, "-c", script, str(model_path), str(small), str(tmp_path / f"{quant}.gguf"), quant]
        out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]).stdout
        assert int(out) * 1024 < 1.5 * largest + 300e6


def test_another_type_can_be_asked_for(model_path: Path, lora: Path, tmp_path: Path) -> None:
    done = merge(model_path, [AdapterSlot(lora)], tmp_path / "q8.gguf", quant="Q8_0", check=False)
    header, base = read_header(done.path), read_header(model_path)
    assert header.metadata["general.file_type"] == 7
    assert {**header.metadata, "general.file_type": 0} == {**base.metadata, "general.file_type": 0}
    assert done.types == {"Q8_0": 211, "F32": 61}
    assert done.path.stat().st_size == done.size
    a, b = open_lora(lora).pair("blk.3.attn_q.weight")
    change = blocks.read(done.path, header, "blk.3.attn_q.weight") - blocks.read(
        model_path, base, "blk.3.attn_q.weight"
    )
    assert np.abs(change - b[0] @ a[0]).mean() < 0.003
    with Assistant.open(tmp_path / "home", model=done.path) as assistant:
        assert assistant.ask("What is rain?", sampling={"max_tokens": 4}).text


def test_rows_that_cannot_be_cut_into_long_blocks_get_the_next_type(model_path: Path) -> None:
    layout = merge_layout.lay_out(model_path, read_header(model_path), "q4_k", ())
    # 576 is no multiple of 256, 1536 is one.
    assert layout.types == {"F32": 61, "Q4_K": 30, "Q5_0": 181}
    with pytest.raises(AdapterError, match=r"no type 'q9'.*q8_0"):
        merge_layout.lay_out(model_path, read_header(model_path), "q9", ())


def test_what_cannot_be_merged_is_refused_and_leaves_nothing(
    model_path: Path, lora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.gguf"
    wrong = write_lora(tmp_path / "wrong.gguf", narrower=1)
    other = write_lora(tmp_path / "other.gguf", architecture="qwen2")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(lora.read_bytes()[:5000])
    for bad, words in ((wrong, "do not fit"), (other, "made for a qwen2 model"), (cut, "cut short")):
        with pytest.raises(AdapterError, match=words):
            merge(model_path, [AdapterSlot(bad)], target, check=False)
    with pytest.raises(AdapterError, match="not a LoRA"):
        merge(model_path, [AdapterSlot(model_path)], target, check=False)
    with pytest.raises(ModelError):
        merge(lora, [AdapterSlot(lora)], target, check=False)
    with pytest.raises(AdapterError, match="nothing to merge"):
        merge(model_path, [], target, check=False)
    with pytest.raises(AdapterError, match="no folder"):
        merge(model_path, [AdapterSlot(lora)], tmp_path / "none" / "out.gguf", check=False)
    with pytest.raises(AdapterError, match="is the model that is merged from"):
        merge(model_path, [AdapterSlot(lora)], model_path, force=True, check=False)
    target.write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"exists.*--force"):
        merge(model_path, [AdapterSlot(lora)], target, check=False)
    usage = __import__("shutil").disk_usage(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=1 << 20))
    with pytest.raises(AdapterError, match=r"0\.10 GB, and 0\.00 GB are free"):
        merge(model_path, [AdapterSlot(lora)], target, force=True, check=False)
    assert target.read_bytes() == b"mine"
    assert {file.name for file in tmp_path.iterdir()} == {"out.gguf", "wrong.gguf", "other.gguf", "cut.gguf"}


def test_stopping_it_leaves_nothing(model_path: Path, small: Path, tmp_path: Path) -> None:
    def stop(words: str, fraction: float) -> None:
        if fraction > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge(model_path, [AdapterSlot(small)], tmp_path / "out.gguf", check=False, report=stop)
    assert list(tmp_path.iterdir()) == []


def test_the_command_merges_an_adapter_by_id_or_name(home: Paths, small: Path, tmp_path: Path) -> None:
    with Assistant.open() as assistant:
        record = assistant.store.adapters.add(
            parent_id=0,
            name="work",
            model_sha256=assistant.model_sha256,
            architecture="llama",
            gguf_path=str(small),
            sha256={small.name: file_sha256(small)},
        )
    out = tmp_path / "out.gguf"
    run = CliRunner().invoke(app, ["adapters", "merge", "work", str(out), "--no-check"])
    assert run.exit_code == 0, run.output
    assert re.search(r"Written: .*out\.gguf \(98\.4 MB; .*14 weights changed", run.output)
    again = CliRunner().invoke(app, ["adapters", "merge", str(record.id), str(out), "--no-check"])
    assert again.exit_code == 2 and "--force" in again.output
    shown = CliRunner().invoke(app, ["adapters", "merge", "1", str(out), "--no-check", "--force", "--json"])
    assert json.loads(shown.stdout)["changed"] == 14
    assert CliRunner().invoke(app, ["adapters", "merge", "9", str(out)]).exit_code == 1
