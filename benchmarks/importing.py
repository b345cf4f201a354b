"""Importing a large ChatGPT export, over reading it with ijson alone.

    python -m benchmarks importing [--mb 500] [--rounds 1] [--json]

`ratio`: seconds of `claw-local history import` (in a process of its own, into an empty store) over those of a loop over
ijson's items of the same file. `peak_mb`: the most memory the import held.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from .sidebyside import child, options_of, own_home, peak_bytes, ratio, say

PARAGRAPH = 120
"""Words of a message."""


def write_export(path: Path, size: int) -> int:
    """A `conversations.json` of about `size` bytes. Returns how many conversations it has."""
    random = np.random.default_rng(3)
    words = ["".join(chr(97 + n) for n in random.integers(0, 26, random.integers(2, 9))) for _ in range(5000)]
    count = 0
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        while file.tell() < size:
            mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": ["0"]}}
            for place in range(12):
                said = " ".join(words[n] for n in random.integers(0, len(words), PARAGRAPH))
                mapping[str(place)] = {
                    "id": str(place),
                    "parent": str(place - 1) if place else "root",
                    "children": [str(place + 1)] if place < 11 else [],
                    "message": {
                        "id": str(place),
                        "author": {"role": "assistant" if place % 2 else "user"},
                        "create_time": 1.7e9 + 100 * count + place,
                        "content": {"content_type": "text", "parts": [said]},
                        "metadata": {"model_slug": "gpt-4o"},
                        "recipient": "all",
                    },
                }
            chat = {"title": f"Chat {count}", "create_time": 1.7e9 + 100 * count, "update_time": 1.7e9 + 100 * count}
            chat |= {"mapping": mapping, "current_node": "11", "conversation_id": f"c{count}"}
            file.write(("," if count else "") + json.dumps(chat))
            count += 1
        file.write("]")
    return count


def main() -> None:
    if sys.argv[1:2] == ["--side"]:
        side, path = sys.argv[2], Path(sys.argv[3])
        started = time.perf_counter()
        if side == "import":
            from claw_local.history.history import History
            from claw_local.paths import locate
            from claw_local.store import Store

            store = Store(locate())
            count = History(store).import_file(path).chats
            store.close()
        else:
            import ijson

            with path.open("rb") as file:
                count = sum(1 for _ in ijson.items(file, "item"))
        print(json.dumps({"seconds": time.perf_counter() - started, "chats": count, "peak": peak_bytes()}))
        return
    options = options_of("importing", __doc__, rounds=1, more=lambda p: p.add_argument("--mb", type=int, default=500))
    seconds: dict[str, list[float]] = {"import": [], "ijson": []}
    peak = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conversations.json"
        count = write_export(path, options.mb * 10**6)
        for _ in range(options.rounds):
            for side, took in seconds.items():
                with own_home():
                    found = child("benchmarks.importing", "--side", side, str(path))
                if found["chats"] != count:
                    raise RuntimeError(f"{found['chats']} chats of {count} were read.")
                took.append(found["seconds"])
                peak = max(peak, found["peak"] if side == "import" else 0)
    say(
        {
            "ratio": ratio(seconds["import"], seconds["ijson"]),
            "peak_mb": round(peak / 2**20),
            "seconds": {side: [round(value, 2) for value in took] for side, took in seconds.items()},
            "chats": count,
        },
        options,
    )


if __name__ == "__main__":
    main()
