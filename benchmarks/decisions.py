"""Whom somebody would deploy by an estimate: the best and worst classifier, the leader, the group.

    python -m benchmarks decisions [--data DIR] [--out FILE] [--before FILE] [--sets NAME;..]
        [--runs 10] [--n-labeled 20,50,100] [--seed 0] [--workers 2]

Of every run the file keeps, by classifier (or group) and metric, the value and its 90% interval, of
`auto` and of the labels alone, beside the truth on all items, a cell a line; another call goes on.
With a file that an earlier version wrote, `--before`, the page has both. Items are drawn at random,
1,000 unlabeled, or half of a set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fewlabels as fl
import runs
from bench.splits import generator, seed_of
from runs import Row, fill, markdown, number, read_lines, run_missing
from stress_worlds import Sample
from study.statistics import interval_score

OUT = runs.ROOT / "build" / "decisions.jsonl"
PAGE = runs.ROOT / "docs" / "benchmarks" / "decisions.md"
LABELS, UNLABELED, LEVEL, BLOCK = (20, 50, 100), 1000, 0.9, 2
BINARY = ("accuracy", "ece", "roc_auc", "average_precision")
MANY, VOTES, RANKING = ("accuracy", "ece"), ("accuracy",), ("roc_auc", "average_precision")


@dataclass(frozen=True)
class Table:
    """Where a real set is below the data: its file, columns, rows (column and value), groups."""

    file: str
    kinds: str = "p"
    metrics: tuple[str, ...] = BINARY
    rows: tuple[str, Any] | None = None
    only: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    by: str = ""
    label: str = "label"


_SIBLINGS = ("tfidf_lr_full", "tfidf_svm_full", "tfidf_xgb_full", "feat_rf_full", "stack_lr")
_TWEETS = partial(Table, "semeval_tweets/data.parquet", rows=("split", "target_2017"))
_XRAY = partial(Table, "chexpert/data.parquet")
_RUBRIC = partial(Table, "llm_rubric/data.parquet")

TABLES: Mapping[str, Table] = {
    "tweets, votes": _TWEETS("y", VOTES),
    **{f"bertweet and {k}": _TWEETS("y", VOTES, only=("bertweet", *_SIBLINGS[:k]))
       for k in (1, 2, 4)},
    "tweets, probabilities": _TWEETS("p", MANY),
    "tweets, both": _TWEETS("py", VOTES),
    **{f"chexpert {task}": _XRAY("p", rows=("task", task))
       for task in ("consolidation", "edema", "cardiomegaly", "atelectasis")},
    "chexpert, tuned votes": _XRAY("y", VOTES, rows=("task", "pleural_effusion")),
    "chexpert, all kinds": _XRAY("psy", VOTES, rows=("task", "edema")),
    "chexpert by finding": _XRAY("p", VOTES, only=("hieupham",), by="task"),
    "rubric by criterion": _RUBRIC("p", MANY, by="criterion"),
    "rubric, votes by criterion": _RUBRIC("y", VOTES, by="criterion"),
    "538": Table("sports_538/data.parquet", metrics=BINARY),
    "MultiNLI": Table("ssme_multinli/data.parquet", metrics=MANY),
    "CivilComments": Table("ssme_civilcomments/data.parquet",
                           left_out=("CORAL_seed1", "CORAL_seed2")),
    "Adult": Table("adult/predictions_test.parquet"),
    "CIFAR-10": Table("cifar10/data.parquet", metrics=MANY),
    "judges": Table("llm_judges/judgebench.parquet", "y", VOTES),
    "judges, scores": Table("llm_judges/judgebench.parquet", "s", RANKING),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Set:
    """Predictions with all labels; the metrics asked; the grouping column, "" where none."""

    predictions: fl.Predictions
    metrics: tuple[str, ...]
    by: str = ""


def read(source: Table, data: Path) -> Set:
    """A set from its file: classes by their order, a vote of none of them as missing."""
    frame = pd.read_parquet(data / source.file).dropna(subset=source.label)
    if source.rows is not None:
        frame = frame[frame[source.rows[0]] == source.rows[1]]
    places = {c: k for k, c in enumerate(sorted(frame[source.label].unique()))}

    def codes(column: pd.Series) -> np.ndarray:
        return column.map(places).fillna(-1).to_numpy(np.int64)

    parts: dict[str, dict[str, list[np.ndarray]]] = {"p": {}, "y": {}, "s": {}}
    for column in frame.columns:
        kind, _, name = column.partition("__")
        model = name.rpartition("__")[0] if kind == "p" else name
        asked = kind in source.kinds and (not source.only or model in source.only)
        if asked and model and model not in source.left_out and not model.endswith("order2"):
            named = model if len(source.kinds) == 1 else f"{model} ({kind})"
            values = codes(frame[column]) if kind == "y" else frame[column].to_numpy(float)
            parts[kind].setdefault(named, []).append(values)
    p = {m: np.stack([1 - v[0], *v] if len(v) == 1 else v, axis=1) for m, v in parts["p"].items()}
    votes, scores = ({m: values for m, (values,) in parts[kind].items()} for kind in "ys")
    groups = {source.by: frame[source.by].to_numpy()} if source.by else {}
    sample = Sample(
        codes(frame[source.label]), {m: v / v.sum(axis=1, keepdims=True) for m, v in p.items()},
        votes, scores, groups, len(places),
    )  # fmt: skip
    return Set(sample.predictions(len(frame)), source.metrics, source.by)


def outsider(
    alike: int, gap: float, k: int = 2, kind: str = "y", seed: int = 0, n: int = 20_000
) -> Set:
    """Voters that mostly err together, and one unlike them, better by `gap` points of accuracy.

    Every class has a normal score by voter: signal of the truth, and noise that the alike share.
    """
    rng = np.random.default_rng([seed, alike, int(100 * gap) + 5000, k])
    labels = rng.choice(k, n, p=np.arange(k, 0, -1) / np.arange(k, 0, -1).sum())
    truth = np.eye(k)[labels]
    shared = rng.normal(size=(n, 1, k))
    skills = np.r_[1.6 + gap / 12, 1.6 + rng.uniform(-0.15, 0.15, alike)]
    noise = rng.normal(size=(n, alike + 1, k))
    common = np.r_[0.0, np.full(alike, 0.8)]
    mixed = np.sqrt(common)[:, None] * shared + np.sqrt(1 - common)[:, None] * noise
    score = skills[:, None] * truth[:, None] + mixed
    names = ["outsider", *(f"alike{j}" for j in range(alike))]
    if kind == "y":
        votes = dict(zip(names, score.argmax(axis=2).T, strict=True))
        return Set(Sample(labels, votes=votes, n_classes=k).predictions(n), VOTES)
    p = np.exp(score * skills[:, None])
    for _ in range(2):  # what is drawn depends on the last bits
        p /= p.sum(axis=2, keepdims=True)
    sample = Sample(labels, dict(zip(names, p.swapaxes(0, 1), strict=True)), n_classes=k)
    return Set(sample.predictions(n), BINARY if k == 2 else MANY)


MADE: Mapping[str, Callable[[], Set]] = {
    f"outsider {gap:+d}, {alike} alike, {k} classes, {kind}":
        partial(outsider, alike, gap / 1.0, k, kind)
    for kind, k, alike, gap in product("yp", (2, 3), (3, 9), (-6, 0, 6))
}  # fmt: skip


@lru_cache(maxsize=64)
def load(name: str, data: Path) -> Set:
    """A set by its name."""
    return MADE[name]() if name in MADE else read(TABLES[name], data)


def answers(
    chosen: Set, items: fl.Predictions, method: str, **options: Any
) -> dict[tuple[str, str, str], Any]:
    """Estimates of what a set is asked, by metric, classifier and group."""
    found = fl.estimate(
        items, method, list(chosen.metrics), chosen.by or None, workers=1, **options
    )
    return {(row.metric, row.model, str(row.group or "")): row for row in found.rows}


def run_cell(cell: Row, data: Path) -> Row:
    """Of some runs the values and intervals of `auto` and of the labels, by place."""
    chosen, rows = load(cell["set"], data), []
    q, n_labeled = chosen.predictions, cell["n_labeled"]
    truth = answers(chosen, q, "labeled", confidence_level=None, estimand="sample")
    for run in range(cell["start"], cell["stop"]):
        rng = generator("decisions", cell["seed"], cell["set"], n_labeled, run)
        n = n_labeled + min(UNLABELED, q.n_items // 2)
        some = q.take(rng.choice(q.n_items, n, replace=False)).revealing(np.arange(n_labeled))
        seed = seed_of("fit", cell["seed"], cell["set"], n_labeled, run)
        auto, labeled = (
            answers(chosen, some, name, confidence_level=LEVEL, random_state=seed)
            for name in ("auto", "labeled")
        )
        for place in truth:
            if place in auto:
                of_labels = labeled[place][3:6] if place in labeled else [np.nan] * 3
                one = auto[place]
                rows.append([run, *place, truth[place].value, *one[3:6], one.status, *of_labels])
    return {"rows": rows}


def frame_of(lines: list[Row]) -> pd.DataFrame:
    """A row per set, labels, run, metric, classifier and group."""
    names = ["run", "metric", "model", "group", "truth", "value", "low", "high", "status",
             "value0", "low0", "high0"]  # fmt: skip
    rows = pd.DataFrame(
        [[*row, line["set"], line["n_labeled"]] for line in lines for row in line["rows"]],
        columns=[*names, "set", "n"],
    )
    numbers = ["truth", "value", "low", "high", "value0", "low0", "high0"]
    rows[numbers] = rows[numbers].astype(float)
    for end in ("", "0"):
        value, low, high = rows["value" + end], rows["low" + end], rows["high" + end]
        rows["error" + end] = 100 * (value - rows["truth"])
        rows["held" + end] = ((low <= rows["truth"]) & (rows["truth"] <= high)).where(low.notna())
        rows["score" + end] = 100 * interval_score(low, high, rows["truth"], LEVEL)
    half = np.where(rows["truth"] > rows["value"], rows["high"] - rows["value"],
                    rows["value"] - rows["low"])  # fmt: skip
    rows["c"] = (rows["truth"] - rows["value"]).abs() / np.maximum(half, 1e-9)
    return rows


def summary(rows: pd.DataFrame) -> dict[str, float]:
    """What the table says of the rows of one set, number of labels and metric."""
    known = rows.dropna(subset=["value", "value0"])
    out = {
        "error": known["error"].abs().mean(),
        "ratio": known["error"].abs().mean() / known["error0"].abs().mean(),
        "holds": rows["held"].mean(), "holds0": rows["held0"].mean(),
        "c": rows["c"].quantile(LEVEL), "score": known["score"].mean() / known["score0"].mean(),
        "width": 100 * (rows["high"] - rows["low"]).mean(),
        "ok": (rows["status"] == "ok").mean(),
    }  # fmt: skip
    if rows["model"].nunique() > 1:
        truth = known[["model", "truth"]].drop_duplicates().set_index("model")["truth"]
        for which, model in (("best", truth.idxmax()), ("worst", truth.idxmin())):
            own = known[known["model"] == model]
            out |= {
                f"bias {which}": own["error"].mean(), f"holds {which}": own["held"].mean(),
                f"ratio {which}": own["error"].abs().mean() / own["error0"].abs().mean(),
            }  # fmt: skip
        for end in ("", "0"):
            first = known.loc[known.groupby("run")["value" + end].idxmax(), "truth"]
            out["regret" + end] = 100 * (known["truth"].max() - first.mean())
    return out


def cells_of(rows: pd.DataFrame) -> pd.DataFrame:
    """What `summary` says by set, number of labels and metric."""
    cells = {key: summary(own) for key, own in rows.groupby(["set", "n", "metric"], sort=False)}
    return pd.DataFrame(cells).T.rename_axis(["set", "n", "metric"])


def averages(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over sets and metrics of what `summary` says, by number of labels."""
    wide = cells_of(rows)
    wide["within 86 to 96%"] = wide["holds"].between(0.86, 0.96).astype(float)
    wide["below 80%"] = (wide["holds"] < 0.8).astype(float)
    wide["c"] = wide["c"].clip(upper=3)
    kind = np.where(wide.index.get_level_values("set").isin(list(MADE)), "simulated", "real")
    return wide.assign(kind=kind).groupby(["kind", "n"]).mean()


