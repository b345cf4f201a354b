"""Adapters of others: claw packs, sealed packs, PEFT folders, GGUF LoRAs."""

from __future__ import annotations

import io
import json
import random
import shutil
from pathlib import Path

from claw_local.adapters import sealing
from claw_local.adapters.exporting import _packed_file
from claw_local.adapters.gguf import BaseShape, write_gguf
from claw_local.adapters.manifest import Manifest, PackedBase, PackedFile, PackedLora
from claw_local.adapters.pack import CONFIG, GGUF, MANIFEST, WEIGHTS, unpack, write_pack
from claw_local.adapters.peft import read_peft, write_peft
from claw_local.adapters.reading import read_gguf
from claw_local.errors import AdapterError

from ..homes import random_lora
from ..tiny import write_tiny
from .mutate import as_json, damaged, damaged_json
from .target import Target


def targets(folder: Path) -> list[Target]:
    base = BaseShape.of(write_tiny(folder / "base.gguf"))
    lora = random_lora(rank=1, blocks=1)
    write_peft(lora, folder / "peft")
    write_gguf(lora, base, folder / "lora.gguf")
    files: dict[str, bytes | Path] = {
        CONFIG: folder / "peft" / "adapter_config.json",
        WEIGHTS: folder / "peft" / "adapter_model.safetensors",
        GGUF: folder / "lora.gguf",
    }
    manifest = _manifest({name: _packed_file(content) for name, content in files.items()})
    pack = io.BytesIO()
    write_pack({**files, MANIFEST: manifest.to_json()}, pack)
    whole = pack.getvalue()
    gguf = (folder / "lora.gguf").read_bytes()

    def read_pack(data: bytes) -> None:
        target = folder / "unpacked"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        try:
            unpack(io.BytesIO(data), target)
        except AdapterError:
            pass

    def made_pack(chance: random.Random) -> bytes:
        """A pack that is whole as a zip, and whose manifest is not as it should be."""
        changed = as_json(damaged_json(json.loads(manifest.to_json()), chance))
        out = io.BytesIO()
        try:
            write_pack({CONFIG: b"{}", WEIGHTS: b"x", GGUF: b"GGUF", MANIFEST: changed}, out)
        except ValueError:
            return whole
        return out.getvalue()

    def read_folder(data: bytes) -> None:
        size = int.from_bytes(data[:4], "little")
        (folder / "given-peft").mkdir(exist_ok=True)
        (folder / "given-peft" / "adapter_config.json").write_bytes(data[4 : 4 + size])
        (folder / "given-peft" / "adapter_model.safetensors").write_bytes(data[4 + size :])
        try:
            base.check(read_peft(folder / "given-peft"))
        except AdapterError:
            pass

    config, weights = (folder / "peft" / name for name in ("adapter_config.json", "adapter_model.safetensors"))
    config_bytes, weight_bytes = config.read_bytes(), weights.read_bytes()
    header_size = int.from_bytes(weight_bytes[:8], "little")
    header, matrices = json.loads(weight_bytes[8 : 8 + header_size]), weight_bytes[8 + header_size :]

    def made_folder(chance: random.Random) -> bytes:
        way = chance.randrange(3)
        told = as_json(damaged_json(json.loads(config_bytes), chance)) if way == 0 else config_bytes
        held = weight_bytes
        if way == 1:
            head = as_json(damaged_json(header, chance))
            held = len(head).to_bytes(8, "little") + head + matrices
        elif way == 2:
            held = damaged(weight_bytes[: 8 + header_size], chance) + matrices
        return len(told).to_bytes(4, "little") + told + held

    def read_lora(data: bytes) -> None:
        file = folder / "given.gguf"
        file.write_bytes(data)
        try:
            read_gguf(file, base)
        except AdapterError:
            pass

    def unsealed(data: bytes) -> None:
        # The header alone: what it asks for decides how long the key takes, and the rest is authenticated.
        try:
            sealing._read_header(data[: sealing._HEADER.size])
        except AdapterError:
            pass

    sealed = b"".join(sealing.seal(io.BytesIO(b"x" * 100), "passphrase"))
    return [
        Target(
            "pack", read_pack, [whole], words=(b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"), make=made_pack, weight=0.5
        ),
        Target(
            "peft",
            read_folder,
            [len(config_bytes).to_bytes(4, "little") + config_bytes + weight_bytes],
            make=made_folder,
        ),
        Target("gguf-lora", read_lora, [gguf], make=lambda chance: damaged(gguf[:1500], chance) + gguf[1500:]),
        Target("sealed", unsealed, [sealed[:200]]),
    ]


def _manifest(files: dict[str, PackedFile]) -> Manifest:
    return Manifest(
        name="fuzzed",
        made_at="2026-01-01T00:00:00+00:00",
        base=PackedBase(sha256="0" * 64, architecture="llama"),
        lora=PackedLora(rank=1, alpha=2.0, modules=["q_proj"], blocks=2),
        recipe={"steps": 8},
        files=files,
    )
