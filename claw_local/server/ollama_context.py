"""Going on from `context`, the tokens of an earlier answer: what /api/generate had before there was /api/chat.

The new prompt is written as the chat template writes a message after an answer. It must never know about HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..engine.template import ChatTemplate, TemplateError
from .asking import Asked, Offered, Service
from .errors import Invalid

_ANSWER, _EOS = "answered before", "\0end\0"


async def go_on(service: Service, model: Offered, asked: Asked, context: Sequence[int]) -> Asked:
    """The same request after the tokens [T] of `context`. Raises Invalid: the template cannot do it."""
    text = _after_answer(model.template, asked)
    tokens = tuple(context)
    if text.startswith(_EOS):
        text = text.removeprefix(_EOS)
    elif not await service.detokenize(tokens[-1:]):
        tokens = tokens[:-1]  # The end of the turn, which the template writes itself.
    return replace(asked, messages=(), prompt=text.replace(_EOS, ""), prompt_ids=tokens)


def _after_answer(template: str, asked: Asked) -> str:
    """What the template writes between the end of an answer and the beginning of the next one."""
    new = [{"role": said.role, "content": said.content} for said in asked.messages if said.role == "user"]
    earlier = [{"role": "user", "content": "asked"}, {"role": "assistant", "content": _ANSWER}]
    try:
        text = ChatTemplate(template, eos=_EOS).render([*earlier, *new])
    except TemplateError:
        text = ""
    _, found, after = text.partition(_ANSWER)
    if not found:
        raise Invalid("The model's chat template cannot go on from a context. Use /api/chat.", field="context")
    return after
