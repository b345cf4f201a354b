"""A GPU that is not there: tensors that say they are on the device `pretend:0`, while their numbers are in main memory.

torch's own fake tensors hold no numbers, so that whatever asks for one (a mask, a check for infinity) ends them; and a
torch without CUDA computes no gradient of anything that says it is on `cuda`. So this is a device of its own, and it
computes. An operation whose tensors are on different devices raises, as on a real GPU: a forgotten `.to(device)` fails.
What this cannot tell: how a GPU's kernels round, and how much of its memory they take.

To be imported in a process of its own: torch keeps such a device for as long as the process lives.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import peft  # noqa: F401  with bitsandbytes, which looks for a real GPU as it is imported
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "pretend"


class _Backend:
    """What torch asks a device's module."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        return None


_setup_privateuseone_for_python_backend(rename=NAME, backend_module=_Backend())
GPU = torch.device(NAME, 0)
CPU = torch.device("cpu")
ATEN = torch.ops.aten

ACROSS = {ATEN.copy_.default, ATEN._to_copy.default, ATEN._foreach_copy_.default}
"""What moves numbers between devices."""
BY_INDEX = {ATEN.index.Tensor, ATEN.index_put_.default, ATEN.index_put.default, ATEN._index_put_impl_.default}
"""What may be told places in main memory."""


class Pretended(torch.Tensor):
    """A tensor on the GPU that is not there. `inner`: its numbers."""

    inner: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @property
    def data(self) -> torch.Tensor:  # type: ignore[override]
        return self.detach()

    @data.setter
    def data(self, new: Pretended) -> None:
        torch._C.TensorBase.data.__set__(self, new)
        self.inner = new.inner

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Pretended:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            layout=inner.layout,
            device=GPU,
            requires_grad=False,
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"Pretended({self.inner!r})"


class WrongDevice(RuntimeError):
    """Tensors of one operation are on different devices."""


def compute(func: Any, args: Any, kwargs: Any) -> Any:
    """Do one operation on the numbers, and say where the result is."""
    flat, _ = tree_flatten((args, kwargs))
    tensors = [one for one in flat if isinstance(one, torch.Tensor)]
    here = [one for one in tensors if isinstance(one, Pretended)]
    # A single number in main memory may meet anything, as on a real GPU.
    strangers = [one for one in tensors if not isinstance(one, Pretended) and one.dim() > 0]
    if func in BY_INDEX and isinstance(args[0], Pretended):
        strangers = [one for one in strangers if one.dtype not in (torch.int64, torch.int32, torch.bool, torch.uint8)]
    if here and strangers and func not in ACROSS:
        raise WrongDevice(f"{func}: tensors on the GPU {_shapes(here)} and on cpu {_shapes(strangers)}")
    device = kwargs.get("device")
    target = torch.device(device) if device is not None else GPU if here else CPU
    inner_args, inner_kwargs = tree_map_only(Pretended, lambda one: one.inner, (args, kwargs))
    if device is not None:
        inner_kwargs = {**inner_kwargs, "device": CPU}
    if inner_kwargs.get("pin_memory"):
        inner_kwargs = {**inner_kwargs, "pin_memory": False}
    result = func(*inner_args, **inner_kwargs)
    if target.type == "cpu" or func is ATEN._local_scalar_dense.default:
        return result
    written = {id(one.inner): one for one in here}  # What is written in place stays the same tensor.

    def wrap(one: Any) -> Any:
        if not isinstance(one, torch.Tensor) or any(one is given for given in tensors):
            return one  # Such as what was copied into main memory.
        return written.get(id(one)) if id(one) in written else Pretended(one)

    return tree_map(wrap, result)


def _shapes(tensors: list[torch.Tensor]) -> str:
    return ", ".join(str(tuple(one.shape)) for one in tensors)


class _Making(TorchDispatchMode):
    """What is made on the GPU that is not there is pretended; the rest is left alone."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


_made_of_numbers = torch.tensor


def _tensor(data: Any, *, device: Any = None, **options: Any) -> torch.Tensor:
    """`torch.tensor`, which lets nobody else make what it makes: made here, then moved."""
    made = _made_of_numbers(data, **options)
    return made if device is None else made.to(device)


@contextmanager
def pretended_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """While inside, tensors can be put on `GPU`, and what is asked of torch.cuda is answered for it.

    Backward passes run in the caller's thread.
    """
    state = {"random": torch.arange(16, dtype=torch.uint8)}
    cuda = torch.cuda
    monkeypatch.setattr(cuda, "memory_reserved", lambda device=None: 0)
    monkeypatch.setattr(cuda, "set_device", lambda device: None)
    monkeypatch.setattr(cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(cuda, "get_rng_state", lambda device=None: state["random"].clone())
    monkeypatch.setattr(cuda, "set_rng_state", lambda new, device=None: state.update(random=new.clone()))
    monkeypatch.setattr(cuda, "manual_seed_all", lambda seed: state.update(random=torch.full((16,), 7).byte()))
    before = torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled()
    torch.set_float32_matmul_precision("highest")  # What is computed here and there must round alike.
    overwrite = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)  # A tensor here cannot become one there.
    try:
        with monkeypatch.context() as patch:
            patch.setattr(torch, "set_float32_matmul_precision", lambda precision: None)
            patch.setattr(torch, "tensor", _tensor)
            # The processor's own attention in one piece would round differently.
            with torch.autograd.set_multithreading_enabled(False), sdpa_kernel(SDPBackend.MATH), _Making():
                yield
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(overwrite)
        torch.set_float32_matmul_precision(before[0])
        torch.use_deterministic_algorithms(before[1])
