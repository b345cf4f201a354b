"""A small server that plays the part of the Hugging Face Hub's API that fetching a file needs.

The real hub cannot be had in tests. As documented: /api/models/REPO?blobs=true lists files with sizes and checksums;
/REPO/resolve/REVISION/FILE redirects to where the bytes are, which are served with Range.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class PlayedHub:
    """What the hub has, and what was asked of it.

    Attributes:
        files: repository -> file -> bytes. lies: checksums told wrong, by file.
        gated: repositories that want their terms accepted. stop_after: bytes after which a connection breaks, once.
        knows_range: whether parts of a file can be had.
        waits_after: bytes after which a file stops coming until `go_on`.
    """

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    lies: dict[str, str] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    stop_after: int = 0
    knows_range: bool = True
    waits_after: int = 0
    go_on: threading.Event = field(default_factory=threading.Event)
    ranges: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def played_hub(hub: PlayedHub) -> Iterator[PlayedHub]:
    """The hub, listening on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path).strip("/")
            hub.agents.append(self.headers.get("User-Agent", ""))
            if path.startswith("api/models/"):
                self.about(path.removeprefix("api/models/"))
            elif "/resolve/" in path:
                repo, _, rest = path.partition("/resolve/")
                hub.tokens.append(self.headers.get("Authorization", ""))
                self.reply(302, b"", Location=f"/bytes/{repo}/{rest.partition('/')[2]}")
            elif path.startswith("bytes/"):
                self.content(path.removeprefix("bytes/"))
            else:
                self.reply(404, b"{}")

        def about(self, repo: str) -> None:
            if repo in hub.gated:
                self.reply(403, b"{}", **{"X-Error-Code": "GatedRepo", "X-Error-Message": "accept the terms"})
            elif repo not in hub.files:
                self.reply(404, b"{}", **{"X-Error-Code": "RepoNotFound"})
            else:
                siblings = [
                    {
                        "rfilename": name,
                        "size": len(data),
                        "blobId": "0" * 40,
                        "lfs": {
                            "sha256": hub.lies.get(name, hashlib.sha256(data).hexdigest()),
                            "size": len(data),
                            "pointerSize": 135,
                        },
                    }
                    for name, data in hub.files[repo].items()
                ]
                self.reply(200, json.dumps({"id": repo, "sha": COMMIT, "siblings": siblings}).encode())

        def content(self, path: str) -> None:
            owner, name, file = path.split("/", 2)
            data = hub.files[f"{owner}/{name}"][file]
            wanted = self.headers.get("Range", "")
            hub.ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and hub.knows_range else 0
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            body = data[start:]
            if hub.stop_after:
                body, hub.stop_after = body[: hub.stop_after], 0
                self.close_connection = True
            if hub.waits_after:
                self.wfile.write(body[: hub.waits_after])
                body = body[hub.waits_after :]
                hub.go_on.wait(60)
            self.wfile.write(body)

        def reply(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
