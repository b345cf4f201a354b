"""Which model a request means, before anything else of it is looked at. It must never know about HTTP."""

from __future__ import annotations

from .asking import Asked, Caller, Offered, Service
from .errors import Missing

IN_USE = ("", "default", "latest")
"""Names that mean what is in use, beside the one that is listed."""


async def find(service: Service, name: str) -> Offered:
    """The model of that name. Raises Missing: there is none."""
    models = await service.models()
    wanted = name.strip().casefold()
    for model in models:
        names = {model.name.casefold(), f"adapter-{model.adapter}" if model.adapter else "base"}
        if wanted in names or (wanted in IN_USE and model.in_use):
            return model
    listed = ", ".join(model.name for model in models)
    raise Missing(f"The model {name[:80]!r} was not found. There are: {listed}.", field="model")


async def loaded(service: Service, caller: Caller, name: str) -> Offered:
    """The same, once it is in memory: then its file has told all. Raises Missing."""
    model = await find(service, name)
    if model.context:
        return model
    await service.count(Asked(caller, prompt=" ", model=model.name))
    return await find(service, name)
