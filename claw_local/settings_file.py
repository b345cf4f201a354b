"""Reading and changing settings.toml by key, with its comments kept. It must never know about the store or the engine.

What a setting means is read from the docstring under its field in `settings.py`, so it is written down once.
"""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import itertools
import os
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ValidationError

from . import invalid, settings_checks
from . import settings as settings_module
from .errors import SettingsError, UsageError
from .files import write_whole
from .language import N_, _
from .paths import Paths
from .settings import Settings

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

Origin = Literal["default", "file", "environment"]

_TOO_MUCH = N_("it holds a value that is too large or too deeply nested")
_LONGEST_TOLD = 200
_SECRETS = ("api_key", "apikey", "key", "api_token", "token", "secret", "password")


@dataclass(frozen=True)
class Setting:
    """One setting and where it stands.

    Attributes:
        key: as in `model.path`.
        value: what holds now; default: what holds if nobody sets it.
        doc: what it means. allowed: what it may be, in words.
        origin: who set it. The environment goes before the file.
        variable: the environment variable that sets it.
    """

    key: str
    value: Any
    default: Any
    doc: str
    allowed: str
    origin: Origin
    variable: str


def names() -> list[str]:
    """Every setting's key, in the order of settings.py."""
    return [f"{section}.{name}" for section, model in _sections().items() for name in model.model_fields]


def listing(paths: Paths) -> list[Setting]:
    """Every setting with its value. Raises SettingsError: the file is not valid."""
    loaded = settings_module.load(paths)
    in_file = _values(paths)
    return [_setting(key, loaded, in_file) for key in names()]


def get(paths: Paths, key: str) -> Setting:
    """One setting. Raises UsageError: there is none of that name. SettingsError: the file is not valid."""
    return _setting(_known(key), settings_module.load(paths), _values(paths))


def set_value(paths: Paths, key: str, value: Any) -> Setting:
    """Check a value and write it into the file; everything else in it stays, comments too.

    Args:
        value: as the field takes it, or text that stands for it ("0.5", "true").

    Raises:
        UsageError: no such setting, or the value is not one it can have. SettingsError: the file cannot be read as
            TOML or cannot be written. Nothing has changed then.
    """
    section, name = _known(key).split(".")
    document = _document(paths)
    table = _table(paths, document, section)
    checked = _checked(section, name, value, dict(table.unwrap()) if table is not None else {})
    if against := settings_checks.problem(key, checked, paths.models):
        raise UsageError(_("{key} cannot be {value}: {reason}.", key=key, value=_told(value), reason=against))
    if table is None:
        document[section] = {}
        table = document[section]
    table[name] = checked
    _write(paths, document)
    return get(paths, key) if _is_valid(paths) else _lone(key, checked)


def unset(paths: Paths, key: str) -> Setting:
    """Take a key out of the file, so that its default holds. Errors as for `set_value`."""
    section, name = _known(key).split(".")
    document = _document(paths)
    table = _table(paths, document, section)
    if table is not None and name in table:
        del table[name]
        _write(paths, document)
    return get(paths, key)


