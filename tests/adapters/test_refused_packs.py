"""A corpus of packs and adapters that are not as they should be: each is refused in a sentence, and nothing is left."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from claw_local.adapters import sealing
from claw_local.assistant import Assistant
from claw_local.errors import AdapterError, ClawError, UsageError
from claw_local.paths import HOME_VARIABLE
from tests.adapters.loras import folders, lora, register

Files = dict[str, bytes]
WEIGHTS, CONFIG, GGUF = "peft/adapter_model.safetensors", "peft/adapter_config.json", "adapter.gguf"
A, B = (f"base_model.model.model.layers.0.self_attn.v_proj.lora_{half}.weight" for half in "AB")


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assistant]:
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("CLAW_LOCAL_") and name != HOME_VARIABLE:
                patch.delenv(name)
        patch.setattr(sealing, "LOG_N", 10)
        opened = Assistant.open(tmp_path_factory.mktemp("refusing"))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A pack that is as it should be."""
    with Assistant.open(tmp_path_factory.mktemp("making")) as maker:
        record = register(maker, lora(), name="work")
        return maker.adapters.export(record.id, tmp_path_factory.mktemp("pack") / "me.claw").read_bytes()


def opened(pack: bytes) -> Files:
    with zipfile.ZipFile(io.BytesIO(pack)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(
    files: Files | list[tuple[Any, bytes]], compression: int = zipfile.ZIP_STORED, comment: bytes = b""
) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.comment = comment
        for name, data in files.items() if isinstance(files, dict) else files:
            archive.writestr(name, data)
    return out.getvalue()


def honest(files: Files, **changes: Any) -> bytes:
    """A pack of these files whose manifest tells their true sizes and hashes; `changes` are made to the manifest."""
    manifest = json.loads(files["manifest.json"])
    manifest["files"] = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in files.items()
        if name != "manifest.json"
    }
    for key, value in changes.items():
        at, *inner = key.split("__")
        if inner:
            manifest[at][inner[0]] = value
        else:
            manifest[at] = value
    return zipped({**files, "manifest.json": json.dumps(manifest).encode()})


def replaced(pack: bytes, name: str, data: bytes) -> bytes:
    return honest({**opened(pack), name: data})


def tensors(pack: bytes, change: Callable[[dict[str, np.ndarray]], None]) -> bytes:
    """The pack with other PEFT matrices, told truly in the manifest."""
    found = {name: matrix.copy() for name, matrix in load(opened(pack)[WEIGHTS]).items()}
    change(found)
    return replaced(pack, WEIGHTS, save(found))


def config(pack: bytes, **changes: Any) -> bytes:
    return replaced(pack, CONFIG, json.dumps({**json.loads(opened(pack)[CONFIG]), **changes}).encode())


def entry(name: str, mode: int = stat.S_IFREG | 0o600) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.create_system, info.external_attr = 3, mode << 16
    return info


def listed(pack: bytes, *more: tuple[Any, bytes]) -> bytes:
    return zipped([*((entry(name), data) for name, data in opened(pack).items()), *more])


def with_entry(pack: bytes, name: str, mode: int) -> bytes:
    return zipped([(entry(n, mode if n == name else 0o100600), data) for n, data in opened(pack).items()])


def without(pack: bytes, name: str) -> bytes:
    return zipped({key: data for key, data in opened(pack).items() if key != name})


def patched(pack: bytes, find: bytes, offset: int, value: bytes, which: int = 0) -> bytes:
    """The pack with bytes changed at an offset from the nth place where `find` stands."""
    at = -1
    for _ in range(which + 1):
        at = pack.index(find, at + 1)
    at += offset
    return pack[:at] + value + pack[at + len(value) :]


def bomb(pack: bytes) -> bytes:
    files = {**opened(pack), "gate.md": b"\0" * 50_000_000}
    return zipped(files, zipfile.ZIP_DEFLATED)


def set_to(name: str, value: np.ndarray) -> Callable[[dict[str, np.ndarray]], None]:
    return lambda found: found.__setitem__(name, value)


def moved(old: str, new: str) -> Callable[[dict[str, np.ndarray]], None]:
    def change(found: dict[str, np.ndarray]) -> None:
        for name in [name for name in found if old in name]:
            found[name.replace(old, new)] = found.pop(name)

    return change


