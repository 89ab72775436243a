"""Rows that are votes of annotators: an item and an annotator that both recur."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fewlabels.checks.class_words import same_answer
from fewlabels.data.agreement import agreement_within
from fewlabels.data.evidence import (
    AGREE,
    FEW_WORDS,
    MANY_ITEMS,
    MARGIN,
    NEARLY_ALL,
    AmbiguousError,
    Reading,
    Sheet,
    beyond_chance,
    fits,
    same_within,
    weigh,
)
from fewlabels.data.families import sums
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import SURELY, Profile, item_in_name, name_evidence, names_measure
from fewlabels.errors import InputError, listed, quoted


def votes_in_rows(sheet: Sheet, *, lone: bool = False) -> Reading | None:
    """Rows that are votes of annotators: an item and an annotator that both recur."""
    # If `lone`, names alone say so, such as that of a worker: an item may have one vote, and all
    # may be of one annotator.
    options, given = sheet.options, sheet.options.votes
    columns = [p for p in sheet.columns.values() if p.filled == p.rows and (lone or not p.unique)]
    about = options.item or given.get("item") or ""
    named, parts = [p for p in columns if p.name == about], {about, *about.split(",")}
    people = [p for p in columns if p.name == given.get("annotator")] or [
        p for p in columns
        if p.of("annotator") > 0 and p.name not in parts and not _answers(sheet, p)
        and (p.says("person") if lone else p.distinct > 1)
    ]  # fmt: skip
    items = named or [
        p for p in columns
        if (p.of("item") > 0 or not p.words) and p not in people
        and (p.counts is None or p.distinct > 2)
    ]  # fmt: skip
    if crossed := None if lone or named or sheet.compared else _crossed(sheet, items):
        people, items = [crossed[0]], [crossed[1]]
    # What is the same in all rows of an item is no annotator, beside others; what is so in all rows
    # of an annotator says who that is: age, country.
    people = [p for p in people if not any(same_within(p, q) for q in items)] or people
    people = [
        p for p in people if not any(p.distinct < q.distinct and same_within(p, q) for q in people)
    ]
    people = _apart(people)
    if len(people) != 1:
        return None
    person = people[0]
    # Of what annotators see more than once, or labels tell apart, the rows are no votes.
    items = [p for p in items if lone or person.pairs(p) >= 0.5 * person.rows]
    items = _apart([p for p in items if lone or given or not _told_apart(sheet, p)])
    if not items:
        return None
    sheet.weigh(person, "annotator", "recurs")
    once = ["each annotator once"]
    ranked = [(sheet.weigh(p, "item", *once * (p.pairs(person) == p.rows)), p) for p in items]
    most = max(score for score, _ in ranked)
    best = [p for score, p in ranked if score > most - MARGIN]
    item = best[0]
    votes, gold = _votes_and_gold(sheet, item, person)
    if not votes:
        shares = [p for p in columns if p.in_unit and not p.whole]
        if not lone and shares and (len(shares) == 1 or sums(shares)):
            raise InputError(
                f"each row is what one of {person.distinct} ({quoted(person.name)}) says "
                f"of an item ({quoted(item.name)}), and probabilities of many rows per "
                "item are not joined: give each item one row and each classifier a column"
            )
        return None
    if _in_columns(sheet, item, person, votes, gold):
        return None
    if len(votes) > 1 and len(gold) == 1:
        classes = tuple(gold[0].counts or ())
        votes.sort(key=lambda p: -(beyond_chance(p, gold[0], classes) or 0.0))
    roles = {"item": item.name, "annotator": person.name, "label": votes[0].name}
    known = gold[0].name if len(gold) == 1 else None
    for found, what, role in ((best, "name the item", "item"), (votes, "hold it", "label")):
        if len(found) > 1:
            ways = [ColumnOptions(known, votes=roles | {role: p.name}) for p in found[:3]]
            raise AmbiguousError(
                f"each row is an annotator's vote, and columns "
                f"{listed(quoted(p.name) for p in found)} may each {what}",
                [["--votes", *way.arguments()] for way in ways],
            )
    assigned = {**roles, "vote": roles["label"], "label": options.label or known}
    sheet.roles = {str(column): role for role, column in assigned.items()}
    first, _, second = item.name.partition(",")
    common = crossed[2] if crossed else name_evidence(second, "factor") >= 0
    several = options.cluster or (first,) * (second != "" and first in sheet.columns and common)
    options = replace(options, votes=roles, label=options.label or known, cluster=several)
    together = f"; rows of one {listed(map(quoted, several))} belong together" * bool(several)
    lines = [
        f"votes, one per row: item {quoted(item.name)}, annotator "
        f"{quoted(person.name)}, vote {quoted(votes[0].name)}{together}"
    ]
    if options.label is not None:
        lines.append(f"labels: column {quoted(options.label)}, one per item")
    return Reading(options, tuple(lines), votes=True)


def _answers(sheet: Sheet, p: Profile) -> bool:
    """Whether what is named for somebody is what they say: shares, or what labels go with."""
    labels = [(q, tuple(q.counts or ())) for q in sheet.columns.values() if q.of("label") > 0]
    alike = (beyond_chance(p, q, of) for q, of in labels if q is not p and fits(p, of))
    return not (p.numbers is None or p.whole) or any((much or 0.0) > AGREE for much in alike)


def _told_apart(sheet: Sheet, item: Profile) -> bool:
    """Whether rows of one item have known labels of their own, and so are items themselves."""
    for p in (p for p in sheet.columns.values() if p.coded and p.of("label") >= SURELY):
        # A name of votes as of labels: label, class.
        if p.of("vote") > 0 and len(p.words) == 1 and p.name != sheet.options.label:
            beside = (q for q in sheet.columns.values() if q.predicts and q.coded and q is not p)
            if all(same_within(q, item) or not fits(q, tuple(p.counts or ())) for q in beside):
                continue
        of_item, label = (codes[p.codes >= 0] for codes in (item.codes, p.codes))
        if len(label) - len(np.unique(of_item)) >= _RECUR:
            return agreement_within(label, of_item)[0] < NEARLY_ALL
    return False


def _in_columns(
    sheet: Sheet, item: Profile, person: Profile, votes: Sequence[Profile], gold: Sequence[Profile]
) -> bool:
    """Whether several columns say of a row what the vote does, and go with it and the labels."""
    vote, *more = votes
    classes = tuple(vote.counts or ())
    # What is named a label too is what one says twice.
    others = [p for p in sheet.columns.values() if p.few and p.coded and p.of("label") < SURELY]
    others = [p for p in others if fits(p, classes) and fits(vote, tuple(p.counts or ()))]
    alike = [p for p in others if not same_within(p, item) and not same_within(p, person)]
    for one in (vote, *gold):
        alike = [p for p in alike if (beyond_chance(p, one, classes) or 0.0) > AGREE]
    if vote.of("label") < SURELY:
        return any(p in more and p.of("vote") <= 0 for p in alike)
    shares = [p for p in sheet.columns.values() if p.in_unit and not (p.whole or p.of_itself)]
    shares = [p for p in shares if p.predicts and not same_within(p, item)]
    return bool(alike) or not all(same_within(p, person) for p in shares)


def _crossed(sheet: Sheet, items: Sequence[Profile]) -> tuple[Profile, Profile, bool] | None:
    """Who judges what is made of every item (a system, a view), and items and these together.

    With whether two of one item have something in common, or are numbered anew.
    """
    # Each judges each once. Names say who is who, or labels, one for all who judge the same; or
    # votes, which agree on one and the same, and no more on two of one item than on any two.
    whole = {p.name: p for p in sheet.columns.values() if p.filled == p.rows and p.distinct > 1}
    head = {n: replace(p, codes=p.codes[:_LOOKED_AT]) for n, p in whole.items()}
    gold = [p for p in sheet.columns.values() if p.of("label") >= SURELY and p.coded]
    gold = [replace(p, codes=p.codes[:_LOOKED_AT]) for p in gold]
    others = [p for n, p in head.items() if n not in {q.name for q in gold}]
    said = [p for p in others if p.coded and p.few and p.distinct <= FEW_WORDS and not p.measures]
    said = [p for p in said if max(map(p.of, ("item", "annotator", "factor"))) <= 0]
    of_gold = [p for p in said if any(fits(p, tuple(known.counts or ())) for known in gold)]
    votes = sorted(of_gold or said, key=lambda p: p.of("vote") <= 0)[:1]
    if not votes and gold and gold[0].filled == gold[0].rows:
        votes, gold = gold[:1], []  # the label is what each of them says
    alike = [p for p in said for q in votes if p.of("vote") > 0 or fits(p, tuple(q.counts or ()))]
    few = [p for p in others if 4 * p.distinct <= p.rows and p not in alike]
    few = sorted(few, key=lambda p: -max(p.of("annotator"), p.of("factor")))[:_MOST_CROSSED]
    most, best = 0.0, None
    named = sorted((p for p in items if p.name in head), key=lambda p: -p.of("item"))
    for item in (head[p.name] for p in named if 2 * p.distinct <= p.rows):
        for person, system in itertools.permutations(few, 2):
            both, n = _with(item, system), len(item.codes)
            if item in (person, system) or both.pairs(person) < _ONCE * n:
                continue
            if item.distinct < system.distinct or not item.distinct < both.distinct <= 0.75 * n:
                continue
            facts = ["labels differ within items"] * bool(gold)
            if any(same_within(known, both) for known in gold):
                # Known for all of them, or for none: of the item alone it is known for some.
                one = (known for known in gold if known.pairs(both) == both.distinct)
                facts = ["one label in an item"] * any(k.pairs(item) > item.distinct for k in one)
            facts += ["each of them once"] * (item.pairs(person) < _ONCE * n)
            for vote in votes:
                facts += _agreement(vote, item, both)
            score = weigh(person, "annotator", *facts).score + system.of("factor")
            if score >= _CROSSED and score > most:
                common = system.of("factor") > 0 or "votes agree on it alone" not in facts
                both = _with(whole[item.name], whole[system.name])
                most, best = score, (whole[person.name], both, common)
    return best


def _agreement(vote: Profile, item: Profile, both: Profile) -> list[str]:
    """Whether votes that agree on one and the same do so, or not, on two of one item."""
    within, chance = agreement_within(vote.codes, both.codes)
    every, _ = agreement_within(vote.codes, item.codes)
    mine, pairs = (float((np.bincount(p.codes) ** 2).sum() - len(p.codes)) for p in (both, item))
    across = (every * pairs - within * mine) / max(pairs - mine, 1.0)
    noise = _APART * np.sqrt(0.5 / max(mine, 1.0) + 0.5 / max(pairs - mine, 1.0))
    if within - max(across, chance) > max(noise, (within - chance) / 2):
        return ["votes agree on it alone"]
    alike = bool(across - chance > max(noise, (within - chance) / 2))
    return ["votes agree on others as well"] * alike


_CROSSED, _ONCE, _APART, _RECUR, _MOST_CROSSED, _LOOKED_AT = 6.0, 0.95, 4.0, 5, 8, 20_000
"""Log-odds from which it is told who judges and what is judged; the share of rows in which each
judges each once; standard errors of agreement; labels that recur; columns and rows looked at."""


def _with(item: Profile, system: Profile) -> Profile:
    """The column made of an item and of a system."""
    pairs = item.codes * (int(system.codes.max()) + 1) + system.codes
    codes = np.unique(pairs, return_inverse=True)[1]
    name = f"{item.name},{system.name}"
    return replace(item, name=name, codes=codes, distinct=int(codes.max()) + 1, counts=None)


def _apart(columns: Sequence[Profile]) -> list[Profile]:
    """Of columns that tell the same rows apart the one that is named best."""
    ranked = sorted(columns, key=lambda p: -p.of("item"))
    left = [p for i, p in enumerate(ranked) if not any(map(p.names_alike, ranked[:i]))]
    return [p for p in columns if p in left]


def _votes_and_gold(
    sheet: Sheet, item: Profile, person: Profile
) -> tuple[list[Profile], list[Profile]]:
    """The columns that may hold the votes, about equally well, and those of known labels."""
    answers = [p for p in sheet.columns.values() if p.coded and p not in (item, person)]
    many = item.rows >= 2 * item.distinct >= MANY_ITEMS
    alike = {p.name for p in answers if many and same_within(p, item)}
    sure = [p for p in sheet.columns.values() if p.of("label") >= SURELY]
    gold = [p for p in sure if p in answers and not (p.of("vote") > 0 and len(p.words) == 1)]
    gold = gold or [p for p in sure if p in answers and p.name in alike]
    others = (p for p in sheet.columns.values() if p.predicts and not p.of_itself)
    predicted = any(p.of("annotator") <= 0 for p in others)
    empty = "mostly empty" if item.pairs(person) == item.rows else "mostly empty, seen twice"
    ranked: list[tuple[float, Profile]] = []
    for p in answers:
        if p in gold or item_in_name(p.name) == 2 or p.names_alike(item):
            continue
        facts = ["the same in all rows of an item"] if p.name in alike else []
        facts += [] if same_within(p, item) else ["differs within items"]
        facts += [empty] if p.sparse else []
        facts += ["few values"] if p.distinct <= FEW_WORDS else []
        facts += ["a group or a feature"] if names_measure(p.name) else []
        facts += ["as many values as rows"] if 2 * p.distinct > p.filled else []
        facts += ["the same in all rows of an annotator"] if same_within(p, person) else []
        facts += ["says if another is right"] if p.says("right") and p.yes_or_no else []
        facts += ["how sure somebody is"] if p.of_itself else []
        facts += ["beside its gold"] if any(_is_gold_of(g, p) for g in gold) else []
        as_gold = p.predicts and any(fits(p, tuple(g.counts or ())) for g in gold)
        if p.of("vote") > 0 or not predicted or as_gold:
            ranked.append((sheet.weigh(p, "vote", *facts), p))
    votes = [p for p in answers if p.name == sheet.options.votes.get("label")]
    most = max((score for score, _ in ranked), default=0.0)
    votes = votes or [p for score, p in ranked if most >= 3 and score > most - MARGIN]
    # Votes of other values than the labels' are ratings of a case.
    classes = tuple(t for p in votes for t in p.counts or ())
    gold = gold or [p for p in sure if len(p.counts or ()) == 1 and fits(p, classes)]
    shared = [sum(same_answer(t, classes) is not None for t in p.counts or ()) for p in gold]
    fitting = [p for p, n in zip(gold, shared, strict=True) if 2 * n > len(p.counts or ())]
    beside = [p for p in fitting if any(_is_gold_of(p, vote) for vote in votes)]
    return ([], []) if gold and not fitting else (votes, beside or fitting)


def _is_gold_of(gold: Profile, p: Profile) -> bool:
    """Whether names say so: sentiment_gold, sentiment; GOLDEN:result, OUTPUT:result."""
    rest = [word for word in gold.words if name_evidence(word, "label") < SURELY]
    return bool(rest) and p.words[-len(rest) :] == rest


def unnamed_votes(sheet: Sheet) -> tuple[Profile, Profile, Profile] | None:
    """Item, annotator and vote, told by how values recur: votes on an item agree."""
    full = [p for p in sheet.columns.values() if p.filled == p.rows >= MANY_ITEMS]
    full = [p for p in full if p.distinct > 1 and (p.numbers is None or p.whole)]
    recurring = [p for p in full if 2 * p.distinct <= p.rows and not names_measure(p.name)][:8]
    rows, found = slice(_LOOKED_AT), []
    for item, person in itertools.permutations(recurring, 2):
        if item.pairs(person, rows) < NEARLY_ALL * len(item.codes[rows]):
            continue
        most = min(FEW_WORDS, person.distinct - 1, item.distinct // 2)
        for vote in (p for p in recurring if p.coded and p.distinct <= most):
            within, chance = agreement_within(vote.codes[rows], item.codes[rows])
            by_person, _ = agreement_within(vote.codes[rows], person.codes[rows])
            if within - chance > AGREE * (1 - chance) and within > by_person:
                found.append((within, (item, person, vote)))
    return max(found, key=lambda one: one[0])[1] if found else None
