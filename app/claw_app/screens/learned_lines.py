"""The lines of the learning screen: how learning stands, and what is said of a hint, a run and an adapter. It must
never ask for any of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from claw_local.language import N_, _, ngettext

from ..report import verdict, work
from ..text import adapter_name, moment, one_line
from ..widgets.learned import Row
from ..widgets.status_line import bar, switch_words

if TYPE_CHECKING:
    from claw_local.idle.learning import LearnStatus
    from claw_local.store import AdapterRecord, Hint, Run

_HINTS = {
    "active": ("●", "$success", ""),
    "consolidated": ("✓", "$accent", N_("learned: no longer in the prompt")),
    "dropped": ("○", "$quiet", N_("off")),
}
_RUNS = {
    "done": "",
    "failed": N_("failed"),
    "stopped": N_("stopped"),
    "paused": N_("paused"),
    "dropped": N_("dropped"),
}


def head(status: LearnStatus, width: int) -> Content:
    """How learning stands, in one line, in the longest words that fit into so many cells."""
    lines = [_head(status, level) for level in range(3)]
    return next((line for line in lines if line.cell_length <= width), lines[-1])


def _head(status: LearnStatus, level: int) -> Content:
    """The line; each level leaves something out, or says it shorter."""
    parts = [Content.styled(_("What it learned"), "bold $primary")]
    parts.append(
        Content.styled(
            switch_words(status),
            "$success" if status.enabled and not status.held else "$quiet",
        )
    )
    if level == 2:
        parts.append(Content(_("adapter {id}", id=status.adapter) if status.adapter else _("base model")))
        parts.append(Content(ngettext("{number} waiting", "{number} waiting", status.lessons)))
    else:
        named = _("adapter {id} in use", id=status.adapter) if status.adapter else _("base model in use")
        waiting = ngettext("{number} lesson waiting", "{number} lessons waiting", status.lessons)
        parts += [Content(named), Content(waiting)]
    if status.waiting and not level:
        parts.append(
            Content(ngettext("{number} reply not judged yet", "{number} replies not judged yet", status.waiting))
        )
    run = status.run
    if run is not None and run.state == "running":
        parts.append(Content.styled(f"{one_line(_(run.phase))} {bar(run.progress)} {run.progress:.0%}", "$accent"))
    return Content.styled(" · ", "$quiet").join(parts)


def hint_row(hint: Hint) -> Row:
    """A hint, whether it is on, and how often it was used."""
    mark, style, note = _HINTS.get(hint.state, ("?", "$quiet", hint.state))
    used = ngettext("in {number} prompt", "in {number} prompts", hint.uses) if hint.uses else _("not used yet")
    scope = " " + _("· this chat only") if hint.scope == "chat" else ""
    return str(hint.id), Content.assemble(
        (f"{mark} ", style), one_line(hint.text), (f"  {_(note) or used}{scope}", "$quiet")
    )


def run_row(run: Run) -> Row:
    """A training run: when, and how it ended or how far it is."""
    when = moment(run.started_at)
    if run.state == "running":
        words = Content.styled(f"{one_line(_(run.phase))} {bar(run.progress)} {run.progress:.0%}", "$accent")
    elif run.state == "done":
        taken = bool(run.result.get("accepted"))
        words = Content.assemble(
            (verdict(run.result), "$success" if taken else "$warning"), (f"  {work(run.result)}", "$quiet")
        )
    else:
        words = Content.assemble(
            (_(_RUNS.get(run.state, run.state)), "$error"), (f"  {one_line(run.detail)}", "$quiet")
        )
    return str(run.id), Content.assemble((f"{when}  ", "$secondary"), words)


def adapter_row(record: AdapterRecord, in_use: int) -> Row:
    """An adapter: its name, its state, and what it was made from. `in_use`: id of the one in use, 0 for none."""
    made = moment(record.created_at)
    state = (
        _("in use")
        if record.id == in_use
        else {
            "candidate": _("not used yet"),
            "rejected": _("not taken by the gate"),
            "retired": _("used before"),
        }.get(record.state, record.state)
    )
    parent = _("from adapter {id}", id=record.parent_id) if record.parent_id else _("from the base model")
    learned = ngettext("learned from {number} reply", "learned from {number} replies", len(record.lineage))
    words = Content.assemble(
        dot(record.id == in_use),
        f"{adapter_name(record)}  ",
        (state, "$success" if record.id == in_use else "$quiet"),
    )
    return str(record.id), Content.assemble(words, (f"  {made} · {parent} · {learned}", "$quiet"))


def dot(on: bool) -> tuple[str, str]:
    """The mark of what is in use, and of what is not."""
    return ("● ", "$success") if on else ("○ ", "$quiet")
