"""The sampler of votes, by compiled loops and by arrays: the same draws."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fewlabels.kernels import compiled
from fewlabels.methods.bee import gibbs as vote_gibbs
from fewlabels.methods.bee.gibbs import advance, new_state, start_state
from fewlabels.methods.bee.table import ALONE, Rules, VotePrior, VoteTable

SCRIPT = Path(__file__).with_name("bee_gibbs_run.py")


@pytest.fixture(scope="module")
def both() -> tuple[dict, dict]:
    """What compiled loops draw, and arrays."""
    out = []
    for disabled in ("0", "1"):
        environment = os.environ | {"NUMBA_DISABLE_JIT": disabled}
        done = subprocess.run(
            [sys.executable, str(SCRIPT)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        out.append(json.loads(done.stdout))
    return out[0], out[1]


def test_arrays_draw_what_compiled_loops_draw(both):
    """Every kind of chain, from the same random numbers: not only the same law."""
    fast, plain = both
    assert not plain["compiled"]
    if not fast["compiled"]:
        pytest.skip("numba is not installed")
    assert len(fast["draws"]) == len(plain["draws"]) > 20
    for name, runs in fast["draws"].items():
        for mine, theirs in zip(runs, plain["draws"][name], strict=True):
            for kind, other in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(kind, other, rtol=1e-9, err_msg=name)


def test_what_was_compiled_before_a_change_is_forgotten(tmp_path):
    source, folder = tmp_path / "kernel.py", tmp_path / "__pycache__"
    folder.mkdir()
    old, new = folder / "old.nbi", folder / "new.nbi"
    for file in (old, source, new):
        file.touch()
    os.utime(old, (1, 1))
    os.utime(source, (2, 2))
    os.utime(new, (3, 3))
    compiled._forget_stale(tmp_path)
    assert not old.exists()
    assert new.exists()


def _numbers() -> int:
    return 1


def test_without_a_folder_to_keep_it_in_it_compiles_all_the_same(monkeypatch):
    if not compiled.IS_COMPILED:
        pytest.skip("numba is not installed")
    asked = []

    class Numba:
        @staticmethod
        def njit(**options):
            asked.append(options)
            if options.get("cache"):
                raise RuntimeError("cannot cache function: no locator available")
            return lambda function: function

    monkeypatch.setattr(compiled, "_numba", lambda: Numba)
    assert compiled.compiled(_numbers) is _numbers
    assert [o.get("cache", False) for o in asked] == [True, False]


def test_rounding_never_gives_an_impossible_state():
    weights = np.array([0.0, -np.inf, -np.inf])
    out = np.zeros(3, dtype=np.int64)
    draw = getattr(vote_gibbs._multinomial, "py_func", vote_gibbs._multinomial)
    for seed in range(20):
        draw(weights.copy(), 7, out, np.random.default_rng(seed))
        assert out.tolist() == [7, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("collapsed_labels", [False, True])
def test_items_of_one_row_are_as_items_of_their_own(collapsed_labels):
    """Four items with the same votes: how many are of class 1, drawn both ways."""
    shares = []
    for items in ([4], [1, 1, 1, 1]):
        rows = len(items)
        table = VoteTable(
            start=np.arange(0, 3 * rows + 1, 3),
            unit=np.tile([0, 1, 2], rows),
            vote=np.tile([1, 1, 0], rows),
            times=np.ones(3 * rows),
            items=np.array(items),
            group=np.zeros(rows, dtype=np.int64),
            evidence=np.zeros((rows, 2)),
            informs=np.ones(rows),
            free=np.ones(1, dtype=bool),
            row_of=np.array([[0], [1]]),
        )
        prior = VotePrior(np.full((1, 2), 4.0), np.array([[6.0, 9.0]]))
        state = new_state(table, prior, 3, 1.0, 1.0)
        rng = np.random.default_rng(rows)
        start_state(table, prior, state, rng)
        rules = Rules(ALONE, False, True, collapsed_labels, False, False)
        count = np.zeros(5)
        for _ in range(20_000):
            advance(table, prior, state, rules, 1, rng)
            count[state.labels[:, 1].sum()] += 1
        shares.append(count / count.sum())
    np.testing.assert_allclose(shares[0], shares[1], atol=0.02)


def test_compiled_sweeps_return_to_python_in_slices(monkeypatch):
    """So that Ctrl-C is heard."""
    from bee_gibbs_run import votes_table

    table, calls = votes_table(np.random.default_rng(0), 30, 2, False), []
    monkeypatch.setattr(vote_gibbs, "_sweep", lambda *given: calls.append(given[4]))
    monkeypatch.setattr(vote_gibbs, "_SLICE", 10 * (len(table.vote) + len(table.evidence)))
    rules = Rules(ALONE, False, False, False, False, False)
    advance(table, None, None, rules, 95, np.random.default_rng(0))
    assert calls == [10] * 9 + [5]
