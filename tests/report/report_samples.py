"""Made-up reports of the shapes that occur: the dictionary that the renderers are given."""

from __future__ import annotations

import copy
from functools import cache, partial
from typing import Any

import numpy as np

from fewlabels.report import html

Report = dict[str, Any]

render_html = partial(html.render_page, "estimates")
render_text = partial(html.render_text, "estimates")

NASTY = [
    "<script>document.title='pwned'</script>",
    '"><img src=x onerror="document.title=\'pwned\'">',
    "two\nlines\tand a tab",
    "</title></svg><svg onload=alert(1)>",
    "{{ 7*7 }} {% raw %} ' & &lt;",
    "naïve 🤖👩‍👩‍👧 模型一二三四五六七八九十一二三四五六七八九十",
    "\u202eright-to-left \ud83d \x00 \x1b[31mred",
    "a" * 300,
]

METRICS = {
    "accuracy": ("share of items whose predicted class is right", 1, [0.0, 1.0]),
    "ece": ("mean gap between probability and frequency, 15 equal-width bins", -1, [0.0, 1.0]),
    "auc": ("chance that a positive item scores above a negative one", 1, [0.0, 1.0]),
    "log_loss": ("mean of -log(probability of the true class)", -1, [0.0, None]),
}

STATUS_MESSAGES = {
    "ok": "estimated from labels and unlabeled items together",
    "assumption": "rests on an assumption that the labels at hand cannot test",
    "few-labels": "very few labels, or none for a class or for this group: the interval is wide "
    "and leans on the prior",
    "not-converged": "the fit did not converge; treat the numbers with care",
    "not-applicable": "the metric needs something that this classifier does not provide",
    "undefined": "the metric is not defined on these items",
}

METHOD_INFO = {
    "title": "Tempered ensemble",
    "summary": "Labels are inferred from a weighted vote of all classifiers, whose temperature is "
    "fitted to the labels at hand.",
    "how": "Each classifier's probabilities are sharpened or flattened until they agree best with "
    "the labeled items and with one another. The labels of the other items are then drawn many "
    "times from the combined probabilities, and each metric is computed for every draw.",
    "assumes": [
        "The labeled items were picked at random.",
        "Taken together, the classifiers are not wrong in the same way on the same items.",
    ],
    "fails_when": ["All classifiers share one bias, for example because they were trained alike."],
    "source": "Reference notes, section 5",
}


def two_classes() -> Report:
    """Seven classifiers of comments, a good one among them, in two groups."""
    models = ["bert-base", "roberta-large", "distilbert", "tf-idf + logistic regression",
              "naive bayes", "gpt-zero-shot", "keyword list"]  # fmt: skip
    return _report(models, ["ok", "spam"], groups=["sex=female", "sex=male", "sex=null"])


def demo() -> Report:
    """Ten classes, five classifiers, and the truth."""
    models = ["logistic", "forest", "svm", "naive-bayes", "nearest"]
    report = _report(models, list(range(10)), n_items=1797, status="few-labels")
    rng = np.random.default_rng(3)
    report["truth"] = {row["model"]: {} for row in report["estimates"]}
    for row in report["estimates"]:
        near = row["value"] + rng.normal() * (row["high"] - row["low"]) / 4
        report["truth"][row["model"]][row["metric"]] = max(0.0, near)
    return report


def many_classes() -> Report:
    """Ten classes, ten classifiers, groups of many values."""
    models = [f"classifier-{k}" for k in range(10)]
    classes = ["cat", "dog", "bird", "fish", "horse", "a class of a rather long name", "owl",
               "frog", "deer", "truck"]  # fmt: skip
    return _report(models, classes, groups=[f"region={k}" for k in range(12)])


def nasty_names() -> Report:
    """Names that try to be markup, to break lines and tables."""
    report = _report(NASTY, NASTY[:2], groups=[f"{n}={n}" for n in NASTY[:3]])
    report["warnings"] += NASTY
    report["diagnostics"] = {name: name for name in NASTY} | {"list": NASTY, "dict": {NASTY[0]: 1}}
    report["method_info"] = METHOD_INFO | {"how": NASTY[0], "assumes": NASTY, "source": NASTY[1]}
    report["votes"] = _votes(NASTY, NASTY, NASTY[:2])
    report["diagnostics"]["partition"] = [NASTY[:2], *([name] for name in NASTY[2:])]
    return report


def many_models() -> Report:
    """Thirty classifiers with long names that differ in the middle alone."""
    models = [f"organisation/family-{k:02d}-of-classifiers/checkpoint-final" for k in range(30)]
    report = _report(models, [0, 1], groups=["g=1"])
    report["truth"] = {m: {"accuracy": 0.81, "log_loss": 12.5} for m in models}
    for row in report["estimates"]:
        if row["model"] == models[3]:
            row |= {"value": None, "low": None, "high": None, "status": "not-applicable"}
    return report


def single_model() -> Report:
    """One classifier: no profile of its rivals, no probability of being best."""
    report = _report(["triage-model-v2"], [0, 1], n_labeled=60)
    del report["best"]
    return report


