"""An adapter as one file: out of one home, into another, and nothing of the chats with it."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw_local.adapters import sealing
from claw_local.adapters.peft import read_peft
from claw_local.assistant import Assistant
from claw_local.errors import AdapterError, UsageError
from claw_local.paths import Paths
from tests.adapters.loras import ALL, SECRET, folders, lora, register

PASSPHRASE = "correct horse battery staple"


@pytest.fixture
def assistant(home: Paths) -> Iterator[Assistant]:
    opened = Assistant.open()
    yield opened
    opened.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Assistant]:
    """A second home."""
    opened = Assistant.open(tmp_path / "second")
    yield opened
    opened.close()


@pytest.fixture
def cheap_scrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "LOG_N", 10)


def exported(assistant: Assistant, adapter: int, folder: Path, **options: str) -> Path:
    return assistant.adapters.export(adapter, folder / f"{adapter}-{len(list(folder.iterdir()))}.claw", **options)


def test_the_same_adapter_gives_the_same_bytes_also_from_the_home_it_was_carried_to(
    assistant: Assistant, other: Assistant, tmp_path: Path
) -> None:
    record = register(assistant, lora(modules=ALL, rank=3), name="work")
    first, second = exported(assistant, record.id, tmp_path), exported(assistant, record.id, tmp_path)
    assert first.read_bytes() == second.read_bytes()
    found = other.adapters.import_file(first)
    assert not found.already
    there = found.record
    assert (there.name, there.state, there.parent_id) == ("work", "candidate", 0)
    assert Path(there.gguf_path).read_bytes() == Path(record.gguf_path).read_bytes()
    assert exported(other, there.id, tmp_path).read_bytes() == first.read_bytes()
    assert other.adapters.active() is None, "importing puts nothing into use"
    assert other.adapters.use("work") is not None


def test_the_manifest_tells_what_the_documentation_says_and_its_hashes_are_true(
    assistant: Assistant, tmp_path: Path
) -> None:
    base = register(assistant, lora(1))
    record = register(assistant, lora(2, modules=ALL), parent=base.id, name="home")
    with zipfile.ZipFile(exported(assistant, record.id, tmp_path)) as pack:
        names = pack.namelist()
        manifest = json.loads(pack.read("manifest.json"))
        assert names == [
            "manifest.json",
            "peft/adapter_config.json",
            "peft/adapter_model.safetensors",
            "adapter.gguf",
            "gate.json",
            "gate.md",
        ]
        for name in names[1:]:
            data = pack.read(name)
            assert manifest["files"][name] == {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert (manifest["format"], manifest["version"], manifest["name"]) == ("claw-pack", 1, "home")
    assert manifest["base"] == {"sha256": assistant.model_sha256, "architecture": "llama"}
    assert manifest["lora"] == {"rank": 2, "alpha": 4.0, "modules": sorted(ALL), "blocks": 2}
    assert manifest["parent"] == base.sha256["adapter.gguf"]
    assert (manifest["turns"], manifest["recipe"]) == (3, {"method": "combined", "steps": 8})


def test_no_word_of_the_person_is_in_a_pack(assistant: Assistant, tmp_path: Path) -> None:
    record = register(assistant, lora())
    with zipfile.ZipFile(exported(assistant, record.id, tmp_path)) as pack:
        everything = b"".join(pack.read(name) for name in pack.namelist())
        report = json.loads(pack.read("gate.json"))
    assert SECRET.encode() not in everything
    assert len(report["examples"]) == 1, "an answer to a shipped prompt may go"


def test_the_parent_is_known_again_where_it_was_carried_too(
    assistant: Assistant, other: Assistant, tmp_path: Path
) -> None:
    parent = register(assistant, lora(1))
    child = register(assistant, lora(2), parent=parent.id)
    packs = [exported(assistant, record.id, tmp_path) for record in (parent, child)]
    first = other.adapters.import_file(packs[0]).record
    assert other.adapters.import_file(packs[1]).record.parent_id == first.id


def test_importing_again_doubles_nothing_and_a_name_that_is_taken_is_not_taken_twice(
    assistant: Assistant, other: Assistant, tmp_path: Path
) -> None:
    register(other, lora(9), name="work")
    pack = exported(assistant, register(assistant, lora(), name="work").id, tmp_path)
    first = other.adapters.import_file(pack)
    before = folders(other)
    again = other.adapters.import_file(pack)
    assert (first.already, again.already, again.record.id) == (False, True, first.record.id)
    assert first.record.name == ""
    assert folders(other) == before
    with pytest.raises(UsageError, match="called Work already"):
        other.adapters.import_file(pack, name="Work")


def test_a_sealed_pack_opens_with_its_passphrase_alone(
    assistant: Assistant, other: Assistant, tmp_path: Path, cheap_scrypt: None
) -> None:
    record = register(assistant, lora(modules=ALL), name="work")
    sealed = exported(assistant, record.id, tmp_path, passphrase=PASSPHRASE)
    data = sealed.read_bytes()
    assert data != exported(assistant, record.id, tmp_path, passphrase=PASSPHRASE).read_bytes(), "a fresh salt"
    assert b"manifest" not in data and b"claw-pack" not in data and b"GGUF" not in data
    before = folders(other)
    with pytest.raises(AdapterError, match="passphrase is wrong"):
        other.adapters.import_file(sealed, passphrase=lambda: PASSPHRASE + "!")
    with pytest.raises(UsageError, match="sealed with a passphrase"):
        other.adapters.import_file(sealed)
    with pytest.raises(UsageError, match="empty"):
        other.adapters.import_file(sealed, passphrase=lambda: "  ")
    assert folders(other) == before
    found = other.adapters.import_file(sealed, passphrase=lambda: PASSPHRASE)
    assert Path(found.record.gguf_path).read_bytes() == Path(record.gguf_path).read_bytes()


@given(st.binary(max_size=300), st.integers(0, 10_000), st.integers(0, 7))
@settings(max_examples=30, deadline=None)
def test_what_was_sealed_comes_back_and_any_changed_bit_or_cut_is_noticed(data: bytes, place: int, bit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing, "LOG_N", 10)
        patch.setattr(sealing, "PIECE", 64)
        sealed = b"".join(sealing.seal(io.BytesIO(data), "π"))
        assert b"".join(sealing.unseal(io.BytesIO(sealed), "π")) == data
        at = place % len(sealed)
        changed = bytearray(sealed)
        changed[at] ^= 1 << bit
        cut = sealed[:at]
        swapped = sealed[:35] + sealed[115:195] + sealed[35:115] + sealed[195:]
        longer = sealed + sealed[-20:]
        for wrong in (
            bytes(changed[8:] if at < 8 else changed),
            cut,
            longer,
            *([swapped] if swapped != sealed else []),
        ):
            with pytest.raises(AdapterError):
                b"".join(sealing.unseal(io.BytesIO(wrong), "π"))


def test_sealing_costs_memory_and_the_file_cannot_ask_for_more_than_is_reasonable() -> None:
    assert 128 * sealing.R * 2**sealing.LOG_N == 128 * 2**20
    sealed = b"".join(sealing.seal(io.BytesIO(b"x"), "one two"))
    for place, value in ((9, 31), (9, 1), (10, 255), (11, 200), (8, 2)):
        with pytest.raises(AdapterError, match=r"memory or time|does not know"):
            b"".join(sealing.unseal(io.BytesIO(sealed[:place] + bytes([value]) + sealed[place + 1 :]), "one two"))


def test_a_peft_folder_of_others_is_taken_also_in_half_precision_and_rank_stabilised(
    assistant: Assistant, tmp_path: Path
) -> None:
    made = lora(modules=ALL, rank=4)
    folder = tmp_path / "theirs"
    folder.mkdir()
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    data, expected = b"", {}
    for (block, module), pair in made.weights.items():
        for half, matrix in zip("AB", pair, strict=True):
            upper = (matrix.view(np.uint32) >> 16).astype(np.uint16)  # bfloat16, rounded down
            name = f"base_model.model.model.layers.{block}.{module}.lora_{half}.weight"
            header[name] = {
                "dtype": "BF16",
                "shape": list(matrix.shape),
                "data_offsets": [len(data), len(data) + upper.nbytes],
            }
            expected[block, module, half] = (upper.astype(np.uint32) << 16).view(np.float32)
            data += upper.tobytes()
    text = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "use_rslora": True, "target_modules": list(ALL)}
    (folder / "adapter_config.json").write_text(
        json.dumps({**config, "base_model_name_or_path": "/home/them/models/Their-Model"})
    )
    record = assistant.adapters.import_file(folder, name="theirs").record
    kept = read_peft(Path(record.peft_dir))
    assert (kept.alpha, kept.base_name) == (16.0, "Their-Model"), "8 / √4 is 16 / 4; no path of theirs is kept"
    for (block, module), pair in kept.weights.items():
        for half, matrix in zip("AB", pair, strict=True):
            assert np.array_equal(matrix, expected[block, module, half])
    assert record.recipe["origin"] == {"kind": "peft", "from": "theirs"}


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0"])
def test_a_gguf_lora_of_others_becomes_the_peft_one_that_does_the_same(
    assistant: Assistant, tmp_path: Path, kind: str
) -> None:
    made = lora(modules=ALL, rank=32)
    source = Path(register(assistant, made).gguf_path)
    reader = gguf.GGUFReader(source)
    theirs = tmp_path / "theirs.gguf"
    writer = gguf.GGUFWriter(theirs, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 0.0)  # llama.cpp then scales by 1
    for tensor in reader.tensors:
        value = gguf.quants.quantize(tensor.data, gguf.GGMLQuantizationType[kind])
        writer.add_tensor(tensor.name, value, raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    record = assistant.adapters.import_file(theirs).record
    kept = read_peft(Path(record.peft_dir))
    assert kept.alpha == 32, "alpha / r is 1"
    bound = {"F32": 0.0, "F16": 2e-3, "Q8_0": 3e-2}[kind]
    for place, pair in made.weights.items():
        for mine, theirs_ in zip(pair, kept.weights[place], strict=True):
            assert np.abs(mine - theirs_).max() <= bound, "rows of q and k are back in transformers' order"


def test_uneven_ranks_become_one_rank_with_the_same_update(assistant: Assistant, tmp_path: Path) -> None:
    theirs = tmp_path / "uneven.gguf"
    writer = gguf.GGUFWriter(theirs, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 6.0)
    random = np.random.default_rng(0)
    updates = {}
    for block, rank in ((0, 2), (1, 3)):
        a, b = random.standard_normal((rank, 576)), random.standard_normal((192, rank))
        updates[block] = 6.0 / rank * b @ a
        writer.add_tensor(f"blk.{block}.attn_v.weight.lora_a", a.astype(np.float32))
        writer.add_tensor(f"blk.{block}.attn_v.weight.lora_b", b.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    kept = read_peft(Path(assistant.adapters.import_file(theirs).record.peft_dir))
    assert kept.ranks == {3}
    for block, update in updates.items():
        a, b = kept.weights[block, "self_attn.v_proj"]
        assert np.allclose(kept.alpha / 3 * b @ a, update, atol=1e-4)


def test_a_pack_for_another_base_is_refused_with_the_reason_and_taken_by_force_if_it_fits(
    assistant: Assistant, other: Assistant, tmp_path: Path, model_path: Path
) -> None:
    pack = exported(assistant, register(assistant, lora()).id, tmp_path)
    changed = tmp_path / "same-shapes.gguf"
    shutil.copyfile(model_path, changed)
    with changed.open("r+b") as file:
        file.seek(-1, io.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, io.SEEK_END)
        file.write(bytes([last ^ 1]))
    with Assistant.open(other.paths.data, model=changed) as elsewhere:
        before = folders(elsewhere)
        with pytest.raises(AdapterError, match=r"another base model \(llama, hash [0-9a-f]{12}…\).*--force"):
            elsewhere.adapters.import_file(pack)
        assert folders(elsewhere) == before
        record = elsewhere.adapters.import_file(pack, force=True).record
        assert record.model_sha256 == elsewhere.model_sha256
        assert record.recipe["origin"]["base"] == assistant.model_sha256


def test_an_adapter_whose_file_was_changed_is_not_exported(assistant: Assistant, tmp_path: Path) -> None:
    record = register(assistant, lora())
    path = Path(record.peft_dir) / "adapter_model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(AdapterError, match="has been changed"):
        assistant.adapters.export(record.id, tmp_path / "out.claw")
    path.write_bytes(data)
    Path(record.gguf_path).unlink()
    with pytest.raises(AdapterError, match="is gone"):
        assistant.adapters.export(record.id, tmp_path / "out.claw")
    assert not list(tmp_path.glob("*.claw")) and not list(Path(record.peft_dir).parent.glob(".export*"))


def test_a_file_that_exists_is_written_over_by_force_only(assistant: Assistant, tmp_path: Path) -> None:
    record, target = register(assistant, lora()), tmp_path / "me.claw"
    target.write_text("precious")
    with pytest.raises(UsageError, match="--force"):
        assistant.adapters.export(record.id, target)
    with pytest.raises(UsageError, match="is a folder"):
        assistant.adapters.export(record.id, tmp_path)
    with pytest.raises(AdapterError, match="cannot be written"):
        assistant.adapters.export(record.id, tmp_path / "no folder" / "me.claw")
    assert target.read_text() == "precious"
    assistant.adapters.export(record.id, target, force=True)
    assert target.read_bytes()[:2] == b"PK" and target.stat().st_mode & 0o777 == 0o600


def test_folders_for_other_programs(assistant: Assistant, tmp_path: Path, model_path: Path) -> None:
    record = register(assistant, lora(modules=ALL))
    peft = assistant.adapters.export(record.id, tmp_path / "peft", "peft")
    assert sorted(file.name for file in peft.iterdir()) == ["adapter_config.json", "adapter_model.safetensors"]
    lone = assistant.adapters.export(record.id, tmp_path / "lora.gguf", "gguf")
    assert lone.read_bytes() == Path(record.gguf_path).read_bytes()
    folder = assistant.adapters.export(record.id, tmp_path / "for ollama", "ollama")
    assert sorted(file.name for file in folder.iterdir()) == ["Modelfile", "adapter.gguf"]
    lines = (folder / "Modelfile").read_text().splitlines()
    place = f'"{model_path}"' if " " in str(model_path) else str(model_path)
    assert f"FROM {place}" in lines and "ADAPTER ./adapter.gguf" in lines
    assert {"PARAMETER temperature 0.7", "PARAMETER num_ctx 4096"} <= set(lines)
    whole = assistant.adapters.export(record.id, tmp_path / "whole", "ollama", with_base=True)
    assert (whole / model_path.name).read_bytes() == model_path.read_bytes()
    assert f"FROM ./{model_path.name}" in (whole / "Modelfile").read_text().splitlines()
    with pytest.raises(UsageError, match="no empty folder"):
        assistant.adapters.export(record.id, peft, "peft")
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith(".")]


def test_a_whole_model_with_the_adapter_in_its_weights(assistant: Assistant, tmp_path: Path, model_path: Path) -> None:
    record = register(assistant, lora(size=1.0))
    heard: list[float] = []
    merged = assistant.adapters.export(
        record.id, tmp_path / "merged.gguf", "merged", on_progress=lambda fraction, words: heard.append(fraction)
    )
    assert abs(merged.stat().st_size / model_path.stat().st_size - 1) < 0.02
    theirs = {tensor.name: tensor for tensor in gguf.GGUFReader(merged).tensors}
    changed = {
        tensor.name
        for tensor in gguf.GGUFReader(model_path).tensors
        if not np.array_equal(tensor.data, theirs[tensor.name].data)
    }
    assert changed == {"blk.0.attn_v.weight", "blk.1.attn_v.weight"}
    assert heard and heard[-1] == 1.0
    with pytest.raises(UsageError):
        assistant.adapters.export(record.id, merged, "merged")


def test_what_an_import_that_was_killed_left_behind_is_swept_away(assistant: Assistant, tmp_path: Path) -> None:
    pack = exported(assistant, register(assistant, lora()).id, tmp_path)
    left = assistant.paths.adapters / ".import-999999-1.00-abc"
    (left / "given").mkdir(parents=True)
    with Assistant.open(tmp_path / "second") as other:
        shutil.copytree(left, other.paths.adapters / left.name)
        other.adapters.import_file(pack)
        assert not (other.paths.adapters / left.name).exists()


def test_a_recipe_of_others_passes_for_nothing_that_is_known_here(
    assistant: Assistant, tmp_path: Path, other: Assistant
) -> None:
    from claw_local.forgetting import Request
    from tests.adapters.test_refused_packs import honest, opened

    pack = assistant.adapters.export(register(assistant, lora()).id, tmp_path / "me.claw")
    recipe = {"steps": 8, "mix": "abc", "hints": 5, "likes": True, "origin": "x"}
    pack.write_bytes(honest(opened(pack.read_bytes()), recipe=recipe))
    record = other.adapters.import_file(pack).record
    assert set(record.recipe) == {"steps", "origin"} and record.recipe["origin"]["kind"] == "claw"
    chat = other.store.chats.create(title="a chat")
    other.store.messages.add(chat.id, "user", "how do kites fly", parent_id=None)
    assert other.forgetting.forget(Request(chats=(chat.id,))).left == ()
