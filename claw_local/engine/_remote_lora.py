"""LoRAs on a server that takes them while it runs: vLLM and SGLang. It must never know what an adapter has learned.

Sources: vLLM, "LoRA Adapters", dynamically serving: POST /v1/load_lora_adapter with lora_name and lora_path, and the
LoRA's name as the model of a request (the server runs with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True); SGLang, "LoRA
Serving": POST /load_lora_adapter, and MODEL:NAME. Both read a PEFT folder under the path they are told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import EngineError
from ..language import _

MOST = 4
"""LoRAs of ours that a server is left with; the one that was used longest ago goes first."""
Say = Callable[[str, dict[str, Any]], tuple[int, str]]
"""POST to a path below the server's root; the status, and what it said if that is not 200."""


class RemoteLoras:
    """What of ours a server has loaded, and under which names."""

    def __init__(self, kind: str, say: Say) -> None:
        self._kind = kind
        self._say = say
        self._loaded: list[str] = []
        self._lock = threading.Lock()

    @staticmethod
    def name_of(folder: Path) -> str:
        """What a PEFT folder is called there: an adapter's folder has a name of its own, and never changes."""
        return f"claw-{folder.parent.name}"

    def model(self, base: str, folder: Path) -> str:
        """The model to ask for, so that the answer comes with this LoRA.

        Raises:
            EngineError: the server does not take it.
        """
        name = self.name_of(folder)
        with self._lock:
            if name not in self._loaded:
                self._load(name, folder)
            else:
                self._loaded.remove(name)
            self._loaded.append(name)
            while len(self._loaded) > MOST:
                self._say(self._path("unload"), {"lora_name": self._loaded.pop(0)})  # Gone already is as well.
        return f"{base}:{name}" if self._kind == "sglang" else name

    def forget(self) -> None:
        """The server may have been started anew: it has none of ours."""
        with self._lock:
            self._loaded.clear()

    def _load(self, name: str, folder: Path) -> None:
        status, said = self._say(self._path("load"), {"lora_name": name, "lora_path": str(folder)})
        if status != 200 and "already" not in said.lower():
            raise EngineError(
                _(
                    "The server does not take the adapter in {folder} ({reason}). It needs to "
                    "reach that folder under the "
                    "same path, and to take LoRAs while it runs; or set openai.lora to nothing.",
                    folder=folder,
                    reason=said or status,
                )
            )

    def _path(self, what: str) -> str:
        return f"/v1/{what}_lora_adapter" if self._kind == "vllm" else f"/{what}_lora_adapter"
