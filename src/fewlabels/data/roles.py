"""Which column is what: native names, and what the caller says instead."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from fewlabels.data.options import VOTE_ROLES, ColumnOptions
from fewlabels.data.profiles import differences, item_in_name, name_evidence, names_role
from fewlabels.data.table import class_text
from fewlabels.errors import InputError, did_you_mean, listed, quoted

ITEMS = "item"
"""The group that names the items of long votes, where it is asked for."""

_UNNAMED = ("", "__index_level_0__")
"""The row numbers of a pandas frame, as CSV and Parquet keep them."""

MADE = re.compile(r"([^|]+)\[([^\[\]]*)\]")
"""Names of columns made of what a cell holds by keys, which are no groups by themselves."""

PLAIN = re.compile(r"c\d+")
"""Names of the columns of a file without a header."""

_PREFIXES = ("p__", "y__", "s__", "h__")


@dataclass(frozen=True)
class Roles:
    """The role of every column.

    `probabilities` maps a classifier and a class (by its text) to a column; `mapped` maps a
    classifier to columns whose classes the caller has put in order; `models` is every classifier,
    in the order of its first column; `groups_asked` says that the caller named the groups; `item`
    is what long votes are joined by; `logits` are the classifiers of `mapped` whose columns hold
    logits or log-probabilities.
    """

    models: tuple[str, ...]
    probabilities: Mapping[str, Mapping[str, str]]
    mapped: Mapping[str, tuple[str, ...]]
    votes: Mapping[str, str]
    scores: Mapping[str, str]
    histogram: Mapping[str, str]
    label: str | None
    domain: str | None
    weight: str | None
    groups: tuple[str, ...]
    groups_asked: bool
    ignored: tuple[str, ...]
    item: str | None = None
    confidence: Mapping[str, str] = field(default_factory=dict)
    perhaps_weights: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    logits: frozenset[str] = frozenset()
    stratum: str | None = None

    @property
    def numeric(self) -> tuple[str, ...]:
        """The columns that must hold numbers."""
        native = (by_class.values() for by_class in self.probabilities.values())
        single = (self.scores, self.confidence, self.histogram)
        columns = chain(*native, *self.mapped.values(), *(of.values() for of in single))
        weight = () if self.weight is None else (self.weight,)
        return tuple(dict.fromkeys((*columns, *weight)))

    @property
    def text(self) -> tuple[str, ...]:
        """The columns that hold names."""
        single = (self.label, self.item, self.domain)
        columns = (*single, *self.votes.values(), *self.groups, *self.clusters)
        return tuple(dict.fromkeys(c for c in columns if c is not None))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth a warning: names that are nearly those of labels or predictions."""
        others = (*self.groups, *self.ignored)
        notes = [
            f"column {quoted(c)} is not read as a prediction: the native names are "
            "p__<model>__<class>, y__<model>, s__<model> and h__<class>"
            for c in others
            if c.startswith(_PREFIXES) and split_native(c) is None
        ]
        if self.label is None:
            notes += [
                f"there is no column 'label'; if {quoted(c)} holds the labels, say so with --label "
                f"{quoted(c)}"
                for c in others
                if names_role(c, "label")
            ]
        notes += [
            f"column {quoted(c)} may hold sampling weights, and is not used: if it does, say so "
            f"with --weight {shlex.quote(c)}, as the numbers are else those of other items; if "
            "not, rename it"
            for c in self.perhaps_weights
            if self.weight is None
        ]
        return (*notes, *(_unused_vectors(others) if others else ()))

    def columns_of(self, model: str) -> tuple[str, ...]:
        """The columns of probabilities and scores of one classifier."""
        score = (self.scores[model],) if model in self.scores else ()
        sure = (self.confidence[model],) if model in self.confidence else ()
        named = self.probabilities.get(model, {}).values()
        return (*named, *self.mapped.get(model, ()), *sure, *score)

    def described(self) -> dict[str, str]:
        """Column -> its role in words, classifier by classifier."""
        first = {self.label: "label", self.item: "item"}
        roles = {column: role for column, role in first.items() if column is not None}
        for model in self.models:
            for name, column in self.probabilities.get(model, {}).items():
                roles[column] = f"probability of class {name} by {model}"
            columns = self.mapped.get(model, ())
            named = differences(columns)
            for i, column in enumerate(columns):
                which = "the positive class" if named is None else f"class {named[i]}"
                roles[column] = f"probability of {which} by {model}"
            if model in self.votes:
                roles[self.votes[model]] = f"hard prediction of {model}"
            if model in self.scores:
                roles[self.scores[model]] = f"score of {model}"
            if model in self.confidence:
                roles[self.confidence[model]] = f"probability of what {model} predicts"
        roles |= {c: f"annotators who chose class {name}" for name, c in self.histogram.items()}
        last = {self.domain: "domain", self.weight: "weight"}
        roles |= {column: role for column, role in last.items() if column is not None}
        also = [(name, "cluster") for name in self.clusters]
        also += [] if self.stratum is None else [(self.stratum, "stratum")]
        for column, role in also:
            roles[column] = f"{roles[column]}, {role}" if column in roles else role
        others = dict.fromkeys(self.groups, "group") | dict.fromkeys(self.ignored, "not used")
        return roles | {c: role for c, role in others.items() if c not in roles}


