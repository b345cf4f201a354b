"""One persona: read from TOML, checked for slips, and what it says next. It must never know the product.

The file, in short (see student.toml for a whole one):

    name, who      what it is called; one sentence about the person and the wish
    aim            rate on held-out prompts that is hoped for (0.9 if left out)
    prompts        24 questions or more, for learning: texts, or tables of fields that `frames` are filled with
    held_out       24 or more of the same kind, asked only to measure; none close to one of `prompts`
    frames         optional: texts with {field} in them, taken in turn
    corrections    10 or more: what the person says when the wish is broken; a text, or
                   {text, about = [names of checks]} for one that is only said when one of these checks failed
    thanks         8 or more: what the person says when it is kept
    [[wish]]       check = "…", its parameters, and a name if two checks are of one kind; all of them must pass
    [[example]]    optional: text, keeps = true or false, and fields of the prompt where checks need them
    [reverse]      optional: who, wish, corrections and thanks (or those above) of the opposite wish, come to later
"""

from __future__ import annotations

import difflib
import random
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claw_local.errors import UsageError

from .eye import Check, Prompt, content_words

FOLDER = Path(__file__).parent
LEAST_PROMPTS = 24
LEAST_CORRECTIONS = 10
LEAST_THANKS = 8
TOO_CLOSE = 0.6
"""Share of common words of sense (Jaccard) from which two prompts count as near-duplicates."""
SAME_WORDING = 0.85
"""The same, for two texts letter by letter (difflib's ratio)."""
WORTH_A_LOOK = 0.2
"""Share of common words from which two prompts are compared letter by letter."""
FRAME = 0.3
"""Words that stand in more than this share of all prompts belong to their frame, not to their sense."""

_KEYS = {"name", "who", "aim", "prompts", "held_out", "frames", "corrections", "thanks", "wish", "example", "reverse"}
_REVERSE_KEYS = {"who", "wish", "corrections", "thanks"}


@dataclass(frozen=True)
class Correction:
    """What the person says of a broken wish; `about` names the checks it complains of, empty for any."""

    text: str
    about: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Wish:
    """A wish with all that is said about it. It is kept when every check passes."""

    who: str
    checks: tuple[Check, ...]
    corrections: tuple[Correction, ...]
    thanks: tuple[str, ...]

    @property
    def about_length(self) -> bool:
        return any(check.about_length for check in self.checks)

    def broken(self, answer: str, prompt: Prompt) -> list[str]:
        """Names of the checks that the answer does not pass."""
        return [check.name for check in self.checks if not check.passes(answer, prompt)]


@dataclass(frozen=True)
class Persona:
    """A scripted person. `reverse` is the wish that replaces the first one later, if there is one."""

    name: str
    wish: Wish
    reverse: Wish | None
    prompts: tuple[Prompt, ...]
    held_out: tuple[Prompt, ...]
    aim: float


class Voice:
    """What the person says next: fitting words, each as seldom as the others, in an order of the seed's own."""

    def __init__(self, wish: Wish, seed: int) -> None:
        order = random.Random(seed)
        self._corrections = order.sample(wish.corrections, len(wish.corrections))
        self._thanks = order.sample(wish.thanks, len(wish.thanks))
        self._said: Counter[str] = Counter()

    def correct(self, broken: Sequence[str]) -> str:
        """A correction that complains of something that is broken, or of the answer in general."""
        fitting = [c.text for c in self._corrections if not c.about or c.about & set(broken)]
        return self._say(fitting)

    def thank(self) -> str:
        return self._say(self._thanks)

    def _say(self, texts: Sequence[str]) -> str:
        chosen = min(texts, key=lambda text: self._said[text])
        self._said[chosen] += 1
        return chosen


