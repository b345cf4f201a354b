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
    """What the template writes between the end of an answer and the beginning of the next one.

    A system prompt that comes with the request stands there too: as a message of its own, or, where the template takes
    none at this place, at the beginning of the person's.
    """
    told = "\n\n".join(said.content for said in asked.messages if said.role == "system" and said.content.strip())
    new = [{"role": said.role, "content": said.content} for said in asked.messages if said.role == "user"]
    if not told:
        after = _written(template, new)
    else:
        after = _written(template, [{"role": "system", "content": told}, *new])
        if told not in after:
            after = _written(template, [{**new[0], "content": f"{told}\n\n{new[0]['content']}"}, *new[1:]])
    if not after:
        raise Invalid("The model's chat template cannot go on from a context. Use /api/chat.", field="context")
    return after


def _written(template: str, new: Sequence[dict[str, str]]) -> str:
    """What the template writes of new messages after an answer; "" if it cannot."""
    earlier = [{"role": "user", "content": "asked"}, {"role": "assistant", "content": _ANSWER}]
    try:
        text = ChatTemplate(template, eos=_EOS).render([*earlier, *new])
    except TemplateError:
        return ""
    return text.partition(_ANSWER)[2]
