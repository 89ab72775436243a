"""Backtests: the truth, who is wrong, what is hidden, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl
from fewlabels.errors import InputError, UsageError
from fewlabels.questions import backtest as module

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def known(n: int = 400, seed: int = 0, **more) -> fl.Predictions:
    """Three classifiers of two classes, and a label for every item."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.4
    noise = rng.normal(size=(n, 3)) * [1.0, 1.5, 2.5]
    p = 1 / (1 + np.exp(-(3 * truth[:, None] - 1.5 + noise)))
    return fl.Predictions(p, truth, models=["large", "medium", "small"], **more)


def copies(n: int = 300) -> fl.Predictions:
    """One classifier three times, which is right for 70% of the items."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=n)
    said = np.where(rng.random(n) < 0.7, truth, 1 - truth)
    return fl.Predictions(votes=np.stack([said] * 3, axis=1), labels=truth, models=["a", "b", "c"])


@pytest.mark.slow
def test_the_truth_is_that_of_all_labels_and_errors_are_those_of_random_labels() -> None:
    items, n, runs = known(), 40, 60
    found = fl.backtest(items, n, runs, metrics="accuracy")
    right = (items.hard == items.labels[:, None]).mean(axis=0)
    assert [t.value for t in found.truth] == pytest.approx(right.tolist())
    assert all(t.low < t.value < t.high for t in found.truth)
    for j, model in enumerate(found.models):
        row = found.get(n, "labeled", "accuracy", model)
        # The mean of n of N without putting back; E|X| of a normal variable is sd sqrt(2 / pi).
        sd = np.sqrt(right[j] * (1 - right[j]) * (1 / n - 1 / items.n_items))
        assert row.error == pytest.approx(sd * np.sqrt(2 / np.pi), abs=4 * 0.6 * sd / np.sqrt(runs))
        assert abs(row.bias) < 4 * sd / np.sqrt(runs)
        assert row.runs == runs
        assert row.coverage >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / runs)
    mean = found.get(n, "auto", "accuracy")
    each = [found.get(n, "auto", "accuracy", model) for model in found.models]
    assert mean.error == pytest.approx(np.mean([row.error for row in each]))
    assert mean.error < found.get(n, "labeled", "accuracy").error


def test_a_method_that_is_wrong_by_construction_is_found_out() -> None:
    # Copies agree on all items, so those who trust votes alone believe that all are right.
    found = fl.backtest(copies(), 20, 3, method="majority-vote", metrics="accuracy")
    row = found.get(20, "majority-vote", "accuracy", "a")
    assert row.coverage == 0
    assert row.bias > 0.2
    assert found.get(20, "labeled", "accuracy", "a").error < 0.15


def test_what_is_hidden_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[fl.Predictions] = []
    real = module.estimate

    def watched(items, *given, **named):
        seen.append(items)
        return real(items, *given, **named)

    monkeypatch.setattr(module, "estimate", watched)
    counts = np.random.default_rng(0).multinomial(3, [0.3, 0.7], 100)
    items = known(100).with_labels(np.full(100, -1))
    items = fl.Predictions(items.probabilities, models=items.models, histogram=counts)
    found = fl.backtest(items, (10, 30), 2, metrics="accuracy")
    assert [int(part.told.sum()) for part in seen] == [100, *[30, 30, 10, 10] * 2]
    few, more = seen[3].told, seen[1].told
    assert (more | ~few).all()  # fewer labels are some of more
    assert (seen[1].told == seen[2].told).all()  # methods see the same
    assert (seen[1].told != seen[5].told).any()  # runs do not
    assert (found.n_labeled, found.n_annotated) == (0, 100)
    share = (counts / 3)[np.arange(100), items.hard[:, 0]].mean()
    assert found.truth[0].value == pytest.approx(share, abs=1e-6)


@pytest.mark.slow
def test_the_seed_decides_and_the_order_of_the_rows_does_not() -> None:
    items = known(120, groups={"g": np.arange(120) % 2})
    first, again, other = (
        fl.backtest(items, 20, 2, metrics="accuracy", by="g", random_state=seed)
        for seed in (0, 0, 1)
    )
    assert first.rows == again.rows != other.rows
    assert {row.group for row in first.rows} == {None, "g=0", "g=1"}
    reverse = items.take(np.arange(120)[::-1])
    turned = fl.backtest(reverse, 20, 2, metrics="accuracy", by="g")
    for row in turned.rows:
        same = first.get(20, row.method, "accuracy", row.model, row.group)
        assert same[5:] == pytest.approx(row[5:], abs=1e-9)


def test_weights_and_clusters_are_respected() -> None:
    items = known(200)
    weight = np.where(items.labels == 1, 3.0, 1.0)
    groups = {"case": np.arange(200) // 2}
    items = fl.Predictions(
        items.probabilities, items.labels, models=items.models, weight=weight, groups=groups
    ).with_clusters("case")
    found = fl.backtest(items, 40, 2, metrics="accuracy")
    right = np.average(items.hard[:, 0] == items.labels, weights=weight)
    assert found.truth[0].value == pytest.approx(right)


def test_a_class_that_a_draw_lacks_is_counted_and_json_has_null() -> None:
    items = known(60)
    rare = items.with_labels(np.where(np.arange(60) < 2, 1, 0))
    found = fl.backtest(rare, 3, 4, metrics=["accuracy", "recall"])
    row = found.get(3, "labeled", "recall", "large")
    assert row.runs < 4
    assert found.get(3, "labeled", "accuracy", "large").runs == 4
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert {"fewlabels", "rows", "truth", "warnings", "labels", "n_runs"} <= json.loads(text).keys()


def test_large_data_are_a_sample_and_items_without_labels_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_ITEMS", 100)
    items = known(300)
    items = items.with_labels(np.where(np.arange(300) < 250, items.labels, -1))
    found = fl.backtest(items, 20, 1, metrics="accuracy")
    assert found.n_items == 100
    said = "\n".join(found.warnings)
    assert "50 of 300 items have no label and are left out" in said
    assert "100 of 250 labeled items, drawn at random, are used" in said


def test_the_text_fits_and_says_what_is_shared() -> None:
    found = fl.backtest(
        known(150), (10, 20), 2, method="ssme-kde[bandwidth=scott]", metrics=["accuracy", "ece"]
    )
    for width in (80, 120):
        text = found.summary(width)
        assert max(map(len, text.splitlines())) <= width
        words = " ".join(text.split())
        for said in (
            "Accuracy, on average over 3 classifiers: from 10 labels it is off by",
            "not a standard error", "The truth is the metric on all 150 labels",
            "ssme-kde[bandwidth=scott] 10", "method labels error signed covered width",
        ):  # fmt: skip
            assert said in words
    assert found.methods == ("auto", "labeled", "ssme-kde[bandwidth=scott]")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": 150}, r"fewer than the labels there are: 150 items have one; got 150: try 75"),
        ({"labels": (20, 900)}, r"got 900: try 20"),
        ({"labels": ()}, r"`labels` must be one number or several"),
        ({"runs": 0}, r"`runs` must be a whole number, at least 1; got 0"),
        ({"method": "nobody"}, r"unknown method 'nobody'"),
        ({"metrics": "acuracy"}, r"did you mean 'accuracy'"),
        ({"confidence_level": None}, r"`confidence_level`"),
    ],
)
def test_what_is_refused(change: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fl.backtest(known(150), **{"labels": 20, "runs": 1, "metrics": "accuracy", **change})


def test_a_method_that_fails_at_once_is_refused_and_later_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, calls = module.estimate, []

    def failing(items, method, *given, **named):
        calls.append(method != "auto" and method != "labeled")
        if calls[-1] and (failing.always or sum(calls) == 2):
            raise InputError("these labels are of one class")
        return real(items, method, *given, **named)

    monkeypatch.setattr(module, "estimate", failing)
    asked = {"labels": (5, 10), "runs": 2, "method": "pseudo-label", "metrics": "accuracy"}
    failing.always = False
    found = fl.backtest(known(60), **asked)
    assert "'pseudo-label' gave no estimate 1 times: these labels" in found.warnings[-1]
    assert found.get(5, "pseudo-label", "accuracy").runs == 1
    assert found.get(5, "auto", "accuracy").runs == 2
    failing.always = True
    with pytest.raises(InputError, match="method 'pseudo-label': these labels are of one class"):
        fl.backtest(known(60), **asked)


def test_without_labels_there_is_nothing_to_hide() -> None:
    with pytest.raises(InputError, match="no item has a label, and a backtest hides"):
        fl.backtest(known(50).with_labels(np.full(50, -1)))


def test_the_rows_are_a_table_and_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    found = fl.backtest(
        known(60), (5, 10), 2, metrics="accuracy", progress=lambda *done: told.append(done)
    )
    table = found.to_frame("pandas")
    assert isinstance(table, pd.DataFrame)
    assert len(table) == len(found.rows) == 4 * 2 * 2
    assert told == [(done, 8) for done in range(9)]
    with pytest.raises(UsageError, match="no backtest of method 'bee' from 5 labels"):
        found.get(5, "bee", "accuracy")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_a_signal_shows_the_runs_that_are_done(tmp_path: Path) -> None:
    asked = [
        "backtest", str(EXAMPLES / "moderation_labeled.csv"), "--labels", "20", "--runs", "5000",
        "--metrics", "accuracy", "--models", "large", "--method", "ensemble",
        "--json", str(tmp_path / "a.json"),
    ]  # fmt: skip
    program = (
        "import sys; from fewlabels.questions.backtest import Runs; real = Runs.each\n"
        "def each(self, progress):\n"
        "    for done in real(self, progress):\n"
        "        print('run', file=sys.stderr, flush=True); yield done\n"
        "Runs.each = each; from fewlabels.cli import main; sys.exit(main())"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program, *asked], stdout=-1, stderr=-1, text=True
    )
    assert running.stderr.readline() == "run\n"
    running.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert time.monotonic() - began < 60
    assert "of 5,000 runs" in " ".join(out.split())
    assert err.splitlines()[-1].startswith("interrupted; ")
    assert json.loads((tmp_path / "a.json").read_text())["n_runs"] >= 1
