"""Model files: which one is taken, and which are refused, in words."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path

import gguf
import pytest
from gguf.constants import GGML_QUANT_SIZES

from claw_local.engine import models
from claw_local.engine.gguf_file import BLOCKS, DamagedGguf, read_header
from claw_local.errors import ModelError
from claw_local.paths import Paths
from claw_local.settings import ModelSettings, Settings


def test_the_embedded_model_is_taken_when_none_is_named(home: Paths, model_path: Path) -> None:
    assert models.find_model(Settings(), home) == model_path


def test_an_argument_wins_over_the_settings(home: Paths, tmp_path: Path) -> None:
    settings = Settings(model=ModelSettings(path=str(tmp_path / "set.gguf")))
    assert models.find_model(settings, home) == tmp_path / "set.gguf"
    assert models.find_model(settings, home, tmp_path / "argument.gguf") == tmp_path / "argument.gguf"


def test_a_bare_name_is_found_in_the_models_folder(home: Paths) -> None:
    home.make()
    kept = home.models / "kept.gguf"
    kept.write_bytes(b"GGUF")
    assert models.find_model(Settings(), home, "kept.gguf") == kept


def test_without_any_model_the_message_says_how_to_get_one(home: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "EMBEDDED_PACKAGE", "a_package_that_is_not_installed")
    with pytest.raises(ModelError, match="pip install"):
        models.find_model(Settings(), home)


def test_the_header_of_the_embedded_model_is_read(model_path: Path) -> None:
    header = models.check_model(model_path)
    assert header.text("general.architecture") == "llama"
    assert header.numbers("llama.block_count") == [30]
    assert header.tensors["blk.0.attn_q.weight"].shape == (576, 576)
    # 30 layers x 3 heads x (64 + 64) x 2 bytes for each token
    assert models.kv_bytes(header, 1000) == 30 * 3 * 128 * 2 * 1000
    assert models.kv_bytes(header, 10**9) == models.kv_bytes(header, 8192)


def test_block_sizes_are_those_of_the_gguf_package() -> None:
    known = {int(kind): sizes for kind, sizes in GGML_QUANT_SIZES.items()}
    assert {kind: sizes for kind, sizes in BLOCKS.items() if kind in known} == {
        kind: sizes for kind, sizes in known.items() if kind in BLOCKS
    }


@pytest.mark.parametrize("keep", [5, 40, 2000, 1_500_000, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, model_path: Path, keep: int) -> None:
    whole = model_path.read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(whole[:keep])
    with pytest.raises(ModelError, match=r"cut short.*Download it again"):
        models.check_model(cut)


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04 something else", b"<html>not found</html>" * 100])
def test_a_file_that_is_not_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(content)
    with pytest.raises(ModelError, match="is not a GGUF file"):
        models.check_model(other)


def test_nonsense_after_the_magic_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 400)
    with pytest.raises(ModelError, match="damaged"):
        models.check_model(bad)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model file"):
        models.check_model(tmp_path / "none.gguf")
    with pytest.raises(ModelError, match="is a folder"):
        models.check_model(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.gguf"
    secret.write_bytes(b"GGUF")
    secret.chmod(0)
    with pytest.raises(ModelError, match="Cannot read"):
        models.check_model(secret)


def test_a_gguf_file_that_holds_an_adapter_is_refused_as_a_model(tmp_path: Path) -> None:
    path = tmp_path / "adapter.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("general.type", "adapter")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match="holds an adapter"):
        models.check_model(path)


def test_a_model_too_big_for_memory_is_refused_with_numbers(model_path: Path) -> None:
    with pytest.raises(ModelError, match=r"needs about 0\.2 GiB.*0\.1 GiB are free"):
        models.check_model(model_path, memory=2**27)
    assert models.check_model(model_path, memory=2**27, on_gpu=True)


def test_a_damaged_count_of_layers_is_too_much_for_any_memory(model_path: Path) -> None:
    """Billions of them are not listed one by one."""
    header = read_header(model_path)
    sized = models.kv_bytes(header, 1000)
    header.metadata["llama.block_count"] = 30 * 10**8
    assert models.kv_bytes(header, 1000) == sized * 10**8


def test_the_hash_is_remembered_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"one")
    first = models.model_sha256(file, tmp_path)
    assert first == hashlib.sha256(b"one").hexdigest()
    with monkeypatch.context() as patched:
        patched.setattr(hashlib, "file_digest", lambda *_: pytest.fail("hashed again"))
        assert models.model_sha256(file, tmp_path) == first
    file.write_bytes(b"three")
    assert models.model_sha256(file, tmp_path) == hashlib.sha256(b"three").hexdigest()


def test_a_damaged_hash_file_and_a_folder_that_cannot_be_written_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"one")
    expected = hashlib.sha256(b"one").hexdigest()
    for damage in ("{", "[]", json.dumps({str(file): 3}), json.dumps({str(file): {"size": 3}})):
        (tmp_path / models.HASHES_FILE).write_text(damage)
        assert models.model_sha256(file, tmp_path) == expected
    assert models.model_sha256(file, tmp_path / "no" / "such" / "folder") == expected
    assert models.model_sha256(file, None) == expected


def test_arrays_nested_without_end_are_damage(tmp_path: Path) -> None:
    file = tmp_path / "deep.gguf"
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9)
    for depth, refused in ((3, False), (5, True), (100_000, True)):
        nested = struct.pack("<IQ", 9, 1) * (depth - 1) + struct.pack("<IQ", 4, 0)
        file.write_bytes(head + nested)
        if refused:
            with pytest.raises(DamagedGguf, match="damaged"):
                read_header(file)
            with pytest.raises(ModelError, match="damaged"):
                models.check_model(file)
        else:
            assert read_header(file).metadata == {"k": None}


def test_reading_the_header_is_quick_enough_for_every_start(model_path: Path) -> None:
    import time

    started = time.process_time()
    read_header(model_path)
    assert time.process_time() - started < 0.5