def check_text(paths: Paths, text: str) -> None:
    """Whether this could be the whole file. Raises SettingsError with the line or key that is wrong."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(_("This is not valid TOML: {error}.", error=error)) from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(_("This cannot be read: {reason}.", reason=_(_TOO_MUCH))) from error
    sections = _sections()
    for section, content in values.items():
        if section not in sections:
            raise SettingsError(
                " ".join(
                    filter(
                        None,
                        [_("There is no section [{section}].", section=section), _closest(section, list(sections))],
                    )
                )
            )
        try:
            sections[section].model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join([section, *map(str, first["loc"])])
            if first["type"] == "extra_forbidden" and _is_secret(key):
                raise SettingsError(_no_secret(key)) from error
            hint = _closest(key, names()) if first["type"] == "extra_forbidden" else ""
            raise SettingsError(
                " ".join(
                    filter(
                        None,
                        [
                            _("The setting {key} is not valid: {error}.", key=key, error=settings_module.reason(error)),
                            hint,
                        ],
                    )
                )
            ) from error


def write_text(paths: Paths, text: str) -> None:
    """Make this the whole file. Raises SettingsError: it is not valid, or cannot be written."""
    check_text(paths, text)
    _write_bytes(paths, _bytes(text))


def text_to_edit(paths: Paths) -> str:
    """The file as it is; where there is none yet, every setting with its meaning and default, commented out."""
    text = _read(paths)
    if paths.settings.exists():
        return text
    import tomlkit

    lines = ["# Settings of claw-local. Take away a '#' to change a value.", ""]
    for section, model in _sections().items():
        lines += [*(f"# {line}" for line in (model.__doc__ or "").splitlines()), f"[{section}]", ""]
        for name in model.model_fields:
            key = f"{section}.{name}"
            lines += [f"# {line}" for line in _docs().get(key, "").splitlines()]
            lines += [f"# {name} = {tomlkit.item(_default(key)).as_string()}", ""]
    return "\n".join(lines)


def shown(value: Any) -> str:
    """A value as it stands in the file."""
    import tomlkit

    return str(tomlkit.item(value).as_string())


@functools.cache
def _sections() -> dict[str, type[BaseModel]]:
    """The tables of the file: name -> model."""
    found: dict[str, type[BaseModel]] = {}
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found[name] = field.annotation
    return found


@functools.cache
def _docs() -> dict[str, str]:
    """What each setting means: key -> the docstring under its field. Python keeps these only in the source."""
    tree = ast.parse(inspect.getsource(settings_module))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found: dict[str, str] = {}
    for section, model in _sections().items():
        body = classes[model.__name__].body
        for field, after in itertools.pairwise(body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                found[f"{section}.{field.target.id}"] = inspect.cleandoc(after.value.value)
    return found


def _setting(key: str, loaded: Settings, in_file: dict[str, Any]) -> Setting:
    section, name = key.split(".")
    variable = _variable(key)
    table = in_file.get(section)
    origin: Origin = "default"
    if _is_in_environment(variable):
        origin = "environment"
    elif isinstance(table, dict) and name in table:
        origin = "file"
    return Setting(
        key,
        getattr(getattr(loaded, section), name),
        _default(key),
        _docs().get(key, ""),
        _allowed(key),
        origin,
        variable,
    )


def _lone(key: str, value: Any) -> Setting:
    """A setting that was just written while another one in the file is not valid."""
    return Setting(key, value, _default(key), _docs().get(key, ""), _allowed(key), "file", _variable(key))


def _default(key: str) -> Any:
    section, name = key.split(".")
    return _sections()[section].model_fields[name].get_default(call_default_factory=True)


def _allowed(key: str) -> str:
    """What a setting may be, in words: "one of combined, opd", "a number from 0 to 5"."""
    section, name = key.split(".")
    field = _sections()[section].model_fields[name]
    kind = field.annotation
    if typing.get_origin(kind) is Literal:
        return _("one of {choices}", choices=", ".join(map(str, typing.get_args(kind))))
    if kind is bool:
        return _("true or false")
    if kind not in (int, float):
        return _("text") if kind is str else _("a list") if typing.get_origin(kind) in (list, tuple) else ""
    bounds = {name: getattr(rule, name) for rule in field.metadata for name in _BOUNDS if hasattr(rule, name)}
    low, high = (next((name for name in pair if name in bounds), "") for pair in (("ge", "gt"), ("le", "lt")))
    told = {"kind": _("a whole number") if kind is int else _("a number")}
    told |= {"low": f"{bounds.get(low, 0):g}", "high": f"{bounds.get(high, 0):g}"}
    return _(_NUMBERS[low, high], **told)


_BOUNDS = ("ge", "gt", "le", "lt")
_NUMBERS = {
    ("", ""): "{kind}",
    ("ge", ""): N_("{kind} from {low}"),
    ("gt", ""): N_("{kind} above {low}"),
    ("", "le"): N_("{kind} to {high}"),
    ("", "lt"): N_("{kind} below {high}"),
    ("ge", "le"): N_("{kind} from {low} to {high}"),
    ("ge", "lt"): N_("{kind} from {low} below {high}"),
    ("gt", "le"): N_("{kind} above {low} to {high}"),
    ("gt", "lt"): N_("{kind} above {low} below {high}"),
}
"""What a number may be, by its lower and its upper bound."""


def _known(key: str) -> str:
    """The key, if there is a setting of that name. Raises UsageError naming the closest ones."""
    known = names()
    if key in known:
        return key
    if key in _sections():
        inside = ", ".join(name for name in known if name.startswith(f"{key}."))
        raise UsageError(_("{key} is a section. Its settings are: {inside}.", key=key, inside=inside))
    if _is_secret(key):
        raise UsageError(_no_secret(key))
    raise UsageError(
        " ".join(
            filter(
                None,
                [
                    _("There is no setting {key}.", key=key),
                    _closest(key, known),
                    _("`claw-local config list` shows all."),
                ],
            )
        )
    )


def _is_secret(key: str) -> bool:
    return key.rpartition(".")[2].lower().replace("-", "_") in _SECRETS


def _no_secret(key: str) -> str:
    return _(
        "There is no setting {key}: secrets are never kept in the settings file. A "
        "server's key comes from the environment or the system's keyring; the README "
        "says how.",
        key=key,
    )


def _closest(word: str, known: list[str]) -> str:
    found = difflib.get_close_matches(word, known, n=3, cutoff=0.75)
    last, lasts = word.rpartition(".")[2], [name.rpartition(".")[2] for name in known]
    for near in dict.fromkeys([last, *difflib.get_close_matches(last, lasts, n=3, cutoff=0.8)]):
        found += [name for name, end in zip(known, lasts, strict=True) if end == near and name not in found]
    return _("Did you mean {names}?", names=_(" or ").join(found[:3])) if found else ""


def _checked(section: str, name: str, value: Any, others: dict[str, Any]) -> Any:
    """The value as the field takes it. Raises UsageError. What is wrong with other keys of the file is not asked."""
    model = _sections()[section]
    tried = [value]
    if isinstance(value, str) and model.model_fields[name].annotation is not str:
        try:
            tried.append(tomllib.loads(f"value = {value}")["value"])
        except (ValueError, RecursionError):
            pass
    problem: Mapping[str, Any] | None = None
    for candidate in tried:
        try:
            made = model.model_validate({**others, name: candidate})
            return getattr(made, name)
        except ValidationError as error:
            own = [one for one in error.errors() if not one["loc"] or one["loc"][0] == name]
            if not own:  # Only other keys are wrong: they were so before, and `config list` says it.
                return getattr(model.model_validate({name: candidate}), name)
            problem = problem or own[0]
    assert problem is not None
    allowed, words = _allowed(f"{section}.{name}"), invalid.own_words(problem)
    said = _("it takes {allowed}", allowed=allowed) if allowed and not words else invalid.said(problem)
    key = f"{section}.{name}"
    told = [_("{key} cannot be {value}: {reason}.", key=key, value=_told(value), reason=said)]
    if allowed not in ("", _("text")) and words:
        told.append(_("It takes {allowed}.", allowed=allowed))
    raise UsageError(" ".join(told))


def _told(value: Any) -> str:
    """A value that was refused, to show: short, and without the password of an address."""
    told = repr(settings_module.without_login(value) if isinstance(value, str) else value)
    return told if len(told) <= _LONGEST_TOLD else f"{told[:_LONGEST_TOLD]}…"


def _variable(key: str) -> str:
    return str(Settings.model_config.get("env_prefix", "")) + key.upper().replace(".", "__")


def _is_in_environment(variable: str) -> bool:
    # pydantic-settings reads the environment without regard to case.
    return any(name.upper() == variable for name in os.environ)


def _is_valid(paths: Paths) -> bool:
    try:
        settings_module.load(paths)
    except SettingsError:
        return False
    return True


def _table(paths: Paths, document: TOMLDocument, section: str) -> Any:
    """A section of the file; None if it is not there. Raises SettingsError: it is something else than a section."""
    table = document.get(section)
    if table is not None and not hasattr(table, "items"):
        raise SettingsError(
            _(
                "In {settings}, {section} is not a table. Mend it with: claw-local config edit",
                settings=paths.settings,
                section=section,
            )
        )
    return table


def _values(paths: Paths) -> dict[str, Any]:
    return tomllib.loads(_read(paths))


def _document(paths: Paths) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    text = _read(paths)
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise SettingsError(
            _(
                "{settings} is not valid TOML: {error}. Mend it with: claw-local config edit",
                settings=paths.settings,
                error=error,
            )
        ) from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(
            _(
                "{settings} cannot be read: {reason}. Mend it with: claw-local config edit",
                settings=paths.settings,
                reason=_(_TOO_MUCH),
            )
        ) from error


def _read(paths: Paths) -> str:
    try:
        return settings_module.text_of(paths)
    except UnicodeDecodeError as error:
        raise SettingsError(
            _("{settings} is not UTF-8 text. Save it as UTF-8, or rename the file.", settings=paths.settings)
        ) from error
    except OSError as error:
        raise settings_module.cannot_read(paths, error) from error


def _write(paths: Paths, document: TOMLDocument) -> None:
    import tomlkit

    _write_bytes(paths, _bytes(tomlkit.dumps(document)))


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SettingsError(
            _("The text holds half of a character, which no file can keep. Write that place anew.")
        ) from error


def _write_bytes(paths: Paths, data: bytes) -> None:
    # A settings file that is a link (kept with other dotfiles) stays one: what it points to is written.
    target = paths.settings.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(target, data)
    except OSError as error:
        raise SettingsError(
            _(
                "Cannot write {settings}: {error}. Free some space, or make it writable, or change CLAW_LOCAL_HOME.",
                settings=paths.settings,
                error=error.strerror or error,
            )
        ) from error
