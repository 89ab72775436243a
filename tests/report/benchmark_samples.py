"""Made-up summaries of benchmarks, of every shape that the renderers must cope with."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from fewlabels.bench.cells import DatasetFacts
from fewlabels.bench.protocol import Protocol
from fewlabels.bench.results import COLUMNS, TRAITS, Results
from fewlabels.bench.summary import FIGURES, TABLES, summarise

Summary = dict[str, Any]

METHODS = (
    "labeled", "majority-vote", "pseudo-label", "dawid-skene", "autoeval", "active-testing",
    "bayesian-calibration", "ensemble", "ssme-kde-marginal", "ssme-kde", "ssme-flow",
    "tempered-ensemble",
)  # fmt: skip
METRICS = ("accuracy", "ece_quantile", "roc_auc", "average_precision")
FLOOR = "all-labels-known"

HOSTILE = (
    "<script>alert(1)</script>", "a|b", "_em_ *bold* `code`", "[link](http://x.y)", "$x$ &amp; \\|",
    "two\nlines\r\x1b[31m", "\u202eright-to-left", "ERM_seed1", "a\u0301 漢字 🐍",
    '"quoted" \'both\'',
)  # fmt: skip

Trait = tuple[str, str, int, str, float]


def _kept(make: Callable[..., Summary]) -> Callable[..., Summary]:
    """What many tests ask for is made once; each has a copy of its own."""
    known: dict[str, bytes] = {}

    def again(**options: Any) -> Summary:
        key = repr(options)
        if key not in known:
            known[key] = pickle.dumps(make(**options))
        summary: Summary = pickle.loads(known[key])
        return summary

    return again


@_kept
def made(
    *,
    datasets: Sequence[str] = ("civilcomments",),
    methods: Sequence[str] = METHODS,
    metrics: Sequence[str] = METRICS,
    models: Sequence[str] = ("ERM", "ERM_seed1", "IRM"),
    sizes: Sequence[int] = (20, 50, 100),
    runs: int = 6,
    groups: Sequence[str] = ("",),
    factor: str = "",
    levels: Sequence[str] = ("",),
    traits: Sequence[Trait] = (),
    curve: bool = True,
    tables: Sequence[str] = ("methods",),
    figures: Sequence[str] = ("error-by-labels",),
    skipped: Sequence[str] = (),
) -> Summary:
    """A summary of errors that shrink with the labels, each method at its own level."""
    rng = np.random.default_rng(3)
    rows: list[tuple[Any, ...]] = []
    cells = [(d, lv, n, r) for d in datasets for lv in levels for n in sizes for r in range(runs)]
    for dataset, level, n, run in cells:
        for k, method in enumerate([*methods, FLOOR]):
            head = (dataset, factor, level, method, n, 1000, run)
            if method == "ssme-flow" and run == 1:
                gone = (np.nan, np.nan, np.nan, np.nan, "failed", "it diverged: loss is nan", 1.0)
                rows.append((*head, "", "", "", *gone))
                continue
            for model in models:
                for metric in metrics:
                    for group in groups:
                        error = rng.normal(0.02 * (k % 5), 0.3 / np.sqrt(n))
                        served = method != "autoeval" or metric == "accuracy"
                        estimate = 0.8 + error if served else np.nan
                        status = "ok" if served else "not-applicable"
                        interval = (estimate - 0.1, estimate + 0.1)
                        end = (*interval, 0.8, status, "", 0.01 * (k + 1))
                        rows.append((*head, model, metric, group, estimate, *end))
    if curve:
        for dataset, n, run in [(d, n, r) for d in datasets for n in range(10, 1001, 45)
                                for r in range(4)]:  # fmt: skip
            for metric in metrics:
                estimate = 0.8 + rng.normal(0, 0.3 / np.sqrt(n))
                rows.append((dataset, "curve", "", "labeled", n, 0, run, models[0], metric, "",
                             estimate, np.nan, np.nan, 0.8, "ok", "", 0.1))  # fmt: skip
    return summarise(
        Results(
            Protocol(
                name="ssme-binary",
                title="Errors of every method by number of labels",
                source="SSME, Table 1",
                methods=tuple(methods),
                metrics=tuple(metrics),
                n_labeled=tuple(sizes),
                n_unlabeled=(1000,),
                runs=runs,
                confidence_level=0.9,
                factor="" if factor not in ("sharpness", "labels", "classifiers") else factor,
                levels=tuple(levels) if factor else (),
                tables=tuple(tables),
                figures=tuple(figures),
            ),
            tuple(
                DatasetFacts(d, 5000, 2500, tuple(models), ("0", "1"), (), ("a note",), "d.csv", "")
                for d in datasets
            ),
            _columns(COLUMNS, rows),
            _columns(TRAITS, traits),
            tuple(skipped),
        )
    )


def _columns(kinds: Any, rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    return {
        name: np.array([row[k] for row in rows], dtype=object if kind is str else kind)
        for k, (name, kind) in enumerate(kinds.items())
    }


def binary() -> Summary:
    return made(
        tables=("methods", "classifiers", "effective-sizes"),
        figures=("error-by-labels", "labeled-curve"),
        skipped=("notes.csv: no column of predictions",),
    )


def several_data_sets() -> Summary:
    return made(datasets=("adult", "civilcomments", "mnli"), metrics=("accuracy",), curve=False)


def subgroups() -> Summary:
    groups = ("", "sex=Female", "sex=Male", "race=White", "race=A|B <b>")
    return made(groups=groups, sizes=(20,), metrics=("accuracy",), tables=("groups",))


def drawn_and_expected() -> Summary:
    return made(factor="labels", levels=("drawn", "expected"), tables=("levels",),
                figures=("error-by-level",), metrics=("accuracy", "log_loss"))  # fmt: skip


def sharpened() -> Summary:
    levels = ("0.25", "0.5", "1", "2", "4")
    return made(factor="sharpness", levels=levels, tables=("levels",), sizes=(20,),
                figures=("error-by-level",))  # fmt: skip


def trained_sets() -> Summary:
    traits = [
        ("adult", level, run, name, (run * 7 % 40) / 100 + 0.5)
        for level in ("3", "5")
        for run in range(40)
        for name in ("mean_accuracy", "mean_ece")
    ]
    return made(datasets=("adult",), factor="classifiers", levels=("3", "5"), traits=traits,
                runs=40, sizes=(20,), metrics=("accuracy",), curve=False, tables=("levels",),
                figures=("error-by-accuracy", "error-by-calibration"))  # fmt: skip


def subsets() -> Summary:
    models = ("A", "B", "C", "D")
    levels = ["+".join(c) for c in combinations(models, 3)]
    traits = [("d", level, -1, "error_correlation", k / 5) for k, level in enumerate(levels)]
    traits += [("d", f"{a}+{b}", -1, "agreement", 0.8) for a, b in combinations(models, 2)]
    return made(datasets=("d",), models=models, factor="subset", levels=levels, traits=traits,
                sizes=(20,), metrics=("accuracy",), curve=False, tables=("correlation",),
                figures=("error-by-correlation",))  # fmt: skip


def hostile() -> Summary:
    """Names that would break out of any table or page that lets them."""
    methods = ("labeled", *HOSTILE)
    return made(datasets=HOSTILE[:3], methods=methods, models=HOSTILE, metrics=("accuracy",),
                groups=("", *(f"<i>g_|={name}" for name in HOSTILE)), sizes=(20, 50), runs=2,
                tables=("methods", "classifiers", "groups"), curve=False,
                skipped=HOSTILE)  # fmt: skip


def one_run() -> Summary:
    return made(methods=("labeled", "ensemble"), sizes=(20,), runs=1, tables=TABLES,
                figures=FIGURES)  # fmt: skip


def many_methods() -> Summary:
    """More than any colour, dash or marker can tell apart alone, with names that are too long."""
    names = [f"ssme-kde[bandwidth={k / 10},leave_one_out=true]" for k in range(30)]
    sizes = tuple(range(5, 100, 5))
    return made(methods=("labeled", *names), sizes=sizes, runs=2, metrics=("accuracy",))


def nothing() -> Summary:
    return made(datasets=(), methods=("labeled",), curve=False, tables=TABLES, figures=FIGURES)


SAMPLES: dict[str, Callable[[], Summary]] = {
    f.__name__: f
    for f in (
        binary, several_data_sets, subgroups, drawn_and_expected, sharpened, trained_sets, subsets,
        hostile, one_run, many_methods, nothing,
    )
}  # fmt: skip
