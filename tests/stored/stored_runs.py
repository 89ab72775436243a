"""Runs whose numbers are kept, so that a change of the structure is seen to change none.

    python tests/stored/stored_runs.py            (compares; prints what differs)
    python tests/stored/stored_runs.py --write    (keeps the numbers of the code as it is)

Every method, estimand and kind of question once, on items that are made here. `stored_runs.json`
holds the numbers, rounded to ten digits.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fewlabels as fl
from fewlabels.evaluation.differences import comparison, errors_together
from fewlabels.models import METHODS

sys.path.append(str(Path(__file__).resolve().parents[1]))

from contract_methods import n_classes_of, quick, served

STORED = Path(__file__).with_suffix(".json")
MIXED = ["accuracy", "f1", "ece", "roc_auc", "average_precision", "brier"]
DIGITS = 10


def items(
    n: int = 240, k: int = 2, known: int = 40, kind: str = "probabilities", **more: Any
) -> fl.Predictions:
    """Items of three classifiers, two groups of them, some weights and some silence."""
    rng = np.random.default_rng(k)
    truth = rng.choice(k, n, p=np.arange(k, 0, -1) / (k * (k + 1) / 2))
    logits = 2.0 * np.eye(k)[truth][:, None] + rng.normal(size=(n, 3, k)) * [[[0.7], [1.0], [1.6]]]
    p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    # What is drawn belongs to the bits of an item, whose last ones differ by processor.
    logits, p = np.round(logits, 6), np.round(p, 6)
    p[::17, 1] = np.nan
    votes = np.where(np.isnan(p[:, :, 0]), -1, np.nan_to_num(p).argmax(axis=2))
    said: dict[str, Any] = {"probabilities": p}
    if kind == "votes":
        said = {"votes": votes}
    elif kind == "scores":
        said = {"scores": logits[:, :, 1] - logits[:, :, 0]}
    elif kind == "mixed":
        some = p.copy()
        some[:, 0] = np.nan
        said = {"probabilities": some, "votes": np.where([True, False, False], votes, -1)}
    labels = np.where(np.arange(n) < known, truth, -1)
    if kind == "annotators":
        counts = rng.multinomial(3, [0.8, 0.2], size=n)
        said["histogram"] = np.where(truth[:, None] == 0, counts, counts[:, ::-1])
        said["histogram"][known:] = 0
        labels = np.full(n, -1)
    groups = {"site": np.where(np.arange(n) % 3 == 0, "a", "b")}
    return fl.Predictions(
        labels=labels, groups=groups, models=["first", "second", "third"], **said, **more
    )


def _rows(found: Any) -> dict[str, Any]:
    return {
        " ".join(map(str, filter(None, (row.model, row.metric, row.group)))): [
            row.value, row.low, row.high, str(row.status),
        ]
        for row in found.rows
    }  # fmt: skip


def _estimate(*, joint: bool = False, **options: Any) -> dict[str, Any]:
    given = options.pop("items")
    found = fl.estimate(given, workers=2, **options)
    out = {"rows": _rows(found), "warnings": len(found.warnings)}
    if joint:
        out["together"] = errors_together(found).to_dict()
        out["compared"] = comparison(found, "accuracy").to_dict()
        report = found.report()
        out["report"] = {k: report[k] for k in ("profiles", "class_balance")}
    return out


def _of_method(name: str, estimand: str) -> dict[str, Any]:
    k = n_classes_of(name)
    by_votes = METHODS[name].learns_from == "hard predictions"
    given = items(k=k, kind="votes" if by_votes else "probabilities")
    metrics = served(name, ["accuracy", "f1"] if by_votes else MIXED[:5])
    method = name if name in ("monotone-curves", "spe") else quick(name)
    return _estimate(items=given, method=method, metrics=metrics, by="site", estimand=estimand)


def _streamed(method: str, kind: str) -> dict[str, Any]:
    given = items(n=3000, kind=kind)
    with tempfile.TemporaryDirectory() as folder:
        table: dict[str, Any] = {"label": given.labels, "site": given.groups["site"]}
        for j, model in enumerate(given.models):
            if given.probabilities is not None:
                table[f"p__{model}__1"] = pa.array(given.probabilities[:, j, 1], from_pandas=True)
            else:
                table[f"y__{model}"] = given.hard[:, j]
        for part in range(3):
            rows = slice(part * 1000, (part + 1) * 1000)
            own = {name: column[rows] for name, column in table.items()}
            pq.write_table(pa.table(own), Path(folder) / f"{part}.parquet")
        found = fl.estimate_files(folder, method, by="site", workers=2)
    return {"rows": _rows(found)}


def _curve(**options: Any) -> dict[str, Any]:
    found = fl.curve(items(kind=options.pop("of", "probabilities")), model="second", **options)
    return {k: v for k, v in found.to_dict().items() if k in {"recall", "precision", "fpr", "tpr",
                                                             "low", "high"}}  # fmt: skip


def _threshold() -> dict[str, Any]:
    found = fl.threshold(items(), model="first", min_precision=0.8)
    return {"best": found.best, "probability": found.best_probability}


def _assess() -> dict[str, Any]:
    return {"rows": _rows(fl.annotations.assess(items(kind="annotators"), by="site"))}


def _compare() -> dict[str, Any]:
    found = fl.compare(items(), ["accuracy", "roc_auc"], by="site").to_dict()
    return {"comparisons": found["comparisons"]} if "comparisons" in found else found


def _shift() -> dict[str, Any]:
    return fl.shift(items()).to_dict()


RUNS: dict[str, Callable[[], dict[str, Any]]] = {
    **{f"{name}, population": partial(_of_method, name, "population") for name in METHODS},
    **{
        f"{name}, sample": partial(_of_method, name, "sample")
        for name in ("labeled", "learned-ensemble", "ensemble", "monotone-curves", "dawid-skene",
                     "autoeval")
    },
    "auto, everything": lambda: _estimate(items=items(), metrics=MIXED, by="site", joint=True),
    "labeled, everything": lambda: _estimate(
        items=items(), method="labeled", metrics=MIXED, joint=True
    ),
    "auto, these items": lambda: _estimate(items=items(), estimand="sample", joint=True),
    "auto, no label": lambda: _estimate(items=items(known=0), joint=True),
    "auto, votes": lambda: _estimate(
        items=items(k=3, kind="votes"), metrics="accuracy", joint=True
    ),
    "auto, scores": lambda: _estimate(items=items(kind="scores")),
    "auto, mixed": lambda: _estimate(items=items(kind="mixed"), joint=True),
    "auto, weights": lambda: _estimate(
        items=items(weight=np.random.default_rng(0).exponential(size=240)), joint=True
    ),
    "auto, distribution": lambda: _estimate(items=items(kind="annotators")),
    "auto, one class": lambda: _estimate(items=items(kind="annotators"), against="class"),
    "auto, no intervals": lambda: _estimate(items=items(), confidence_level=None),
    "auto, covariate shift": lambda: _estimate(items=items(), shift="covariate"),
    "ensemble, label shift": lambda: _estimate(items=items(), method="ensemble", shift="label"),
    "own function": lambda: _estimate(
        items=items(), metrics=lambda y, p: float(np.mean((p > 0.3) == y))
    ),
    "streamed auto": partial(_streamed, "auto", "probabilities"),
    "streamed labeled": partial(_streamed, "labeled", "probabilities"),
    "streamed votes": partial(_streamed, "dawid-skene", "votes"),
    "precision and recall": _curve,
    "curve of scores": partial(_curve, of="scores"),
    "roc": partial(_curve, kind="roc"),
    "curve of these items": partial(_curve, estimand="sample"),
    "threshold": _threshold,
    "annotations": _assess,
    "compare": _compare,
    "shift": _shift,
}  # fmt: skip


def plain(value: Any) -> Any:
    """Numbers rounded; what is not a number is None."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    if isinstance(value, (bool, str, type(None))):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(f"{float(value):.{DIGITS}g}") if math.isfinite(value) else None
    return str(value)


