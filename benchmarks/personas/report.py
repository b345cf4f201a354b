"""What many lives come down to: means and spreads, what was hoped for, a table and a learning curve.

It must never measure anything: it reads the rows that `life` made.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]

FAST_MEMORY_GAIN = 0.2
LEAST_LENGTH = 0.7
QUIZ_POINTS = 2.0
LEARN_S = 360.0

PAPER = (
    "The paper (OpenClaw-RL, arXiv 2603.10165): personalisation score 0.17 at the start, 0.81 after 16 steps with both "
    "signals combined, Qwen3-4B on 8 GPUs; its student needed 36 interactions, its teacher 24. That score is given by "
    "a judge model to whole answers; the rates here are shares of answers that pass fixed checks. Read them side by "
    "side, not against each other."
)

_MEASURES = (
    "rate_before", "rate_with_hints", "rate_after", "words_before", "words_after", "length_ratio", "repetition_before",
    "repetition_after", "quiz_before", "quiz_after", "quiz_change", "judge_right", "corrected", "accepted",
)  # fmt: skip


def summarise(rows: Sequence[Row]) -> dict[str, dict[str, dict[str, float | None]]]:
    """For each method and measure the mean over seeds, and the standard deviation (None with one seed)."""
    summary: dict[str, dict[str, dict[str, float | None]]] = {}
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        values = {name: [float(row[name]) for row in mine if name in row] for name in _MEASURES}
        values["learn_s"] = [float(row["seconds"]["learn"]) for row in mine if row["steps"]]
        turned = [row["reversed"] for row in mine if "reversed" in row]
        for name in ("rate_before", "rate_with_hints", "rate_after"):
            values[f"reversed_{name}"] = [float(part[name]) for part in turned]
        summary[method] = {name: _mean(found) for name, found in values.items() if found}
    return summary


def _mean(values: Sequence[float]) -> dict[str, float | None]:
    spread = round(statistics.stdev(values), 4) if len(values) > 1 else None
    return {"mean": round(statistics.mean(values), 4), "spread": spread}


def hopes(
    summary: Mapping[str, Mapping[str, Mapping[str, float | None]]], *, aim: float, about_length: bool
) -> list[dict[str, Any]]:
    """What was hoped for, what was reached, and whether it is met, for `combined` (else the first method)."""
    method = "combined" if "combined" in summary else next(iter(summary))
    reached = {name: value["mean"] or 0.0 for name, value in summary[method].items()}
    found = [
        _hope("held-out rate, learned", "≥", aim, reached["rate_after"]),
        _hope(
            "gain of fast memory at once", "≥", FAST_MEMORY_GAIN, reached["rate_with_hints"] - reached["rate_before"]
        ),
    ]
    if not about_length:
        found.append(_hope("length of answers, of before", "≥", LEAST_LENGTH, reached["length_ratio"]))
    if "quiz_change" in reached:
        found.append(_hope("change in the quiz, points", "≥", -QUIZ_POINTS, reached["quiz_change"]))
    if "learn_s" in reached:
        found.append(_hope("one learning run, seconds", "≤", LEARN_S, reached["learn_s"]))
    for other in (name for name in summary if name != method and method == "combined"):
        theirs = summary[other]["rate_after"]["mean"] or 0.0
        found.append(_hope(f"combined, beside {other}", "≥", theirs, reached["rate_after"]))
    if "reversed_rate_after" in reached:
        found.append(_hope("reversed wish, learned", "≥", aim, reached["reversed_rate_after"]))
    return found


def _hope(what: str, sign: str, bound: float, reached: float) -> dict[str, Any]:
    met = reached >= bound - 1e-9 if sign == "≥" else reached <= bound
    return {"what": what, "hoped": f"{sign} {bound:.2f}", "reached": round(reached, 3), "met": met}


def markdown(report: Mapping[str, Any]) -> str:
    """The whole report for a person to read."""
    held_out = f"{report['held_out']} held-out prompts, {report['answers_each']} answer(s) to each"
    lines = [
        f"## Persona: {report['persona']}",
        "",
        report["who"],
        "",
        f"    {report['command']}",
        "",
        f"{report['model']}, {report['machine']}. {held_out}, of {report['tokens']} tokens at most; "
        f"{report['turns']} questions asked, each answer corrected or thanked for. "
        "Rates before and learned are without hints in the prompt. Mean ± standard deviation over seeds "
        f"{', '.join(map(str, report['seeds']))}.",
        "",
        "| method | before | with hints, at once | learned | words | of before | quiz | taken | learning, s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for method, found in report["summary"].items():
        taken = [row["accepted"] for row in report["runs"] if row["method"] == method]
        cells = [
            method,
            *(_shown(found, name) for name in ("rate_before", "rate_with_hints")),
            f"**{_shown(found, 'rate_after')}**",
            f"{_shown(found, 'words_before', 0)} → {_shown(found, 'words_after', 0)}",
            _shown(found, "length_ratio"),
            f"{_shown(found, 'quiz_before', 1)} → {_shown(found, 'quiz_after', 1)}" if "quiz_before" in found else "",
            f"{sum(taken)} of {len(taken)}",
            _shown(found, "learn_s", 0) if "learn_s" in found else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += _reversed_lines(report["summary"])
    lines += ["", "| hoped for | | reached | |", "|---|---|---|---|"]
    for hope in report["hopes"]:
        met = "met" if hope["met"] else "**not met**"
        lines.append(f"| {hope['what']} | {hope['hoped']} | {hope['reached']:.2f} | {met} |")
    lines += [
        "",
        "| method | seed | before | with hints | learned | corrected | judge right | gate |",
        "|" + "---|" * 8,
    ]
    for row in report["runs"]:
        lines.append(
            f"| {row['method']} | {row['seed']} | {row['rate_before']:.2f} | {row['rate_with_hints']:.2f} | "
            f"{row['rate_after']:.2f} | {row['corrected']} of {row['turns']} | {row['judge_right']:.2f} | "
            f"{_cell(row['reason'])}{_refused(row)} |"
        )
    seconds = _mean_seconds(report["runs"])
    parts = ", ".join(f"{name.replace('_', ' ')} {value:.0f}" for name, value in seconds.items())
    lines += ["", f"Mean seconds: {parts}; in all {sum(seconds.values()):.0f}.", "", PAPER, ""]
    return "\n".join(lines)


def _shown(found: Mapping[str, Mapping[str, float | None]], name: str, digits: int = 2) -> str:
    mean, spread = found[name]["mean"], found[name]["spread"]
    return f"{mean:.{digits}f}" + ("" if spread is None else f" ± {spread:.{digits}f}")


def _reversed_lines(summary: Mapping[str, Any]) -> list[str]:
    if not any("reversed_rate_after" in found for found in summary.values()):
        return []
    lines = ["", "| method | reversed wish, before | with hints, at once | learned |", "|---|---|---|---|"]
    for method, found in summary.items():
        if "reversed_rate_after" in found:
            names = ("reversed_rate_before", "reversed_rate_with_hints", "reversed_rate_after")
            lines.append(f"| {method} | {' | '.join(_shown(found, name) for name in names)} |")
    return lines


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _refused(row: Row) -> str:
    return f" (it would have kept the wish in {row['rate_refused']:.2f})" if "rate_refused" in row else ""


def _mean_seconds(rows: Sequence[Row]) -> dict[str, float]:
    parts = dict.fromkeys(name for row in rows for name in row["seconds"])
    return {name: statistics.mean(row["seconds"].get(name, 0.0) for row in rows) for name in parts}


def draw(report: Mapping[str, Any], path: Path) -> None:
    """The learning curve as PNG: held-out rates on top, the practice score by step below.

    Raises:
        ImportError: matplotlib is not installed.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import MaxNLocator

    rows: Sequence[Row] = report["runs"]
    practised = any(score is not None for row in rows for score in row["practice"])
    figure, axes = plt.subplots(
        2 if practised else 1, 1, sharex=True, squeeze=False, figsize=(7, 6.5 if practised else 4), layout="constrained"
    )
    rates, practice = axes[0, 0], axes[-1, 0]
    colours = plt.get_cmap("tab10").colors  # type: ignore[attr-defined]
    last = max((row["steps"] for row in rows), default=0) or 1
    for colour, method in zip(colours, report["summary"], strict=False):
        mine = [row for row in rows if row["method"] == method]
        for row in mine:
            end = row["steps"] or last
            rates.plot([0, end], [row["rate_before"], row["rate_after"]], color=colour, alpha=0.25, linewidth=1)
            rates.plot(0, row["rate_with_hints"], marker="^", color="0.4", alpha=0.4, linestyle="none")
            if practised:
                practice.plot(*_curve(row["practice"]), color=colour, alpha=0.25, linewidth=1)
        means = [statistics.mean(row[f"rate_{when}"] for row in mine) for when in ("before", "after")]
        rates.plot([0, last], means, color=colour, marker="o", linewidth=2.5, label=method, clip_on=False)
        if practised:
            practice.plot(*_mean_curve([row["practice"] for row in mine]), color=colour, marker="o", linewidth=2.5)
    hinted = statistics.mean(row["rate_with_hints"] for row in rows)
    rates.plot(0, hinted, marker="^", color="0.2", markersize=9, linestyle="none", label="hints in the prompt, at once")
    rates.axhline(report["aim"], color="0.6", linestyle=":", linewidth=1, label="hoped for")
    rates.set(ylabel="held-out answers that keep the wish", ylim=(0, 1.02))
    rates.legend(loc="lower right", frameon=False, fontsize=9)
    rates.set_title(f"{report['persona']}: {report['turns']} turns, {report['model']}, seeds: {len(report['seeds'])}")
    if practised:
        practice.set(ylabel="practice score of fresh answers", ylim=(-1.05, 1.05))
    practice.set_xlabel("optimiser steps")
    practice.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axis in axes[:, 0]:
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _curve(scores: Sequence[float | None]) -> tuple[list[int], list[float]]:
    """Step numbers and scores, where there are any. A step's answers were drawn before its update."""
    known = [(step, score) for step, score in enumerate(scores) if score is not None]
    return [step for step, _ in known], [score for _, score in known]


def _mean_curve(curves: Sequence[Sequence[float | None]]) -> tuple[list[int], list[float]]:
    steps = range(max((len(curve) for curve in curves), default=0))
    at = [[score for curve in curves if len(curve) > n and (score := curve[n]) is not None] for n in steps]
    return _curve([statistics.mean(scores) if scores else None for scores in at])
