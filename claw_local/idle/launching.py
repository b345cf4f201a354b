"""What stands before the trainer's name where several processes train one adapter. It must never import accelerate."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..settings import LearningSettings


def launcher(learning: LearningSettings) -> list[str]:
    """Python's options for it: none for one process, else `accelerate launch` with its own settings file, or with so
    many processes on this machine."""
    if not learning.accelerate and learning.processes == 1:
        return []
    launch = ["-m", "accelerate.commands.accelerate_cli", "launch"]
    if learning.accelerate:
        return [*launch, "--config_file", str(Path(learning.accelerate).expanduser())]
    # Its option for several processes on one machine, which need not have a GPU each. Port 0: any free one.
    here = ["--multi_gpu", "--num_machines", "1", "--main_process_port", "0"]
    return [
        *launch,
        *here,
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
        "--num_processes",
        str(learning.processes),
    ]


def line(learning: LearningSettings) -> dict[str, str]:
    """Variables for how the processes of this machine alone find each other: not by its name, which need not lead
    anywhere."""
    if learning.accelerate or learning.processes == 1 or sys.platform != "linux":
        return {}
    return {"GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo")}
