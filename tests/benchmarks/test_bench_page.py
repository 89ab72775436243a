"""The page of a benchmark: its tables, figures, headline, notes and command."""

from __future__ import annotations

import numpy as np
import pytest
from bench_samples import failed, on_the_curve, results, row

from bench.errors import Errors
from bench.figures import figures
from bench.page import headline
from bench.results import Results, joined
from bench.tables import Table, glance, sections


def tables(found: Results, kind: str) -> list[Table]:
    return [t for name, _, made in sections(Errors(found)) if name == kind for t in made]


def texts(table: Table, method: str) -> list[str]:
    return [str(v) for v in table.cells.loc[method]]


def test_errors_ratios_and_sizes_side_by_side() -> None:
    rows = [*on_the_curve(), *(row(m, r, e * (r + 1), n_labeled=n) for n in (20, 50)
            for m, e in (("labeled", 0.1), ("ensemble", 0.05)) for r in range(2))]  # fmt: skip
    table, bias = tables(results(rows, n_labeled=(20, 50)), "methods")
    heads = ["n_l = 20", "n_l = 50"]
    heads += [f"{what} {head}" for what in ("RMAE", "ESS") for head in heads]
    assert list(table.cells) == heads
    assert table.title == "d, accuracy, 1,000 unlabeled"
    assert texts(table, "ensemble")[:3] == ["**7.50 ± 3.54**", "**7.50 ± 3.54**", "0.50"]
    assert texts(table, "labeled")[4] == "20<sup>a</sup>"
    assert (bias.folded, texts(bias, "ensemble")) == (True, ["+7.50", "+7.50"])


def test_a_footnote_says_why_runs_are_missing() -> None:
    rows = [row("labeled", r, 0.1) for r in range(3)] + [row("ensemble", 0, 0.2)]
    rows += [failed("ensemble", r, "it diverged") for r in (1, 2)]
    rows += [failed("ssme-kde", r, "only two classes") for r in range(3)]
    table, _ = tables(results(rows), "methods")
    assert list(table.notes) == [
        "mean over 1 of 3 runs: it diverged (2 runs)", "no value: only two classes"
    ]  # fmt: skip
    assert texts(table, "ssme-kde")[0] == "-<sup>b</sup>"


def test_classifiers_side_by_side_with_their_mean() -> None:
    rows = [row("labeled", r, 0.1 * (j + 1), model=m) for r in range(2) for j, m in enumerate("ab")]
    (table,) = tables(results(rows, tables=("classifiers",)), "classifiers")
    assert list(table.cells) == ["a", "b", "mean"]
    assert texts(table, "labeled") == ["10.00 ± 0.00", "20.00 ± 0.00", "15.00 ± 0.00"]


def test_groups_side_by_side_with_the_mean_over_groups() -> None:
    rows = [
        row(method, r, error * (3 if group else 1), group=group)
        for method, error in (("labeled", 0.1), ("ensemble", 0.04))
        for r in range(2)
        for group in ("", "sex=F", "sex=M", "age=<30", "age=100", "age=30")
    ]
    rows += [row("labeled", r, 0.1, group="sex=x") for r in range(2)]
    rows += [row("ensemble", r, np.nan, group="sex=x", status="undefined") for r in range(2)]
    found = results(rows, tables=("groups",))
    (ratios,) = tables(found, "group-ratios")
    # sex has a group without a ratio, which counts against no method but is said.
    assert [t.split(" ")[0].strip("*") for t in texts(ratios, "ensemble")] == ["0.40"] * 3
    assert "mean over 2 of 3 cells" in next(iter(ratios.notes))
    age, sex = tables(found, "groups")
    assert list(age.cells) == ["<30", "30", "100", "mean of groups"]
    assert list(sex.cells) == ["F", "M", "x", "mean of groups"]
    assert (texts(age, "ensemble")[-1], texts(age, "labeled")[-1]) == ("**12.00**", "30.00")
    assert texts(sex, "ensemble")[-1].startswith("-<sup>")
    assert "**" not in texts(sex, "labeled")[-1]


def test_levels_side_by_side_with_their_paired_difference() -> None:
    rows = [
        row("labeled", r, e, factor="labels", level=level)
        for level, errors in (("expected", (0.11, 0.33, 0.22)), ("drawn", (0.10, 0.30, 0.20)))
        for r, e in enumerate(errors)
    ]
    (table,) = tables(results(rows, tables=("levels",), factor="labels"), "levels")
    assert list(table.cells) == ["drawn labels", "expected labels", "expected - drawn"]
    assert texts(table, "labeled")[2] == "+2.00 ± 0.58"


def test_several_data_sets_get_an_overview() -> None:
    rows = [row("labeled", r, 0.1, dataset=d) for d in "abc" for r in range(2)]
    rows += [row("ensemble", r, 0.02, dataset="a") for r in range(2)]
    rows += [failed("ensemble", r, "only two classes", dataset="b") for r in range(2)]
    (table,) = tables(results(rows), "overview")
    assert texts(table, "ensemble") == ["0.20<sup>a</sup>"]
    (note,) = table.notes
    assert note.startswith("mean over 1 of 3 data sets: only two classes (1 data set)")


@pytest.mark.parametrize("kinds", [("classifiers",), ("groups", "methods"), ("levels",)])
def test_intervals_that_were_asked_for_are_shown_by_every_protocol(kinds: tuple[str, ...]) -> None:
    change = {"low": 0.4, "high": 0.8}
    if kinds == ("levels",):
        rows = [row("labeled", r, 0.1, factor="sharpness", level=v, **change)
                for r in range(3) for v in ("2", "0.5")]  # fmt: skip
    else:
        rows = [row("labeled", r, 0.1, group=g, **change) for r in range(3) for g in ("", "sex=F")]
    (table,) = tables(results(rows, tables=kinds, confidence_level=0.9), "intervals")
    first = "coverage a = 0.5" if kinds == ("levels",) else "coverage n_l = 20"
    assert next(iter(table.cells)) == first
    assert texts(table, "labeled")[0].startswith("100.0% ± ")
    assert not tables(results([row("labeled", 0, 0.1)]), "intervals")


