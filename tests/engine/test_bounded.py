"""A chat template of a downloaded file cannot loop for ever, fill the memory, or reach Python."""

from __future__ import annotations

import time

import pytest

from claw_local.engine.template import LARGEST_SOURCE, ChatTemplate, TemplateError

SAID = [{"role": "user", "content": "Hi there"}, {"role": "assistant", "content": "Hello."}]
TOO_MUCH = {
    "loops in loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "loops without a body that is reached": "{% for a in range(99999) if range(99999) | sum == 1 %}{% endfor %}",
    "doubling by ~": "{% set n = namespace(x='aa') %}{% for a in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "doubling by +": "{% set n = namespace(x='aa') %}{% for a in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "doubling a list": "{% set n = namespace(x=[1]) %}{% for a in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "squaring": "{% set n = namespace(x=9) %}{% for a in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}",
    "a product": "{{ 'a' * 10 ** 10 }}",
    "a list's product": "{{ [0] * 10 ** 9 }}",
    "a power": "{{ 9 ** 99999 }}",
    "a wide %": "{{ '%999999999d' % 1 }}",
    "a wide format": "{{ '{:999999999}'.format(1) }}",
    "a nested format": "{{ '{:{}}'.format(1, 999999999) }}",
    "a wide ljust": "{{ 'a'.ljust(999999999) }}",
    "a wide center": "{{ 'a' | center(999999999) }}",
    "a wide indent": "{{ 'a\nb' | indent(999999999) }}",
    "replacing by itself": "{% set x = 'a' * 99999 %}{{ x | replace('a', x) }}",
    "replacing by a method": "{% set x = 'a' * 99999 %}{{ x.replace('a', x) }}",
    "joining": "{% set x = 'a' * 99999 %}{{ x | join(x) }}",
    "joining by a method": "{% set x = 'a' * 99999 %}{{ x.join(x) }}",
    "writing much": "{% set x = 'a' * 9999999 %}{% for a in range(9) %}{{ x }}{% endfor %}",
    "recursion": "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "filling slices": "{{ [1] | slice(999999999) | list }}",
    "wide JSON": "{{ messages | tojson(indent=999999) }}",
    "lorem ipsum": "{{ lipsum(99999) }}",
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_template_that_takes_too_much_is_refused_in_time(name: str) -> None:
    began = time.monotonic()
    with pytest.raises(TemplateError):
        ChatTemplate(TOO_MUCH[name]).render(SAID)
    assert time.monotonic() - began < 12


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update(role='system') }}",
        "{{ raise_exception.__globals__ }}",
    ],
)
def test_python_is_out_of_reach(source: str) -> None:
    try:
        said = ChatTemplate(source).render(SAID)
    except TemplateError:
        return
    assert said in ("", "None")


def test_usual_templates_are_rendered_as_before() -> None:
    source = (
        "{%- set ns = namespace(n=0) -%}{% macro say(m) %}{{ m.role | upper }}: {{ m.content.split(' ') | join('-') }}"
        "{% endmacro %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ ns.n ~ '. ' ~ say(m) }}\n{% endfor %}"
        "{{ '%02d' % 7 }} {{ '{} {:>3}'.format('a', 1) }} {{ 'abc' | replace('b', '-') | indent(2) }} "
        "{{ [1, 2] + [3] }} {{ 2 ** 5 * 2 }} {{ messages | map(attribute='role') | join(',') }} "
        "{% for m in messages %}{% generation %}{{ m.content | trim }}{% endgeneration %}{% break %}{% endfor %}"
    )
    assert ChatTemplate(source).render(SAID) == (
        "1. USER: Hi-there\n2. ASSISTANT: Hello.\n07 a   1 a-c [1, 2, 3] 64 user,assistant Hi there"
    )


def test_it_can_be_rendered_again_and_again() -> None:
    template = ChatTemplate("{% for a in range(9000) %}{% endfor %}{{ messages[0].content }}")
    assert {template.render(SAID) for _ in range(60)} == {"Hi there"}


def test_a_source_that_is_far_too_long_is_refused() -> None:
    with pytest.raises(TemplateError, match="too long"):
        ChatTemplate("x" * (LARGEST_SOURCE + 1))
