"""What a downloaded model file holds: GGUF headers, and chat templates, which are programs."""

from __future__ import annotations

import random
from pathlib import Path

from claw_local.engine.described import describe
from claw_local.engine.gguf_file import DamagedGguf, read_header
from claw_local.engine.models import check_model
from claw_local.engine.template import CHATML, ChatTemplate, TemplateError
from claw_local.errors import ClawError

from ..tiny import write_tiny
from .mutate import damaged
from .target import Target

TEMPLATES = (
    CHATML,
    "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content | trim }} [/INST]{% else %}{{ m.content }}"
    "{{ eos_token }}{% endif %}{% endfor %}",
    "{%- set ns = namespace(n=0) -%}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ ns.n ~ m['content'] }}"
    "{% endfor %}{% if tools %}{{ tools | tojson(indent=2) }}{% endif %}",
    "{% macro say(m) %}{{ m.role | upper }}: {{ m.content.split('x') | join('-') }}{% endmacro %}"
    "{% for m in messages[1:] %}{{ say(m) }}{% endfor %}{{ raise_exception('no') if messages | length > 9 }}",
    "{{ strftime_now('%Y') }}{{ messages | map(attribute='content') | join('\\n') | replace('a', 'b') | indent(2) }}",
)
WORDS = tuple(
    word.encode()
    for word in (
        "{% for a in range(99999) %}",
        "{% endfor %}",
        "{% set x = 'a' * 99999 %}",
        "{% set x = x ~ x %}",
        "{% set x = x + x %}",
        "{{ x * x }}",
        "{{ 'a' * 999999999 }}",
        "{{ [0] * 999999999 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '{:999999999}'.format(1) }}",
        "{{ 'a'.ljust(999999999) }}",
        "{{ x.replace('a', x) }}",
        "{{ x | replace('a', x) }}",
        "{{ x | join(x) }}",
        "{{ x | center(999999999) }}",
        "{{ x | indent(999999999) }}",
        "{{ range(99999) | list }}",
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ lipsum(9999) }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ ''.__class__.__mro__ }}",
        "{% include 'x' %}",
        "{{ messages | batch(999999999, 'x') | list }}",
        "{{ namespace.__init__ }}",
        "{{ messages }}",
        "{{ x }}",
        "|tojson(indent=99999999)",
        "{% set ns = namespace(x='a') %}",
        "{% set ns.x = ns.x * 9999 %}",
        "{% for a in b recursive %}{{ loop(b) }}{% endfor %}",
    )
)
MESSAGES = (
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hi \x1b[31m x"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "aaa\nbbb"},
)


def targets(folder: Path) -> list[Target]:
    model = write_tiny(folder / "model.gguf").read_bytes()
    start = model[:9000]
    file = folder / "damaged.gguf"

    def read(data: bytes) -> None:
        file.write_bytes(data)
        try:
            describe([read_header(file)], file.name)
        except DamagedGguf:
            pass
        try:
            check_model(file)
        except ClawError:
            pass

    def render(data: bytes) -> None:
        try:
            ChatTemplate(data.decode("utf-8", "replace"), bos="<s>", eos="</s>").render(MESSAGES)
        except TemplateError:
            pass

    def made(chance: random.Random) -> bytes:
        parts = [chance.choice((*WORDS, *(one.encode() for one in TEMPLATES))) for _ in range(chance.randrange(1, 7))]
        return b"".join(parts)

    seeds = [one.encode() for one in TEMPLATES]
    return [
        Target(
            "gguf", read, [model[:12_000]], make=lambda chance: damaged(start, chance) + model[9000:12_000], weight=2
        ),
        Target("template", render, seeds, words=WORDS, make=made, slowest_s=8.0, weight=0.2),
    ]
