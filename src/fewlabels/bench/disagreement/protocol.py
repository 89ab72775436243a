"""What the benchmark of disagreement varies, and how its methods are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fewlabels.bench.protocol import Protocol
from fewlabels.errors import UsageError, listed, quoted, unknown

NAME = "disagreement"

ONE_NUMBER = "one-number"
"""The share of pairs of labels that differ, of all validation items, for every item."""

SCALINGS = ("raw", "temperature", "vector", "matrix")
"""Maps of the probabilities, fitted to the labels of the validation items."""

CONCENTRATIONS = ("constant", "logits", "features")
"""What the concentration of alpha-calibration depends on."""

_ALPHA = "+alpha-"

METHODS = (
    ONE_NUMBER,
    *SCALINGS,
    *(f"{scaling}{_ALPHA}{kind}" for scaling in ("raw", "temperature") for kind in CONCENTRATIONS),
)

LOSSES = ("accuracy", "L", "EL", "CL", "CE", "EL_plugin", "CL_plugin")
"""Of the probabilities, which an alpha-calibration leaves as they are."""

DISAGREEMENT = ("L_disagreement", "CL_disagreement", "CE_disagreement")

UPDATES = ("prior_EL", "posterior_EL")
"""Before and after one label of an expert, on the other labels of the item."""

BIN = "bin"
RELIABILITY = ("predicted_disagreement", "observed_disagreement", "share")
"""Of the items in a bin of the predicted disagreement, group `bin=<number>`."""

METRICS = (*LOSSES, *DISAGREEMENT, *UPDATES, *RELIABILITY)

BINS = 15

PROTOCOL = Protocol(
    name=NAME,
    title="Expert disagreement, and distance to label distributions",
    source="Mimori et al. 2021, Tables 1, 2, 4 and 5 and the first half of Figure 4",
    methods=METHODS,
    metrics=METRICS,
    n_labeled=(2, 5),
    n_unlabeled=(0,),
    runs=5,
    sampler="uniform",
    curve_runs=0,
    tables=(),
)
"""Its `n_labeled` are labels per validation item."""

OPTIONS: Mapping[str, str] = {
    "runs": "runs", "methods": "methods", "seed": "seed", "labels_per_item": "n_labeled",
}  # fmt: skip
"""What may be asked for -> field of the protocol."""


@dataclass(frozen=True)
class Method:
    """A map of the probabilities, and what the concentration depends on; "" where there is none.

    Without either it is `ONE_NUMBER`, which looks at no classifier.
    """

    scaling: str
    concentration: str


def method_of(name: str) -> Method:
    """A method by its name, `<scaling>` or `<scaling>+alpha-<concentration>`.

    Raises
    ------
    UsageError
        If it is not one.

    Examples
    --------
    >>> method_of("vector+alpha-logits")
    Method(scaling='vector', concentration='logits')
    """
    if name == ONE_NUMBER:
        return Method("", "")
    scaling, plus, kind = name.partition(_ALPHA)
    known = [*METHODS, *(f"{s}{_ALPHA}{k}" for s in SCALINGS for k in CONCENTRATIONS)]
    if scaling not in SCALINGS or (plus and kind not in CONCENTRATIONS):
        raise UsageError(unknown("method", name, tuple(dict.fromkeys(known))))
    return Method(scaling, kind)


def asked(options: Mapping[str, Any]) -> tuple[Protocol, dict[str, Any]]:
    """The protocol with these options, and those of its fields that were asked for.

    Raises
    ------
    UsageError
        If an option has no use here, or a value is not of its kind.
    """
    foreign = [name for name in options if name not in OPTIONS]
    if foreign:
        raise UsageError(
            f"`{foreign[0]}` has no use in protocol {quoted(NAME)}: leave it out; its options are "
            f"{listed(f'`{name}`' for name in OPTIONS)}"
        )
    given = {OPTIONS[name]: value for name, value in options.items()}
    try:
        protocol = PROTOCOL.with_options(**given)
    except UsageError as error:
        # It goes by its own fields.
        raise UsageError(str(error).replace("`n_labeled`", "`labels_per_item`")) from None
    for method in protocol.methods:
        method_of(method)
    return protocol, {field: getattr(protocol, field) for field in given}
