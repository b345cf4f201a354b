"""Puts man pages, shell completions, desktop entry, icon and catalogue entry below a folder:

    python packaging/share.py PREFIX

PREFIX is ~/.local for one person, /usr/local for all, or the staging folder of a package. They are made from the
program that this Python has. `--remove` takes them away again; for ~/.local, `claw-local uninstall` does so too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from documenting import commands, completions, licences, manpages

DESKTOP = Path(__file__).parent / "desktop"
APP_ID = "local.claw.ClawLocal"
NOTICES = "doc/claw-local/NOTICES.md"
_PLACES = {
    "bash": "bash-completion/completions/claw-local",
    "zsh": "zsh/site-functions/_claw-local",
    "fish": "fish/vendor_completions.d/claw-local.fish",
}


def files() -> dict[str, str]:
    """Path below PREFIX/share -> content."""
    import claw_local

    scripts = completions.scripts()
    found = {f"man/man1/{name}": page for name, page in manpages.pages(commands.read(), claw_local.__version__).items()}
    found |= {place: scripts[completions.FILES[shell]] for shell, place in _PLACES.items()}
    for place, suffix in (
        ("applications", "desktop"),
        ("icons/hicolor/scalable/apps", "svg"),
        ("metainfo", "metainfo.xml"),
    ):
        found[f"{place}/{APP_ID}.{suffix}"] = (DESKTOP / f"{APP_ID}.{suffix}").read_text("utf-8")
    found[NOTICES] = licences.as_markdown()
    return found


def main(arguments: list[str]) -> int:
    """Write or remove; returns 0, or 1 if a file cannot be written or removed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":", maxsplit=1)[0])
    parser.add_argument(
        "prefix", type=Path, metavar="PREFIX", help="~/.local, /usr/local, or a package's staging folder"
    )
    parser.add_argument("--remove", action="store_true", help="take the files away again")
    chosen = parser.parse_args(arguments)
    share = chosen.prefix.expanduser() / "share"
    made = files()
    try:
        for name, content in made.items():
            file = share / name
            if chosen.remove:
                file.unlink(missing_ok=True)
                _tidy(file.parent, share)
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content, "utf-8")
    except OSError as error:
        sys.stderr.write(f"{error.filename}: {error.strerror}. Choose a folder that you may write to.\n")
        return 1
    if chosen.remove:
        print(f"Removed from {share}: {len(made)} files")
    else:
        print(f"Written to {share}: {len(made)} files")
        print(f"The packages it is built on, and their licences: {share / NOTICES}")
    return 0


def _tidy(folder: Path, share: Path) -> None:
    """Remove a folder of ours and those above it, below `share` alone, as far as nothing is in them."""
    while folder != share and folder.is_relative_to(share):
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError:  # Something else is in it.
            return
        folder = folder.parent


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
