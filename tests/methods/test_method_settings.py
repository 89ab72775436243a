"""Methods and their settings as text: what is read, what is refused, and where it is said."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import UsageError
from fewlabels.methods.registry import ALIASES
from fewlabels.methods.settings import (
    canonical,
    changed_settings,
    make,
    model_of,
    settings_of,
    shown,
    split_methods,
)
from fewlabels.models import BEE, METHODS, SSMEKDE, ConfusionBEE, SSMEKDEMarginal


def test_methods_with_settings() -> None:
    text = "labeled, ssme-kde[ leave_one_out=true,bandwidth = 0.5 ],labeled"
    assert split_methods(text) == ["labeled", "ssme-kde[ leave_one_out=true,bandwidth = 0.5 ]"]
    spelled = canonical(split_methods(text)[1])
    assert spelled == "ssme-kde[bandwidth=0.5,leave_one_out=true]"
    assert make(spelled) == SSMEKDE(bandwidth=0.5, leave_one_out=True)
    assert make("ssme-kde[compat=official]") == SSMEKDE(compat="official")
    assert canonical("ssme-kde[]") == "ssme-kde"
    # As the papers call them.
    assert canonical("SSME-KDE-M[epochs=3]") == "ssme-kde-marginal[epochs=3]"
    assert canonical("Dawid-Skene") == "dawid-skene"
    assert set(ALIASES.values()) < set(METHODS)
    # Commas within a value, and settings of a model that a model holds.
    assert make("confusion-bee[error_prior=2,8,chains=1]") == ConfusionBEE(
        error_prior=(2, 8), chains=1
    )
    held = SSMEKDEMarginal(SSMEKDE(bandwidth=(0.1, 0.2), epochs=None))
    assert make("ssme-kde-marginal[bandwidth=.1,.2,epochs=none]") == held


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ssme-kd", r"unknown method 'ssme-kd'; did you mean 'ssme-kde'\?"),
        ("ssme-kde[bandwith=1]", r"unknown setting 'bandwith'; did you mean 'bandwidth'\?"),
        ("ssme-kde[bandwidth]", "'bandwidth' must be SETTING=VALUE"),
        ("ssme-kde[bandwidth=wide]", "`bandwidth` must be"),
        ("ssme-kde[leave_one_out=3]", "leave_one_out must be true or false; got '3'"),
        ("ssme-kde[replicates=few]", "replicates must be a whole number; got 'few'"),
        ("ssme-kde[epochs=2.5]", "epochs must be a whole number or none; got '2.5'"),
        ("ssme-kde[epochs=-1]", "`epochs` must be a whole number"),
        ("ssme-kde[epochs=1,epochs=2]", "'epochs' is set twice"),
        ("ssme-kde[unlabeled_weight=nan]", "unlabeled_weight must be a number; got 'nan'"),
        ("ssme-kde[replicates=99999999999]", r"whole numbers to 10,000,000.*got '99999999999'"),
        ("ssme-flow[noise=1e300]", r"noise must be a number \(.* between 1e-30 and 1e\+30\)"),
        ("ssme-kde[init=soft,draw]", "init must be draw or soft; got 'soft,draw'"),
        ("bee[error_prior=1]", "error_prior must be two numbers or learned; got '1'"),
        ("bee[constraints=x]", "unknown setting 'constraints'"),
        ("labeled[x=1]", "unknown setting 'x'; there are none"),
        ("ssme-kde]", r"a method is NAME or NAME\[SETTING=VALUE,..\]"),
        ("active-testing[budget=3]", "unknown setting 'budget'"),
        ("DPE", "DPE is no method; disagreement .* `fewlabels calibrate FILE --method alpha"),
        ("cpe", "cpe is no method; class probability .* `fewlabels annotations FILE`"),
    ],
)
def test_methods_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        canonical(text)


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_is_explained_and_its_default_can_be_typed(name: str) -> None:
    for setting in settings_of(name).values():
        assert setting.meaning, setting.name
        assert "As in" not in setting.meaning
        model = model_of(name, [f"{setting.name}={shown(setting.default)}"])
        assert model == METHODS[name].make()
        assert changed_settings(name, model) == {}


def test_a_name_alone_stays_a_name() -> None:
    assert model_of("auto") == "auto"
    assert model_of("ssme-kde") == "ssme-kde"
    with pytest.raises(UsageError, match="method 'auto' has no settings: it chooses a method"):
        model_of("auto", ["epochs=3"])


def test_results_say_what_was_changed() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=80)
    scores = 1 / (1 + np.exp(-rng.normal(2 * truth[:, None] - 1, 1.0, (80, 2))))
    predictions = fl.Predictions(scores, np.where(np.arange(80) < 30, truth, -1))
    changed = model_of("bayesian-calibration", ["n_draws=50", "proposals=1000"])
    said = {"settings": {"n_draws": 50}}
    answers = (
        fl.estimate(predictions, changed, "accuracy").to_dict(),
        fl.compare(predictions, "accuracy", method=changed).to_dict(),
        fl.curve(predictions, "model0", method=changed).report(),
        fl.shift(predictions, method=changed).to_dict(),
    )
    for answer in answers:
        assert answer["method"] == "bayesian-calibration"
        assert {k: v for k, v in answer["diagnostics"].items() if k == "settings"} == said
    plain = fl.estimate(predictions, "bayesian-calibration", "accuracy")
    assert "settings" not in plain.diagnostics
    assert changed_settings("bee", replace(BEE(), chains=1)) == {"chains": 1}


WHOLE = "a whole number, at least 1"
ABOVE = "a number above 0"
# Model -> what is asked of a setting, and values that are not so.
MUST_BE: dict[str, list[tuple[str, dict[str, object]]]] = {
    "ActiveSurrogate": [(WHOLE, {"rounds": 0, "budget": 0}), ("", {"oracle": 3})],
    "ActiveTesting": [(WHOLE, {"budget": 0}), ("", {"oracle": 3, "uniform_share": 0})],
    "AgreementRates": [
        ("one of optimisation, closed-form", {"solver": "newton"}),
        (WHOLE, {"order": 0, "replicates": 0}),
    ],
    "AutoEval": [("", {"proxy": "mine"})],
    "BayesianCalibration": [
        ("a positive number", {"slope_sd": 0, "offset_sd": float("inf")}), (WHOLE, {"n_draws": 0}),
    ],
    "CrowdSVM": [
        ("one of gibbs, gradient-descent", {"solver": "em"}), (WHOLE, {"draws": 0}),
        (ABOVE, {"cost": 0.0, "margin": -1, "weight_variance": 0, "confusion_prior": "x"}),
    ],
    "DawidSkene": [
        (WHOLE, {"iterations": 0, "replicates": 0}), ("one of confusion, one", {"rates": "two"}),
        ("a finite number of at least 0", {"tolerance": -1.0, "smoothing": -1.0}),
        ("one of shares, majority", {"start": "votes"}),
    ],
    "MajorityVote": [(WHOLE, {"n_draws": 0})],
    "PseudoLabel": [
        (WHOLE, {"replicates": 0}), ("'log-ratios' or 'probabilities'", {"features": "votes"}),
    ],
    "SPE": [
        ("one of evidence, likelihood, average", {"selection": "aic"}),
        ("one of logit, probability", {"scale": "log"}), ("one of left, unit", {"truncation": "x"}),
        ("one of diagonal, full", {"sampler": "nuts"}), (WHOLE, {"components": 0, "n_draws": 1.5}),
    ],
    "SSMEFlow": [
        (WHOLE, {"n_couplings": 0, "hidden": 0}), (ABOVE, {"learning_rate": 0.0}),
        ("a number, 0 or larger", {"noise": np.nan, "unlabeled_weight": -1.0}),
        ("at least 0 and below 1", {"validation_share": 1.0}),
        ("'float32' or 'float64'", {"dtype": "half"}),
    ],
    "SSMEKDE": [
        ("'draw' or 'soft'", {"init": "random"}), ("None or 'official'", {"compat": "paper"}),
        (WHOLE, {"epochs": 0}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", MUST_BE)
def test_settings_say_what_they_must_be(name: str) -> None:
    for said, wrong in MUST_BE[name]:
        for setting, value in wrong.items():
            wanted = f"`{setting}` must be {said}" + (f"; got {value!r}" if said else "")
            with pytest.raises(UsageError, match=re.escape(wanted)):
                getattr(fl.models, name)(**{setting: value})


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("LearnedEnsemble", {"left_out": "penguins"}, "family"),
        ("SPE", {"families": ()}, "`families` is empty; name at least one"),
        ("SPE", {"families": ("norml",)}, "unknown family 'norml'; did you mean 'normal'"),
        ("SSMEKDE", {"bandwidth": "silverman"}, "`bandwidth` must be 'isj'"),
        ("CBEE", {"inference": "variational"}, "share no rates"),
        ("BEE", {"inference": "fast"}, "inference"),
    ],
)
def test_settings_that_are_refused(model: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        getattr(fl.models, model)(**settings)
