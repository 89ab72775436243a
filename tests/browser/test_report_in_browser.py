"""Every page in a browser: read without scrolling sideways, nothing foreign runs or is fetched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from every_report import PAGES, QUICK, TITLES, every
from report_samples import SAMPLES, render_html

if TYPE_CHECKING:
    from conftest import Measure, Measured

PHONE, TABLET, DESKTOP = 390, 768, 1280
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
ATTACK = "<script>window.ran = true; document.title = 'pwned'</script>"

samples = pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in (f"estimates: {name}" for name in SAMPLES)
])  # fmt: skip
widths = pytest.mark.parametrize("width", [PHONE, TABLET, DESKTOP])


@pytest.fixture(scope="module")
def measured(measure: Measure, request: pytest.FixtureRequest) -> Measured:
    """The pages asked for, and a nasty one again without the policy that would stop its scripts."""
    chosen = (getattr(item, "callspec", None) for item in request.session.items)
    asked = QUICK | {str(each.params.get("name")) for each in chosen if each is not None}
    pages = {name: made() for name, made in PAGES.items() if name in asked}
    nasty, minimal = pages["estimates: nasty_names"], PAGES["estimates: minimal"]()
    attacked = minimal.replace("</body>", f"{ATTACK}</body>")
    unprotected = {
        "unprotected": POLICY.sub("", nasty),
        "attacked": attacked,
        "attacked and unprotected": POLICY.sub("", attacked),
    }
    assert unprotected["unprotected"] != nasty
    return measure(pages | unprotected, (PHONE, TABLET, DESKTOP))


@every
def test_a_page_is_read_without_scrolling_sideways(measured: Measured, name: str) -> None:
    for width in (PHONE, TABLET, DESKTOP):
        found = measured[name][str(width)]
        assert found["scroll"] <= found["inner"] == width
        assert found["smallest"] >= 12
        assert found["fetched"] == []


@every
def test_no_name_becomes_markup(measured: Measured, name: str) -> None:
    _no_markup(measured[name][str(PHONE)], name.partition(":")[0])


def test_no_name_becomes_markup_without_the_policy(measured: Measured) -> None:
    _no_markup(measured["unprotected"][str(PHONE)], "estimates")


def _no_markup(found: Mapping[str, Any], kind: str) -> None:
    title = TITLES[kind]
    assert found["title"] == f"{title} A fewlabels report"
    assert (found["active"], found["scripts"], found["scripted"]) == (0, 1, False)


def test_a_script_would_be_noticed_and_the_policy_stops_it(measured: Measured) -> None:
    assert measured["attacked and unprotected"][str(PHONE)]["scripted"]
    assert not measured["attacked"][str(PHONE)]["scripted"]


@samples
@widths
def test_bars_stand_on_their_scale(measured: Measured, name: str, width: int) -> None:
    found = measured[name][str(width)]
    assert len(found["ticks"]) >= 2
    for lines in found["lines"]:
        assert lines == pytest.approx(found["ticks"], abs=1.5)


def test_thirty_columns_fit_a_desktop_and_scroll_on_a_phone(measured: Measured) -> None:
    wide = [h for h in measured["estimates: domains"][str(DESKTOP)]["heat"] if h["columns"] == 30]
    assert len(wide) == 2
    assert not any(h["scrolls"] for h in wide)
    for found in measured["estimates: domains"][str(PHONE)]["heat"]:
        assert (found["sideways"], found["first"]) == ("auto", "sticky")
        assert found["scrolls"] == (found["columns"] == 30)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_follow_the_numbers(measure: Measure, dark: bool) -> None:
    page = {"page": render_html(SAMPLES["domains"]())}
    cells = measure(page, (DESKTOP,), dark=dark)["page"][str(DESKTOP)]["heat"][0]["cells"]
    known = [(h, colour) for h, colour in cells if h is not None]
    strength = [float(re.split(r"[/)]", colour)[1]) for _, colour in known]
    most = 0.42 if dark else 0.56
    assert strength == pytest.approx([h * most for h, _ in known], abs=0.005)
    assert {colour for h, colour in cells if h is None} == {"rgba(0, 0, 0, 0)"}


@pytest.mark.slow
def test_dark_and_light_follow_the_reader(measure: Measure) -> None:
    page = {"page": render_html(SAMPLES["minimal"]())}
    light, dark = measure(page, (PHONE,)), measure(page, (PHONE,), dark=True)
    assert light["page"][str(PHONE)]["background"] == "rgb(244, 245, 247)"
    assert dark["page"][str(PHONE)]["background"] == "rgb(16, 20, 26)"
