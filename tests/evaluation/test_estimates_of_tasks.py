"""Several tasks: each as if alone, and averages of one bootstrap of the items."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.streaming.stream import estimate_files

N, TASKS = 300, ("rare", "usual")
RNG = np.random.default_rng(3)
TRUTH = {t: (RNG.random(N) < share).astype(int) for t, share in zip(TASKS, (0.1, 0.7), strict=True)}
SHARE = {
    t: 1 / (1 + np.exp(-(2.5 * (y - 0.5) + RNG.normal(size=(2, N)) + 2 * y.mean() - 1)))
    for t, y in TRUTH.items()
}
MACRO = "task=macro average"


def items(labels: int = 40, *, tasks: tuple[str, ...] = TASKS, **more: Any) -> fl.Predictions:
    known = [np.where(np.arange(N) < labels, TRUTH[t], -1) for t in tasks]
    return fl.Predictions(
        np.concatenate([SHARE[t].T for t in tasks]),
        np.concatenate(known),
        models=["a", "b"],
        groups={"task": np.repeat(np.array([f"{t}{i}" for i, t in enumerate(tasks)], object), N),
                "half": np.tile(np.repeat(["first", "second"], N // 2), len(tasks))},
        clusters={"item": np.tile(np.arange(N), len(tasks)).astype(str)},
        classes=[0, 1],
        task="task",
        **more,
    )  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("method", ["auto", "labeled", "monotone-curves", "dawid-skene"])
def test_a_task_is_estimated_as_if_it_were_alone(method: str) -> None:
    metrics = ["accuracy", "f1"]
    found = fl.estimate(items(), method, metrics)
    for name in items().tasks:
        alone = fl.estimate(items().of_task(name), method, metrics)
        for row in alone.rows:
            same = found.get(row.model, row.metric, f"task={name}")
            # Row weights are drawn by item here, by row there; votes have no bootstrap alone.
            assert same.value == pytest.approx(row.value, abs=0.02)
            width = row.high - row.low
            assert same.high - same.low == pytest.approx(width, rel=0.4, abs=0.03)


def test_rows_and_their_order() -> None:
    found = fl.estimate(items(), "labeled", ["accuracy", "roc_auc"], by="half")
    groups = [None, "task=rare0", "task=usual1", MACRO, "half=first", "half=second"]
    assert [size.group for size in found.groups] == groups
    assert list(dict.fromkeys(row.group for row in found.rows)) == groups
    assert len(found.rows) == len(groups) * 4
    told = found.to_dict()
    assert {row["group"] for row in told["estimates"]} == {*groups}
    assert set(told["diagnostics"]["tasks"]) == {"rare0", "usual1"}
    assert "macro average" in found.summary()
    assert json.loads(json.dumps(told))


def test_the_macro_average_is_the_mean_and_micro_the_metric_of_all_rows() -> None:
    found = fl.estimate(items(N), "labeled", ["accuracy", "f1"])
    for metric in ("accuracy", "f1"):
        own = [found.get("a", metric, f"task={t}").value for t in ("rare0", "usual1")]
        assert found.get("a", metric, MACRO).value == pytest.approx(np.mean(own))
    truth, said = (np.concatenate([block[t] for t in TASKS]) for block in (
        TRUTH, {t: SHARE[t][0] > 0.5 for t in TASKS}))  # fmt: skip
    assert found.get("a", "accuracy").value == pytest.approx((truth == said).mean())
    f1 = 2 * (truth & said).sum() / (truth.sum() + said.sum())
    assert found.get("a", "f1").value == pytest.approx(f1)


def test_intervals_know_that_tasks_are_of_the_same_items() -> None:
    # The same task twice tells no more than once: all three intervals are as wide.
    twice = fl.estimate(items(N, tasks=("usual", "usual")), "labeled", "accuracy")
    width = {row.group: row.high - row.low for row in twice.rows if row.model == "a"}
    assert width[MACRO] == pytest.approx(width["task=usual0"], rel=1e-9)
    assert width[None] == pytest.approx(width["task=usual0"], rel=0.1)
    # Other tasks of these items tell more: they err by themselves.
    both = fl.estimate(items(N), "labeled", "accuracy")
    width = {row.group: row.high - row.low for row in both.rows if row.model == "a"}
    assert width[MACRO] < 0.95 * max(width["task=rare0"], width["task=usual1"])


@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["auto", "tempered-ensemble", "monotone-curves"])
def test_the_posterior_of_all_rows_is_that_of_the_tasks(method: str) -> None:
    found = fl.estimate(items(), method, "accuracy")
    of_all = found.posterior.marginals()
    assert of_all.shape == (2 * N, 2)
    for name, rows in items().tasks.items():
        alone = fl.estimate(items().of_task(name), method, "accuracy").posterior.marginals()
        assert of_all[rows] == pytest.approx(alone, abs=1e-9)
    again = fl.estimate(items(), method, "accuracy")
    assert again.to_dict()["estimates"] == found.to_dict()["estimates"]


def test_a_classifier_that_lacks_a_task() -> None:
    p = np.concatenate([SHARE[t].T for t in TASKS])
    p[:N, 1] = np.nan
    lacking = items()
    some = fl.Predictions(
        p, lacking.labels, models=["a", "b"], groups=dict(lacking.groups),
        clusters=dict(lacking.clusters), classes=[0, 1], task="task",
    )  # fmt: skip
    found = fl.estimate(some, metrics="accuracy")
    assert found.get("b", "accuracy", "task=rare0").status == "not-applicable"
    only = found.get("b", "accuracy", "task=usual1")
    mean = found.get("b", "accuracy", MACRO)
    assert (mean.value, mean.low, mean.high) == pytest.approx(only[3:6])
    assert any("macro average of b" in warning for warning in found.warnings)


def test_comparisons_by_task() -> None:
    found = fl.compare(items(), "accuracy")
    assert {group for _, group in found.comparisons} >= {None, "task=rare0", "task=usual1"}
    assert ("accuracy", "task") in found.group_gaps
    difference = found.estimates.difference("a", "b", "accuracy", MACRO)
    assert difference.low <= difference.value <= difference.high


def test_scores_by_task() -> None:
    found = fl.score(items())
    assert [one.criterion for one in found.criteria] == ["rare0", "usual1"]
    for name, own in zip(("rare0", "usual1"), TASKS, strict=True):
        row = found.get("judges together", criterion=name)
        assert row.low - 0.05 < TRUTH[own].mean() < row.high + 0.05


@pytest.mark.parametrize(
    "question",
    [
        lambda p: fl.curve(p, model="a"),
        lambda p: fl.threshold(p, model="a", min_precision=0.5),
        lambda p: fl.label_next(p),
        lambda p: fl.shift(p),
        lambda p: fl.backtest(p),
        lambda p: fl.estimate(p, shift="auto"),
        lambda p: fl.estimate(p, reference=p.of_task("rare0")),
        lambda p: fl.estimate(items(histogram=np.ones((2 * N, 2)))),
    ],
)
def test_questions_about_one_task_refuse_several(question: Callable[[Any], Any]) -> None:
    with pytest.raises(fl.UsageError, match=r"2 tasks \(rare0, usual1\).*--label COL"):
        question(items())


def test_labeling_asks_for_one_task() -> None:
    named = {f"{k}_{t}": v.tolist() for t in TASKS
             for k, v in (("true", TRUTH[t]), ("proba", SHARE[t][0]))}  # fmt: skip
    table = {"item": list(range(N)), "text": ["some words here"] * N, **named}
    from fewlabels.labeling.items import open_items

    with pytest.raises(fl.UsageError, match=r"2 tasks \(rare, usual\).*--label COL"):
        open_items(table)
    assert open_items(table, label="true_rare").predictions.n_labeled == N


def test_the_group_of_tasks_is_there() -> None:
    with pytest.raises(fl.InputError, match="`task` must be the name of a group; got 'no'"):
        fl.Predictions([[0.5], [0.2]], task="no")


def test_an_error_in_a_task_names_it() -> None:
    with pytest.raises(fl.InputError, match=r"task 'rare0': method 'pseudo-label'.*no"):
        fl.estimate(items(0), "pseudo-label")


def test_unknown_tasks() -> None:
    with pytest.raises(fl.UsageError, match="unknown task 'no'; choose from rare0, usual1"):
        items().of_task("no")


@pytest.mark.slow
@pytest.mark.parametrize("native", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_files_in_parts(tmp_path: Path, native: bool) -> None:
    path, label, score = tmp_path / "tags.csv", "true_{}", "prob_{}_{}"
    if native:
        label, score = "label_{}", "p__{1}__{0}"
    heads = ["id", *(h for t in TASKS for h in (label.format(t), score.format(t, "a"),
                                                score.format(t, "b")))]  # fmt: skip
    rows = [
        [i, *(v for t in TASKS for v in (TRUTH[t][i] if i < 60 else "",
                                         *SHARE[t][:, i].round(4)))]
        for i in range(N)
    ]  # fmt: skip
    path.write_text("\n".join(",".join(map(str, row)) for row in [heads, *rows]) + "\n")
    whole = fl.estimate(path, metrics="roc_auc")
    parts = estimate_files(path, metrics="roc_auc", engine="threads", checkpoints=tmp_path / "c")
    assert parts.models == whole.models
    for row in whole.rows:
        same = parts.get(row.model, row.metric, row.group)
        assert same.value == pytest.approx(row.value, abs=0.02)
        assert same.low - 0.03 < row.value < same.high + 0.03
    of_tasks = [parts.get("a", "roc_auc", f"task={t}") for t in TASKS]
    mean = parts.get("a", "roc_auc", MACRO)
    # The widest that the tasks leave: the mean of their widths.
    assert mean.high - mean.low == pytest.approx(
        np.mean([row.high - row.low for row in of_tasks]), rel=0.1
    )
    assert not any("micro averages" in warning for warning in parts.warnings)
    assert parts.to_dict()["estimates"]
    assert "task=rare" in parts.summary()
    parts.save_html(tmp_path / "page.html")
    values = estimate_files(
        path, metrics="roc_auc", confidence_level=None, checkpoints=tmp_path / "c"
    )
    assert values.get("a", "roc_auc").value == pytest.approx(
        whole.get("a", "roc_auc").value, abs=0.02
    )
    assert np.isnan(values.get("a", "roc_auc").low)
    with pytest.raises(fl.UsageError, match="2 tasks"):
        estimate_files(path, posterior=tmp_path / "p", checkpoints=tmp_path / "c")


@pytest.mark.slow
def test_micro_averages_of_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of a sample stands for as many as its task has for it: .9 of the first task's here."""
    import fewlabels.streaming.samples as samples
    import fewlabels.streaming.scan as scan

    n = 4000
    rng = np.random.default_rng(8)
    frame = ["true_x,pred_x,true_y,pred_y,id"]
    truth = rng.integers(0, 2, (n, 2))
    said = np.where(rng.random((n, 2)) < [0.95, 0.6], truth, 1 - truth)
    for i in range(n):
        x, y = truth[i] if i < 200 else ("", "")
        frame.append(f"{x},{said[i, 0]},{y},{said[i, 1] if i % 9 == 0 else ''},{i}")
    path = tmp_path / "tasks.csv"
    path.write_text("\n".join(frame) + "\n")
    for module in (samples, scan):
        monkeypatch.setattr(module, "SUPPORT_ROWS", 1000)
    tasks = {t: [f"true_{t}", f"pred_{t}"] for t in "xy"}
    found = estimate_files(
        path, metrics="accuracy", checkpoints=tmp_path / "c", columns={"tasks": tasks}
    )
    micro = found.get("pred", "accuracy")
    by_task = [found.get("pred", "accuracy", f"task={t}").value for t in "xy"]
    assert micro.value == pytest.approx(np.average(by_task, weights=[9, 1]), abs=0.02)
    assert micro.low < np.mean(said[:, 0] == truth[:, 0]) * 0.9 + 0.06 < micro.high