def places(columns: Sequence[str]) -> str | None:
    """What to call columns whose names say nothing but their order, all of it; None of others."""
    # They are the numbers of one vector, or neighbours in a file without a header.
    if len(columns) < 2:
        return None
    stem = columns[0].removesuffix("[0]")
    if list(columns) == [f"{stem}[{i}]" for i in range(len(columns))]:
        return stem
    first = columns[0].removeprefix("c")
    if not first.isdigit() or list(columns) != [f"c{int(first) + i}" for i in range(len(columns))]:
        return None
    return f"{columns[0]} to {columns[-1]}"


def no_predictions(names: Sequence[str], further: Iterable[str] = ()) -> str:
    """The message about a table without a classifier; `further` says what is seen instead."""
    said = (
        f"no prediction columns; the columns are {listed(map(quoted, names)) or 'none'}: name "
        "them p__<model>__<class>, y__<model> or s__<model>; or say which they are with "
        "--model NAME=COL,COL (probabilities), --hard NAME=COL or --score NAME=COL"
    )
    long = {"item", "annotator", "label"} <= set(names)
    votes = ["if each row is one vote of an annotator, add --votes"] if long else further
    return "; ".join([said, *votes, *_unused_vectors(names)])


def _unused_vectors(names: Sequence[str]) -> list[str]:
    """What to say of columns of vectors that are of no classifier."""
    made = filter(None, map(MADE.fullmatch, names))
    sizes = Counter(one[1] for one in made if one[2].isdigit())
    return [
        f"column {quoted(column)} holds {size} numbers in each cell, and is not used: if they are "
        f"probabilities, say --model {shlex.quote(f'NAME={column}')}; if logits, --logits "
        f"{shlex.quote(f'NAME={column}')}"
        for column, size in list(sizes.items())[:3]
    ]


