"""The policy, its three views and its files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from claw_local.errors import AdapterError
from claw_trainer.batches import pack
from claw_trainer.policy import Policy
from claw_trainer.weights import load_base

TURNS = [
    ([1, 2, 3, 4, 5], [6, 7, 8]),
    ([9, 8, 7], [1, 1, 2, 3, 5, 8, 13]),
    ([40], [41]),
    (list(range(100, 140)), list(range(20, 50))),
]


def test_a_new_policy_says_what_the_base_says(tiny_policy: Policy) -> None:
    for policy, base in zip(
        tiny_policy.response_logprobs("policy", TURNS), tiny_policy.response_logprobs("base", TURNS), strict=True
    ):
        assert torch.equal(policy, base)


def test_the_same_seed_begins_the_same_and_another_does_not(tiny_models: dict[str, Path]) -> None:
    def first(seed: int) -> torch.Tensor:
        return Policy(load_base(tiny_models["llama"]), rank=4, seed=seed).parameters()[0]

    assert torch.equal(first(1), first(1))
    assert not torch.equal(first(1), first(2))


def test_a_turns_log_probabilities_do_not_depend_on_its_batch_mates(
    tiny_policy: Policy, make_random: Callable[..., None]
) -> None:
    make_random(tiny_policy, 0.1)
    together = tiny_policy.response_logprobs("policy", TURNS)
    for turn, logprobs in zip(TURNS, together, strict=True):
        alone = tiny_policy.response_logprobs("policy", [turn])[0]
        assert logprobs.shape == (len(turn[1]),)
        assert torch.allclose(logprobs, alone, atol=2e-5)


def test_packed_logits_equal_transformers_own_forward_pass(
    tiny_policy: Policy, make_random: Callable[..., None]
) -> None:
    make_random(tiny_policy, 0.1)
    found: dict[int, list[torch.Tensor]] = {}
    for index, start, logits in tiny_policy.response_logits("policy", TURNS):
        assert start == sum(len(part) for part in found.get(index, []))
        found.setdefault(index, []).append(logits)
    tiny_policy.model.config._attn_implementation = "eager"
    for index, (prompt, response) in enumerate(TURNS):
        with torch.no_grad():
            expected = tiny_policy.model(torch.tensor([[*prompt, *response]])).logits[0, len(prompt) - 1 : -1]
        assert torch.allclose(torch.cat(found[index]), expected, atol=1e-4)


def test_only_the_lora_on_the_blocks_linear_layers_can_be_trained(tiny_policy: Policy) -> None:
    names = [name for name, parameter in tiny_policy.model.named_parameters() if parameter.requires_grad]
    assert len(names) == len(tiny_policy.parameters()) == 3 * 7 * 2
    assert all(".layers." in name and "lora_" in name for name in names)
    tiny_policy.hidden(pack(TURNS)).sum().backward()  # type: ignore[no-untyped-call]
    with_gradient = [name for name, parameter in tiny_policy.model.named_parameters() if parameter.grad is not None]
    assert with_gradient == names


def test_looking_through_another_view_leaves_the_same_parameters_trainable(
    tiny_models: dict[str, Path], tmp_path: Path, tiny_policy: Policy, make_random: Callable[..., None]
) -> None:
    make_random(tiny_policy, 0.1)
    child = Policy(load_base(tiny_models["llama"], exact=True), parent=tiny_policy.save(tmp_path / "parent"))
    names = [name for name, parameter in child.model.named_parameters() if parameter.requires_grad]
    for view in ("base", "teacher", "policy"):
        child.response_logprobs(view, TURNS[:1])
        assert [name for name, parameter in child.model.named_parameters() if parameter.requires_grad] == names


def test_a_policy_with_a_parent_begins_as_it_and_the_teacher_stays_with_it(
    tiny_models: dict[str, Path], tmp_path: Path, tiny_policy: Policy, make_random: Callable[..., None]
) -> None:
    make_random(tiny_policy, 0.1)
    expected = tiny_policy.response_logprobs("policy", TURNS)[0]
    child = Policy(load_base(tiny_models["llama"], exact=True), rank=16, parent=tiny_policy.save(tmp_path / "parent"))
    assert torch.allclose(child.response_logprobs("policy", TURNS)[0], expected, atol=1e-5)
    make_random(child, 0.1, seed=9)
    assert not torch.allclose(child.response_logprobs("policy", TURNS)[0], expected, atol=0.1)
    assert torch.allclose(child.response_logprobs("teacher", TURNS)[0], expected, atol=1e-5)
    base = tiny_policy.response_logprobs("base", TURNS)[0]
    assert torch.allclose(child.response_logprobs("base", TURNS)[0], base, atol=1e-5)


def test_without_a_parent_the_teacher_is_the_base(tiny_policy: Policy, make_random: Callable[..., None]) -> None:
    make_random(tiny_policy, 0.1)
    teacher = tiny_policy.response_logprobs("teacher", TURNS)[0]
    assert torch.equal(teacher, tiny_policy.response_logprobs("base", TURNS)[0])


def test_what_is_saved_loads_with_peft_and_says_the_same(
    tiny_models: dict[str, Path], tmp_path: Path, tiny_policy: Policy, make_random: Callable[..., None]
) -> None:
    from peft import PeftModel

    make_random(tiny_policy, 0.1)
    folder = tiny_policy.save(tmp_path / "peft")
    loaded = PeftModel.from_pretrained(load_base(tiny_models["llama"], exact=True).model, folder)
    prompt, response = TURNS[0]
    with torch.no_grad():
        logits = loaded(torch.tensor([[*prompt, *response]])).logits[0, len(prompt) - 1 : -1]
    expected = torch.cat([part for _, _, part in tiny_policy.response_logits("policy", TURNS[:1])])
    assert torch.allclose(logits, expected, atol=1e-4)


def test_saving_again_replaces_the_folder_leaves_nothing_aside_and_gives_the_same_bytes(
    tmp_path: Path, tiny_policy: Policy
) -> None:
    folder = tiny_policy.save(tmp_path / "peft")
    first = {file.name: file.read_bytes() for file in folder.iterdir()}
    tiny_policy.save(folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == first
    assert set(first) == {"adapter_model.safetensors", "adapter_config.json"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["peft"]


def test_a_parent_made_for_another_model_is_refused(
    tmp_path: Path, tiny_policy: Policy, model_path: Path, make_tiny: Callable[..., Path]
) -> None:
    folder = tiny_policy.save(tmp_path / "peft")
    other = load_base(model_path)
    with pytest.raises(AdapterError, match="another one"):
        Policy(other, parent=folder)


def test_a_parent_that_leaves_layers_as_they_are_is_gone_on_with(
    tmp_path: Path, tiny_models: dict[str, Path], tiny_policy: Policy, make_random: Callable[..., None]
) -> None:
    make_random(tiny_policy, 0.1)
    with torch.no_grad():
        for name, parameter in tiny_policy.model.named_parameters():
            if ".layers.0." in name and "lora_B" in name:
                parameter.zero_()
    expected = tiny_policy.response_logprobs("policy", TURNS)[0]
    folder = tiny_policy.save(tmp_path / "peft")
    matrices = load_file(folder / "adapter_model.safetensors")
    save_file(
        {name: one for name, one in matrices.items() if ".layers.0." not in name},
        folder / "adapter_model.safetensors",
        {"format": "pt"},
    )
    config = json.loads((folder / "adapter_config.json").read_text("utf-8"))
    (folder / "adapter_config.json").write_text(json.dumps({**config, "init_lora_weights": False}), "utf-8")
    child = Policy(load_base(tiny_models["llama"], exact=True), rank=16, parent=folder)
    assert torch.allclose(child.response_logprobs("policy", TURNS)[0], expected, atol=1e-5)


def test_a_parent_whose_files_are_missing_is_refused(tmp_path: Path, tiny_models: dict[str, Path]) -> None:
    with pytest.raises(AdapterError, match=r"adapter_config\.json"):
        Policy(load_base(tiny_models["llama"]), parent=tmp_path)


def test_checkpointing_gives_the_same_gradients(tiny_policy: Policy, make_random: Callable[..., None]) -> None:
    make_random(tiny_policy, 0.1)

    def gradients() -> list[torch.Tensor]:
        tiny_policy.model.zero_grad(set_to_none=True)
        tiny_policy.hidden(pack(TURNS)).pow(2).sum().backward()  # type: ignore[no-untyped-call]
        return [parameter.grad.clone() for parameter in tiny_policy.parameters() if parameter.grad is not None]

    plain = gradients()
    tiny_policy.checkpoint_gradients()
    again = gradients()
    tiny_policy.checkpoint_gradients(False)
    assert len(again) == len(plain) == len(tiny_policy.parameters())
    assert all(torch.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(plain, again, strict=True))


def test_the_updates_norm_is_that_of_its_matrices_and_can_be_bounded(
    tiny_policy: Policy, make_random: Callable[..., None]
) -> None:
    assert tiny_policy.norm() == 0.0
    make_random(tiny_policy, 0.1)
    squares = 0.0
    for module in tiny_policy.model.modules():
        if hasattr(module, "lora_A"):
            update = module.scaling["default"] * module.lora_B["default"].weight @ module.lora_A["default"].weight
            squares += float(update.detach().norm() ** 2)
    norm = tiny_policy.norm()
    assert norm == pytest.approx(squares**0.5, rel=1e-5)
    assert tiny_policy.bound(norm * 2) == pytest.approx(norm)
    assert tiny_policy.norm() == pytest.approx(norm), "what is within the bound stays"
    assert tiny_policy.bound(norm / 3) == pytest.approx(norm)
    assert tiny_policy.norm() == pytest.approx(norm / 3, rel=1e-5)
