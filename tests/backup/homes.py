"""Homes to make backups of, and backups with other content than they had."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

from claw_local.adapters.registry import file_sha256
from claw_local.backup.manifest import MANIFEST
from claw_local.paths import Paths
from claw_local.store import Store


def fill(paths: Paths, title: str) -> Store:
    """A store with a chat, a hint, an adapter, settings and a theme."""
    store = Store(paths)
    chat = store.chats.create(title=title)
    store.messages.add(chat.id, "user", f"{title} question", parent_id=None)
    store.hints.add(f"{title} hint")
    folder = paths.adapters / f"run-1-{title}"
    (folder / "peft").mkdir(parents=True)
    (folder / "adapter.gguf").write_bytes(title.encode() * 1000)
    (folder / "peft" / "adapter_config.json").write_text("{}")
    store.adapters.add(
        parent_id=0,
        model_sha256="m",
        architecture="llama",
        gguf_path=str(folder / "adapter.gguf"),
        peft_dir=str(folder / "peft"),
        sha256={"adapter.gguf": file_sha256(folder / "adapter.gguf")},
        state="active",
    )
    judge = paths.adapters / "judge" / "own.gguf"
    judge.parent.mkdir()
    judge.write_bytes(b"judge")
    store.flags.set("judge.own.m", json.dumps({"path": str(judge), "lineage": []}))
    paths.settings.write_text('[app]\ntheme = "mine"\n')
    paths.themes.mkdir()
    (paths.themes / "mine.toml").write_text(f"# {title}\n")
    return store


def titles(paths: Paths) -> list[str]:
    store = Store(paths)
    try:
        return [chat.title for chat in store.chats.list()]
    finally:
        store.close()


def rewritten(source: Path, target: Path, change: Callable[[dict[str, bytes], dict[str, object]], None]) -> Path:
    """A backup with other content, its hashes as they should be for that."""
    with zipfile.ZipFile(source) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files.pop(MANIFEST))
    change(files, manifest)
    for name, data in files.items():
        manifest["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest["files"] = {name: entry for name, entry in manifest["files"].items() if name in files}
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in {**files, MANIFEST: json.dumps(manifest).encode()}.items():
            archive.writestr(name, data)
    return target


def in_database(*statements: str) -> Callable[[dict[str, bytes], dict[str, object]], None]:
    def change(files: dict[str, bytes], _: dict[str, object]) -> None:
        connection = sqlite3.connect(":memory:")
        connection.deserialize(files["claw-local.db"])
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        files["claw-local.db"] = connection.serialize()

    return change


def put(name: str, data: bytes = b"x") -> Callable[[dict[str, bytes], dict[str, object]], None]:
    return lambda files, _: files.update({name: data})


def say(key: str, value: object) -> Callable[[dict[str, bytes], dict[str, object]], None]:
    return lambda _, manifest: manifest.update({key: value})


def tree(paths: Paths) -> set[str]:
    return {str(file.relative_to(paths.data)) for file in paths.data.rglob("*") if "claw-local.db-" not in file.name}
