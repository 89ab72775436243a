"""The methods by name: properties, assumptions and failures (methods.toml), and how to make one."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

from fewlabels.errors import UsageError, listed, unknown
from fewlabels.methods.base import LabelModel
from fewlabels.predictions import Predictions


@dataclass(frozen=True)
class Method:
    """A method's name, its label model, and what people should know before they use it.

    `model` names the class, from `fewlabels.methods` on, which is imported when it is asked for.
    `exempt` maps a property that the contract tests hold every method to ("items",
    "classes", "simplex", "clamped") to the reason why this one lacks it; `diagnostics` says in
    words what its diagnostics mean. `serves` says whether metrics that are not means over items
    are defined; `learns_from`, what of a classifier it uses; `needs`, without what of the data
    there is nothing to be had but an error. `chosen_by_score` says whether the items to label may
    be picked by their scores instead of at random, and why; `counts_rows`, whether it counts how
    many items a row stands for (`Predictions.multiplicity`). `streams` says what becomes of rows
    that do not fit into memory: the fitted model applies to any "rows", or all comes from the
    labeled ones and a "sample" of the others. `guarded` says whether answers move to what labels
    say where these speak against them (`evaluation/guard.py`): so it is for what "auto" chooses; a
    paper's method keeps its own. `frequencies` says what class frequencies rest on, which label
    shift asks (`shifts/label_shift.py`): the "labels"; all "items", labeled or not; the
    "classifiers" as they are; "none" where there is no P(class | scores) to adjust.
    """

    name: str
    model: str
    summary: str
    how: str
    assumes: tuple[str, ...]
    fails_when: tuple[str, ...]
    source: str
    diagnostics: Mapping[str, str] = field(default_factory=dict)
    serves: Literal["all metrics", "means"] = "all metrics"
    learns_from: Literal["probabilities", "hard predictions", "scores", "everything"] = (
        "probabilities"
    )
    needs: frozenset[Literal["labels", "two classes"]] = frozenset()
    chosen_by_score: str = "no: it takes the labeled items for a random sample"
    counts_rows: bool = False
    streams: Literal["rows", "sample"] = "rows"
    guarded: bool = False
    frequencies: Literal["labels", "items", "classifiers", "none"] = "labels"
    exempt: Mapping[str, str] = field(default_factory=dict)

    @property
    def make(self) -> type[LabelModel]:
        """The class of its label model."""
        module, _, name = self.model.rpartition(".")
        made: type[LabelModel] = getattr(
            importlib.import_module(f"fewlabels.methods.{module}"), name
        )
        return made


def methods_of(text: str) -> dict[str, Method]:
    """Methods by name, in the order of methods.toml; an entry inherits from its `like`."""
    entries: dict[str, dict[str, Any]] = {}
    for name, entry in tomllib.loads(text).items():
        entries[name] = entries[entry.pop("like")] | entry if "like" in entry else entry
    kinds = {"assumes": tuple, "fails_when": tuple, "needs": frozenset}
    return {
        name: Method(name, **{k: kinds[k](v) if k in kinds else v for k, v in values.items()})
        for name, values in entries.items()
    }


METHODS: Mapping[str, Method] = MappingProxyType(
    methods_of(files("fewlabels.methods").joinpath("methods.toml").read_text(encoding="utf-8"))
)
"""Every method by its name."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "ssme": "ssme-kde",
        "ssme-m": "ssme-kde-marginal",
        "ssme-kde-m": "ssme-kde-marginal",
        "ssme-nf": "ssme-flow",
        "pseudo-labeled": "pseudo-label",
        "gibbs-svm": "crowd-svm",
    }
)
"""Names that the papers give to methods that have another here, in lower case."""

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "cpe": "class probability estimates are the classifiers' probabilities: `fewlabels "
        "annotations FILE` evaluates them against the labels of several people, `fewlabels "
        "calibrate FILE --method temperature --save MODEL.json` calibrates them",
        "dpe": "disagreement probability estimates come from `fewlabels calibrate FILE --method "
        "alpha --save MODEL.json`; `fewlabels annotations FILE --calibration MODEL.json` "
        "evaluates them",
    }
)
"""The same of what the papers name and is no label model: where it is."""

