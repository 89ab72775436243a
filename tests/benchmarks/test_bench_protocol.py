"""Protocols: those that come along, options over them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import load, names
from bench.figures import FIGURES
from bench.protocol import from_plain, parse
from bench.tables import TABLES
from fewlabels.errors import InputError, UsageError
from fewlabels.metrics.registry import resolve
from fewlabels.models import METHODS

EXPECTED = [
    "ssme-binary",
    "ssme-correlation",
    "ssme-drawn-vs-expected",
    "ssme-ensembling",
    "ssme-ensembling-trained",
    "ssme-ess",
    "ssme-multiclass",
    "ssme-per-classifier",
    "ssme-semisynthetic",
    "ssme-subgroup",
    "histograms",
]
LEAST = 'title = "t"\nmethods = ["labeled"]\nmetrics = "accuracy"\nn_labeled = 5\nn_unlabeled = 9\n'


def test_the_protocols_that_come_along() -> None:
    assert list(names()) == EXPECTED


@pytest.mark.parametrize("name", EXPECTED[:-1])
def test_each_protocol(name: str) -> None:
    protocol = load(name)
    assert protocol.name == name
    assert set(protocol.methods) <= set(METHODS)
    assert set(protocol.tables) <= set(TABLES)
    assert set(protocol.figures) <= set(FIGURES)
    assert len(f"{name:24}{protocol.title}") <= 80
    assert protocol.source
    resolve(list(protocol.metrics))
    assert from_plain(json.loads(json.dumps(protocol.plain()))) == protocol


def test_options_over_a_protocol() -> None:
    changed = load("ssme-ensembling").with_options(runs=3, n_labeled=7, levels=[".50", 2])
    assert (changed.runs, changed.n_labeled, changed.levels) == (3, (7,), ("0.5", "2"))


def test_a_protocol_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(LEAST + "runs = 2\n[bins]\nage = [30, 50]\n")
    mine = load(path)
    assert (mine.name, mine.metrics, mine.bins) == ("mine", ("accuracy",), {"age": (30.0, 50.0)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_labelled": [3]}, r"unknown option 'n_labelled'; did you mean 'n_labeled'\?"),
        ({"runs": 0}, "`runs` must be a whole number from 1 to 100,000; got 0"),
        ({"n_labeled": []}, "`n_labeled` is empty"),
        ({"n_labeled": [2.5]}, "`n_labeled` must be a whole number"),
        ({"sampler": "fair"}, "`sampler` must be 'released', 'uniform'; got 'fair'"),
        ({"confidence_level": 95}, "`confidence_level` must be between 0 and 1; got 95"),
        ({"bins": {"age": [5, 2]}}, "must map 'age' to rising edges"),
        ({"bins": {"age": ["x"]}}, "must map 'age' to numbers"),
        ({"seed": -1}, "`seed` must be a whole number, at least 0"),
        ({"factor": "sharpness"}, "needs `levels`"),
        ({"factor": "labels", "levels": ["draw"]}, "drawn, expected, by-item; got 'draw'"),
        ({"factor": "sharpness", "levels": [-1]}, "are numbers above 0; got '-1'"),
        ({"factor": "classifiers", "levels": [2.5]}, "are whole numbers above 0; got '2.5'"),
        ({"factor": "classifiers", "levels": [3]}, "`factor` of design 'predictions' must be"),
        (
            {"design": "trained sets", "factor": "labels", "levels": ["drawn"]},
            "`factor` of design 'trained sets' must be 'classifiers', 'sharpness'; got 'labels'",
        ),
    ],
)
def test_options_that_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load("ssme-binary").with_options(**options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("methods = [", "protocol 'x' is not valid TOML"),
        (LEAST, "protocol 'x': `runs` is missing"),
        (LEAST + "runs = 2\nrun = 3\n", "protocol 'x': unknown field 'run'; did you mean 'runs'"),
        (LEAST + "runs = true\n", "`runs` must be a whole number"),
    ],
)
def test_files_that_are_no_protocol(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(text, "x")


def test_unknown_protocols(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown protocol 'ssme-binray'; did you mean 'ssme-bin"):
        load("ssme-binray")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load(tmp_path / "none.toml")