def other_gguf(pack: bytes, architecture: str = "llama", kind: str = "adapter", factor: float = 1.0) -> bytes:
    """The pack's GGUF LoRA written anew with something else about it."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "a.gguf"), Path(folder, "b.gguf")
        source.write_bytes(opened(pack)[GGUF])
        reader = gguf.GGUFReader(source)
        writer = gguf.GGUFWriter(target, architecture)
        writer.add_type(kind)
        writer.add_string("adapter.type", "lora")
        writer.add_float32("adapter.lora.alpha", 4.0)
        for tensor in reader.tensors:
            writer.add_tensor(tensor.name, np.array(tensor.data) * np.float32(factor))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return target.read_bytes()


class Boom:
    """What a pickle could do."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("boom-was-here",)


VALUE = np.ones((2, 576), np.float32)
SPOILT: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    # What is no zip, or no whole one
    "empty": (lambda p: b"", "neither a pack"),
    "text": (lambda p: b"hello, world", "neither a pack"),
    "PK and no more": (lambda p: b"PK\x03\x04", "cut short"),
    "cut in half": (lambda p: p[: len(p) // 2], "cut short"),
    "cut by one byte": (lambda p: p[:-1], "cut short"),
    "the first byte is gone": (lambda p: p[1:], "neither a pack|was added|does not agree|damaged"),
    "something before it": (lambda p: b"PK" + p, "was added|damaged"),
    "something after it": (lambda p: p + b"tail", "was added"),
    "a zip after the zip": (lambda p: p + zipped({"x": b"y"}), "was added|does not hold|holds 'x'"),
    "a comment": (lambda p: zipped(opened(p), comment=b"hello"), "was added"),
    "bytes between its files": (lambda p: p[:60] + b"\0" * 10 + p[60:], "was added|does not agree|damaged"),
    "no entries": (lambda p: zipped({}), "does not hold"),
    "far too many entries": (lambda p: zipped({f"f{n}": b"" for n in range(99)}), "does not hold"),
    "entries told twice as many": (lambda p: p[:-14] + struct.pack("<2H", 12, 12) + p[-10:], "another number"),
    "two disks": (lambda p: p[:-18] + struct.pack("<2H", 1, 1) + p[-14:], "does not hold"),
    "a directory as large as the file": (lambda p: p[:-10] + struct.pack("<L", len(p)) + p[-6:], "was added"),
    # Paths, links, bombs, doubles
    "a path upwards": (lambda p: listed(p, (entry("../../evil"), b"x")), "which no pack does"),
    "an absolute path": (lambda p: listed(p, (entry("/tmp/evil"), b"x")), "which no pack does"),
    "a path of Windows": (lambda p: listed(p, (entry("C:\\evil"), b"x")), "which no pack does"),
    "a known name under another folder": (lambda p: listed(p, (entry("x/adapter.gguf"), b"x")), "which no pack does"),
    "a name with a zero byte": (lambda p: p.replace(b"gate.md", b"gate.m\0"), "which no pack does|damaged"),
    "a folder": (lambda p: listed(p, (entry("peft/", stat.S_IFDIR | 0o700), b"")), "which no pack does"),
    "a link to elsewhere": (lambda p: listed(p, (entry("link", stat.S_IFLNK | 0o777), b"/etc")), "which no pack does"),
    "a link under a known name": (lambda p: with_entry(p, GGUF, stat.S_IFLNK | 0o777), "is a link"),
    "a device under a known name": (lambda p: with_entry(p, GGUF, stat.S_IFCHR | 0o600), "is a link or something"),
    "a bomb": (bomb, "holds files as they are"),
    "packed honestly": (lambda p: zipped(opened(p), zipfile.ZIP_DEFLATED), "holds files as they are"),
    "packed with bzip2": (lambda p: zipped(opened(p), zipfile.ZIP_BZIP2), "holds files as they are"),
    "a file twice": (lambda p: listed(p, (entry(GGUF), opened(p)[GGUF])), "twice"),
    "two manifests": (lambda p: listed(p, (entry("manifest.json"), b"{}")), "twice"),
    "encrypted by zip": (lambda p: patched(p, b"PK\x01\x02", 8, b"\x01"), "packed or encrypted"),
    "a pickle inside": (lambda p: listed(p, (entry("data.pkl"), pickle.dumps(Boom()))), "which no pack does"),
    "sizes told differently in two places": (lambda p: patched(p, b"PK\x03\x04", 22, b"\x07"), "does not agree"),
    "two entries over the same bytes": (
        lambda p: patched(p, b"PK\x01\x02", 42, struct.pack("<L", 0), which=3),
        "does not agree|was added",
    ),
    "a checksum that is wrong": (lambda p: patched(p, b"PK\x01\x02", 16, b"\0\0\0\0"), "damaged"),
    "another name in the file's own header": (lambda p: p.replace(b"gate.md", b"gate.mx", 1), "damaged|does not agree"),
    # Manifests that are none, or lie
    "no manifest": (lambda p: without(p, "manifest.json"), "no manifest"),
    "a manifest that is no JSON": (lambda p: zipped({**opened(p), "manifest.json": b"\xff{"}), "not JSON"),
    "a manifest that is a list": (lambda p: zipped({**opened(p), "manifest.json": b"[1]"}), "manifest is not one"),
    "a manifest nested without end": (
        lambda p: zipped({**opened(p), "manifest.json": b"[" * 200_000}),
        "not JSON|manifest is not one",
    ),
    "a manifest of two megabytes": (
        lambda p: zipped({**opened(p), "manifest.json": b" " * (2 << 20)}),
        "manifest.json in it is too large",
    ),
    "another format": (lambda p: honest(opened(p), format="other"), "format"),
    "a newer version": (lambda p: honest(opened(p), version=2), "version 2.*update"),
    "a version that is no number": (lambda p: honest(opened(p), version="1"), "version"),
    "a field nobody knows": (lambda p: honest(opened(p), run_this="x"), "run_this"),
    "a name that is a path": (lambda p: honest(opened(p), name="../x"), "name"),
    "turns below zero": (lambda p: honest(opened(p), turns=-1), "turns"),
    "a hash that is none": (lambda p: honest(opened(p), base__sha256="abc"), "base.sha256"),
    "a recipe with a tree in it": (lambda p: honest(opened(p), recipe={"x": {"y": 1}}), "recipe"),
    "a number that is not finite": (lambda p: honest(opened(p), lora__alpha=float("nan")), "lora.alpha|not JSON"),
    "another base": (lambda p: honest(opened(p), base__sha256="0" * 64), "another base model"),
    "another rank": (lambda p: honest(opened(p), lora__rank=16), "other matrices"),
    "another alpha": (lambda p: honest(opened(p), lora__alpha=5.0), "other matrices"),
    "other modules": (lambda p: honest(opened(p), lora__modules=["q_proj"]), "other matrices"),
    "more blocks": (lambda p: honest(opened(p), lora__blocks=30), "other matrices"),
    "a wrong hash": (lambda p: zipped({**opened(p), "gate.md": opened(p)["gate.md"][:-1] + b"!"}), "hash the manifest"),
    "a wrong size": (lambda p: zipped({**opened(p), "gate.md": b"short"}), "another size"),
    "a file the manifest does not name": (
        lambda p: zipped({**opened(without(honest(opened(without(p, "gate.md"))), "x")), "gate.md": b"x"}),
        "names other files",
    ),
    "a file that is not there": (lambda p: without(p, "gate.md"), "names other files"),
    "no GGUF file": (lambda p: without(p, GGUF), "lacks adapter.gguf"),
    "no matrices": (lambda p: without(p, WEIGHTS), "lacks peft"),
    "no config": (lambda p: without(p, CONFIG), "lacks peft"),
    # Contents that are told truly, and still are not as they should be
    "matrices that are no safetensors": (lambda p: replaced(p, WEIGHTS, b"\x80\x04K\x01."), "is damaged"),
    "a pickle in their place": (lambda p: replaced(p, WEIGHTS, pickle.dumps(Boom())), "is damaged"),
    "safetensors with a header too long": (lambda p: replaced(p, WEIGHTS, b"\xff" * 8 + b"{}"), "is damaged"),
    "safetensors cut short": (lambda p: replaced(p, WEIGHTS, opened(p)[WEIGHTS][:-9]), "is damaged"),
    "no matrix at all": (lambda p: tensors(p, dict.clear), "is empty"),
    "half a layer": (lambda p: tensors(p, lambda found: found.pop(A)), "lacks half"),
    "a value that is not a number": (lambda p: tensors(p, set_to(A, VALUE * np.nan)), "not finite"),
    "a value without an end": (lambda p: tensors(p, set_to(A, VALUE * np.inf)), "not finite"),
    "a value too large for float32": (lambda p: tensors(p, set_to(A, VALUE.astype("f8") * 1e300)), "not finite"),
    "whole numbers": (lambda p: tensors(p, set_to(A, VALUE.astype("i8"))), "stored as I64"),
    "a shape that does not fit": (lambda p: tensors(p, set_to(A, VALUE[:, :-1].copy())), "do not fit"),
    "ranks of A and B that differ": (lambda p: tensors(p, set_to(A, np.ones((3, 576), "f4"))), "do not fit"),
    "a matrix of three dimensions": (lambda p: tensors(p, set_to(A, VALUE[None])), "do not fit"),
    "a rank of nothing": (
        lambda p: tensors(p, lambda f: f.update({A: np.ones((0, 576), "f4"), B: np.ones((192, 0), "f4")})),
        "rank|do not fit",
    ),
    "a rank beyond all bounds": (
        lambda p: tensors(p, lambda f: f.update({A: np.ones((1025, 576), "f4"), B: np.ones((192, 1025), "f4")})),
        "ranks from 1 to 1024",
    ),
    "ranks that differ by layer": (
        lambda p: tensors(p, lambda f: f.update({A: np.ones((3, 576), "f4"), B: np.ones((192, 3), "f4")})),
        "different ranks",
    ),
    "a layer the base does not have": (lambda p: tensors(p, moved("layers.0", "layers.77")), "does not have"),
    "a module that is none": (lambda p: tensors(p, moved("v_proj", "x_proj")), "cannot be applied"),
    "the vocabulary": (
        lambda p: tensors(p, set_to("base_model.model.lm_head.lora_A.weight", VALUE)),
        "cannot be applied",
    ),
    "a config that is no JSON": (lambda p: replaced(p, CONFIG, b"{"), "is damaged"),
    "a config of something else": (lambda p: config(p, peft_type="IA3"), "does not describe a LoRA"),
    "DoRA": (lambda p: config(p, use_dora=True), "use_dora"),
    "an alpha that is a word": (lambda p: config(p, lora_alpha="much"), "lora_alpha"),
    "an alpha without an end": (lambda p: config(p, lora_alpha=1e400), "lora_alpha"),
    "an alpha below zero": (lambda p: config(p, lora_alpha=-4), "lora_alpha"),
    "a rank in the config that is not theirs": (lambda p: config(p, r=64), "config gives rank 64"),
    "a GGUF file that is none": (lambda p: replaced(p, GGUF, b"GGUF but not really"), "cut short|damaged|version"),
    "a GGUF file cut short": (lambda p: replaced(p, GGUF, opened(p)[GGUF][:-100]), "cut short"),
    "a GGUF file of another adapter": (lambda p: replaced(p, GGUF, other_gguf(p, factor=2.0)), "not the same adapter"),
    "a GGUF file for another architecture": (lambda p: replaced(p, GGUF, other_gguf(p, "qwen2")), "qwen2"),
    "a GGUF file that is a model": (lambda p: replaced(p, GGUF, other_gguf(p, kind="model")), "not a LoRA"),
    "a report that is none": (lambda p: replaced(p, "gate.json", b'{"accepted": "yes"}'), "not a gate's report"),
    "a report nested without end": (lambda p: replaced(p, "gate.json", b"[" * 100_000), "not a gate's report"),
    # Sealed ones
    "a seal cut in its header": (lambda p: b"CLAWSEAL\x01", "cut short"),
    "a seal of a newer format": (lambda p: b"CLAWSEAL\x07" + b"\0" * 40, "does not know"),
    "a seal that asks for 8 GiB": (lambda p: b"CLAWSEAL\x01\x1b\x08\x01" + b"\0" * 40, "more memory or time"),
    "a seal with another passphrase": (lambda p: seal(p, "another one"), "passphrase is wrong"),
    "a seal cut short": (lambda p: seal(p)[:-30], "wrong, or the file was changed or cut|changed or cut"),
    "a seal with a bit changed": (lambda p: flipped(seal(p), 200), "changed or cut"),
    "a seal around text": (lambda p: seal(b"hello"), "cut short or no pack"),
    "a seal around a pack that lies": (lambda p: seal(honest(opened(p), lora__rank=9)), "other matrices"),
    "a seal in a seal": (lambda p: seal(seal(p)), "no pack|cut short|was added"),
}


def seal(data: bytes, passphrase: str = "open sesame") -> bytes:
    return b"".join(sealing.seal(io.BytesIO(data), passphrase))


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]


