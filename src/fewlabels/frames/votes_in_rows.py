"""Rows that are votes: an item, an annotator (or a model) and what that one says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fewlabels.errors import InputError
from fewlabels.frames.options import ColumnOptions
from fewlabels.frames.profiles import Profile
from fewlabels.frames.reading import AmbiguousError, Reading
from fewlabels.wording import listed, quoted

_MANY_ITEMS = 40
"""So many votes never agree in all items by chance."""


def votes_in_rows(profiles: Sequence[Profile], options: ColumnOptions) -> Reading | None:
    """Rows that are votes of annotators: an item and an annotator that both recur."""
    columns = [p for p in profiles if p.filled == p.rows]
    votes = options.votes
    people = [p for p in columns if p.like_annotator and not p.unique and p.distinct > 1]
    people = [p for p in columns if p.name == votes.get("annotator")] or people
    items = [p for p in columns if not p.unique and p.like_item and p not in people]
    items = [p for p in items if p.counts is None or p.distinct > 2]
    items = [p for p in columns if p.name == (options.item or votes.get("item"))] or items
    items = [p for i, p in enumerate(items) if not any(map(p.names_alike, items[:i]))]
    answers = [
        p for p in profiles
        if p.counts and len(p.counts) > 1 and p not in people and p not in items
    ]  # fmt: skip
    gold = [p for p in answers if p.like_truth == 3 and p.name != "label"]
    said = [p for p in answers if p not in gold and p.like_answer]
    if items and not gold and items[0].rows >= 2 * items[0].distinct >= _MANY_ITEMS:
        # What is the same in all rows of an item is the item's label, and no vote.
        gold = [p for p in said if p.like_truth == 3 and _of_item(p, items[0])]
        said = [p for p in said if p not in gold]
    said = [p for p in answers if p.name == votes.get("label")] or said
    if not (len(people) == 1 and items) or _pairs_repeat(people[0], items[0]):
        return None
    if not said:
        if people[0].like_annotator and any(p.in_unit and not p.whole for p in columns):
            raise InputError(
                f"each row is what one of {people[0].distinct} ({quoted(people[0].name)}) says "
                f"of an item ({quoted(items[0].name)}), and probabilities of many rows per "
                "item are not joined: give each item one row and each classifier a column"
            )
        return None
    if len(items) > 1:
        raise AmbiguousError(
            f"each row is an annotator's vote, and columns "
            f"{listed(quoted(p.name) for p in items)} may each name the item",
            [["--votes", "--item", p.name] for p in items[:3]],
        )
    said = [p for p in said if p.name == "label"] or said
    if len(said) > 1:
        raise AmbiguousError(
            f"each row is an annotator's vote, and columns "
            f"{listed(quoted(p.name) for p in said)} may each hold it",
            [["--votes", "--answer", p.name] for p in said[:3]],
        )
    votes = {"item": items[0].name, "annotator": people[0].name, "label": said[0].name}
    known = gold[0].name if len(gold) == 1 else None
    options = replace(options, votes=votes, label=options.label or known)
    lines = [
        f"votes, one per row: item {quoted(items[0].name)}, annotator "
        f"{quoted(people[0].name)}, vote {quoted(said[0].name)}"
    ]
    if options.label is not None:
        lines.append(f"labels: column {quoted(options.label)}, one per item")
    return Reading(options, tuple(lines), votes=True)


def _of_item(p: Profile, item: Profile) -> bool:
    """Whether all rows of an item hold the same value, where they hold any."""
    known = p.codes >= 0
    pairs = np.unique(np.stack([item.codes[known], p.codes[known]]), axis=1)
    return bool(known.any()) and pairs.shape[1] == len(np.unique(item.codes[known]))


def _pairs_repeat(person: Profile, item: Profile) -> bool:
    """Whether annotators see most items more than once: then the rows are something else."""
    pairs = np.unique(np.stack([person.codes, item.codes]), axis=1).shape[1]
    return pairs < 0.5 * person.rows or item.distinct >= item.rows