def shipped() -> list[str]:
    """The personas that come with the benchmark."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(choice: str) -> Persona:
    """The persona of that name, or in that TOML file.

    Raises:
        UsageError: there is none, or something is wrong with it; every slip is named.
    """
    path = FOLDER / f"{choice}.toml" if choice in shipped() else Path(choice)
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        names = ", ".join(shipped())
        raise UsageError(
            f"There is no persona {choice!r}. Choose one of {names}, or give a TOML file's path."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a TOML file: {error}.") from error
    slips = problems(data)
    if slips:
        raise UsageError(f"{path} is not a persona yet:\n" + "\n".join(f"- {slip}" for slip in slips))
    return _build(data)


def problems(data: Mapping[str, Any]) -> list[str]:
    """All that is wrong with a persona as read from TOML, in plain words; empty if nothing is."""
    slips = [f"unknown key {key!r}" for key in data if key not in _KEYS]
    slips += [f"{key!r} is missing" for key in ("name", "who") if not _is_text(data.get(key))]
    aim = data.get("aim", 0.9)
    if not isinstance(aim, int | float) or not 0 < aim <= 1:
        slips.append("aim must be a rate between 0 and 1")
    frames = data.get("frames", [])
    if not isinstance(frames, list) or not all(_is_text(frame) for frame in frames):
        slips.append("frames must be a list of texts")
    else:
        for key in ("prompts", "held_out"):
            slips += _prompt_slips(key, data.get(key), frames)
    if not slips:
        slips += _closeness_slips(_prompts(data["prompts"], frames), _prompts(data["held_out"], frames))
    slips += _wish_slips(data, data, "")
    reverse = data.get("reverse")
    if isinstance(reverse, dict):
        slips += [f"reverse: unknown key {key!r}" for key in reverse if key not in _REVERSE_KEYS]
        slips += _wish_slips(reverse, data, "reverse: ")
    elif reverse is not None:
        slips.append("reverse must be a table")
    if not slips:
        slips += _field_slips(data) + _example_slips(data)
    return slips


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _prompt_slips(key: str, entries: Any, frames: Sequence[str]) -> list[str]:
    if not isinstance(entries, list) or len(entries) < LEAST_PROMPTS:
        count = len(entries) if isinstance(entries, list) else 0
        return [f"{key} has {count} entries; at least {LEAST_PROMPTS} are needed"]
    for n, entry in enumerate(entries):
        if isinstance(entry, dict):
            if not frames:
                return [f"{key} {n + 1} is a table of fields, but there are no frames to fill with it"]
            if not all(_is_text(value) for value in entry.values()):
                return [f"{key} {n + 1} has a field that is not a text"]
            missing = [frame for frame in frames if "{" in _fill(frame, entry)]
            if missing:
                return [f"{key} {n + 1} lacks a field of the frame {missing[0]!r}"]
        elif not _is_text(entry):
            return [f"{key} {n + 1} is neither a text nor a table of fields"]
    return []


def _closeness_slips(learnt: Sequence[Prompt], held_out: Sequence[Prompt]) -> list[str]:
    slips = [f"asked twice: {text!r}" for text, n in Counter(p.text for p in [*learnt, *held_out]).items() if n > 1]
    found = {prompt.text: content_words(prompt.text) for prompt in [*learnt, *held_out]}
    shared = Counter(word for words in found.values() for word in words)
    senses = {text: {w for w in words if shared[w] <= FRAME * len(found)} for text, words in found.items()}
    for later in held_out:
        for earlier in learnt:
            mine, theirs = senses[later.text], senses[earlier.text]
            alike = len(mine & theirs) / (len(mine | theirs) or 1)
            close = alike >= TOO_CLOSE or (alike >= WORTH_A_LOOK and _ratio(later.text, earlier.text) >= SAME_WORDING)
            if close:
                slips.append(f"held_out {later.text!r} is too close to {earlier.text!r} of prompts")
    return slips


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()


def _wish_slips(part: Mapping[str, Any], whole: Mapping[str, Any], where: str) -> list[str]:
    """What is wrong with a wish; thanks may come from the persona itself."""
    tables = part.get("wish")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        return [f"{where}the wish is missing: write [[wish]] with a check in it"]
    slips = [] if _is_text(part.get("who")) else [f"{where}'who' is missing"]
    names: list[str] = []
    for table in tables:
        try:
            names.append(_check(table).name)
        except ValueError as error:
            slips.append(f"{where}{error}")
    slips += [f"{where}two checks are called {name!r}: give them names" for name, n in Counter(names).items() if n > 1]
    corrections = part.get("corrections")
    if not isinstance(corrections, list) or len(corrections) < LEAST_CORRECTIONS:
        return [*slips, f"{where}at least {LEAST_CORRECTIONS} corrections are needed"]
    try:
        said = [_correction(entry) for entry in corrections]
    except ValueError as error:
        return [*slips, f"{where}{error}"]
    for correction in said:
        slips += [f"{where}{correction.text!r} is about {n!r}, which is no check" for n in correction.about - {*names}]
    for name in names:
        if not any(not correction.about or name in correction.about for correction in said):
            slips.append(f"{where}nothing can be said when {name!r} fails: add a correction")
    thanks = part.get("thanks", whole.get("thanks"))
    if not isinstance(thanks, list) or len(thanks) < LEAST_THANKS or not all(_is_text(text) for text in thanks):
        return [*slips, f"{where}at least {LEAST_THANKS} thanks are needed"]
    for texts in ([correction.text for correction in said], thanks):
        for n, text in enumerate(texts):
            twin = next((other for other in texts[:n] if _ratio(text.lower(), other.lower()) >= SAME_WORDING), None)
            if twin:
                slips.append(f"{where}{text!r} says the same as {twin!r} in nearly the same words")
    return slips


def _field_slips(data: Mapping[str, Any]) -> list[str]:
    persona = _build(data)
    wishes = [persona.wish, *([persona.reverse] if persona.reverse else [])]
    slips = []
    for check in (check for wish in wishes for check in wish.checks):
        try:
            for prompt in (*persona.prompts, *persona.held_out):
                check.passes("Some answer.", prompt)
        except KeyError as error:
            slips.append(f"the check {check.name} needs the field {error} in every prompt; {prompt.text!r} has none")
    return slips


def _example_slips(data: Mapping[str, Any]) -> list[str]:
    wish = _build(data).wish
    slips = []
    for n, example in enumerate(data.get("example", [])):
        fields = {key: value for key, value in example.items() if key not in ("text", "keeps") and _is_text(value)}
        if not isinstance(example.get("text"), str) or not isinstance(example.get("keeps"), bool):
            slips.append(f"example {n + 1} needs a text, and keeps = true or false")
            continue
        try:
            broken = wish.broken(example["text"], Prompt("", fields))
        except KeyError as error:
            slips.append(f"example {n + 1} needs the field {error}")
            continue
        if broken and example["keeps"]:
            slips.append(f"example {n + 1} should keep the wish, but breaks {', '.join(broken)}")
        elif not broken and not example["keeps"]:
            slips.append(f"example {n + 1} should break the wish, but passes every check")
    return slips


def _build(data: Mapping[str, Any]) -> Persona:
    """From data without problems."""
    reverse = data.get("reverse")
    return Persona(
        name=data["name"],
        wish=_wish(data, data),
        reverse=_wish(reverse, data) if reverse else None,
        prompts=tuple(_prompts(data["prompts"], data.get("frames", []))),
        held_out=tuple(_prompts(data["held_out"], data.get("frames", []))),
        aim=float(data.get("aim", 0.9)),
    )


def _wish(part: Mapping[str, Any], whole: Mapping[str, Any]) -> Wish:
    return Wish(
        who=part["who"],
        checks=tuple(_check(table) for table in part["wish"]),
        corrections=tuple(_correction(entry) for entry in part["corrections"]),
        thanks=tuple(part.get("thanks", whole["thanks"])),
    )


def _check(table: Mapping[str, Any]) -> Check:
    """Raises ValueError."""
    parameters = {key: value for key, value in table.items() if key not in ("check", "name")}
    return Check(str(table.get("check", "")), parameters, str(table.get("name", "")))


def _correction(entry: Any) -> Correction:
    """Raises ValueError."""
    if _is_text(entry):
        return Correction(entry)
    about = entry.get("about") if isinstance(entry, dict) else None
    if not isinstance(about, list) or not _is_text(entry.get("text")) or set(entry) != {"text", "about"}:
        raise ValueError(f"a correction is a text, or a table with text and about; this is neither: {entry!r}")
    return Correction(entry["text"], frozenset(map(str, about)))


def _prompts(entries: Sequence[Any], frames: Sequence[str]) -> list[Prompt]:
    prompts = []
    for n, entry in enumerate(entries):
        if isinstance(entry, str):
            prompts.append(Prompt(entry))
        else:
            prompts.append(Prompt(_fill(frames[n % len(frames)], entry), entry))
    return prompts


def _fill(frame: str, fields: Mapping[str, str]) -> str:
    for name, value in fields.items():
        frame = frame.replace("{" + name + "}", value)
    return frame
