"""The sampler of votes compiled and plain: the same bits, or the same law."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fewlabels.kernels import compiled, vote_gibbs

SCRIPT = Path(__file__).with_name("vote_gibbs_run.py")


@pytest.fixture(scope="module")
def both() -> tuple[dict, dict]:
    """What compiled loops and plain ones end with."""
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


def test_loops_draw_the_same_bits(both):
    fast, plain = both
    assert not plain["compiled"]
    if not fast["compiled"]:
        pytest.skip("numba is not installed")
    for name, found in fast.items():
        if name != "compiled" and not name.startswith("mean"):
            labels, atom, shares, concentration, mean = plain[name]
            assert found[:2] == [labels, atom], name
            for mine, theirs in zip(found[2:], (shares, concentration, mean), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-9)


@pytest.mark.parametrize("coupling", range(4))
def test_labels_by_arrays_have_the_same_law(both, coupling):
    fast, plain = both
    np.testing.assert_allclose(fast[f"mean {coupling}"], plain[f"mean {coupling}"], atol=0.05)


def test_what_was_compiled_before_a_change_is_forgotten(tmp_path, monkeypatch):
    source, folder = tmp_path / "kernel.py", tmp_path / "__pycache__"
    folder.mkdir()
    old, new = folder / "old.nbi", folder / "new.nbi"
    for file in (old, source, new):
        file.touch()
    os.utime(old, (1, 1))
    os.utime(source, (2, 2))
    os.utime(new, (3, 3))
    monkeypatch.setattr(compiled, "__file__", str(source))
    compiled._forget_stale()
    assert not old.exists()
    assert new.exists()


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
    assert compiled.compiled(len) is len
    assert [o.get("cache", False) for o in asked] == [True, False]


def test_rounding_never_gives_an_impossible_state():
    weights = np.array([0.0, -np.inf, -np.inf])
    out = np.zeros(3, dtype=np.int64)
    draw = getattr(vote_gibbs._multinomial, "py_func", vote_gibbs._multinomial)
    for seed in range(20):
        draw(weights.copy(), 7, out, np.random.default_rng(seed))
        assert out.tolist() == [7, 0, 0]
