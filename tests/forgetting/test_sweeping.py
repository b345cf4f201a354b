"""What counts as a text in a file: letters that stand among an adapter's numbers by chance do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_local.adapters.gguf import BaseShape, write_gguf
from claw_local.adapters.peft import write_peft
from claw_local.engine.gguf_file import read_header
from claw_local.forgetting.sweeping import holds
from claw_local.forgetting.texts import Texts
from tests.adapters.loras import lora

TEXT = Texts.of((), "dog")


@pytest.mark.parametrize("kind", ["safetensors", "gguf"])
def test_letters_among_an_adapters_numbers_are_chance_and_those_in_its_header_are_not(
    tmp_path: Path, model_path: Path, kind: str
) -> None:
    made = lora(1)
    if kind == "gguf":
        file = tmp_path / "adapter.gguf"
        write_gguf(made, BaseShape.of(model_path), file)
        start = read_header(file).data_start
    else:
        write_peft(made, tmp_path / "peft")
        file = tmp_path / "peft" / "adapter_model.safetensors"
        start = 8 + int.from_bytes(file.read_bytes()[:8], "little")
    data = bytearray(file.read_bytes())
    assert len(data) > start + 100
    data[start + 40 : start + 43] = b"Dog"
    file.write_bytes(data)
    assert not holds(file, TEXT)
    assert holds(file, Texts.of((), "lora_a"))


def test_a_damaged_adapter_is_searched_from_end_to_end(tmp_path: Path) -> None:
    file = tmp_path / "adapter.gguf"
    file.write_bytes(b"GGUF" + bytes(200) + b"a DOG barks")
    assert holds(file, TEXT)