def differences(found: Any, stored: Any, within: float, place: str = "") -> Iterator[str]:
    """Where two runs differ by more than a share, or an amount, of the number."""
    if isinstance(stored, dict) and isinstance(found, dict):
        for key in sorted({*stored, *found}):
            if key not in stored or key not in found:
                yield f"{place}.{key}: only {'now' if key in found else 'before'}"
            else:
                yield from differences(found[key], stored[key], within, f"{place}.{key}")
    elif isinstance(stored, list) and isinstance(found, list) and len(stored) == len(found):
        for number, (one, other) in enumerate(zip(found, stored, strict=True)):
            yield from differences(one, other, within, f"{place}[{number}]")
    elif isinstance(stored, (int, float)) and isinstance(found, (int, float)):
        if not math.isclose(found, stored, rel_tol=within, abs_tol=within):
            yield f"{place}: {found} now, {stored} before"
    elif found != stored:
        yield f"{place}: {found!r} now, {stored!r} before"


def main() -> None:
    """Compare all runs, or keep them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--within", type=float, default=1e-8)
    parser.add_argument("--runs", nargs="*", help="parts of names")
    given = parser.parse_args()
    chosen = [n for n in RUNS if not given.runs or any(part in n for part in given.runs)]
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    worst = 0
    for name in chosen:
        found = plain(RUNS[name]())
        if given.write:
            stored[name] = found
            continue
        said = list(differences(found, stored.get(name, {}), given.within))
        worst += len(said)
        for line in said[:5]:
            print(f"{name}{line}")
        if len(said) > 5:
            print(f"{name}: {len(said) - 5} more")
    if given.write:
        kept = {name: stored[name] for name in RUNS if name in stored}
        lines = (f"{json.dumps(name)}: {json.dumps(run)}" for name, run in kept.items())
        STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(chosen)} runs, {'kept' if given.write else f'{worst} differences'}")


if __name__ == "__main__":
    main()
