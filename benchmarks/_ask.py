"""`claw-local ask`, ending at the moment when the model begins to load. It imports nothing else first."""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

NATIVE = "claw_local.engine._native"


class StopAtLoading:
    """Finds one module, and lets its `NativeModel` end the process."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == NATIVE else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def patched(module: ModuleType) -> None:
                execute(module)
                module.NativeModel.__init__ = lambda *_, **__: os._exit(0)  # type: ignore[attr-defined]

            spec.loader.exec_module = patched  # type: ignore[method-assign]
        return spec


if __name__ == "__main__":
    sys.meta_path.insert(0, StopAtLoading)  # type: ignore[arg-type]
    sys.argv = ["claw-local", "ask", "What is rain?"]
    from claw_local.__main__ import main

    main()
    sys.exit("The model never began to load.")
