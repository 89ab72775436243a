"""Figure 4 of the BEE paper with the paper's own settings: NELL and the brain data.

    python -m benchmarks votes_paper all | nell | brain

4,000 sweeps of burn-in and 2,000 of which every tenth is kept, one chain, all methods on the same
10 random tenths of the rows. Coupled models have the staged sampler (collapsed burn-in, then
uncollapsed) and the paper's posterior (`orient=False`), concentrations 1 and by the likelihood of
held-out votes: the latter on the brain data alone, as on a tenth of NELL they take most of an hour.
Beside them crowd-SVM with equal and with learned class shares. The tables go to
docs/benchmarks/votes-paper.md. `votes.py` has the defaults, on the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

import fewlabels as fl
from parts import SEED, Arguments, Part, Plan, run_page
from runs import table
from votes_methods import PAIRED, Method, apart, paired, together
from votes_nell import nell_cells, nell_run, table_by_method

_LENGTH = {"burn_in": 4_000, "sweeps": 2_000, "thin": 10, "chains": 1}
_STAGED = {**_LENGTH, "sampler": "collapsed then uncollapsed"}
_HELD_OUT = {**_STAGED, "concentration": "held-out"}

METHODS: dict[str, Method] = {
    "bee": together(fl.models.BEE(**_LENGTH)),
    "cbee": together(fl.models.CBEE(**_STAGED)),
    "cbee, held-out alpha": together(fl.models.CBEE(**_HELD_OUT)),
    "cbee, held-out alpha, one split": together(fl.models.CBEE(**_HELD_OUT, selection="split")),
    "hcbee": together(fl.models.HCBEE(**_STAGED, orient=False)),
    "hcbee, oriented": together(fl.models.HCBEE(**_STAGED)),
    "hcbee, held-out alpha and gamma": together(
        fl.models.HCBEE(**_HELD_OUT, top_concentration="held-out", orient=False)
    ),
    "crowd-svm": apart(fl.models.CrowdSVM()),
    "crowd-svm, learned class shares": apart(fl.models.CrowdSVM(class_shares="learned")),
}
_LONG = tuple(name for name in METHODS if "held-out" in name or "oriented" in name)
"""Not on all rows, where held-out concentrations take hours, and not on NELL."""

_PAIRS = (
    ("bee", "cbee"), ("bee", "hcbee"), ("cbee", "cbee, held-out alpha"),
    ("cbee, held-out alpha", "cbee, held-out alpha, one split"),
    ("hcbee", "hcbee, held-out alpha and gamma"), ("hcbee", "hcbee, oriented"),
    ("crowd-svm", "crowd-svm, learned class shares"),
)  # fmt: skip


def _cells(plan: Plan, names: Sequence[str]) -> list[Arguments]:
    quick = ("bee", "crowd-svm, learned class shares")
    return nell_cells(plan, names, quick, {}, quick if plan.quick else _LONG)


def _blocks(records: pd.DataFrame, plan: Plan) -> str:
    figures = {"mse": "MSE", "mad": "MAD", "hard": "wrong labels"}
    errors = records[records["percent"] == 10].pivot(index="repeat", columns="method", values="mse")
    rows = [[f"{a} - {b}", *paired(errors, a, b)] for a, b in _PAIRS if {a, b} <= {*errors}]
    pairs = table(["pair, MSE at 10%", *PAIRED], rows)
    return f"{table_by_method(records, figures)}\n\n{pairs}"


_DESIGN = (
    f"the paper's lengths and stages; seed {SEED}; ± is the standard error over repeats, which are "
    "the same rows for all methods; of pairs that of the mean of the differences"
)
PARTS = {
    name: Part(
        partial(_cells, names=names),
        partial(nell_run, brain=name == "brain", methods=METHODS), _blocks, _DESIGN,
    )
    for name, names in {
        "nell": [name for name in METHODS if name not in _LONG], "brain": [*METHODS],
    }.items()
}  # fmt: skip


if __name__ == "__main__":
    run_page(__doc__, "votes_paper", PARTS, set(PARTS), "votes-paper")
