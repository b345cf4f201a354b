"""What can go wrong for a program that asks, each with its HTTP status. Each API module writes them in its own form.

A message is one sentence for whoever wrote the program. It must never hold a path of this machine or a traceback.
"""

from __future__ import annotations

TOO_DEEP = "Lists and objects stand too deep inside each other. Ask for something flatter."


class ServeError(Exception):
    """Root.

    Attributes:
        status: of HTTP.
        kind: a short name, the same in every API.
        field: the request's field that is wrong; "" if it is none.
    """

    status = 500
    kind = "internal"

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.field = field

    @property
    def headers(self) -> dict[str, str]:
        """What goes with the answer."""
        return {}


class Invalid(ServeError):
    """The request cannot be answered as it is."""

    status, kind = 400, "invalid"


class TooLong(Invalid):
    """The prompt does not fit the model's context."""

    kind = "too_long"


class NoKey(ServeError):
    """There is no key with the request, or a wrong one."""

    status, kind = 401, "no_key"

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": "Bearer"}


class Forbidden(ServeError):
    """It comes from a page or by a name that is not allowed."""

    status, kind = 403, "forbidden"


class Missing(ServeError):
    """There is no such model, message or address."""

    status, kind = 404, "missing"


class NotAllowed(ServeError):
    """The address does not take this method."""

    status, kind = 405, "not_allowed"


class TimedOut(ServeError):
    """It took longer than it may."""

    status, kind = 408, "timed_out"


class TooLarge(ServeError):
    """The body is larger than it may be."""

    status, kind = 413, "too_large"


class WrongType(ServeError):
    """The body is of a kind that is not read here."""

    status, kind = 415, "wrong_type"


class Busy(ServeError):
    """No place is free."""

    status, kind = 429, "busy"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after_s)}


class Gone(ServeError):
    """The client went away: nobody reads this."""

    status, kind = 499, "gone"


class Internal(ServeError):
    """It failed here."""


class NotMade(ServeError):
    """A part of that API that is not here, and will not be."""

    status, kind = 501, "not_made"


class Unavailable(ServeError):
    """The server is closing, or the model cannot be loaded."""

    status, kind = 503, "unavailable"


def with_field(error: ServeError) -> str:
    """The message, with the field before it where it does not name it itself: for APIs that have no place for it."""
    named = not error.field or error.message.startswith(error.field)
    return error.message if named else f"{error.field}: {error.message}"
