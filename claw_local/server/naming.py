"""Which model a request means, before anything else of it is looked at. It must never know about HTTP."""

from __future__ import annotations

from .asking import Offered, Service
from .errors import Missing

IN_USE = ("", "default")
"""Names that mean what is in use."""


async def find(service: Service, name: str) -> Offered:
    """The model of that name. Raises Missing: there is none."""
    models = await service.models()
    for model in models:
        if model.name == name or (name in IN_USE and model.in_use):
            return model
    raise Missing(f"The model {name!r} was not found. There are: {', '.join(m.name for m in models)}.", field="model")
