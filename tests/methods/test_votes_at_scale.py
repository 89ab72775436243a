"""Votes of many annotators: the sparse form answers as the dense one, and variational inference."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import fewlabels as fl
from fewlabels import predictions as nouns
from fewlabels.methods import registry
from fewlabels.methods.bee import bee, selection
from fewlabels.methods.bee.variational import draw_variational, n_draws
from fewlabels.methods.votes import dependence

SIZE = (400, 40, 3)


def long_votes(seed=0, per_item=5):
    """Votes (E,) of good annotators: item, annotator, class; and the true classes (n,)."""
    rng = np.random.default_rng(seed)
    n, m, k = SIZE
    truth = rng.integers(k, size=n)
    item = np.repeat(np.arange(n), per_item)
    who = np.concatenate([rng.choice(m, per_item, replace=False) for _ in range(n)])
    wrong = rng.random(len(item)) < np.linspace(0.05, 0.4, m)[who]
    said = np.where(wrong, (truth[item] + rng.integers(1, k, len(item))) % k, truth[item])
    return item, who, said, truth


@pytest.fixture
def both(monkeypatch):
    """The same votes in the dense and in the sparse form, with the same randomness."""

    def make(**options):
        item, who, said, truth = long_votes()
        votes = scipy.sparse.csr_matrix((said + 1, (item, who)), SIZE[:2])
        known = np.where(np.arange(SIZE[0]) < 30, truth, -1)
        labels = known if options.pop("labeled", False) else None
        dense = fl.Predictions(votes=votes, labels=labels, classes=list("abc"), **options)
        monkeypatch.setattr(nouns, "MOST_CELLS", 0)
        sparse = fl.Predictions(votes=votes, labels=labels, classes=list("abc"), **options)
        sparse.__dict__["identity"] = dense.identity
        return dense, sparse

    return make


@pytest.mark.few(2)
@pytest.mark.product
@pytest.mark.parametrize("method", ["dawid-skene", "majority-vote", "bee", "labeled"])
@pytest.mark.parametrize("estimand", ["population", "sample"])
def test_sparse_votes_answer_as_dense_ones(both, method, estimand):
    dense, sparse = both(
        labeled=True,
        groups={"half": np.arange(SIZE[0]) % 2},
        repeated_votes=np.array([[0, 0, 1], [3, 2, 0]]),
    )
    assert sparse.is_sparse
    assert not dense.is_sparse
    model = fl.models.BEE(burn_in=20, sweeps=40, thin=2) if method == "bee" else method
    asked = {"method": model, "by": "half", "metrics": ["error_rate", "f1"], "estimand": estimand}
    one, other = (fl.estimate(table, **asked) for table in (dense, sparse))
    numbers = [[(r.value, r.low, r.high) for r in found.rows] for found in (one, other)]
    assert np.allclose(*numbers, atol=1e-12, equal_nan=True)
    assert [r.status for r in one.rows] == [r.status for r in other.rows]
    assert one.warnings == other.warnings


@pytest.mark.slow
@pytest.mark.slow_with("majority-vote")
@pytest.mark.parametrize("method", ["dawid-skene", "majority-vote"])
def test_many_voters_have_the_value_that_each_has(method):
    """Of a population all go together, of these items each by itself: a mean is the same."""
    rng = np.random.default_rng(0)
    truth, accuracy = rng.integers(2, size=200), rng.uniform(0.55, 0.95, 300)
    votes = np.where(rng.random((200, 300)) < accuracy, truth[:, None], 1 - truth[:, None])
    table = fl.Predictions(votes=np.where(rng.random((200, 300)) < 0.05, votes, -1))
    together, apart = (
        [r.value for r in fl.estimate(table, method, "accuracy", estimand=estimand).rows]
        for estimand in ("population", "sample")
    )
    assert np.allclose(together, apart, atol=1e-12)


def test_sparse_votes_are_not_made_dense(both):
    _, sparse = both()
    for method in ("dawid-skene", "majority-vote", fl.models.ConfusionBEE(inference="variational")):
        fl.estimate(sparse, method=method).summary()
    assert not {"hard", "votes", "has_hard"} & sparse.__dict__.keys()


def test_labels_beside_votes_of_many_annotators_need_no_dense_table(both):
    _, sparse = both(labeled=True)
    assert fl.models.resolve("auto", sparse)[0] == "vote-selection"
    assert fl.models.resolve("auto", sparse.select_models(sparse.models[:9]))[0] == "vote-selection"


def test_some_items_and_annotators_of_sparse_votes(both):
    dense, sparse = both()
    rows, names = np.array([5, 3, 300]), ["model7", "model1", "model2"]
    one, other = (t.take(rows).select_models(names) for t in (dense, sparse))
    assert np.array_equal(one.hard, other.hard)
    assert (one.vote_counts != other.vote_counts).nnz == 0
    for j in range(3):
        assert np.array_equal(one.hard_of(np.arange(3), j), other.hard_of(np.arange(3), j))
        assert np.array_equal(one.given_by("hard", j), other.given_by("hard", j))
    turned = [t.with_positive("b").hard for t in (dense, sparse)]
    assert np.array_equal(*turned)


def test_what_sparse_votes_must_be():
    with pytest.raises(fl.InputError, match="class \\+ 1"):
        fl.Predictions(votes=scipy.sparse.csr_matrix(np.array([[0.5, 1.0]])))
    huge = scipy.sparse.csr_matrix(([1, 2], ([0, 1], [0, 1])), (10**6, 10**5))
    table = fl.Predictions(votes=huge)
    with pytest.raises(fl.InputError, match="too many for what takes a table"):
        _ = table.hard


def test_long_votes_of_a_file_stay_sparse(tmp_path, monkeypatch):
    item, who, said, _ = long_votes()
    lines = [f"i{i},w{j},{'abc'[k]}" for i, j, k in zip(item, who, said, strict=True)]
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(["item,annotator,label", *lines]))
    dense = fl.read_predictions(votes=path)
    monkeypatch.setattr(nouns, "MOST_CELLS", 0)
    sparse = fl.read_predictions(votes=path)
    assert sparse.is_sparse
    assert not dense.is_sparse
    assert sparse.models == dense.models
    assert np.array_equal(sparse.hard, dense.hard)


# --- variational inference, and fewer sweeps --------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("model", [fl.models.BEE, fl.models.ConfusionBEE])
def test_variational_inference_is_near_the_chains(model):
    item, who, said, _truth = long_votes()
    table = fl.Predictions(votes=scipy.sparse.csr_matrix((said + 1, (item, who)), SIZE[:2]))
    chains, quick = (
        model(inference=inference, burn_in=200, sweeps=600).infer(table, 0)
        for inference in ("gibbs", "variational")
    )
    rates = [p.vote_rates.error_rates[:, 0] for p in (chains, quick)]
    assert np.abs(rates[0].mean(axis=0) - rates[1].mean(axis=0)).max() < 0.02
    spread = [r.std(axis=0).mean() for r in rates]
    assert 0.9 < spread[1] / spread[0] < 1.05
    assert np.abs(chains.marginals() - quick.marginals()).mean() < 0.01
    assert any("variational" in w for w in quick.warnings)
    assert not any("variational" in w for w in chains.warnings)
    assert quick.diagnostics["effective_draws"] == 200


def test_variational_inference_with_all_labels_known_is_exact():
    item, who, said, truth = long_votes()
    votes = scipy.sparse.csr_matrix((said + 1, (item, who)), SIZE[:2])
    table = fl.Predictions(votes=votes, labels=truth)
    fitted = fl.models.ConfusionBEE(inference="variational").fit(table, np.random.default_rng(0))
    counts = np.zeros((SIZE[1], SIZE[2], SIZE[2]))
    np.add.at(counts, (who, truth[item], said), 1.0)
    prior = np.full((3, 3), 0.5) + 9.5 * np.eye(3)
    mean = (counts + prior) / (counts + prior).sum(axis=2, keepdims=True)
    found = fitted.draws.rates[:, 0].mean(axis=0)
    assert np.abs(found - mean).max() < 0.06
    assert draw_variational.__defaults__[0] >= 1


def test_many_votes_are_sampled_in_fewer_sweeps_and_more_without_chains(monkeypatch):
    model = fl.models.ConfusionBEE()
    assert model.schedule(50_000, 1000)[0] == model.schedule(10, 10)[0]
    fewer, said = model.schedule(1_000_000, 250_000)
    assert fewer.chains == 4
    assert fewer.burn_in + fewer.sweeps < 300
    assert "effective_draws" in said[0]
    assert fewer.sweeps // fewer.thin * 4 * 250_000 <= bee._RETAINED
    assert fl.models.ConfusionBEE(inference="gibbs").schedule(1_000_000, 10)[0].sweeps == 2000
    item, who, chosen, _ = long_votes()
    table = fl.Predictions(votes=scipy.sparse.csr_matrix((chosen + 1, (item, who)), SIZE[:2]))
    monkeypatch.setattr(bee, "MANY_VOTES", 100)
    found = model.infer(table, 0)
    assert any("for 2,000 votes" in w for w in found.warnings)
    coupled = fl.models.CBEE(burn_in=5, sweeps=10, thin=1).infer(table, 0)
    assert not any("variational" in w for w in coupled.warnings)


# --- bounds ---------------------------------------------------------------------------------------


def votes_of(n, m, k, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    wrong = rng.random((n, m)) < 0.2
    votes = np.where(wrong, rng.integers(k, size=(n, m)), truth[:, None])
    return fl.Predictions(votes=votes, classes=list(range(k)))


@pytest.mark.parametrize(
    ("size", "sweeps"), [((300, 12, 2), 1000), ((200, 129, 2), 176), ((900, 129, 2), 100)]
)
def test_sweeps_of_many_votes_are_fewer(size, sweeps):
    predictions = votes_of(*size)
    candidates = selection._models(predictions, several=False)
    assert {model.sweeps for model in candidates} == {sweeps}
    assert all(model.burn_in == sweeps // 2 for model in candidates)
    visits = size[0] * size[1] + selection._DRAWN * size[1] * size[2] ** 2
    assert sweeps in (100, 1000) or sweeps * visits <= selection._WORK


def test_models_with_more_rates_than_votes_are_not_tried():
    few, many = votes_of(60, 3, 5), votes_of(60, 3, 100)
    assert [m.name for m in selection._models(few, several=False)][1] == "confusion-bee"
    assert [m.name for m in selection._models(many, several=False)] == ["bee"]
    assert [m.name for m in selection._models(many, several=True)] == ["bee", "cbee"]


def test_joint_votes_of_many_classes_are_not_counted(monkeypatch):
    def joined(*_):
        raise AssertionError("too many cells for any gain")

    monkeypatch.setattr(dependence, "_joined", joined)
    predictions = votes_of(60, 5, 40)
    assert dependence.counted_votes(predictions, [None]).groups == ()
    with pytest.raises(AssertionError, match="cells"):
        dependence.counted_votes(votes_of(60, 5, 2), [None])


def test_auto_fits_one_model_of_very_many_annotators(both, monkeypatch):
    dense, sparse = both(labeled=True)
    monkeypatch.setattr(registry, "MOST_SAMPLED", SIZE[1] - 1)
    for table in (dense, sparse):
        assert fl.models.resolve("auto", table)[0] == "dawid-skene"
    monkeypatch.setattr(registry, "MOST_SAMPLED", SIZE[1])
    assert fl.models.resolve("auto", sparse)[0] == "vote-selection"


def test_fits_to_compare_draw_no_more_than_chains_keep():
    assert n_draws(10, 10) == n_draws(10, 10, 800) == 200
    assert n_draws(10, 10, 25) == 50


def test_classifiers_are_looked_up_once(both):
    _, sparse = both()
    rates = fl.models.BEE(inference="variational").infer(sparse, 0).vote_rates
    assert rates.place == {name: j for j, name in enumerate(rates.models)}
