"""Logic between domains on simulated taxonomies: error rates and labels with and without it.

    python -m benchmarks taxonomies [--replicates 20]

Writes benchmarks/results/taxonomies.jsonl and docs/benchmarks/taxonomies.md. Platanios, Dubey,
Mitchell (2016), section 6, name logic as future work; nothing of the paper is reproduced.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

import fewlabels as fl
from fewlabels.kernels.blocks import using_workers
from runs import ROOT, Row, number, plus_minus, run_kept, table

RESULTS = ROOT / "benchmarks" / "results" / "taxonomies.jsonl"
PAGE = ROOT / "docs" / "benchmarks" / "taxonomies.md"
SEED, ITEMS, SWEEPS = 40_000, 80, {"burn_in": 500, "sweeps": 1500, "chains": 1}


class Taxonomy(NamedTuple):
    """Domains, the joint labels that its rules allow, with their frequencies, and the rules."""

    domains: tuple[str, ...]
    states: tuple[tuple[int, ...], ...]
    shares: tuple[float, ...]
    rules: fl.models.Constraints


TAXONOMIES = {
    "three that exclude each other": Taxonomy(
        ("animal", "city", "food"),
        ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)),
        (0.1, 0.3, 0.3, 0.3),
        fl.models.Constraints(exclusive=[["animal", "city", "food"]]),
    ),
    "one within another within a third": Taxonomy(
        ("dog", "mammal", "animal"),
        ((0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1)),
        (0.4, 0.2, 0.2, 0.2),
        fl.models.Constraints(subsumption=[("dog", "mammal"), ("mammal", "animal")]),
    ),
    "both": Taxonomy(
        ("dog", "animal", "city"),
        ((0, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1)),
        (0.25, 0.25, 0.25, 0.25),
        fl.models.Constraints(exclusive=[["animal", "city"]], subsumption=[("dog", "animal")]),
    ),
}
KNOWN_ERRORS = (0.1, 0.2, 0.25, 0.3)
"""Error rates of the classifiers are these, in an order of its own for each domain."""


def replicate(taxonomy: Taxonomy, seed: int, *, wrong: float = 0.0) -> dict[str, float]:
    """Squared error of the error rates and share of wrong labels, without the rules and with them.

    A share `wrong` of the items breaks the rules: any joint label is as likely there.
    """
    rng = np.random.default_rng([SEED, seed])
    states = np.array(taxonomy.states)[rng.choice(len(taxonomy.states), ITEMS, p=taxonomy.shares)]
    broken = rng.random(ITEMS) < wrong
    states[broken] = rng.integers(2, size=(int(broken.sum()), states.shape[1]))
    count, m = len(taxonomy.domains), len(KNOWN_ERRORS)
    errors = np.array([rng.permutation(KNOWN_ERRORS) for _ in taxonomy.domains])
    truth = states.T.ravel()  # domain by domain
    miss = rng.random((count * ITEMS, m)) < np.repeat(errors, ITEMS, axis=0)
    predictions = fl.Predictions(
        votes=np.where(miss, 1 - truth[:, None], truth[:, None]), classes=[0, 1],
        models=[f"c{j}" for j in range(m)], domain=np.repeat(taxonomy.domains, ITEMS),
        groups={"item": np.tile([f"i{i}" for i in range(ITEMS)], count)},
    )  # fmt: skip
    found = {}
    for name, rules in (("without", None), ("with", taxonomy.rules)):
        posterior = fl.models.BEE(constraints=rules, **SWEEPS).infer(predictions, seed)
        of = posterior.diagnostics["error_rate"]
        rates = np.array([[of[d][f"c{j}"] for j in range(m)] for d in taxonomy.domains])
        found[f"mse, {name}"] = float(((rates - errors) ** 2).mean())
        found[f"labels, {name}"] = float(((posterior.marginals()[:, 1] > 0.5) != truth).mean())
    return found


def run_cell(cell: Row) -> Row:
    """What `replicate` finds of a taxonomy, replicate by replicate."""
    taxonomy, wrong = TAXONOMIES[cell["taxonomy"]], cell["wrong"]
    with using_workers(1):
        found = [replicate(taxonomy, seed, wrong=wrong) for seed in range(cell["replicates"])]
    return {key: [one[key] for one in found] for key in found[0]}


def blocks(lines: list[Row]) -> dict[str, str]:
    """Means, and paired differences with their standard error."""
    rows = []
    for line in lines:
        name = f"{line['taxonomy']}{'; 10% of the items break the rules' * bool(line['wrong'])}"
        rows.append([name])
        for what, digits in (("mse", 4), ("labels", 3)):
            plain, ruled = (pd.Series(line[f"{what}, {how}"]) for how in ("without", "with"))
            gap = plus_minus(ruled - plain, digits)
            rows[-1] += [number(plain.mean(), digits), number(ruled.mean(), digits), gap]
    header = ["taxonomy", "MSE of the error rates", "with logic", "difference",
              "wrong labels", "with logic", "difference"]  # fmt: skip
    said = f"{lines[0]['replicates']} replicates, seed {SEED}"
    return {"taxonomies": f"{said}; ± is the standard error of the mean of paired differences.\n\n"
            f"{table(header, rows)}"}  # fmt: skip


if __name__ == "__main__":
    run_kept(
        __doc__, RESULTS, run_cell,
        lambda given: (
            {"taxonomy": name, "wrong": wrong, "replicates": given.replicates}
            for name, wrong in product(TAXONOMIES, (0.0, 0.1))
        ),
        blocks, PAGE, "taxonomies", replicates=20,
    )  # fmt: skip
