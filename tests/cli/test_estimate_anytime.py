"""`fewlabels estimate --labels RECORD`: labels weigh by their draws, and --anytime."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.data.label_record import Event, Header, key_hash, keys_digest

Run = Callable[..., tuple[int, str, str]]
N = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 400 items and two records of 60 labels: drawn evenly, and mostly where it is hard.

    The classifier is right on 320 of the items: on 7 of 8 of the first 240, on 11 of 16 of the
    others, of which the uneven record draws four times as often.
    """
    rng = np.random.default_rng(7)
    there = tmp_path_factory.mktemp("anytime")
    right = np.where(np.arange(N) < 240, np.arange(N) % 8 > 0, np.arange(N) % 16 > 4)
    truth = rng.integers(0, 2, N)
    said = np.where(right, truth, 1 - truth)
    lines = [f"k{i},{said[i]}" for i in range(N)]
    (there / "votes.csv").write_text("id,y__a\n" + "\n".join(lines) + "\n")
    for name, odds in (("even", 1.0), ("uneven", 4.0)):
        left, share = list(range(N)), np.where(np.arange(N) < 240, 1.0, odds)
        names = keys_digest(np.array([key_hash(f"k{i}") for i in range(N)], dtype=np.uint64))
        head = Header("votes.csv", "id", N, names, ("0", "1"), "1", "me", "2026-01-01T00:00:00Z")
        events = [head.line()]
        for _ in range(60):
            q = share[left] / share[left].sum()
            k = int(rng.choice(len(left), p=q))
            row = left.pop(k)
            events.append(
                Event(
                    "label", f"k{row}", "me", "2026-01-01T00:00:00Z", str(truth[row]),
                    "informative", float(q[k]), len(left) + 1,
                ).line()
            )  # fmt: skip
        (there / f"{name}.labels.jsonl").write_bytes(b"".join(events))
    return there


def test_labels_weigh_by_the_probabilities_of_their_draws(folder: Path) -> None:
    even, uneven = (
        fl.read_predictions(folder / "votes.csv", labels=folder / f"{name}.labels.jsonl")
        for name in ("even", "uneven")
    )
    assert even.label_weight is None
    assert uneven.label_weight is not None
    easy = np.arange(N) < 240
    weight = uneven.label_weight[uneven.labeled]
    # Items that are drawn four times as often weigh about a quarter.
    hard = ~easy[uneven.labeled]
    assert weight[~hard].mean() / weight[hard].mean() == pytest.approx(4, rel=0.3)
    correct = (uneven.votes[:, 0] == uneven.labels)[uneven.labeled]
    weighed = fl.estimate(uneven, "labeled", "accuracy").rows[0].value
    assert weighed == pytest.approx(np.average(correct, weights=weight), abs=0.02)
    assert weighed > correct.mean()


@pytest.mark.parametrize("name", ["even", "uneven"])
def test_intervals_that_hold_whenever_one_stops(cli: Run, folder: Path, name: str) -> None:
    code, out, err = cli(
        "estimate", folder / "votes.csv", "--labels", folder / f"{name}.labels.jsonl", "--anytime",
        "--metrics", "accuracy", "--method", "labeled", "--json", folder / "out.json",
        "--html", folder / "out.html",
    )  # fmt: skip
    assert code == 0, err
    assert "whenever you stop (95%" in " ".join(out.split())
    assert "Valid whenever you stop labeling" in (folder / "out.html").read_text("utf-8")
    said = json.loads((folder / "out.json").read_text("utf-8"))
    found = said["diagnostics"]["anytime"]
    low, high = found["intervals"]["accuracy"]["a"]
    (row,) = (r for r in said["estimates"] if r["metric"] == "accuracy")
    assert found["labels"] == 60
    assert low < 0.8 < high
    assert high - low > row["high"] - row["low"]


@pytest.mark.parametrize(
    ("more", "says"),
    [("--metrics roc_auc", "no metric here has"), ("--labels-as votes", "give one record")],
)
def test_what_cannot_be_said_at_any_time(
    refused: Callable[..., str], folder: Path, more: str, says: str
) -> None:
    asked = ("--anytime", "--labels", folder / "even.labels.jsonl", *more.split())
    assert says in refused("estimate", folder / "votes.csv", *asked)
