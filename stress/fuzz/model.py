"""What a downloaded model file holds: GGUF headers, and chat templates, which are programs."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from gguf import GGUFWriter

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
GGUF_WORDS = (
    b"GGUF",
    b"tokenizer.ggml.tokens",
    b"general.alignment",
    *(number.to_bytes(4, "little") for number in range(14)),
    *((1 << bits).to_bytes(8, "little") for bits in (8, 20, 31, 40, 62, 63)),
)
MESSAGES = (
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hi \x1b[31m x"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "aaa\nbbb"},
)


def write_small(path: Path) -> Path:
    """The header of a model with one value of each kind, six tokens and three tensors."""
    writer = GGUFWriter(path, "llama")
    writer.add_type("model")
    writer.add_name("small")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(64)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(1e4)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["a", "b", "ab", "<s>", "</s>", "ï"])
    writer.add_token_scores([0.0, -1.0, -2.0, 0.0, 0.0, 0.5])
    writer.add_token_types([1, 1, 1, 3, 3, 6])
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHATML)
    writer.add_uint64("small.large", 1 << 40)
    writer.add_int8("small.int8", -3)
    writer.add_array("small.nested", ["x", "y"])
    for name, shape in (
        ("token_embd.weight", (6, 32)),
        ("blk.0.attn_q.weight", (32, 32)),
        ("output_norm.weight", (32,)),
    ):
        writer.add_tensor(name, np.zeros(shape, np.float16 if len(shape) == 2 else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def targets(folder: Path) -> list[Target]:
    model = write_tiny(folder / "model.gguf").read_bytes()
    start = model[:9000]
    small = write_small(folder / "small.gguf").read_bytes()
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

    def made_header(chance: random.Random) -> bytes:
        """Mostly one in which nearly every byte means something of its own; the other is all tokens."""
        return damaged(small, chance) if chance.random() < 0.9 else damaged(start, chance) + model[9000:12_000]

    seeds = [one.encode() for one in TEMPLATES]
    return [
        Target("gguf", read, [small, small, small, model[:12_000]], words=GGUF_WORDS, make=made_header, weight=2),
        Target("template", render, seeds, words=WORDS, make=made, slowest_s=8.0, weight=0.2),
    ]
