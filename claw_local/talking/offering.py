"""The models other programs can ask for by name: what is in use, the base without an adapter, and each adapter.

It must never load one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ..adapters.registry import AdapterChoice
from ..engine.base import has_tokens
from ..errors import NotFoundError
from ..store import AdapterRecord
from .asked import Offered

if TYPE_CHECKING:
    from ..assistant import Assistant

IN_USE = "claw-local"
"""What is in use, whichever that is."""
_ALSO_IN_USE = ("", "default", "latest")
_OFFERED = ("candidate", "active", "retired")


class Offering:
    """Names of models, for one assistant."""

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant

    def models(self) -> list[Offered]:
        """What is in use first, then the base, then the adapters, newest first.

        Raises:
            ModelError: there is no model.
        """
        source = self._assistant._source("")
        engine = self._assistant._engines.peek(source)
        info = engine.info if engine is not None else None
        created = size = 0
        if source.path is not None:
            status = source.path.stat()
            created, size = int(status.st_mtime), status.st_size
        sha256 = self._assistant.model_sha256
        active = self._assistant.adapters.active() if sha256 else None

        def offer(name: str, adapter: AdapterRecord | None, in_use: bool) -> Offered:
            return Offered(
                name=name,
                created=_seconds(adapter.created_at) if adapter else created,
                size=size,
                sha256=sha256,
                adapter=adapter.id if adapter else 0,
                in_use=in_use,
                context=info.context if info else 0,
                parameters=info.parameters if info else 0,
                architecture=info.architecture if info else "",
                template=engine.chat_template if engine is not None and has_tokens(engine) else "",
            )

        offers = [offer(IN_USE, active, True), offer(self.base(), None, active is None)]
        offers += [offer(_named(one), one, active is not None and one.id == active.id) for one in self._adapters()]
        return offers

    def base(self) -> str:
        """The base's name."""
        source = self._assistant._source("")
        engine = self._assistant._engines.peek(source)
        if engine is not None:
            return engine.info.name
        return source.path.stem if source.path is not None else str(source)

    def choose(self, name: str) -> AdapterChoice:
        """The adapter a name stands for: None is what is in use, "base" is none.

        Raises:
            NotFoundError: no model has that name.
        """
        wanted = name.strip().casefold()
        if wanted in (*_ALSO_IN_USE, IN_USE):
            return None
        if wanted in (self.base().casefold(), "base"):
            return "base"
        for record in self._adapters():
            if wanted in (_named(record).casefold(), f"adapter-{record.id}"):
                return record.id
        raise NotFoundError(f"There is no model {name[:80]!r} here. Ask for {IN_USE}, or for one that is listed.")

    def shown(self, adapter: AdapterRecord | None) -> str:
        """The name of what answered."""
        return _named(adapter) if adapter is not None else self.base()

    def _adapters(self) -> Sequence[AdapterRecord]:
        sha256 = self._assistant.model_sha256
        if not sha256:
            return []
        return [
            record
            for record in self._assistant.adapters.list()
            if record.model_sha256 == sha256 and record.state in _OFFERED
        ]


def _named(record: AdapterRecord) -> str:
    return record.name or f"adapter-{record.id}"


def _seconds(moment: str) -> int:
    try:
        return int(datetime.fromisoformat(moment).timestamp())
    except ValueError:
        return 0
