"""How a reply is drawn: the settings' sampling, what a chat changes of it, and what one call changes.

It must never know about engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ..engine.base import Sampling
from ..errors import UsageError
from ..invalid import said
from ..language import _
from ..settings import SamplingSettings

NAMES = (*SamplingSettings.model_fields, "seed", "stop")
LARGEST_SEED = 2**32 - 1


def checked(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of the sampling as they are kept with a chat. None leaves a value as the settings have it.

    Raises:
        UsageError: an unknown name, or a value out of its range.
    """
    changes = {name: value for name, value in changes.items() if value is not None}
    unknown = sorted(set(changes) - set(NAMES))
    if unknown:
        raise UsageError(
            _(
                "There is no sampling setting {name!r}. Those there are: {names}.",
                name=unknown[0],
                names=", ".join(NAMES),
            )
        )
    found = dict(changes)
    plain = {name: value for name, value in changes.items() if name in SamplingSettings.model_fields}
    try:
        found.update({name: getattr(SamplingSettings(**plain), name) for name in plain})
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            _("The sampling setting {name} is not valid: {reason}.", name=first["loc"][0], reason=said(first))
        ) from error
    if "seed" in found:
        seed = found["seed"]
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= LARGEST_SEED:
            raise UsageError(_("The seed is a whole number from 0 to {most}.", most=LARGEST_SEED))
    if "stop" in found:
        stop = found["stop"]
        if not isinstance(stop, (list, tuple)) or not all(isinstance(text, str) and text for text in stop):
            raise UsageError(_("The stop texts are a list of texts, none of them empty."))
        found["stop"] = list(stop)
    return found


def draw(settings: SamplingSettings, *changes: Mapping[str, Any]) -> Sampling:
    """The settings' sampling with changes, later ones going before earlier ones.

    Raises:
        UsageError: an unknown name, or a value out of its range.
    """
    values: dict[str, Any] = settings.model_dump()
    for some in changes:
        values.update(checked(some))
    return Sampling(**{**values, "stop": tuple(values.get("stop", ()))})
