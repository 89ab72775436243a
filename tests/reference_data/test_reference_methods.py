"""Who learns from reference data, and what the answers say of it."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.data.inputs import reference_of
from fewlabels.errors import UsageError
from fewlabels.methods.registry import METHODS, resolve
from fewlabels.models import LearnedEnsemble, TemperedEnsemble
from worlds import world

TARGET = world(200, labeled=20).predictions()
REFERENCE = world(300, labeled=250, seed=1).predictions()


@pytest.mark.parametrize("kind", ["several", "one", "votes", "scores"])
def test_auto_with_a_reference_is_the_learned_ensemble(kind: str) -> None:
    votes = {"votes": TARGET.hard, "labels": TARGET.labels, "models": TARGET.models}
    scores = {"scores": np.log(TARGET.probabilities[:, :, 1]), "labels": TARGET.labels}
    target = {
        "several": TARGET,
        "one": TARGET.select_models(["a"]),
        "votes": fl.Predictions(**votes),
        "scores": fl.Predictions(**scores, models=TARGET.models),
    }[kind]
    reference = reference_of(REFERENCE, target)
    name, model = resolve("auto", target, reference)
    assert name == "learned-ensemble"
    assert isinstance(model, LearnedEnsemble)
    assert model.reference is reference
    assert kind != "one" or resolve("auto", target)[0] != name


@pytest.mark.parametrize("name", sorted(METHODS))
def test_methods_that_learn_nothing_from_a_reference_say_which_do(name: str) -> None:
    if name == "learned-ensemble":
        assert fl.estimate(TARGET, name, "accuracy", reference=REFERENCE).reference is not None
        return
    with pytest.raises(UsageError, match=r"leave `reference` out, or use auto, learned-ensemble$"):
        fl.estimate(TARGET, name, "accuracy", reference=REFERENCE)


def test_label_models_hold_the_reference_or_refuse_it() -> None:
    name, model = resolve(LearnedEnsemble(n_draws=20), TARGET, REFERENCE)
    assert name == "learned-ensemble"
    assert isinstance(model, LearnedEnsemble)
    assert (model.n_draws, model.reference) == (20, REFERENCE)
    assert "Predictions" not in repr(model)
    with pytest.raises(UsageError, match="'tempered-ensemble' learns nothing from reference data"):
        fl.estimate(TARGET, TemperedEnsemble(), reference=REFERENCE)
    with pytest.raises(UsageError, match="labeled items"):
        LearnedEnsemble(reference=world(20, labeled=0).predictions())


def test_other_uses_are_refused() -> None:
    with pytest.raises(UsageError, match="`shift` and `reference`"):
        fl.estimate(TARGET, shift="label", reference=REFERENCE)
    counted = world(200, labeled=200).predictions(multiplicity=np.full(200, 2))
    with pytest.raises(UsageError, match=r"`reference`.*multiplicity"):
        fl.estimate(TARGET, reference=counted)


def test_estimates_say_how_much_reference_data_there_is() -> None:
    few = world(8, labeled=8).predictions().select_models(["c", "a"])
    found = fl.estimate(TARGET, metrics="accuracy", reference=few)
    assert found.to_dict()["reference"] == {"n_items": 8, "models": ["a", "c"]}
    assert any("reference: only 8 labeled items" in said for said in found.warnings)
    assert fl.estimate(TARGET, metrics="accuracy").to_dict()["reference"] is None


def test_comparisons_learn_from_a_reference_too() -> None:
    found = fl.compare(TARGET, "accuracy", reference=REFERENCE)
    assert found.estimates.method == "learned-ensemble"
    assert found.to_dict()["reference"] == {"n_items": 250, "models": ["a", "b", "c"]}
    with pytest.raises(UsageError, match="'labeled' learns nothing"):
        fl.compare(TARGET, method="labeled", reference=REFERENCE)
