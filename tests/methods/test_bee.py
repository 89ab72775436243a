"""Models of votes: what is particular to them beyond the reference's numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import InputError, UsageError
from fewlabels.methods.bee.gibbs import Run, orient, run_chains
from fewlabels.methods.bee.selection import held_out, log_predictive
from fewlabels.methods.bee.table import Schedule, States, VoteData, VotePrior, VoteTable
from fewlabels.models import (
    BEE,
    CBCC,
    CBEE,
    HCBEE,
    ConfusionBEE,
    ConfusionCBEE,
    ConfusionHCBEE,
    Constraints,
)

FEW = {"burn_in": 200, "sweeps": 1200, "thin": 4, "chains": 2}


def world(
    errors, n=300, missing=0.2, seed=0, n_classes=2, **others
) -> tuple[fl.Predictions, np.ndarray]:
    """Votes with these error rates; wrong votes are any other class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    off = rng.integers(1, n_classes, size=(n, len(errors)))
    wrong = rng.random((n, len(errors))) < errors
    votes = np.where(wrong, (truth[:, None] + off) % n_classes, truth[:, None])
    votes[rng.random(votes.shape) < missing] = -1
    classes = list(range(n_classes))
    return fl.Predictions(votes=votes, classes=classes, **others), truth


class TestConstraints:
    def pinned(
        self, rules: Constraints, votes: dict[str, list[int]], error: float
    ) -> fl.LabelPosterior:
        """Posterior of a single item with error rates and state shares that are all but known."""
        strong = 1e7
        domains = list(votes)
        n = len(domains)
        predictions = fl.Predictions(
            votes=[votes[d] for d in domains],
            domain=domains,
            groups={"item": ["x"] * n},
            classes=[0, 1],
        )
        model = BEE(
            error_prior=(strong * error, strong * (1 - error)),
            class_prior=strong,
            constraints=rules,
            **FEW,
        )
        return model.infer(predictions, 0)

    @pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
    def test_labels_are_those_of_the_joint_states(self, weight):
        """P(state | votes) ~ weight ** (broken rules) times the votes' likelihood."""
        error = 0.3
        votes = {"cat": [1, 1, 0], "dog": [1, 0, 1], "animal": [0, 0, 1], "rock": [1, 0, 0]}
        rules = Constraints(
            exclusive=[["cat", "dog", "rock"]], subsumption=[("cat", "animal")], weight=weight
        )
        states, mass = [], []
        for cat, dog, animal, rock in itertools.product([0, 1], repeat=4):
            broken = max(cat + dog + rock - 1, 0) + (cat and not animal)
            p = 0.0 if (broken and not weight) else weight**broken
            for label, said in zip((cat, dog, animal, rock), votes.values(), strict=True):
                for vote in said:
                    p *= 1 - error if vote == label else error
            states.append((cat, dog, animal, rock))
            mass.append(p)
        exact = np.average(states, axis=0, weights=mass)
        found = self.pinned(rules, votes, error).marginals()[:, 1]
        np.testing.assert_allclose(found, exact, atol=2e-3)

    def test_a_known_label_settles_what_follows_from_it(self):
        predictions = fl.Predictions(
            votes=[[0, 0, 1], [1, 1, 0], [1, 0, 0]],
            labels=[1, -1, -1],
            domain=["cat", "dog", "animal"],
            groups={"phrase": ["x", "x", "x"]},
        )
        rules = Constraints([["cat", "dog"]], [("cat", "animal")], item="phrase")
        found = BEE(constraints=rules, **FEW).infer(predictions, 0).marginals()[:, 1]
        np.testing.assert_array_equal(found, [1, 0, 1])
        model = BEE(constraints=rules, **FEW)
        asked = fl.estimate(predictions, model, "accuracy", estimand="sample")
        assert [row.value for row in asked.rows] == pytest.approx([1 / 3, 0, 2 / 3])

    def test_domains_without_rules_and_missing_rows_stay_as_they_are(self):
        base, _ = world((0.1, 0.2, 0.3), n=120)
        item = np.arange(120) % 40
        domain = np.array(["a", "b", "free"])[np.arange(120) // 40]
        predictions = fl.Predictions(
            votes=base.votes, domain=domain, groups={"item": item.astype(str)}
        )
        rules = Constraints(exclusive=[["a", "b"]])
        tied = BEE(constraints=rules, **FEW).infer(predictions.take(np.arange(10, 120)), 0)
        free = BEE(**FEW).infer(predictions.take(np.arange(10, 120)), 0)
        rows = np.arange(70, 110)
        np.testing.assert_allclose(tied.marginals()[rows], free.marginals()[rows], atol=0.05)
        both = tied.marginals()[:30, 1] + tied.marginals()[30:60, 1]
        assert (np.c_[tied.marginals()[:, 1]] <= 1).all()
        assert (both <= 2).all()
        assert tied.vote_rates.shares.shape[1:] == (3, 2)
        np.testing.assert_allclose(tied.vote_rates.shares.sum(axis=2), 1)

    def test_bad_rules_are_refused_in_one_line(self):
        base, _ = world((0.1, 0.2, 0.3), n=40)
        item = {"item": np.arange(40).astype(str)}
        ab = np.array(["a", "b"])[np.arange(40) % 2]
        rules = Constraints(exclusive=[["a", "b"]])
        with pytest.raises(UsageError, match="domain 'c'"):
            BEE(constraints=Constraints(exclusive=[["a", "c"]])).infer(
                fl.Predictions(votes=base.votes, domain=ab, groups=item), 0
            )
        with pytest.raises(InputError, match="no group 'item'"):
            BEE(constraints=rules).infer(fl.Predictions(votes=base.votes, domain=ab), 0)
        with pytest.raises(InputError, match="rows in domain"):
            BEE(constraints=rules).infer(
                fl.Predictions(votes=base.votes, domain=ab, groups={"item": ["x"] * 40}), 0
            )
        with pytest.raises(InputError, match="two classes"):
            BEE(constraints=rules).infer(
                fl.Predictions(votes=base.votes, domain=ab, groups=item, classes=[0, 1, 2]), 0
            )
        both = np.where(np.arange(40) < 2, 1, -1)
        tied = {"item": (np.arange(40) // 2).astype(str)}
        with pytest.raises(InputError, match="known labels of item '0' break the constraints"):
            BEE(constraints=rules).infer(
                fl.Predictions(votes=base.votes, labels=both, domain=ab, groups=tied), 0
            )
        for wrong in (
            {"weight": -1},
            {"exclusive": ["ab"]},
            {"exclusive": [["a"]]},
            {"subsumption": [("a", "a")]},
            {"subsumption": ["ab"]},
        ):
            with pytest.raises(UsageError):
                Constraints(**wrong)
        with pytest.raises(UsageError, match="`constraints`"):
            BEE(constraints=[["a", "b"]])


class TestSelection:
    @pytest.mark.slow
    def test_asymmetric_errors_need_matrices(self):
        rng = np.random.default_rng(0)
        truth = rng.random(3000) < 0.3
        miss, mistake = np.array([0.5, 0.4, 0.45]), np.array([0.05, 0.1, 0.02])
        chance = np.where(truth[:, None], miss, mistake)
        votes = truth[:, None] ^ (rng.random((3000, 3)) < chance)
        found = fl.estimate(fl.Predictions(votes=votes.astype(int)), metrics="error_rate")
        assert found.method == "vote-selection"
        assert found.diagnostics["chosen"].startswith("confusion")
        assert any("by the likelihood of held-out votes" in w for w in found.warnings)
        assert (
            max(found.diagnostics["held_out"], key=found.diagnostics["held_out"].get)
            == (found.diagnostics["chosen"])
        )

    @pytest.mark.slow
    def test_alike_domains_are_coupled(self):
        base, _ = world((0.05, 0.2, 0.35, 0.4), n=20 * 15, seed=3)
        domain = [f"d{i // 15}" for i in range(300)]
        predictions = fl.Predictions(votes=base.votes, domain=domain)
        model = fl.models.VoteSelection([BEE(**FEW), CBEE(**FEW)])
        assert model.infer(predictions, 0).diagnostics["chosen"] == "cbee"

    def test_every_domain_is_held_out_in_equal_parts(self):
        base, _ = world((0.1, 0.2, 0.3), n=120)
        domain = np.array(["a", "b"])[(np.arange(120) >= 60).astype(int)]
        predictions = fl.Predictions(votes=base.votes, domain=domain)
        parts = held_out(predictions, "folds")
        assert np.sum(parts, axis=0).tolist() == [1] * 120
        assert {int(part[:60].sum()) for part in parts} == {10}
        (split,) = held_out(predictions, "split")
        assert split[:60].sum() == split[60:].sum() == 6

    def test_auto(self):
        three, truth = world((0.1, 0.2, 0.3), n=60)
        two = three.select_models(three.models[:2])
        resolve = fl.models.resolve
        assert resolve("auto", three)[0] == "vote-selection"
        assert resolve("auto", two)[0] == "vote-selection"
        assert resolve("auto", two.with_labels(truth))[0] == "learned-ensemble"
        one = two.select_models(two.models[:1])
        assert resolve("auto", one.with_labels(truth))[0] == "learned-ensemble"

    def test_auto_learns_from_votes_beside_probabilities(self):
        votes = np.array(world((0.1, 0.2, 0.3), n=60)[0].votes)
        p = np.full((60, 3, 2), np.nan)
        p[:, 0] = [0.3, 0.7]
        mixed = fl.Predictions(p, votes=votes)
        assert fl.models.resolve("auto", mixed)[0] == "learned-ensemble"
        p[:, 1] = [0.4, 0.6]
        pooled = fl.estimate(fl.Predictions(p, votes=votes), metrics="accuracy")
        assert pooled.method == "learned-ensemble"
        assert not any("does not learn from" in w for w in pooled.warnings)
        tempered = fl.estimate(fl.Predictions(p, votes=votes), "tempered-ensemble", "accuracy")
        assert any("learned-ensemble learns from all" in w for w in tempered.warnings)

    def test_candidates_of_one_class_are_told_apart(self):
        predictions, _ = world((0.1, 0.2, 0.3), n=60)
        model = fl.models.VoteSelection([BEE(**FEW), BEE(class_prior=5.0, **FEW)])
        assert set(model.infer(predictions, 0).diagnostics["held_out"]) == {"bee (1)", "bee (2)"}

    def test_candidates_are_checked(self):
        with pytest.raises(UsageError, match="candidates"):
            fl.models.VoteSelection([fl.models.DawidSkene()])
        with pytest.raises(UsageError, match="selection"):
            fl.models.VoteSelection(selection="half")


class TestConcentration:
    @pytest.mark.slow
    def test_held_out_and_learned_concentrations_pool_alike_domains(self):
        base, _ = world((0.05, 0.2, 0.35, 0.4), n=12 * 20, seed=1)
        predictions = fl.Predictions(votes=base.votes, domain=[f"d{i // 20}" for i in range(240)])
        few = FEW | {"burn_in": 100, "sweeps": 400}
        for model in (
            CBEE(**few),
            CBEE(concentration="held-out", selection="folds", **few),
            CBEE(concentration="held-out", selection="split", **few),
        ):
            assert model.infer(predictions, 0).diagnostics["clusters"] < 4, model

    @pytest.mark.slow
    def test_both_of_a_franchise(self):
        base, _ = world((0.1, 0.1, 0.3), n=30, seed=1)
        predictions = fl.Predictions(votes=base.votes, domain=["a", "b"] * 15)
        few = {"burn_in": 4, "sweeps": 16, "thin": 4, "chains": 1}
        model = HCBEE(concentration="held-out", top_concentration="held-out", **few)
        chosen = model.with_strengths(predictions, np.random.default_rng(0))
        assert chosen.concentration in (0.1, 1.0, 10.0)
        assert chosen.top_concentration in (0.1, 1.0, 10.0)
        one = HCBEE(concentration=2.0, top_concentration="held-out", **few)
        assert one.with_strengths(predictions, np.random.default_rng(0)).concentration == 2.0

    def test_the_middle_of_the_grid_where_nothing_can_be_held_out(self):
        predictions = fl.Predictions(votes=[[1, 1, 0], [0, 1, 0]], domain=["a", "b"])
        model = CBEE(concentration="held-out", **FEW)
        assert model.with_strengths(predictions, np.random.default_rng(0)).concentration == 1.0

    def test_items_of_no_domain_are_held_out_too(self):
        base, _ = world((0.1, 0.2, 0.3), n=24)
        for domain in (["a", None] * 12, [1.0, np.nan] * 12):
            predictions = fl.Predictions(votes=base.votes, domain=domain)
            parts = held_out(predictions, "folds")
            found = log_predictive(BEE(**FEW), predictions, parts, np.random.default_rng(0))
            assert not np.isnan(found).any()

    @pytest.mark.parametrize("value", ["guess", 0, -1.0, float("nan"), None])
    def test_refused(self, value):
        with pytest.raises(UsageError, match="concentration"):
            CBEE(concentration=value)
        with pytest.raises(UsageError, match="concentration"):
            HCBEE(top_concentration=value)


class TestWhatVotesCannotTell:
    def said(self, predictions: fl.Predictions, model=None) -> str:
        return " ".join((model or BEE(**FEW)).infer(predictions, 0).warnings)

    def test_too_few_classifiers(self):
        base, truth = world((0.1, 0.2), n=100)
        assert "fewer than 3 classifiers vote on the same items" in self.said(base)
        labels = np.where(np.arange(100) < 10, truth, -1)
        assert "fewer than 3" not in self.said(base.with_labels(labels))

    def test_classifiers_that_share_no_items(self):
        base, _ = world((0.1, 0.2, 0.3), n=100, missing=0)
        votes = np.array(base.votes)
        votes[:50, 0] = -1
        votes[50:, 2] = -1
        assert "fewer than 3 classifiers" in self.said(fl.Predictions(votes=votes))

    def test_one_poor_domain_is_named(self):
        base, _ = world((0.1, 0.2, 0.3), n=100, missing=0)
        votes = np.array(base.votes)
        votes[::2, 0] = -1
        predictions = fl.Predictions(votes=votes, domain=["poor", "rich"] * 50)
        assert "on the same items in domain poor" in self.said(predictions)

    def test_a_domain_without_votes(self):
        base, _ = world((0.1, 0.2, 0.3), n=100, missing=0)
        votes = np.array(base.votes)
        votes[::2] = -1
        said = self.said(fl.Predictions(votes=votes, domain=["silent", "heard"] * 50))
        assert "no classifier votes in domain silent" in said

    def test_nothing_is_assumed_where_all_is_known(self):
        base, truth = world((0.1, 0.2, 0.3), n=100)
        posterior = BEE(**FEW).infer(base.with_labels(truth), 0)
        assert posterior.status == "ok"
        assert not posterior.warnings

    def test_votes_that_never_differ(self):
        votes = np.repeat(np.random.default_rng(0).integers(2, size=60)[:, None], 3, axis=1)
        assert "never disagree" in self.said(fl.Predictions(votes=votes))

    def test_a_class_that_nobody_votes_for(self):
        base, _ = world((0.1, 0.2, 0.3), n=60)
        predictions = fl.Predictions(votes=base.votes, classes=["a", "b", "c"])
        assert "ever votes for class c" in self.said(predictions)

    def test_both_sides_of_one_half(self):
        rng = np.random.default_rng(0)
        predictions = fl.Predictions(votes=rng.integers(2, size=(60, 3)))
        assert "cannot tell right from wrong" in self.said(
            predictions, BEE(error_prior=(2, 2), **FEW)
        )

    def test_who_does_not_vote_in_a_domain_has_no_say_and_no_error_rate_there(self):
        rng = np.random.default_rng(0)
        votes = rng.integers(2, size=(120, 8))
        votes[:60, :3] = -1
        votes[60:, 3:] = -1
        domain = np.array(["five", "three"])[np.arange(120) // 60]
        predictions = fl.Predictions(votes=votes, domain=domain)
        posterior = BEE(error_prior=(2, 2), **FEW).infer(predictions, 0)
        said = " ".join(posterior.warnings)
        assert "cannot tell right from wrong in domain five, three" in said
        rates = posterior.diagnostics["error_rate"]
        for name, voters in (("five", range(3, 8)), ("three", range(3))):
            given = [not np.isnan(rate) for rate in rates[name].values()]
            assert given == [j in voters for j in range(8)]
        coupled = CBEE(**FEW).infer(predictions, 0).diagnostics["error_rate"]
        assert not np.isnan(list(coupled["three"].values())).any()


class TestWhichWayRound:
    @pytest.mark.parametrize("prior", [(1, 1), (2, 2)])
    def test_names_are_traded_whatever_sweeps_are_kept(self, prior):
        """A symmetric prior says nothing: both sides are seen, half of the time each."""
        predictions, _ = world((0.15, 0.3, 0.25), n=60, missing=0.0, seed=1)
        for thin in (2, 3, 10):
            model = BEE(error_prior=prior, burn_in=200, sweeps=600 * thin, thin=thin, chains=2)
            found = model.infer(predictions, 0).vote_rates.error_rates[:, 0]
            assert abs((found[:, 0] > 0.5).mean() - 0.5) < 0.1, thin
            np.testing.assert_allclose(found.mean(axis=0), 0.5, atol=0.05)

    @pytest.mark.parametrize(
        "make",
        [BEE, ConfusionBEE, HCBEE, CBEE]
        + [pytest.param(make, marks=pytest.mark.slow) for make in (CBCC, ConfusionHCBEE)],
    )
    def test_one_bad_voice_does_not_turn_the_answer(self, make):
        """Three good classifiers may share one rate, and still outweigh a bad one."""
        for seed in range(2):
            predictions, truth = world((0.1, 0.15, 0.2, 0.9), n=60, missing=0.0, seed=seed)
            posterior = make(**FEW).infer(predictions, seed)
            assert (posterior.marginals().argmax(axis=1) == truth).mean() > 0.8, seed

    @pytest.mark.parametrize("make", [HCBEE, ConfusionHCBEE, CBEE])
    def test_labels_that_are_known_are_not_turned(self, make):
        """Worse than a guess, and known: in a domain that shares their rates it is seen too."""
        base, truth = world((0.8, 0.8, 0.8), n=400, missing=0.0)
        domain = np.where(np.arange(400) < 200, "known", "shares")
        labels = np.where(np.arange(400) < 200, truth, -1)
        predictions = fl.Predictions(votes=base.votes, labels=labels, domain=domain)
        posterior = make(**FEW).infer(predictions, 0)
        assert posterior.vote_rates.error_rates[:, 0].mean() > 0.7

    def test_draws_of_the_mirrored_prior(self):
        """A draw stays with h = q / (q + mirrored q), unit by unit, and takes its domain along."""
        table = VoteTable(
            start=np.arange(3), unit=np.array([0, 2]), vote=np.zeros(2, int), times=np.ones(2),
            items=np.ones(2, int), group=np.array([0, 1]), evidence=np.zeros((2, 2)),
            informs=np.ones(2), free=np.array([True, True]),
            row_of=np.tile(np.arange(2)[:, None], (1, 2)),
        )  # fmt: skip
        prior = VotePrior(np.array([[1.0, 1.0], [1.0, 3.0]]), np.array([[1.0, 3.0]]))
        n = 40_000
        rates = np.tile(np.array([0.6, 0.4]), (n, 4, 1, 1))
        shares = np.tile(np.array([0.3, 0.7]), (n, 2, 1))
        atom = np.tile(np.array([0, 1, 0, 1]), (n, 1))
        orient(table, prior, rates, shares, atom, np.random.default_rng(0))
        # Only units 0 and 2 vote: (2/3)^2 each, and (7/3)^2 of the second domain's shares.
        odds = np.array([4 / 9, 4 / 9 * 49 / 9])
        turned = rates[:, ::2, 0, 0] == 0.4
        np.testing.assert_allclose(1 - turned.mean(axis=0), odds / (1 + odds), atol=0.01)
        np.testing.assert_array_equal(rates[:, 1::2, 0, 0] == 0.4, turned)
        np.testing.assert_array_equal(shares[:, :, 0] == 0.7, turned)
        np.testing.assert_array_equal(atom[:, 0] == atom[:, 2], turned[:, 0] == turned[:, 1])
        table = table._replace(free=np.array([False, True]))
        before = rates.copy()
        orient(table, prior, rates, shares, atom % 4, np.random.default_rng(0))
        np.testing.assert_array_equal(rates, before)


class TestConvergence:
    def test_chains_that_do_not_agree_go_on_with_as_many_draws(self):
        """Ten draws of a sampler that remembers: four times the sweeps, and a word."""
        predictions, _ = world((0.1, 0.2, 0.3), n=300)
        model = HCBEE(burn_in=0, sweeps=40, thin=1, chains=4)
        seen: list[tuple[int, int]] = []
        found = fl.estimate(
            predictions, model, "error_rate", progress=lambda *told: seen.append(told)
        )
        assert (4 * 160, 4 * 160) in seen
        assert found.posterior.status == "not-converged"
        assert any("not-converged: the chains do not agree" in w for w in found.warnings)
        assert len(found.posterior.vote_rates.error_rates) == 4 * 40

    @pytest.mark.parametrize(("chains", "sweeps"), [(1, 40), (1, 3), (2, 3)])
    def test_one_chain_is_not_said_to_agree_with_others(self, chains, sweeps):
        predictions, _ = world((0.1, 0.2, 0.3), n=300)
        model = HCBEE(burn_in=0, sweeps=sweeps, thin=1, chains=chains)
        (said,) = (w for w in model.infer(predictions, 0).warnings if "not-converged" in w)
        parts = "the chains" if chains > 1 else "the halves of the chain"
        assert f"{parts} {'agree' if sweeps == 3 else 'do not agree'}" in said

    def test_longer_runs_keep_every_second_draw_of_shorter_ones(self):
        predictions, _ = world((0.1, 0.2, 0.3), n=60)
        kept = []
        for sweeps, accept in ((9, lambda *_: False), (36, None)):
            model = BEE(burn_in=5, sweeps=sweeps, thin=1, chains=2)
            states = States.of(2, (None,), None)
            table = VoteData.of(predictions, (None,), states).table
            run = Run(table, model.prior(states, 2), 3, (1.0, 1.0), np.random.default_rng(0))
            schedule = Schedule(5, sweeps, 1, 2)
            (draws,) = run_chains([run], *model.rules(), schedule, accept=accept)
            kept.append(draws.rates)
        np.testing.assert_array_equal(kept[0], kept[1][3::4])

    def test_ordinary_votes_converge(self):
        predictions, _ = world((0.1, 0.2, 0.3, 0.15), n=300)
        for model in (BEE(), HCBEE()):
            found = model.infer(predictions, 0)
            assert found.status == "assumption"
            told = found.diagnostics
            assert told["r_hat"] < 1.03
            assert min(told["effective_draws"], told["effective_draws_tail"]) >= 400


class TestRates:
    def test_a_domain_has_the_posterior_mean_and_all_items_the_average(self):
        base, _ = world((0.1, 0.2, 0.3), n=300)
        predictions = fl.Predictions(votes=base.votes, domain=["a", "a", "b"] * 100)
        found = fl.estimate(predictions, ConfusionBEE(**FEW), ["error_rate", "recall"], by="domain")
        rates = found.posterior.vote_rates
        mean = rates.error_rates.mean(axis=0)
        for d, name in enumerate(rates.domains):
            for j, model in enumerate(rates.models):
                row = found.get(model, "error_rate", f"domain={name}")
                assert row.value == pytest.approx(mean[d, j], abs=1e-12)
                recall = rates.confusion[:, d, j, 1, 1].mean()
                assert found.get(model, "recall", f"domain={name}").value == pytest.approx(recall)
        votes = rates.n_votes / rates.n_votes.sum(axis=0)
        everything = [found.get(m, "error_rate").value for m in rates.models]
        np.testing.assert_allclose(everything, (votes * mean).sum(axis=0))

    def test_other_groups_and_the_sample_go_by_the_labels(self):
        base, _ = world((0.1, 0.2, 0.3), n=300)
        group = np.where(np.arange(300) < 100, "x", "y")
        predictions = fl.Predictions(votes=base.votes, groups={"g": group})
        found = fl.estimate(predictions, BEE(**FEW), "error_rate", by="g")
        x, y = (found.get("model1", "error_rate", f"g={g}").value for g in "xy")
        assert x != y
        # Enough draws that the ends of two intervals can be told apart.
        many = FEW | {"sweeps": 8000}
        sample = fl.estimate(predictions, BEE(**many), "error_rate", estimand="sample")
        whole = fl.estimate(predictions, BEE(**many), "error_rate")
        for model in predictions.models:
            narrow, wide = (e.get(model, "error_rate") for e in (sample, whole))
            assert narrow.high - narrow.low < wide.high - wide.low

    @pytest.mark.slow
    def test_more_classes(self):
        predictions, truth = world((0.1, 0.2, 0.3, 0.4), n=800, n_classes=4)
        for model in (BEE(**FEW), ConfusionBEE(**FEW)):
            posterior = model.infer(predictions, 0)
            got = posterior.vote_rates.error_rates.mean(axis=(0, 1))
            seen = predictions.hard >= 0
            wrong = (predictions.hard != truth[:, None]) & seen
            np.testing.assert_allclose(got, wrong.sum(axis=0) / seen.sum(axis=0), atol=0.04)
            assert (posterior.marginals().argmax(axis=1) == truth).mean() > 0.85
            np.testing.assert_allclose(posterior.vote_rates.confusion.sum(axis=-1), 1)

    def test_a_domain_that_was_not_fitted(self):
        base, _ = world((0.1, 0.2, 0.3), n=60)
        fitted = BEE(**FEW).fit(
            fl.Predictions(votes=base.votes, domain=["a", "b"] * 30), np.random.default_rng(0)
        )
        with pytest.raises(InputError, match="domain c is not among"):
            fitted.posterior(fl.Predictions(votes=base.votes, domain=["a", "c"] * 30))
        with pytest.raises(InputError, match="no domain"):
            fitted.posterior(fl.Predictions(votes=base.votes))


class TestHyperparameters:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"sweeps": 0}, {"thin": 0}, {"chains": 1.5}, {"burn_in": -1},
            {"sweeps": 10, "thin": 18}, {"class_prior": 0}, {"error_prior": (1, 0)},
            {"error_prior": 3}, {"error_prior": (1, 2, 3)},
        ],
    )  # fmt: skip
    def test_refused(self, wrong):
        with pytest.raises(UsageError):
            BEE(**wrong)
        with pytest.raises(UsageError):
            ConfusionCBEE(**wrong)

    def test_unknown_samplers_are_refused(self):
        with pytest.raises(UsageError, match="sampler"):
            CBEE(sampler="exact")
        with pytest.raises(UsageError, match="sampler"):
            HCBEE(sampler="exact")

    @pytest.mark.slow
    def test_samplers_agree(self):
        base, _ = world((0.1, 0.2, 0.3), n=90)
        predictions = fl.Predictions(votes=base.votes, domain=["a", "b", "c"] * 30)
        many = {"burn_in": 300, "sweeps": 1500, "thin": 3, "chains": 2}
        kinds = ["partially collapsed", "uncollapsed", "collapsed then uncollapsed"]
        rates = [
            CBEE(sampler=kind, **many).infer(predictions, 0).vote_rates.error_rates.mean(axis=0)
            for kind in kinds
        ]
        np.testing.assert_allclose(rates[1], rates[0], atol=0.02)
        np.testing.assert_allclose(rates[2], rates[0], atol=0.02)

    @pytest.mark.slow
    @pytest.mark.parametrize("make", [HCBEE, pytest.param(CBCC, marks=pytest.mark.slow)])
    def test_a_burn_in_with_the_rates_integrated_out_changes_no_answer(self, make):
        base, _ = world((0.1, 0.2, 0.3), n=90)
        predictions = fl.Predictions(votes=base.votes, domain=["a", "b", "c"] * 30)
        many = {"burn_in": 300, "sweeps": 3000, "thin": 3, "chains": 2}
        rates = [
            make(sampler=kind, **many).infer(predictions, 0).vote_rates.error_rates.mean(axis=0)
            for kind in ("collapsed", "collapsed then uncollapsed")
        ]
        np.testing.assert_allclose(rates[1], rates[0], atol=0.015)

    def test_progress_is_reported(self):
        base, _ = world((0.1, 0.2, 0.3), n=60)
        seen: list[tuple[int, int]] = []
        fl.estimate(base, BEE(**FEW), "error_rate", progress=lambda *told: seen.append(told))
        assert (2 * 1400, 2 * 1400) in seen
        assert len([s for s in seen if s[1] == 2800]) > 20