@dataclass(frozen=True)
class VoteRoles:
    """The columns of long votes; domain is None where there is none."""

    item: str
    annotator: str
    label: str
    domain: str | None
    clusters: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them."""
        domain = () if self.domain is None else (self.domain,)
        return (self.item, self.annotator, self.label, *domain, *self.of_items)

    @property
    def of_items(self) -> tuple[str, ...]:
        """Those of what is the same in all votes on an item: clusters and groups."""
        return tuple(dict.fromkeys([*self.clusters, *self.groups]))

    def described(self) -> dict[str, str]:
        """Column -> its role in words; "votes." tells it from a column of the wide file."""
        roles = {
            self.item: "item of the vote",
            self.annotator: "annotator of the vote",
            self.label: "class voted for",
        }
        if self.domain is not None:
            roles[self.domain] = "domain of the vote's item"
        kinds = dict.fromkeys(self.groups, "group") | dict.fromkeys(self.clusters, "cluster")
        roles |= {c: f"{kind} of the vote's item" for c, kind in kinds.items() if c not in roles}
        return {f"votes.{column}": role for column, role in roles.items()}


def assign_vote_roles(
    names: Sequence[str], options: ColumnOptions, *, alone: bool = False
) -> VoteRoles:
    """Find the columns of long votes."""
    # `--item` and `--domain` name them where the votes have such columns, as they must where there
    # is no table beside them (`alone`); else the names are `VOTE_ROLES`, or what the table [votes]
    # says.
    _refuse_repeated(names)
    found: dict[str, str] = {}
    for role in VOTE_ROLES:
        shared = {"item": options.item, "domain": options.domain}.get(role)
        said = options.votes.get(role) or (shared if alone or shared in names else None)
        column = said or (role if role in names else _best_named(names, role) or role)
        if column in names:
            found[role] = column
        elif role != "domain" or column != role:
            flag = {"label": "--answer"}.get(role, f"--{role}")
            raise InputError(
                f"{missing_column(column, names, f'the {role} of a vote')}; say which it is with "
                f"{flag} COL"
            )
    for role, column in found.items():
        other = next(r for r, c in found.items() if c == column)
        if other != role:
            raise InputError(
                f"column {quoted(column)} has two roles: {other} and {role} of a vote; give it one"
            )
    clusters = tuple(name for name in options.cluster if name in names)
    for name in clusters:
        if name in (found["annotator"], found["label"]):
            raise InputError(f"column {quoted(name)} is of a vote, and a cluster is one of items")
    single = (found["item"], found["annotator"], found["label"], found.get("domain"))
    kept = (n for n in options.keep or () if alone and n in names and n not in single)
    return VoteRoles(*single, clusters, tuple(kept))


def _best_named(names: Sequence[str], role: str) -> str | None:
    """The one column whose name says best that it has a role in votes; None: no name says so."""
    wanted = {"label": "vote"}.get(role, role)
    scores = {
        name: name_evidence(name, wanted) for name in names
        if role != "label" or item_in_name(name) < 2
    } if role != "domain" else {}  # fmt: skip
    most = max(scores.values(), default=0.0)
    best = [name for name, score in scores.items() if score == most > 0]
    return best[0] if len(best) == 1 else None


def assign_roles(
    names: Sequence[str], options: ColumnOptions, votes: VoteRoles | None = None
) -> Roles:
    """Give every column its role; beside long votes, the table needs an item but no predictions."""
    _refuse_repeated(names)
    claimed = _Claims(names)
    alone = votes is not None and not names
    label = None if alone else claimed.named("--label", options.label, "label")
    if label is not None and label != "label" and split_native(label) is not None:
        raise InputError(
            f"column {quoted(label)} is a prediction by its name, and --label says that it holds "
            "the known labels; name the column of the labels, or rename it"
        )
    item = None
    if votes is not None and names:
        if options.item is None and "item" not in names:
            raise InputError(
                f"{missing_column('item', names, 'what votes are joined by')}; say which it is "
                "with --item COL"
            )
        item = claimed.named("--item", options.item, "item")
    elif options.item is not None and not alone:
        item = claimed.named("--item", options.item, "item")
    elif ITEMS in names:
        item = ITEMS  # and a group like any other
    # A domain that is asked for may be that of the votes alone.
    asked = options.domain
    elsewhere = asked is not None and asked not in names and votes and votes.domain == asked
    domain = None if elsewhere else claimed.named("--domain", asked, "domain")
    weight = claimed.named("--weight", options.weight, "weight")
    for model, columns in options.by_class.items():
        flag = "--logits" if model in options.logits else "--model"
        for column in columns:
            claimed.take(f"{flag} {model}", column)
    flags = {
        "--hard": options.hard, "--score": options.scores, "--confidence": options.confidence,
    }  # fmt: skip
    for flag, singles in flags.items():
        for model, column in singles.items():
            claimed.take(f"{flag} {model}", column)
    native: dict[str, dict[str, Any]] = {"p": {}, "y": {}, "s": {}, "h": {}}
    taken: dict[str, str] = {}
    for name in names:
        parts = None if name in claimed.roles else split_native(name)
        if parts is None:
            continue
        kind, model, text = parts
        where = native["p"].setdefault(model, {}) if kind == "p" else native[kind]
        key = text if kind in "ph" else model
        if key in where:
            raise InputError(
                f"columns {quoted(where[key])} and {quoted(name)} are both of class "
                f"{quoted(text)}; drop one of them"
            )
        where[key] = name
        taken[name] = model
    by_name = {m: next(iter(columns.values())) for m, columns in native["p"].items()}
    for flag, mapped, there in (
        ("--model", options.models, by_name),
        ("--logits", options.logits, by_name),
        ("--hard", options.hard, native["y"]),
        ("--score", options.scores, native["s"]),
    ):
        for model in mapped:
            if model in there:
                raise InputError(
                    f"two classifiers are named {quoted(model)}: one by {flag}, one by column "
                    f"{quoted(there[model])}; rename one of them"
                )
    hard = {**native["y"], **options.hard}
    scores = {**native["s"], **options.scores}
    for model in options.confidence:
        if model not in hard or model in options.by_class or model in by_name:
            raise InputError(
                f"--confidence {model} is the probability of the class that {quoted(model)} "
                "predicts: it needs hard predictions (--hard) and no other probabilities"
            )
    # Every classifier, in the order of its first column.
    of_each = [(c, model) for model, columns in options.by_class.items() for c in columns]
    of_each += [(c, model) for singles in flags.values() for model, c in singles.items()]
    of_each += [one for one in taken.items() if one[0] not in native["h"].values()]
    place = {name: i for i, name in enumerate(names)}
    of_each.sort(key=lambda one: place[one[0]])
    models = tuple(dict.fromkeys(model for _, model in of_each))
    if not models and votes is None:
        raise InputError(no_predictions(names))
    of_the_votes = () if votes is None else votes.clusters
    clusters = tuple(n for n in options.cluster if n in names or n not in of_the_votes)
    of_rows = [(name, "--cluster") for name in clusters]
    of_rows += [] if options.stratum is None else [(options.stratum, "--stratum")]
    for name, flag in of_rows:
        if name not in names:
            raise InputError(missing_column(name, names, flag))
        role = claimed.roles.get(name) or ("a prediction" if name in taken else None)
        # What a classifier says of an item may be its stratum.
        also = (item, domain) if name in (label, weight) or flag == "--cluster" else (name,)
        if role is not None and name not in also:
            raise InputError(
                f"column {quoted(name)} has two roles: {role} and {flag}; give it one of them"
            )
    others = [n for n in names if n not in claimed.roles and n not in taken]
    if domain is not None and domain != "domain":
        others.append(domain)
    of_votes = None if votes is None else votes.domain
    asked_for = options.keep
    if votes is not None and asked_for is not None and (item == ITEMS or ITEMS not in names):
        # The votes bring them along.
        asked_for = tuple(name for name in asked_for if name != ITEMS)
    domains = {domain, of_votes, *(() if votes is None else votes.groups)} - {None}
    if asked_for is None:
        groups = [name for name in others if name not in _UNNAMED and not MADE.fullmatch(name)]
    else:
        groups = [name for name in dict.fromkeys(asked_for) if not (name == "domain" and domains)]
        # A domain of the votes alone is a group by its own name too.
        groups = [name for name in groups if name in names or name not in domains]
        for name in groups:
            if name not in names:
                raise InputError(missing_column(name, names, "a group"))
    if votes is None and item is not None:
        groups = [*groups, item] if item not in groups else groups
    if options.stratum is not None and options.stratum not in groups:
        groups = [*groups, options.stratum]
    ignored = [n for n in others if n not in (*groups, *clusters, domain)]
    return Roles(
        models, native["p"], options.by_class, hard, scores, native["h"],
        label, domain, weight, tuple(groups), options.keep is not None,
        tuple(ignored), item, options.confidence, options.perhaps_weights, clusters,
        frozenset(options.logits), options.stratum,
    )  # fmt: skip


@dataclass(frozen=True)
class _Claims:
    """The columns that already have a role, each with the words for it."""

    names: Sequence[str]
    roles: dict[str, str] = field(default_factory=dict)

    def named(self, option: str, asked: str | None, default: str) -> str | None:
        if asked is None and default not in self.names:
            return None
        name = default if asked is None else asked
        self.take(option if asked is not None else f"the {default}", name)
        return name

    def take(self, role: str, name: str) -> None:
        if name not in self.names:
            raise InputError(missing_column(name, self.names, role))
        other = self.roles.get(name)
        # Two classifiers may read one column: they are then identical, which doctor says.
        if other is not None and not (
            role.startswith("--") and other.split()[0] == role.split()[0]
        ):
            raise InputError(
                f"column {quoted(name)} has two roles: {other} and {role}; give it one of them"
            )
        self.roles[name] = role


def split_native(name: str) -> tuple[str, str, str] | None:
    """A native column name taken apart: kind (p, y, s or h), classifier, class; None of others."""
    kind, divider, rest = name.partition("__")
    if not (divider and rest):
        return None
    if kind == "p":
        model, _, label = rest.rpartition("__")
        return ("p", model, class_text(label)) if model and label.strip() else None
    if kind in ("y", "s"):
        return (kind, rest, "")
    return ("h", "", class_text(rest)) if kind == "h" and rest.strip() else None


def _refuse_repeated(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen and name not in _UNNAMED:
            raise InputError(f"two columns are named {quoted(name)}; rename or drop one of them")
        seen.add(name)


def missing_column(name: str, names: Sequence[str], role: str) -> str:
    """The message about a column that was asked for and is not there."""
    if not names:
        return f"no column {quoted(name)} ({role}): there are votes alone, and no table beside them"
    return (
        f"no column {quoted(name)} ({role}); {did_you_mean(name, names)}"
        f"the columns are {listed(map(quoted, names))}"
    )
