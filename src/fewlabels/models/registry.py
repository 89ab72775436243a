"""The one list of methods: a new one is a file beside this and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fewlabels.errors import UsageError
from fewlabels.models.base import LabelModel
from fewlabels.models.ensemble import Ensemble
from fewlabels.models.labeled import Labeled
from fewlabels.models.ssme_kde import SSMEKDE
from fewlabels.models.tempered_ensemble import TemperedEnsemble
from fewlabels.predictions import Predictions
from fewlabels.wording import unknown


@dataclass(frozen=True)
class Method:
    """A method's name, how to make it, and what people should know before they use it.

    `exempt` maps a property that the contract tests hold every method to ("items",
    "classes", "simplex", "clamped") to the reason why this one lacks it; `diagnostics` says in
    words what its diagnostics mean.
    """

    name: str
    make: Callable[[], LabelModel]
    summary: str
    how: str
    assumes: tuple[str, ...]
    fails_when: tuple[str, ...]
    source: str
    diagnostics: Mapping[str, str] = field(default_factory=dict)
    exempt: Mapping[str, str] = field(default_factory=dict)


_ALL = (
    Method(
        "tempered-ensemble",
        TemperedEnsemble,
        "the averaged classifier, recalibrated by the labels under a sceptical prior",
        "The classifiers' probabilities are averaged. A few coefficients (how much to trust the "
        "average, how much each classifier's deviation from it) are learned from the labels, "
        "starting from the belief that the average is nearly calibrated. Every item then gets a "
        "probability for each class, and every metric is computed from those.",
        (
            "labeled items are a random sample of all items",
            "items of equal scores have equal class probabilities, whether labeled or not",
            "the averaged classifier is roughly calibrated, until labels say otherwise",
        ),
        (
            "all classifiers share the same mistakes and there are few labels",
            "the classifiers together are far from calibrated and labels are fewer than about 20",
            "labeled items were picked for being hard, or easy",
        ),
        "Bayesian tempered ensemble: fewlabels documentation, after Shanmugam et al. (2025)",
        diagnostics={
            "slope": "whether the averaged classifier is sharpened (above 1) or softened (below 1)",
            "slope_sd": "how uncertain that slope is",
            "log_pool_scale": "by how much the mean of the log probabilities is scaled to be as "
            "confident as the mean of the probabilities",
            "component_weights": "how far the labels favour each of the five priors, from the most "
            "trusting to the least",
            "parameter_draws": "how many draws of the coefficients the estimates average over",
        },
    ),
    Method(
        "ssme-kde",
        SSMEKDE,
        "semi-supervised mixture of kernel densities (SSME, 2025)",
        "For each class the density of all classifiers' scores is estimated by kernels; EM "
        "alternates between the items' class probabilities and these densities. Known labels stay.",
        (
            "labeled items are a random sample of all items",
            "items near each other in score space tend to share their class",
        ),
        (
            "kernels are narrower than the distance between items (see self-share): EM then keeps "
            "its random start, and the estimate equals the averaged classifier",
            "the averaged classifier, which starts EM, is far from calibrated",
        ),
        "Shanmugam, Sadhuka, Raghavan, Guttag, Berger, Pierson (NeurIPS 2025)",
        diagnostics={
            "bandwidth": "width of the kernels, per classifier (and class beyond two)",
            "self_share": "share of an item's density that is its own kernel (median); near 1, EM "
            "cannot learn from the unlabeled items",
            "effective_neighbours": "how many items an item's density effectively averages over",
            "epochs": "EM steps taken",
            "last_change": "mean change of the class probabilities in the last step",
            "support_points": "items that carry kernels",
            "bandwidths_not_found": "dimensions where the bandwidth rule had no solution",
        },
        exempt={"classes": "log-ratios have a reference class, on which a product kernel depends"},
    ),
    Method(
        "ensemble",
        Ensemble,
        "the averaged classifier, taken at its word",
        "The classifiers' probabilities are averaged and taken as the truth about every item "
        "without a label.",
        ("the averaged classifier is calibrated",),
        ("it is not: labels do not correct it",),
        "baseline in Shanmugam et al. (2025)",
    ),
    Method(
        "labeled",
        Labeled,
        "the labeled items alone",
        "Every metric is computed on the labeled items only. The interval comes from a Bayesian "
        "bootstrap with one pseudo-item of unknown label, so that it does not collapse when all "
        "labels agree.",
        ("labeled items are a random sample of all items",),
        ("there are few of them: intervals are wide, and metrics of bins (ECE) biased",),
        "Bayesian bootstrap: Rubin (1981); pseudo-item: a Dirichlet process of mass 1",
        exempt={
            "simplex": "its marginals of unlabeled items are class frequencies that no metric uses"
        },
    ),
)

METHODS: Mapping[str, Method] = MappingProxyType({m.name: m for m in _ALL})
"""Every method by its name."""


def resolve(method: str | LabelModel, predictions: Predictions) -> tuple[str, LabelModel]:
    """Name and label model of what was asked for; "auto" looks at the predictions.

    Raises
    ------
    UsageError
        If the name is unknown.
    """
    if isinstance(method, LabelModel):
        known = [m.name for m in _ALL if m.make is type(method)]
        return (known[0] if known else type(method).__name__), method
    if method == "auto":
        method = "tempered-ensemble" if predictions.has_probabilities.any() else "labeled"
    if not isinstance(method, str) or method not in METHODS:
        raise UsageError(unknown("method", method, ["auto", *METHODS]))
    return method, METHODS[method].make()