def refused(assistant: Assistant, source: Path, words: str = ".", **options: Any) -> str:
    """The sentence it is refused with. Nothing is kept, in the list or on the disk."""
    before, listed_before = folders(assistant), assistant.adapters.list()
    with pytest.raises(ClawError, match=words) as caught:
        assistant.adapters.import_file(source, passphrase=lambda: "open sesame", **options)
    assert folders(assistant) == before
    assert assistant.adapters.list() == listed_before
    text = str(caught.value)
    assert text.isprintable() and len(text) < 500 and str(assistant.paths.data) not in text
    return text


def test_the_corpus_is_large_enough() -> None:
    assert len(SPOILT) >= 60


def test_what_the_corpus_is_made_from_is_taken(assistant: Assistant, good: bytes, tmp_path: Path) -> None:
    # Written by another program, in another order of time and mode: also a pack, if all it says is true.
    pack = tmp_path / "me.claw"
    for data in (good, honest(opened(good)), seal(good)):
        pack.write_bytes(data)
        record = assistant.adapters.import_file(pack, passphrase=lambda: "open sesame").record
        assistant.adapters.remove(record.id)
    assert not folders(assistant)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", SPOILT)
def test_a_pack_that_is_not_as_it_should_be_is_refused(
    assistant: Assistant, good: bytes, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spoil, words = SPOILT[kind]
    pack = tmp_path / "me.claw"
    pack.write_bytes(spoil(good))
    text = refused(assistant, pack, words)
    assert text.startswith("me.claw was not imported: ")
    assert not Path("boom-was-here").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["me.claw"]


@given(place=st.floats(0, 1, exclude_max=True), value=st.integers(1, 255))
@settings(max_examples=60, deadline=None)
def test_any_byte_that_is_changed_is_refused_or_changes_nothing(
    assistant: Assistant, good: bytes, tmp_path_factory: pytest.TempPathFactory, place: float, value: int
) -> None:
    at = int(place * len(good))
    pack = tmp_path_factory.mktemp("changed") / "me.claw"
    pack.write_bytes(good[:at] + bytes([good[at] ^ value]) + good[at + 1 :])
    before = folders(assistant)
    try:
        record = assistant.adapters.import_file(pack, passphrase=lambda: "x").record
    except (AdapterError, UsageError):
        assert folders(assistant) == before
        return
    # Times and modes in the zip's own tables mean nothing here.
    assert hashlib.sha256(Path(record.gguf_path).read_bytes()).digest() == hashlib.sha256(opened(good)[GGUF]).digest()
    assistant.adapters.remove(record.id)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("missing", "cannot be read"),
        ("an empty folder", "adapter_config.json is not in it"),
        ("pickled matrices beside a config", "holds adapter_model.bin, a pickle"),
        ("a pickle", "is a pickle"),
        ("a pickle in torch's zip", "is a pickle"),
        ("a config alone", "adapter_model.safetensors is not in it"),
        ("anything called .bin", "neither a pack"),
        ("a pipe", "no regular file"),
        ("a pipe in the folder", "no regular file"),
        ("matrices alone", "name the folder"),
        ("a model", "not a LoRA adapter"),
        ("a config without end", "far too long"),
    ],
)
def test_what_is_no_adapter_is_refused(
    assistant: Assistant, tmp_path: Path, model_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "theirs"
    if kind == "a model":
        source = model_path
    elif kind.startswith("a pickle"):
        source = tmp_path / "adapter_model.bin"
        data = pickle.dumps(Boom())
        source.write_bytes(zipped({"archive/data.pkl": data}) if "zip" in kind else data)
    elif kind == "anything called .bin":
        source = tmp_path / "anything.bin"
        source.write_bytes(bytes(range(100)))
    elif kind == "a pipe":
        os.mkfifo(source)
    elif kind == "matrices alone":
        source = tmp_path / "adapter_model.safetensors"
        source.write_bytes(save({A: VALUE}))
    elif kind != "missing":
        source.mkdir()
        if kind != "an empty folder":
            (source / "adapter_config.json").write_text('{"peft_type": "LORA", "lora_alpha": 4, "r": 2}')
        if kind.startswith("pickled"):
            (source / "adapter_model.bin").write_bytes(pickle.dumps(Boom()))
        elif kind == "a pipe in the folder":
            os.mkfifo(source / "adapter_model.safetensors")
        elif kind == "a config without end":
            (source / "adapter_config.json").write_bytes(b" " * (2 << 20))
            (source / "adapter_model.safetensors").write_bytes(bytes(16))
    refused(assistant, source, words)
    assert not Path("boom-was-here").exists()


def test_a_name_that_cannot_be_is_refused_before_anything_is_read(
    assistant: Assistant, good: bytes, tmp_path: Path
) -> None:
    pack = tmp_path / "me.claw"
    pack.write_bytes(good)
    for name in ("7", "base", "two words", "a:b", "x" * 41, "../x", "-x"):
        refused(assistant, pack, "cannot be an adapter's name", name=name)


def test_a_full_disk_leaves_nothing(
    assistant: Assistant, good: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = tmp_path / "me.claw"
    pack.write_bytes(good)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("claw_local.adapters.importing.os.rename", full)
    assert "No space left" in refused(assistant, pack)
