"""The Hugging Face Hub through huggingface_hub: a repository's files and their bytes, with errors as sentences.

huggingface_hub carries the person's token and knows the hub's errors; it is imported when a Hub is made, since that
takes a moment. It gives up what was fetched when it is interrupted, so the bytes are fetched here, from where a file
stands.
It must never know which file is wanted, or where it goes.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ModelError, UsageError
from ..language import _

LIBRARY = "claw-local"
TRIES = 5
WAIT_S = 1.0
CHUNK = 1 << 20
API_TIMEOUT_S = 20.0
READ_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class RemoteFile:
    """One file of a repository. `sha256`: "" if the hub does not tell."""

    name: str
    size_bytes: int
    sha256: str


class Hub:
    """A connection to the hub that HF_ENDPOINT names, or to huggingface.co."""

    def __init__(self) -> None:
        # What it would tell the hub about this machine and its programs is nobody's business.
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        import huggingface_hub
        from huggingface_hub import utils

        self._errors = importlib.import_module("huggingface_hub.errors")
        self._utils: Any = utils
        self._utils.logging.set_verbosity_error()
        self._lib: Any = huggingface_hub
        self._session: Any = huggingface_hub.get_session()
        # httpx for its first series, httpx2 for its second.
        self._transport: Any = importlib.import_module(type(self._session).__module__.partition(".")[0])

    def files(self, repo: str) -> tuple[str, list[RemoteFile]]:
        """The commit that is current, and its files."""
        info = self._lib.HfApi(library_name=LIBRARY).model_info(repo, files_metadata=True, timeout=API_TIMEOUT_S)
        files = [
            RemoteFile(
                sibling.rfilename, sibling.size or 0, (sibling.lfs.sha256 if sibling.lfs is not None else None) or ""
            )
            for sibling in info.siblings or []
        ]
        return info.sha or "main", files

    def download(self, repo: str, revision: str, file: RemoteFile, aside: Path) -> Generator[int]:
        """Bring `aside` to the file's size, from where it stands; gives its size as it grows. Passing troubles of the
        network are tried again."""
        url = self._lib.hf_hub_url(repo, file.name, revision=revision)
        left = TRIES
        while True:
            have = aside.stat().st_size if aside.exists() else 0
            yield have
            if have == file.size_bytes and aside.exists():
                return
            try:
                for size in self._stream(url, aside, have):
                    left = TRIES
                    yield size
                got = aside.stat().st_size
                if got == have or got > file.size_bytes:
                    aside.unlink()
                    raise ModelError(
                        _(
                            "The hub sent {got:,} bytes of {name}, which has {size_bytes:,}. Fetch it again.",
                            got=got,
                            name=file.name,
                            size_bytes=file.size_bytes,
                        )
                    )
            except self._transport.TransportError:
                left -= 1
                if left <= 0:
                    raise
                time.sleep(WAIT_S)

    def _stream(self, url: str, aside: Path, have: int) -> Iterator[int]:
        headers = {**self._utils.build_hf_headers(library_name=LIBRARY), "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        timeout = self._transport.Timeout(READ_TIMEOUT_S)
        with self._session.stream("GET", url, headers=headers, timeout=timeout) as response:
            self._utils.hf_raise_for_status(response)
            # Whoever does not know Range sends the whole file, from its beginning.
            resumed = response.status_code == 206
            with aside.open("ab" if resumed else "wb") as out:
                size = have if resumed else 0
                for chunk in response.iter_bytes(CHUNK):
                    out.write(chunk)
                    size += len(chunk)
                    yield size

    @contextmanager
    def said_plainly(self, repo: str) -> Iterator[None]:
        """Turns what goes wrong into a sentence."""
        errors = self._errors
        try:
            yield
        except errors.OfflineModeIsEnabled as error:
            raise ModelError(
                _(
                    "Nothing can be fetched: HF_HUB_OFFLINE is set, so the network is not to be "
                    "used. `claw-local models list` shows the models that are here."
                )
            ) from error
        except errors.GatedRepoError as error:
            raise ModelError(
                _(
                    "{repo} is given only to those who accept its terms: do that on its page, "
                    "and set HF_TOKEN to a token of your account.",
                    repo=repo,
                )
            ) from error
        except errors.RepositoryNotFoundError as error:
            raise ModelError(
                _(
                    "There is no repository {repo} on the hub, or it is private. Check its "
                    "name; `claw-local models list --recommended` shows some that exist.",
                    repo=repo,
                )
            ) from error
        except errors.HFValidationError as error:
            raise UsageError(
                _("{repo} cannot be the name of a repository. Give it as OWNER/NAME.", repo=repo)
            ) from error
        except errors.HfHubHTTPError as error:
            status = error.response.status_code if error.response is not None else "an error"
            raise ModelError(
                _(
                    "The hub answered {status} for {repo}. Try again later; what was fetched is kept.",
                    status=status,
                    repo=repo,
                )
            ) from error
        except self._transport.TransportError as error:
            raise ModelError(
                _(
                    "The Hugging Face Hub at {endpoint} cannot be reached ({reason}): is this "
                    "machine offline? What was fetched is kept; `claw-local models list` shows "
                    "the models that are here.",
                    endpoint=self._lib.constants.ENDPOINT,
                    reason=str(error) or type(error).__name__,
                )
            ) from error
        except OSError as error:
            raise ModelError(
                _("The model could not be written: {error}. What was fetched is kept.", error=error.strerror or error)
            ) from error
