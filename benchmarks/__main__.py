"""The benchmarks' front door.

python -m benchmarks                    lists them (--json: as one JSON object)
python -m benchmarks NAME [OPTIONS]     runs one; `NAME --help` says what it takes
"""

from __future__ import annotations

import ast
import difflib
import json
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent


def programs() -> dict[str, str]:
    """What can be run, by name, with the first paragraph of what each says of itself."""
    found = {file.stem: file for file in HERE.glob("*.py")} | {f.parent.name: f for f in HERE.glob("*/__main__.py")}
    described = {}
    for name, file in sorted(found.items()):
        text = file.read_text("utf-8")
        if name.startswith("_") or '__name__ == "__main__"' not in text:
            continue
        words = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0]
        words = " ".join(words.removeprefix(f"`python -m benchmarks.{name} FOLDER`: ").split())
        described[name] = words[:1].upper() + words[1:]
    return described


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 done, 2 no such benchmark; else what the benchmark says."""
    known = programs()
    if not arguments or arguments[0] in ("--json", "--list", "-h", "--help"):
        if "--json" in arguments:
            print(json.dumps(known, indent=2))
        else:
            print(__doc__)
            width = max(map(len, known))
            print("\n".join(f"{name:{width}}  {words}" for name, words in known.items()))
        return 0
    name, *rest = arguments
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        print(
            f"There is no benchmark {name}.{f' Did you mean {near[0]}?' if near else ''} "
            "`python -m benchmarks` lists them.",
            file=sys.stderr,
        )
        return 2
    sys.argv = [f"benchmarks.{name}", *rest]
    runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