def text(now: pd.DataFrame, before: pd.DataFrame | None) -> str:
    """The tables of the page: what is averaged, `before` and now, then set by set."""
    tables = {"now": now} if before is None else {"before": before, "now": now}
    means = pd.concat({name: averages(rows) for name, rows in tables.items()})
    means = means.swaplevel(0, 1).swaplevel(1, 2).sort_index(sort_remaining=False)
    said = partial(number, digits=2)
    over = markdown(means[[*COLUMNS]].map(said), ["sets", "labels", "version"])
    cells = cells_of(now).reindex(columns=COLUMNS[:12]).map(said)
    return f"""{now["run"].nunique()} runs a cell. Means over sets and metrics:

{over}

Set by set, now:

{markdown(cells, ["set", "labels", "metric"])}"""


COLUMNS = (
    "ratio", "holds", "c", "score", "width", "ok", "bias best", "ratio best", "holds best",
    "bias worst", "regret", "regret0", "within 86 to 96%", "below 80%",
)  # fmt: skip


def main() -> None:
    """Run what is missing, and write the page."""
    given = runs.command_line(
        __doc__, data=runs.DATA, out=OUT, before=Path, sets=partial(runs.split, by=";"), runs=10,
        n_labeled=runs.numbers, seed=0, workers=runs.WORKERS, page=PAGE,
    ).parse_args()  # fmt: skip
    there = [name for name, source in TABLES.items() if (given.data / source.file).is_file()]
    cells = [
        {"set": name, "n_labeled": n, "start": start, "stop": min(start + BLOCK, given.runs),
         "seed": given.seed}
        for start in range(0, given.runs, BLOCK)
        for name, n in product(given.sets or [*there, *MADE], given.n_labeled or LABELS)
    ]  # fmt: skip
    run = partial(run_cell, data=given.data.resolve())
    lines = run_missing(given.out, run, cells, given.workers)
    before = None if given.before is None else frame_of(read_lines(given.before))
    fill(given.page, {"decisions": text(frame_of(lines), before)})


if __name__ == "__main__":
    main()
