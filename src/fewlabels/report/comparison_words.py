"""Comparisons in words: who leads, who cannot be told apart, what would settle it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fewlabels.report.words import count, number_format, percent, plural, probability

MOST_LABELS = 10_000
"""More labels than these are not counted."""

_MOST_NAMES = 4
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def names(models: Sequence[str], most: int = _MOST_NAMES) -> str:
    """Names as a phrase; of many the first ones and how many there are besides."""
    if len(models) > most:
        return f"{', '.join(models[:most])} and {count(len(models) - most)} others"
    return models[0] if len(models) == 1 else f"{', '.join(models[:-1])} and {models[-1]}"


def standing_sentence(found: Mapping[str, Any]) -> str:
    """By which metric who leads, how sure that is, and who may be the best as well.

    It never begins with a classifier's name, for who writes it large would change the name.
    """
    aside = found.get("contradicted") or ()
    first, *others = found["standings"]
    leader = first["model"]
    if leader in aside:
        return f"by {found['metric']}, no one leads: the labels contradict all estimates"
    if len(aside) == len(others):
        return f"by {found['metric']}, {leader} is the only one that the labels do not contradict"
    left_out = f"; not ranked, as the labels contradict it: {names(aside)}" if aside else ""
    sure = f"P(best) {probability(first['probability_best'])}"
    rivals = [s["model"] for s in others if s["may_be_best"]]
    if not rivals:
        return f"by {found['metric']}, {leader} is ahead of all others ({sure}){left_out}"
    but = f"but {names(rivals)} may be the best as well"
    return f"by {found['metric']}, {leader} leads ({sure}), {but}{left_out}"


def settling_sentence(found: Mapping[str, Any], n_unlabeled: int) -> str:
    """What would settle which of the first two is better; empty where nothing tells."""
    second = found["standings"][1]["model"]
    needed = found["labels_needed"]
    if needed["status"] == "unknown" or second in (found.get("contradicted") or ()):
        return ""
    if needed["status"] == "settled":
        return f"its lead over {second}, taken alone, is settled"
    if needed["status"] == "tied":
        return f"no label tells it from {second}: they do not differ on these items"
    if needed["more"] > MOST_LABELS:
        return (
            f"more than {count(MOST_LABELS)} more labels are needed to settle it against {second}"
        )
    said = f"about {labels_range(needed)} would as likely as not settle it against {second}"
    if needed["more"] > n_unlabeled:
        said += f", which takes more items than the {count(n_unlabeled)} without a label"
    return said


def labels_range(needed: Mapping[str, Any]) -> str:
    """A number of labels, and between what it lies."""
    high = needed["high"]
    most = count(high) if high <= MOST_LABELS else f"more than {count(MOST_LABELS)}"
    between = "" if needed["low"] == high else f" ({count(needed['low'])} to {most})"
    return f"{plural(needed['more'], 'more label')}{between}"


def labels_cell(needed: Mapping[str, Any]) -> str:
    """How many labels more, as a cell of a table says it."""
    if needed["status"] != "open":
        return {"settled": "settled", "tied": "never"}.get(needed["status"], "-")
    more = needed["more"]
    return count(more) if more <= MOST_LABELS else f">{count(MOST_LABELS)}"


def letters(found: Mapping[str, Any]) -> dict[str, str]:
    """The letters of each classifier: who shares one cannot be told apart.

    Examples
    --------
    >>> letters({"alike": [["x", "y"], ["y", "z"]]})
    {'x': 'a', 'y': 'ab', 'z': 'b'}
    """
    out: dict[str, str] = {}
    for place, run in enumerate(found["alike"]):
        letter = _LETTERS[place % 26] + (str(place // 26 + 1) if place >= 26 else "")
        for model in run:
            out[model] = out.get(model, "") + letter
    return out


def together_sentences(found: Mapping[str, Any]) -> list[str]:
    """What the set does as a whole, in words."""
    if found["all_wrong"]["value"] is None:
        return []
    level = percent(found["confidence_level"]) if found["confidence_level"] else ""
    m = len(found["models"])
    said = [
        f"{'both' if m == 2 else f'all {count(m)}'} are wrong together on "
        f"{rate(found['all_wrong'])} of the items"
        + (f" ({level} interval)" if level and found["all_wrong"]["low"] is not None else ""),
        f"accuracy of the best one, {found['best_model']}: {rate(found['best_single'])}; "
        f"of a majority vote: {rate(found['majority'])}; "
        f"of choosing the right one for each item: {rate(found['oracle'])}",
    ]
    voters = found["effective_voters"]
    if voters["value"] is not None:
        said.append(
            f"their errors are correlated as if {voters['value']:.1f} of {count(m)} voted "
            "independently"
            if voters["value"] < m - 0.05
            else "their errors are not correlated"
        )
    return [*said, *found.get("warnings", ())]


def rate(value: Mapping[str, Any]) -> str:
    """A rate with its interval."""
    numbers = [value["value"], value["low"], value["high"]]
    write = number_format(numbers)
    shown = write(value["value"])
    if value["low"] is None:
        return shown
    return f"{shown} [{write(value['low'])}, {write(value['high'])}]"