CHOOSING = frozenset({"active-testing", "active-surrogate"})
"""Methods that ask for labels of their own choice, which are no random sample."""

AUTO = (
    "what the data allow: learned-ensemble; monotone-curves for the scores of one classifier, "
    "vote-selection for votes without a label, or of many annotators, dawid-skene of very many"
)
"""Which of them "auto" is."""

MOST_SAMPLED = 20_000
"""With more annotators vote-selection, which fits several models repeatedly, would take many
minutes; dawid-skene fits one."""


def named(name: object, names: Iterable[str]) -> str:
    """The one of these names that a reader of the papers means: in any case, or an alias.

    Raises
    ------
    UsageError
        If there is none; of what is no method it says where that is.
    """
    by_case = {each.casefold(): each for each in names}
    typed = name.casefold() if isinstance(name, str) else ""
    found = by_case.get(ALIASES.get(typed, typed))
    if found is None and typed in ELSEWHERE:
        raise UsageError(f"{name} is no method; {ELSEWHERE[typed]}")
    if found is None:
        raise UsageError(unknown("method", name, by_case.values()))
    return found


def resolve(
    method: str | LabelModel, predictions: Predictions, reference: Predictions | None = None
) -> tuple[str, LabelModel]:
    """Name and label model of what was asked for; "auto" looks at the predictions.

    Parameters
    ----------
    reference
        Labeled items from elsewhere, which the label model then holds; with them "auto" is
        `learned-ensemble`, whatever the predictions.

    Raises
    ------
    UsageError
        If the name is unknown, or the method learns nothing from a reference.
    """
    if isinstance(method, LabelModel):
        kind = f"{type(method).__module__}.{type(method).__qualname__}"
        names = [m.name for m in METHODS.values() if f"fewlabels.methods.{m.model}" == kind]
        name = names[0] if names else type(method).__name__
        return name, _with_reference(method, name, reference)
    method = named(method, ["auto", *METHODS])
    check_reference(method, reference)
    if method == "auto":
        method = _automatic(predictions) if reference is None else "learned-ensemble"
    return method, _with_reference(METHODS[method].make(), method, reference)


def check_reference(method: Any, reference: object) -> None:
    """Refuse a reference if the method, by its name, learns nothing from it."""
    registered = METHODS.get(method) if isinstance(method, str) else None
    if reference is not None and registered is not None:
        _with_reference(registered.make(), registered.name, reference)


def _takes_reference(model: LabelModel) -> bool:
    """Whether a label model has the field that holds a reference."""
    return is_dataclass(model) and any(field.name == "reference" for field in fields(model))


def _with_reference(model: LabelModel, name: str, reference: object) -> LabelModel:
    """The label model with the reference, if there is one."""
    if reference is None:
        return model
    if not _takes_reference(model):
        able = [m.name for m in METHODS.values() if _takes_reference(m.make())]
        raise UsageError(
            f"method {name!r} learns nothing from reference data; leave `reference` out, or use "
            f"{listed(['auto', *able])}"
        )
    return replace(model, reference=reference)  # type: ignore[type-var]


def _automatic(predictions: Predictions) -> str:
    """What the data allow: one mixture for all, curves for one classifier, a model of votes."""
    votes, ranks = predictions.gives("hard"), predictions.gives("ranking")
    informants = int((votes | ranks).sum())
    labeled = predictions.n_labeled or predictions.n_annotated
    several = predictions.multiplicity is not None
    very_many = predictions.n_models > MOST_SAMPLED and not ranks.any()
    votes_alone = "dawid-skene" if very_many else "vote-selection"
    if predictions.is_sparse or very_many:  # a belief for each of a thousand is too many
        return votes_alone
    if ranks.any():
        alone = informants == 1 and predictions.n_classes == 2
        return "monotone-curves" if alone else "learned-ensemble"
    # Without a label only votes that agree tell how often voters err.
    if not labeled:
        return votes_alone
    return ("labeled" if informants < 3 else votes_alone) if several else "learned-ensemble"
