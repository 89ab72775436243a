from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from report_samples import SAMPLES

from fewlabels.report import render_html

if TYPE_CHECKING:
    from conftest import Measure, Measured

PHONE, TABLET, DESKTOP = 390, 768, 1280
TITLE = "How good are the classifiers? A fewlabels report"
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
ATTACK = "<script>window.ran = true; document.title = 'pwned'</script>"

samples = pytest.mark.parametrize("name", SAMPLES)
widths = pytest.mark.parametrize("width", [PHONE, TABLET, DESKTOP])


@pytest.fixture(scope="module")
def measured(measure: Measure) -> Measured:
    """Every sample, and the nasty one again without the policy that would stop its scripts."""
    pages = {name: render_html(sample()) for name, sample in SAMPLES.items()}
    pages["unprotected"] = POLICY.sub("", pages["nasty_names"])
    attacked = pages["minimal"].replace("</body>", f"{ATTACK}</body>")
    pages["attacked"] = attacked
    pages["attacked and unprotected"] = POLICY.sub("", attacked)
    assert pages["unprotected"] != pages["nasty_names"]
    return measure(pages, (PHONE, TABLET, DESKTOP))


@samples
@widths
def test_nothing_scrolls_sideways(measured: Measured, name: str, width: int) -> None:
    found = measured[name][str(width)]
    assert found["inner"] == width
    assert found["scroll"] <= width


@samples
@widths
def test_text_can_be_read_at_every_width(measured: Measured, name: str, width: int) -> None:
    assert measured[name][str(width)]["smallest"] >= 12


@pytest.mark.parametrize("name", [*SAMPLES, "unprotected"])
def test_no_name_becomes_markup(measured: Measured, name: str) -> None:
    found = measured[name][str(PHONE)]
    assert (found["title"], found["active"], found["scripted"]) == (TITLE, 0, False)


def test_a_script_would_be_noticed_and_the_policy_stops_it(measured: Measured) -> None:
    assert measured["attacked and unprotected"][str(PHONE)]["scripted"]
    assert not measured["attacked"][str(PHONE)]["scripted"]


@samples
def test_nothing_is_fetched(measured: Measured, name: str) -> None:
    assert measured[name][str(DESKTOP)]["fetched"] == []


@samples
@widths
def test_bars_stand_on_their_scale(measured: Measured, name: str, width: int) -> None:
    found = measured[name][str(width)]
    assert len(found["ticks"]) >= 2
    for lines in found["lines"]:
        assert lines == pytest.approx(found["ticks"], abs=1.5)


def test_thirty_columns_fit_a_desktop_and_scroll_on_a_phone(measured: Measured) -> None:
    wide = [h for h in measured["domains"][str(DESKTOP)]["heat"] if h["columns"] == 30]
    assert len(wide) == 2
    assert not any(h["scrolls"] for h in wide)
    for found in measured["domains"][str(PHONE)]["heat"]:
        assert (found["sideways"], found["first"]) == ("auto", "sticky")
        assert found["scrolls"] == (found["columns"] == 30)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_follow_the_numbers(measure: Measure, dark: bool) -> None:
    page = {"page": render_html(SAMPLES["domains"]())}
    cells = measure(page, (DESKTOP,), dark=dark)["page"][str(DESKTOP)]["heat"][0]["cells"]
    known = [(h, colour) for h, colour in cells if h is not None]
    strength = [float(re.split(r"[(,)]", colour)[4]) for _, colour in known]
    most = 0.42 if dark else 0.56
    assert strength == pytest.approx([h * most for h, _ in known], abs=0.005)
    assert {colour for h, colour in cells if h is None} == {"rgba(0, 0, 0, 0)"}


def test_dark_and_light_follow_the_reader(measure: Measure) -> None:
    page = {"page": render_html(SAMPLES["minimal"]())}
    light, dark = measure(page, (PHONE,)), measure(page, (PHONE,), dark=True)
    assert light["page"][str(PHONE)]["background"] == "rgb(244, 245, 247)"
    assert dark["page"][str(PHONE)]["background"] == "rgb(16, 20, 26)"