def all_undefined() -> Report:
    """Nothing could be computed."""
    report = _report(["a", "b", "c"], [0, 1], n_labeled=0)
    for row in report["estimates"]:
        row |= {"value": None, "low": None, "high": None, "status": "undefined"}
    report["best"] = {m: dict.fromkeys(report["models"]) for m in METRICS}
    for profile in report["profiles"]:
        for entry in profile["distributions"]:
            entry |= {"own": [None] * 20, "other": [None] * 20}
            entry |= {"labeled_own": [], "labeled_other": []}
        profile["reliability"]["bins"] = []
    return report


def minimal() -> Report:
    """Only what the JSON of the command line holds."""
    full = _report(["a", "b"], [0, 1])
    kept = ["fewlabels", "method", "estimand", "seed", "confidence_level", "n_items", "n_labeled",
            "models", "classes", "estimates", "diagnostics", "warnings"]  # fmt: skip
    return {key: full[key] for key in kept}


def domains() -> Report:
    """Votes of thirty classifiers in thirty domains, of which some behave alike."""
    models = [f"family-{k % 3}/classifier-{k:02d}" for k in range(30)]
    names = [f"domain number {k}" for k in range(30)]
    report = _report(models, ["no", "yes"], n_labeled=0)
    report["votes"] = _votes(names, models, ["no", "yes"])
    report["diagnostics"] |= {
        "error_rate": {d: dict.fromkeys(models, 0.1) for d in names},
        "domain_similarity": report["votes"]["similarity"][0]["matrix"],
        "partition": [names[:3], names[3:5], *([name] for name in names[5:])],
        "partition_probability": 0.64,
    }
    return report


def crowd() -> Report:
    """Three hundred annotators, of whom some cannot be judged."""
    models = [f"annotator {k}" for k in range(300)]
    report = _report(models, [0, 1], groups=["site=a", "site=b"], n_labeled=0)
    report["profiles"] = []
    report["diagnostics"] = {"error_rate": dict.fromkeys(models, 0.25)}
    for row in report["estimates"]:
        if row["model"] in models[7:12]:
            row |= {"value": None, "low": None, "high": None, "status": "undefined"}
    return report


def beliefs() -> Report:
    """A mixture that says which of its members answered, and reference data."""
    report = _report(["judge_1", "judge_2", "judge_3"], ["fail", "pass"])
    report["reference"] = {"n_items": 1200, "models": ["judge_1", "judge_3"]}
    report["diagnostics"] |= {
        "answered_by": [
            {
                "member": name,
                "share": share,
                "says": f"the labels give {name} a weight of {share:.0%}",
            }
            for name, share in (
                ("all classifiers pooled", 0.1),
                ("judge_3 alone", 0.82),
                *((name, 0.01) for name in NASTY),
            )
        ],
        "reference": {"weight": 0.62, "shift": 0.4},
    }
    return report


SAMPLES = {
    f.__name__: f
    for f in (
        two_classes, demo, many_classes, nasty_names, many_models, single_model, all_undefined,
        minimal, domains, crowd, beliefs,
    )
}  # fmt: skip


def _report(models: list[str], classes: list[Any], **more: Any) -> Report:
    """A report, made once, which whoever asks for it may change."""
    key = (tuple(models), tuple(classes), tuple(more.pop("groups", None) or ()))
    return copy.deepcopy(_made(*key, **more))


@cache
def _made(
    models: tuple[str, ...],
    classes: tuple[Any, ...],
    groups: tuple[str, ...],
    *,
    n_items: int = 1020,
    n_labeled: int = 20,
    status: str = "ok",
) -> Report:
    rng = np.random.default_rng(len(models) + len(classes))
    skill = rng.uniform(0.4, 0.95, len(models))
    shares = rng.dirichlet(np.full(len(classes), 5.0))
    counts = rng.multinomial(n_labeled, shares)
    return {
        "fewlabels": "0.1.0",
        "method": "tempered-ensemble",
        "estimand": "population",
        "seed": 0,
        "confidence_level": 0.95,
        "n_items": n_items,
        "n_labeled": n_labeled,
        "models": list(models),
        "classes": list(classes),
        "estimates": _estimates(rng, models, skill, groups, status),
        "diagnostics": {
            "temperature": 0.8317,
            "iterations": 14,
            "converged": True,
            "effective_sample_size": 1893.2,
            "weights": [round(float(s), 3) for s in skill],
            "missing predictions": dict.fromkeys(models[:3], 4),
        },
        "warnings": [
            "Only 20 of 1,020 items are labeled: intervals are wide.",
            f"{models[0]} has 4 rows that did not sum to 1 within 1e-3; they were renormalised.",
        ],
        "status_messages": STATUS_MESSAGES,
        "method_info": METHOD_INFO,
        "metric_info": {
            name: {"description": text, "direction": direction, "bounds": bounds}
            for name, (text, direction, bounds) in METRICS.items()
        },
        "best": {m: dict(zip(models, _best(skill), strict=True)) for m in METRICS},
        "class_balance": {
            "labeled": {str(c): int(n) for c, n in zip(classes, counts, strict=True)},
            "estimated": {str(c): float(s) for c, s in zip(classes, shares, strict=True)},
        },
        "profiles": [
            _profile(rng, m, s, classes, n_items) for m, s in zip(models, skill, strict=True)
        ],
    }


