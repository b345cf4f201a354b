"""The model's own chat template, run in a sandbox with bounds: it came with a downloaded file, so it is not to be
trusted.

It must never know about tokens; prompts.py turns the text into them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
from jinja2.ext import Extension
from jinja2.parser import Parser

from ._bounded import BoundedEnvironment

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""What is used for a model that brings no template."""


WIDEST_INDENT = 16
LARGEST_SOURCE = 1 << 20
"""Characters; the longest templates known have some twenty thousand."""


class TemplateError(ValueError):
    """The template is broken, or refuses these messages (many demand strict turns). The message says why."""


class _Generation(Extension):
    """`{% generation %}` ... `{% endgeneration %}`: marks what the model writes; here it only passes its body on."""

    tags = {"generation"}  # noqa: RUF012 (as Jinja declares it)

    def parse(self, parser: Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return list(parser.parse_statements(("name:endgeneration",), drop_needle=True))


def _raise_exception(message: str) -> None:
    raise TemplateError(message)


def _strftime_now(format: str) -> str:
    return datetime.now().strftime(format)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    # Jinja's own filter escapes HTML, which has no place in a prompt.
    if isinstance(indent, (int, str)) and (len(indent) if isinstance(indent, str) else indent) > WIDEST_INDENT:
        raise TemplateError(f"it indents by more than {WIDEST_INDENT}")
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


class ChatTemplate:
    """A compiled chat template.

    Args:
        source: the Jinja source; empty or None means ChatML.
        bos, eos: texts of the model's begin and end tokens, which some templates write out.

    Raises:
        TemplateError: the source is not valid.
    """

    def __init__(self, source: str | None, *, bos: str = "", eos: str = "") -> None:
        if len(source or "") > LARGEST_SOURCE:
            raise TemplateError("it is far too long")
        environment = self._environment = BoundedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        environment.filters["tojson"] = _tojson
        environment.globals.update(raise_exception=_raise_exception, strftime_now=_strftime_now)
        self._texts = {"bos_token": bos, "eos_token": eos}
        self.source = source or ""
        try:
            self._template = environment.from_string(source or CHATML)
        except jinja2.TemplateError as error:
            raise TemplateError(str(error)) from error
        except Exception as error:  # Also while it is compiled, a template can fail in every way a program can.
            raise TemplateError(_why(error)) from error
        self._rendering = threading.Lock()

    def render(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> str:
        """The chat as text, ending where the assistant begins to write. `tools`: what it may call.

        Raises:
            TemplateError: the template refuses the messages, or fails.
        """
        try:
            with self._rendering:
                self._environment.begin()
                return self._template.render(
                    messages=[dict(message) for message in messages],
                    add_generation_prompt=True,
                    tools=list(tools) or None,
                    documents=None,
                    **self._texts,
                )
        except TemplateError:
            raise
        except Exception as error:  # A template can fail in every way a program can.
            raise TemplateError(_why(error)) from error


def _why(error: Exception) -> str:
    """Its own words, which programs are told too: no names out of Python's."""
    return " ".join(str(error).split())[:300] if isinstance(error, jinja2.TemplateError) else "the template failed"
