"""What is told of a reply beside its text: counts, likelihoods, what ended it. It must never know who asks."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.base import ChatEngine, Generation, Noted, Prompt, has_tokens
from ..engine.estimate import tokens_in
from .asked import Ended, TokenLogprob


def counted(prompt: Prompt) -> int:
    """How many tokens a prompt has; roughly, where a server makes them."""
    return len(prompt.token_ids) or sum(tokens_in(message.content) for message in prompt.messages)


def logprobs(engine: ChatEngine, noted: Sequence[Noted]) -> tuple[TokenLogprob, ...]:
    """What was noted of tokens, in text; tokens that add nothing to it, as the end of the turn does, are left out."""
    if not noted or not has_tokens(engine):
        return ()
    found = []
    for one in noted:
        raw = engine.token_bytes(one.token)
        if raw:
            top = tuple((engine.token_bytes(token).decode("utf-8", "replace"), value) for token, value in one.top)
            found.append(TokenLogprob(raw.decode("utf-8", "replace"), raw, one.logprob, top))
    return tuple(found)


def stopped_by(engine: ChatEngine, generation: Generation) -> str:
    """The stop text that ended a reply; "" if none did."""
    stops = generation.sampling.stop
    if not stops or generation.finish_reason != "stop" or not has_tokens(engine):
        return ""
    written = b"".join(engine.token_bytes(token) for token in generation.response_ids).decode("utf-8", "replace")
    places = {stop: place for stop in stops if (place := written.find(stop)) >= 0}
    return min(places, key=lambda stop: places[stop]) if places else ""


def ended(engine: ChatEngine, generation: Generation, *, called: bool, own: int) -> Ended:
    """What is known of a reply once it has ended, but for who asked and how long all of it took.

    Args:
        called: whether it called tools.
        own: how many of its prompt's first tokens are known to who asked: more is never said to be kept.
    """
    finish = generation.finish_reason
    return Ended(
        "tool_calls" if called and finish != "cancelled" else finish,
        stopped_by=stopped_by(engine, generation),
        prompt_tokens=generation.prompt_tokens,
        cached_tokens=min(own, max(0, len(generation.prompt_ids) - generation.evaluated)),
        completion_tokens=generation.completion_tokens,
        prompt_ids=generation.prompt_ids,
        response_ids=tuple(generation.response_ids),
        prompt_s=generation.first_token_s,
    )