def test_ratios_of_several_sets_stand_side_by_side() -> None:
    """Studies that ran by themselves, as one; the labels alone are 1."""
    each = [
        results([row(m, r, e, dataset=name) for m, e in (("labeled", 0.2), ("ensemble", error))
                 for r in range(2)], figures=("ratios",))
        for name, error in (("a", 0.1), ("b", 0.4))
    ]  # fmt: skip
    ((_, _, figure),) = figures(Errors(joined(each)))
    (panel,) = figure.panels
    assert list(panel.ticks) == ["a", "b"]
    assert panel.lines["labeled"]["mean"].tolist() == pytest.approx([1, 1])
    assert panel.lines["ensemble"]["mean"].tolist() == pytest.approx([0.5, 2])


def test_effective_sizes_are_averaged_over_the_sets() -> None:
    rows = [
        one for name, error in (("a", 0.2), ("b", 0.1))
        for one in [*on_the_curve(name), *(row("ensemble", r, error, dataset=name) for r in (0, 1))]
    ]  # fmt: skip
    mean, *_ = tables(results(rows, tables=("effective-sizes",)), "effective-sizes")
    assert texts(mean, "ensemble") == ["30"]


# --- traits ------------------------------------------------------------------------------------


def test_trends_over_a_trait_of_each_run() -> None:
    runs = range(40)
    traits = [("d", "3", r, "mean_accuracy", 0.6 + r / 100) for r in runs]
    rows = [row("labeled", r, (40 - r) / 1000, factor="classifiers", level="3") for r in runs]
    rows += [row("ensemble", r, 0.01, factor="classifiers", level="3") for r in runs]
    wanted = {"tables": ("levels",), "figures": ("error-by-accuracy",), "factor": "classifiers"}
    found = results(rows, traits, **wanted)
    ((_, _, figure),) = figures(Errors(found))
    (panel,) = figure.panels
    assert list(panel.lines) == ["labeled  -1.00", "ensemble  "]
    line = panel.lines["labeled  -1.00"]
    assert len(line) == 8
    assert line.iloc[0][["x", "mean"]].tolist() == pytest.approx([0.62, 3.8])
    (table,) = tables(found, "associations")
    assert texts(table, "labeled") == ["-1.00"]


def test_rank_correlations_do_not_mix_levels() -> None:
    """Five classifiers err less than three, at every accuracy: no trend within a level."""
    traits = [("d", level, r, "mean_accuracy", 0.6 + r / 100 + (level == "5") / 5)
              for level in "35" for r in range(9)]  # fmt: skip
    rows = [row("labeled", r, 0.1 + r % 3 / 100 - (level == "5") / 20, factor="classifiers",
                level=level) for level in "35" for r in range(9)]  # fmt: skip
    wanted = {"tables": ("levels",), "figures": ("error-by-accuracy",)}
    found = tables(results(rows, traits, **wanted), "associations")
    assert [texts(t, "labeled") for t in found] == [["+0.32"], ["+0.32"]]


def test_pairs_of_classifiers_and_a_trait_of_each_level() -> None:
    levels = ["a+b+c", "a+b+d", "a+c+d", "b+c+d"]
    traits = [("d", level, -1, "error_correlation", k / 4) for k, level in enumerate(levels)]
    traits += [("d", "a+b", -1, "error_correlation", 0.9)]
    rows = [
        row("labeled", r, 0.1 * (k + 1), factor="subset", level=level, model=m)
        for k, level in enumerate(levels)
        for r in range(2)
        for m in level.split("+")
    ]
    wanted = {"tables": ("correlation",), "figures": ("error-by-correlation",)}
    found = results(rows, traits, **wanted)
    (pairs,) = tables(found, "correlation")
    assert pairs.cells.loc["a"].tolist() == ["-", "0.90", "-", "-"]
    (line,) = next(figures(Errors(found)))[2].panels[0].lines.values()
    assert line["mean"].tolist() == pytest.approx([10, 20, 30, 40])
    (table,) = tables(found, "associations")
    assert texts(table, "labeled") == ["+1.00"]


@pytest.mark.slow
def test_a_glance_over_all_columns_and_the_headline() -> None:
    rows = [row(m, r, e, n_labeled=n) for n in (20, 50) for r in range(3)
            for m, e in (("labeled", 0.2), ("ensemble", 0.1 if n == 20 else 0.4))]  # fmt: skip
    found = glance(Errors(results(rows)))
    assert found["n_best"].tolist() == [1, 1]
    assert found.loc["ensemble", "rmae"] == pytest.approx(1)
    # A column of one method marks nobody, and is no comparison.
    rows += [row("ensemble", r, 0.1, n_labeled=90) for r in range(3)]
    found = glance(Errors(results(rows)))
    assert found[["n_contested", "n_columns"]].iloc[0].tolist() == [2, 3]
    assert headline(found, 3).startswith("3 runs: too few to rank methods. 2 methods")
    many = [row(m, r, e + r / 1000) for r in range(10)
            for m, e in (("labeled", 0.2), ("ensemble", 0.1))]  # fmt: skip
    assert headline(glance(Errors(results(many))), 10) == (
        "ensemble has the least error, or one within a standard error of it, in 1 of 1 comparison. "
        "Its error is 0.51 times that of labeled (geometric mean over 1 comparison)."
    )
