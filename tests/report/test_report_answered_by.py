"""Which belief answered, and how far the labels trust reference data, as text and on the page."""

from __future__ import annotations

import re

import pytest
from report_samples import NASTY, Report, beliefs, minimal, two_classes

from fewlabels.report import render_html, render_text
from fewlabels.report.answered_by import answered_by, reference_trust
from fewlabels.report.headline import brief_estimates
from fewlabels.report.words import cell_width


def block(report: Report, width: int) -> list[str]:
    lines = render_text(report, width).splitlines()
    start = lines.index("Which belief answered")
    return lines[start : lines.index("", start)]


def test_the_first_sentence_is_about_the_largest_share() -> None:
    found = answered_by(beliefs())
    assert found is not None
    assert found.sentence == "the labels trust judge_3 alone: 82%"
    assert [m.name for m in found.members[:2]] == ["judge_3 alone", "all classifiers pooled"]
    # The rest is one entry, and nothing is lost.
    assert found.members[-1].name == "4 others"
    assert sum(m.share for m in found.members) == pytest.approx(0.92 + 0.01 * len(NASTY))


def test_without_labels_nothing_is_said_to_trust_the_reference() -> None:
    report = beliefs() | {"n_labeled": 0}
    assert (reference_trust(report) or "").startswith("without labels nothing tests the reference")
    assert reference_trust(report | {"n_annotated": 5}) == "the labels trust the reference: 62%"


@pytest.mark.parametrize("width", [80, 120])
def test_bars_of_plain_text(width: int) -> None:
    title, sentence, first, second, *_ = block(beliefs(), width)
    assert title == "Which belief answered"
    assert sentence == "the labels trust judge_3 alone: 82%"
    longest, shorter = (len(line) - len(line.rstrip("#")) for line in (first, second))
    assert re.match(r"  judge_3 alone +82%  #+$", first)
    assert re.match(r"  all classifiers pooled +10%  #+$", second)
    assert 7 < longest / shorter < 9
    assert all(cell_width(line) <= width for line in block(beliefs(), width))


def test_the_page_draws_the_shares_once() -> None:
    page = render_html(beliefs())
    card = page[page.index('<h2 id="answered-by">') :]
    card = card[: card.index("</section>")]
    assert "The labels trust judge_3 alone: 82%." in card
    assert '<rect class="share" x="0" y="30%" width="82%"' in card
    assert card.index("judge_3 alone") < card.index("all classifiers pooled")
    assert card.count("<rect") == 7
    assert "judge_3 alone" not in page.replace(card, "")


@pytest.mark.parametrize("report", [minimal(), two_classes()], ids=["minimal", "two classes"])
def test_methods_without_members_show_no_block(report: Report) -> None:
    assert answered_by(report) is None
    assert reference_trust(report) is None
    assert "Which belief answered" not in render_text(report) + render_html(report)
    assert "reference" not in render_text(report).splitlines()[0]


def test_a_few_members_are_all_shown() -> None:
    report = beliefs()
    members = [{"member": f"m{k}", "share": 1 / 7, "says": "so"} for k in range(7)]
    report["diagnostics"]["answered_by"] = members
    found = answered_by(report)
    assert found is not None
    assert [m.name for m in found.members] == [m["member"] for m in members]


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (0.62, "the labels trust the reference: 62%"),
        (0.04, "the labels hardly trust the reference: 4%"),
        (0.001, "the labels hardly trust the reference: <1%"),
    ],
)
def test_how_far_the_labels_trust_the_reference(weight: float, said: str) -> None:
    report = beliefs()
    report["diagnostics"]["reference"] = {"weight": weight}
    assert reference_trust(report) == said
    assert f"  {said}" in render_text(report).splitlines()
    assert said.replace("<", "&lt;") in render_html(report)


def test_the_headline_counts_the_reference() -> None:
    said = "1,020 items, 20 labeled, 1,200 reference items, 3 classifiers, 2 classes"
    assert said in render_text(beliefs()).splitlines()[0]
    assert said in brief_estimates("Estimates", beliefs())
    page = render_html(beliefs())
    assert "<dt>Reference</dt><dd>1,200</dd>" in page
    assert "1,200 labeled items from elsewhere add what they say of the classifiers" in page
