"""Heat maps of error rates, confusion and similarity: in words, in the page, in the text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from page import Page
from report_samples import (
    Report,
    beliefs,
    crowd,
    domains,
    minimal,
    render_html,
    render_text,
    two_classes,
)
from test_report_style import DARK, LIGHT, _contrast

import fewlabels as fl
import fewlabels.report
from fewlabels.evaluation.details import MOST_CELLS
from fewlabels.report.diagnostics import error_map, reference_trust, similarity_maps

STYLE = Path(fewlabels.report.__file__).parent / "templates" / "page.css"
FAST = {"burn_in": 60, "sweeps": 120, "thin": 4, "chains": 2}


def voted(n_domains: int, n_models: int, *, n: int = 60) -> fl.Predictions:
    """Domains of two kinds; the last classifier never votes in the first domain."""
    rng = np.random.default_rng(4)
    domain = np.repeat(np.arange(n_domains), n)
    truth = rng.integers(2, size=len(domain))
    rate = np.where(domain[:, None] % 2, 0.05, 0.3) + np.linspace(0, 0.1, n_models)
    votes = truth[:, None] ^ (rng.random((len(domain), n_models)) < rate)
    votes[domain == 0, -1] = -1
    names = np.array([f"d{k}" for k in range(n_domains)])[domain]
    models = [f"m{k}" for k in range(n_models)]
    return fl.Predictions(votes=votes, domain=names, models=models, classes=["no", "yes"])


@pytest.fixture(scope="module")
def coupled() -> fl.Estimates:
    model = fl.models.ConfusionCBEE(**FAST)
    return fl.estimate(voted(6, 4), model, "error_rate", confidence_level=0.9)


def test_error_rates_are_those_of_the_posterior(coupled: fl.Estimates) -> None:
    found = coupled.report()["votes"]["error_rates"]
    rates = coupled.posterior.vote_rates
    assert rates is not None
    assert found["domains"] == list(rates.domains)
    assert found["models"] == list(coupled.models)
    assert found["level"] == 0.9
    first = found["domains"].index("d0")
    assert (found["value"][first][-1], found["n_votes"][first][-1]) == (None, 0)
    seen = np.array(found["n_votes"]) > 0
    for part, wanted in (
        ("value", rates.error_rates.mean(axis=0)),
        ("low", np.quantile(rates.error_rates, 0.05, axis=0)),
        ("high", np.quantile(rates.error_rates, 0.95, axis=0)),
    ):
        got = np.array(found[part], dtype=float)
        np.testing.assert_allclose(got[seen], wanted[seen], rtol=1e-9)
    assert np.array(found["n_votes"])[seen].tolist() == [60] * 23


def test_confusion_is_a_distribution_over_votes(coupled: fl.Estimates) -> None:
    found = coupled.report()["votes"]["confusion"]
    assert found["classes"] == ["no", "yes"]
    assert [entry["model"] for entry in found["matrices"]] == list(coupled.models)
    for entry in found["matrices"]:
        matrix = np.array(entry["matrix"])
        np.testing.assert_allclose(matrix.sum(axis=1), 1)
        assert (np.diag(matrix) > 0.6).all()


def test_those_alike_stand_side_by_side(coupled: fl.Estimates) -> None:
    (found,) = coupled.report()["votes"]["similarity"]
    assert found["of"] == "domain"
    kinds = [int(name[1:]) % 2 for name in found["names"]]
    assert kinds in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    given = np.array(coupled.diagnostics["domain_similarity"])
    rates = coupled.posterior.vote_rates
    assert rates is not None
    places = [rates.domains.index(name) for name in found["names"]]
    np.testing.assert_allclose(np.array(found["matrix"]), given[np.ix_(places, places)])


def test_one_domain_shows_no_heat_map_and_one_rate_no_confusion() -> None:
    one = fl.estimate(voted(1, 3), fl.models.BEE(**FAST), "error_rate").report()
    assert one["votes"] == {}
    other = fl.estimate(voted(1, 3), "majority-vote", "error_rate").report()
    assert other["votes"] == {}


def test_of_many_the_worst_are_shown() -> None:
    predictions = voted(MOST_CELLS + 2, 3, n=20)
    report = fl.estimate(predictions, fl.models.BEE(**FAST), "error_rate").report()
    found = report["votes"]["error_rates"]
    assert (len(found["domains"]), found["n_domains"]) == (MOST_CELLS, MOST_CELLS + 2)
    left_out = {f"d{k}" for k in range(MOST_CELLS + 2)} - set(found["domains"])
    assert all(int(name[1:]) % 2 for name in left_out)
    chart = error_map(found)
    assert chart.notes == ["the 30 of 32 domains with the largest mean error rate"]


def test_nobody_alike_needs_no_matrix() -> None:
    report = domains()
    report["votes"]["similarity"][0]["matrix"] = np.eye(30).tolist()
    assert similarity_maps(report) == ()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_has_the_table_where_it_fits(coupled: fl.Estimates, width: int) -> None:
    text = render_text(coupled.report(), width)
    assert max(map(len, text.splitlines())) <= width
    assert "Error rates by domain and classifier" in text
    assert "(posterior mean)" in text
    (row,) = (line.split() for line in text.splitlines() if line.startswith("  d0 "))
    assert row[-1] == "-"
    assert len(row) == 5
    assert "Error rates by domain" not in render_text(domains(), width)


def test_the_middle_is_folded_where_there_is_room() -> None:
    report = crowd()
    names = set(report["models"][:61])
    report |= {
        "models": report["models"][:61],
        "estimates": [
            row for row in report["estimates"]
            if row["model"] in names and row["metric"] == "accuracy" and row["group"] is None
        ],
    }  # fmt: skip
    words = Page(render_html(report)).words
    assert "21 more rows between the best and the worst" in words
    assert all(name in words for name in names)


@pytest.mark.slow
def test_a_page_of_very_many_estimates_can_still_be_opened() -> None:
    report = crowd()
    group = [row for row in report["estimates"] if row["group"] == "site=a"]
    report["estimates"] += [row | {"group": f"site={k}"} for k in range(20) for row in group]
    source = render_html(report)
    assert len(source) < 8e6
    words = Page(source).words
    assert "The 27,600 estimates are too many for a table on this page" in words
    assert "more rows, in the JSON" in words


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_numbers_can_be_read_on_the_strongest_colour(dark: bool) -> None:
    (heat,) = re.findall(r"--heat: (.*);", STYLE.read_text())
    hues = re.findall(r"rgba\((\d+), (\d+), (\d+), ([\d.]+)\)", heat)
    assert len(hues) == 2
    *hue, most = map(float, hues[dark])
    colours = DARK if dark else LIGHT
    card = [int(colours["card"][k : k + 2], 16) for k in (1, 3, 5)]
    mixed = [round(most * h + (1 - most) * c) for h, c in zip(hue, card, strict=True)]
    cell = "#" + "".join(f"{part:02x}" for part in mixed)
    assert _contrast(colours["ink"], cell) >= 4.5
    assert _contrast(cell, colours["card"]) >= 1.5


def test_without_labels_nothing_is_said_to_trust_the_reference() -> None:
    report = beliefs() | {"n_labeled": 0}
    assert (reference_trust(report) or "").startswith("without labels nothing tests the reference")
    assert (
        reference_trust(report | {"n_annotated": 5})
        == "the labels support the reference data: weight 62%"
    )


def test_the_page_draws_the_shares_once() -> None:
    page = render_html(beliefs())
    card = page[page.index('<h2 id="what-the-answer-rests-on">') :]
    card = card[: card.index("</section>")]
    assert "The labels give judge_3 alone a weight of 82%." in card
    assert '<rect class="share" x="0" y="0" width="82%"' in card
    assert card.index("judge_3 alone") < card.index("all classifiers pooled")
    assert card.count("<rect") == 7
    assert "judge_3 alone" not in page.replace(card, "")


@pytest.mark.parametrize("report", [minimal(), two_classes()], ids=["minimal", "two classes"])
def test_methods_without_members_show_no_block(report: Report) -> None:
    assert reference_trust(report) is None
    assert "What the answer rests on" not in render_text(report) + render_html(report)
    assert "reference" not in render_text(report).splitlines()[0]


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (0.62, "the labels support the reference data: weight 62%"),
        (0.04, "the labels hardly support the reference data: weight 4%"),
        (0.001, "the labels hardly support the reference data: weight <1%"),
    ],
)
def test_how_far_the_labels_trust_the_reference(weight: float, said: str) -> None:
    report = beliefs()
    report["diagnostics"]["reference"] = {"weight": weight}
    assert reference_trust(report) == said
    assert f"are used as well; {said}." in " ".join(render_text(report).split())
    assert said.replace("<", "&lt;") in render_html(report)
