"""The study of disagreement runs on a small scale, fills its page, and takes the right truth."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks" / "disagreement.md"
DATA = Path(os.environ.get("FEWLABELS_DATA", ROOT.parent / "shared" / "data"))
MARKS = (
    "debiasing",
    "truth",
    *(f"{data}-{part}" for data in ("mix-mnist", "cifar-10h")
      for part in ("losses", "disagreement", "updates", "directions")),
    "oracle",
    "reliability",
    "temperature",
    "penalty",
    "items",
    "bins",
    "maps",
    "network",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def block(page: str, name: str) -> str:
    """What stands between the marks of a part."""
    found = re.search(f"<!-- {name} -->\n(.*?)<!-- end {name} -->", page, re.DOTALL)
    assert found, f"no place for {name}"
    return found[1]


def test_the_page_is_filled() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in MARKS:
        assert len(block(page, name)) > 100, name
        assert "--quick" not in block(page, name)
    for figure in re.findall(r"\]\((figures/[^)]+)\)", page):
        assert (PAGE.parent / figure).is_file(), figure


@pytest.mark.slow
def test_a_quick_run_fills_a_copy(tmp_path: Path, real_or_simulated: Path) -> None:
    script = ROOT / "benchmarks" / "disagreement.py"
    command = [sys.executable, "-W", "error", str(script), "debiasing", "truth", "--quick"]
    command += ["--workers", "1", "--work", str(tmp_path)]
    command += ["--data", str(real_or_simulated)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    page = (tmp_path / "quick" / PAGE.name).read_text(encoding="utf-8")
    assert "debiasing --quick`: a few cells" in block(page, "debiasing")
    assert block(page, "truth").count("| cnn_e8 |") == 2
    assert (tmp_path / "quick" / "figures" / "disagreement-debiasing.svg").is_file()


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data at {DATA}; FEWLABELS_DATA names them")
def test_votes_of_mix_mnist_come_from_its_truth() -> None:
    from disagreement_truth import MNIST, truth, world

    own, q = world(DATA, MNIST), truth(DATA)
    assert own.histogram.shape == q.shape == (15_000, 10)
    assert set(own.histogram.sum(axis=1)) == {5.0, 10.0}
    assert not own.histogram[q == 0].any()
    n = own.histogram.sum(axis=1, keepdims=True)
    inside = (q > 0) & (q < 1)
    z = ((own.histogram - n * q) / np.sqrt(np.maximum(n * q * (1 - q), 1e-300)))[inside]
    assert np.mean(z**2) == pytest.approx(1, abs=0.05)
