"""Methods and their settings as text: what is read, what is refused, and where it is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import UsageError
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