def _votes(domains: list[str], models: list[str], classes: list[str]) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    value = rng.beta(1, 6, (len(domains), len(models)))
    kind = np.arange(len(domains)) // 4
    alike = np.where(kind[:, None] == kind, 0.83, 0.02)
    np.fill_diagonal(alike, 1.0)
    table: dict[str, Any] = {
        "level": 0.95,
        "n_domains": len(domains),
        "n_models": 2 * len(models),
        "domains": domains,
        "models": models,
        "value": value.tolist(),
        "low": (0.8 * value).tolist(),
        "high": (1.3 * value).tolist(),
        "n_votes": rng.integers(1, 2000, value.shape).tolist(),
    }
    for part in ("value", "low", "high"):
        table[part][0][-1] = None
    table["n_votes"][0][-1] = 0
    right = np.full((len(classes), len(classes)), 0.1 / (len(classes) - 1))
    np.fill_diagonal(right, 0.9)
    return {
        "error_rates": table,
        "confusion": {
            "classes": classes,
            "n_models": 2 * len(models),
            "matrices": [{"model": m, "matrix": right.tolist()} for m in models[:12]],
        },
        "similarity": [
            {"of": "domain", "n_names": len(domains), "names": domains, "matrix": alike.tolist()}
        ],
    }


def _best(skill: np.ndarray) -> list[float]:
    weight = np.exp(25 * (skill - skill.max()))
    return [float(w) for w in weight / weight.sum()]


def _estimates(
    rng: np.random.Generator,
    models: tuple[str, ...],
    skill: np.ndarray,
    groups: tuple[str, ...],
    status: str,
) -> list[dict[str, Any]]:
    rows = []
    for group in [None, *groups]:
        wide = 0.03 if group is None else 0.07
        for model, s in zip(models, skill, strict=True):
            for metric in METRICS:
                value = _value(metric, s) + rng.normal() * wide / 4
                gap = wide * rng.uniform(0.7, 1.3, 2) * (3 if metric == "log_loss" else 1)
                top = None if metric == "log_loss" else 1.0
                value = min(max(value, 0.0), 1.0 if top else 9.0)
                rows.append(
                    {
                        "model": model,
                        "metric": metric,
                        "group": group,
                        "value": value,
                        "low": max(0.0, value - gap[0]),
                        "high": min(value + gap[1], 1.0 if top else 99.0),
                        "confidence_level": 0.95,
                        "status": "few-labels" if group in groups[-1:] else status,
                    }
                )
    return rows


def _value(metric: str, skill: float) -> float:
    return {
        "accuracy": 0.55 + 0.45 * skill,
        "ece": 0.22 * (1 - skill) + 0.01,
        "auc": 0.6 + 0.4 * skill,
        "log_loss": 1.6 - 1.4 * skill,
    }[metric]


def _profile(
    rng: np.random.Generator, model: str, skill: float, classes: tuple[Any, ...], n_items: int
) -> dict[str, Any]:
    shown = [classes[1]] if len(classes) == 2 else list(classes)
    kind = f"P({classes[1]})" if len(classes) == 2 else "confidence of the predicted class"
    return {
        "model": model,
        "n_items": n_items - 4,
        "missing": 4,
        "distributions": [_distribution(rng, name, skill) for name in shown],
        "reliability": {"kind": kind, "bins": _bins(rng, skill, 0.5 if len(classes) > 2 else 0.0)},
    }


def _distribution(rng: np.random.Generator, name: Any, skill: float) -> dict[str, Any]:
    edges = np.linspace(0, 1, 21)
    own = rng.beta(1 + 6 * skill, 1.2, 300)
    other = rng.beta(0.7, 1 + 6 * skill, 900)
    return {
        "class": name,
        "edges": edges.tolist(),
        "own": np.histogram(own, edges, density=True)[0].tolist(),
        "other": np.histogram(other, edges, density=True)[0].tolist(),
        "labeled_own": own[:7].tolist(),
        "labeled_other": other[:13].tolist(),
    }


def _bins(rng: np.random.Generator, skill: float, start: float) -> list[dict[str, float]]:
    edges = np.linspace(start, 1, 11)
    weight = rng.dirichlet(np.full(10, 0.8))
    bins = []
    for k in range(10):
        predicted = (edges[k] + edges[k + 1]) / 2
        observed = float(np.clip(predicted + (1 - skill) * (0.5 - predicted), 0, 1))
        half = 0.02 + 0.02 / (weight[k] + 0.1)
        bins.append(
            {
                "from": float(edges[k]),
                "to": float(edges[k + 1]),
                "weight": float(weight[k]),
                "predicted": float(predicted),
                "observed": observed,
                "low": max(0.0, observed - half),
                "high": min(1.0, observed + half),
            }
        )
    return bins
