"""Going on from a context, with templates of models that are not here; the embedded one's is tried with its server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from claw_local.server.asking import Asked, Caller, Offered, Said, Service
from claw_local.server.errors import Invalid
from claw_local.server.ollama_context import go_on

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}"
    "{% elif m['role'] == 'system' %}{{ raise_exception('no system prompt here') }}"
    "{% else %}{{ m['content'] + eos_token }}{% endif %}{% endfor %}"
)
FORGETFUL = "{{ messages[-1]['content'] }}"
SYSTEM = "<|im_end|>\n<|im_start|>system\nBe brief.<|im_end|>\n"
USER = "<|im_start|>user\nAnd then?<|im_end|>\n<|im_start|>assistant\n"
END = 2


class Tokens:
    """The part of a service that is needed: token 2 is a control token, which is no text."""

    async def detokenize(self, token_ids: Sequence[int]) -> str:
        return "".join("" if token == END else f"w{token}" for token in token_ids)


async def gone_on(template: str, context: Sequence[int]) -> Asked:
    asked = Asked(Caller(), (Said("system", "Be brief."), Said("user", "And then?")), model="m")
    model = Offered("m", 0, template=template)
    return await go_on(cast(Service, Tokens()), model, asked, context)


@pytest.mark.parametrize(
    ("template", "context", "kept", "text"),
    [
        (CHATML, (7, 8, END), (7, 8), SYSTEM + USER),
        (CHATML, (7, 8), (7, 8), SYSTEM + USER),
        (MISTRAL, (7, 8, END), (7, 8, END), "[INST] Be brief.\n\nAnd then? [/INST]"),
    ],
)
async def test_the_end_of_the_answer_stands_once(template: str, context: Any, kept: Any, text: str) -> None:
    asked = await gone_on(template, context)
    assert asked.prompt_ids == kept and asked.prompt == text and asked.messages == ()


async def test_a_template_that_drops_the_past_is_refused() -> None:
    with pytest.raises(Invalid, match="Use /api/chat"):
        await gone_on(FORGETFUL, (7, 8))
