"""Estimates: which classifier is best and how sure that is, then a table per metric and group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fewlabels.report import comparison, confusion
from fewlabels.report import diagnostics as beside
from fewlabels.report.axis import Profile, profile
from fewlabels.report.blocks import (
    ENDS,
    NOT_APPLICABLE,
    PREFERENCES,
    Block,
    Report,
    Verdict,
    applicable,
    blocks,
    common_axis,
    status_notes,
    verdict,
)
from fewlabels.report.document import (
    Document,
    Drawing,
    Fold,
    Forest,
    Group,
    Legend,
    Node,
    Para,
    Section,
    Table,
    Terms,
    counts,
    in_line,
    name,
    page_only,
    plain,
    sentence,
)
from fewlabels.report.words import (
    capital,
    count,
    enumerated,
    metric_name,
    percent,
    plural,
    probability,
    share,
)

_OPEN_PLOTS = 24
"""With more plots than these only the leading classifier's are unfolded."""

_FEWEST_PANELS = 2
"""A picture of groups has at least so many classifiers, however many the groups."""

_MOST_NAMES = 3
_MOST_CLASSES = 20
FIRST = 2
"""Metrics whose tables a terminal has where nobody asked for any."""

_ABOUT = {"population": "the population that the items come from", "sample": "these items only"}

_DOUBTFUL = {"few-labels", "undefined", "not-applicable", "not-converged", "contradicted"}


_TERMS = {
    "Estimate and interval": "The point is the estimate, the bar its interval: the true value lies "
    "in it with about the stated probability, if the assumptions of the method hold. Where bars "
    "overlap, the order of two classifiers may still be clear, because they are judged on the same "
    "items.",
    "P(best)": "The probability that the classifier is the best one by the metric. It is a "
    "statement about this comparison only: the best of several bad classifiers is still bad. Rows "
    "are in the order of the comparison of all pairs, which uses what the classifiers share. Where "
    "two are close, their values alone may stand the other way round.",
    "Labels": "What is called inferred was not observed: an item of unsure class counts in part "
    "for each class, by its probability.",
    "Truth": "The value computed from all true labels, which the method did not see. It is there "
    "to check the method, and is not available in practice.",
}


class _Level(NamedTuple):
    """How much a page holds; a page that is too long is made again at the next level.

    Estimates in the table; classifiers whose scores are drawn; rows shown at either end of very
    many, and whether those between are there, folded; rows of a picture of groups; columns of a map
    whose cells have tooltips.
    """

    listed: int
    profiles: int
    ends: int
    folded: bool
    group_rows: int
    mapped: int


_LEVELS = (
    _Level(5_000, 1_000, ENDS, True, 48, 100),
    _Level(600, 24, ENDS, False, 48, 100),
    _Level(0, 12, 10, False, 24, 100),
    _Level(0, 4, 8, False, 12, 16),
)
LEVELS = len(_LEVELS)


def document(report: Report, level: int = 0) -> Document:
    """All that is said of `Estimates.report`, with less on the page at each level."""
    room = _LEVELS[level]
    every = blocks(report)
    applying, unfit = applicable(every)
    # Where no metric applies, each says so itself.
    shown, unfit = (applying, unfit) if applying else (every, [])
    valued = {block.metric for block in shown for row in block.rows if row.value is not None}
    # A metric that nobody has a value of needs a line, not a table.
    unknown = list(dict.fromkeys(b.metric for b in shown if valued and b.metric not in valued))
    shown = [block for block in shown if block.metric not in unknown]
    metrics = [block for block in shown if block.group is None]
    leading = verdict(metrics[0]) if metrics else None
    rows = [row for block in shown for row in block.rows]
    applies = any(row.status == NOT_APPLICABLE for row in rows)
    hits = [
        row.low <= row.truth <= row.high
        for row in rows
        if row.truth is not None and row.low is not None and row.high is not None
    ]
    explained = tuple(f"{NOT_APPLICABLE}: {one.metric} " for one in metrics if one.lacks)
    asked, votes, known = (report.get(key) or {} for key in ("asked", "votes", "diagnostics"))
    brief = [
        block.metric for k, block in enumerate(metrics)
        if report.get("asked") is None or k < FIRST or block.metric in asked
    ]  # fmt: skip
    signs = ", x truth, * both" if any(block.has_truth for block in metrics) else ""
    against = ""
    if report.get("against") == "distribution":
        against = " against the distribution of annotators' labels"
    terms = dict(_TERMS)
    for term, needed in (("P(best)", report.get("best")), ("Truth", hits)):
        if not needed:
            del terms[term]
    return Document(
        "How good are the classifiers?",
        report,
        counts(report),
        answer=[" ".join(map(sentence, _answer(report, shown, leading)))],
        basis=[" ".join(_basis(report, leading, hits))],
        body=[
            page_only(_glance, metrics, report),
            *_metrics(report, shown, brief, room),
            *_unshown(report, unknown, unfit),
            *(beside.anytime(known["anytime"]) if known.get("anytime") else ()),
            *_statuses(report, shown),
            page_only(_all_estimates, report, shown, room, known=bool(hits)),
        ],
        more=[
            # The answer has said it by the first metric.
            *comparison.parts(
                report, metrics, brief[1:], told=len(report["models"]) <= room.mapped
            ),
            *(beside.rates(report, room.mapped) if votes.get("error_rates") else ()),
            *(confusion.parts(report) if votes or report.get("confusion") else ()),
            *(beside.alike(report, room.mapped) if votes or known.get("partition") else ()),
            page_only(_classes, report),
            page_only(_profiles, report, metrics, leading, room),
            *(beside.members(known["answered_by"]) if known.get("answered_by") else ()),
            page_only(beside.method, report),
        ],
        terms=terms,
        foot=[
            *(["o estimate, |--| interval" + signs] if shown else []),
            f"{percent(report['confidence_level'])} intervals{against}; method "
            f"{plain(report['method'])}, seed {report['seed']}, fewlabels {report['fewlabels']}; "
            f"classes: {enumerated([*map(plain, report['classes'])], _MOST_CLASSES)}",
        ],
        warnings=[
            text for text in report.get("warnings") or ()
            if not text.startswith(explained) and (applies or not text.startswith(NOT_APPLICABLE))
        ],
    )  # fmt: skip


# --- the first paragraphs -------------------------------------------------------------------------


def _answer(report: Report, shown: Sequence[Block], found: Verdict | None) -> Iterator[str]:
    """Which classifier, how good, how sure; what would settle it, and where nobody can say yet."""
    if not shown:
        yield "there are no estimates in this report"
        return
    if found is None:
        metric, reason = plain(metric_name(shown[0].metric)), shown[0].rows[0].reason
        yield (
            f"none of the {plural(len(report['models']), 'classifier')} could be judged by "
            f"{metric}: the metric is {reason} here"
        )
        return
    entry = (report.get("comparison") or {}).get(found.block.metric)
    yield from comparison.standing(found, entry, report["n_items"] - report["n_labeled"])
    yield _open_groups([b for b in shown if b.metric == found.block.metric and b.group is not None])


def _open_groups(groups: Sequence[Block]) -> str:
    """The groups in which few labels, or none, leave open who is best."""
    unsure = []
    for block in groups:
        found = verdict(block)
        settled = found and not found.rivals and found.certainty not in ("alone", "contradicted")
        if found is None or (found.leader.status in _DOUBTFUL and not settled):
            unsure.append(block.group)
    if not unsure:
        return ""
    what = "which is best" if len(groups[0].rows) > 1 else "how good it is"
    if len(unsure) == len(groups) > _MOST_NAMES:
        return f"in none of the {len(groups)} groups can anybody say yet {what}"
    named = enumerated([*map(name, unsure)], _MOST_NAMES, "other groups")
    return f"in {named} nobody can say yet {what}"


def rests_on(report: Report) -> str:
    """Upon how many labels an answer rests."""
    labeled, items = report["n_labeled"], plural(report["n_items"], "item")
    if not labeled:
        return (
            f"None of the {items} has a label: everything here rests on the assumptions of the "
            "method, which no label tests."
        )
    if labeled == report["n_items"]:
        return f"Every one of the {items} is labeled."
    return f"This rests on {plural(labeled, 'label')} among {items}."


def _basis(report: Report, found: Verdict | None, hits: Sequence[bool]) -> Iterator[str]:
    """What the answer rests on, and what the numbers are about."""
    n, labeled, annotated = report["n_items"], report["n_labeled"], report.get("n_annotated") or 0
    if annotated:
        both = f"{plural(labeled, 'label')} and on " if labeled else ""
        yield (
            f"This rests on {both}what annotators say of {plural(annotated, 'item')}, "
            f"among {plural(n, 'item')}."
        )
    else:
        yield rests_on(report)
    if annotated or 0 < labeled < n:
        others = "other" if annotated else "unlabeled"
        yield f"What the {others} items add depends on the assumptions of the method."
    if report.get("reference"):
        used = report["reference"]["n_items"]
        trust = beside.reference_trust(report)
        yield (
            f"{plural(used, 'labeled item')} from elsewhere {'is' if used == 1 else 'are'} used as "
            f"well{f'; {trust}' if trust else ''}."
        )
    if report.get("estimand") in _ABOUT:
        yield f"The numbers are about {_ABOUT[report['estimand']]}."
    if report.get("against") == "distribution":
        yield (
            "A classifier is judged by the distribution of annotators' labels: accuracy is how "
            "often it says what a random annotator says."
        )
    if found is not None:
        leader, block = found.leader, found.block
        meaning = report.get("status_messages", {}).get(leader.status)
        if leader.status != "ok" and meaning:
            yield f"Take care: {meaning}."
        if found.certainty != "contradicted" and leader.truth is not None:
            yield (
                "The true labels of these data are known, and were kept from the method: the "
                f"{plain(metric_name(block.metric))} of {name(leader.model)} truly is "
                f"{block.write(leader.truth)}."
            )
    if hits:
        yield f"{sum(hits)} of the {plural(len(hits), 'interval')} below hold the true value."


# --- tables of the estimates ----------------------------------------------------------------------


def _glance(metrics: Sequence[Block], report: Report) -> Iterator[Node]:
    """The best estimate by each metric that classifiers can be ranked by, where there are some."""
    rows = []
    for block in (one for one in metrics if one.direction):
        found = verdict(block)
        cells = ["none: the labels contradict all" if found else block.rows[0].reason, "", ""]
        if found and found.certainty != "contradicted":
            leader = found.leader
            cells = [leader.model, " ".join(block.figures(leader)), probability(leader.best)]
        rows.append([block.metric, *cells])
    if len(rows) > 1 and len(report["models"]) > 1:
        yield Section("At a glance", [Table(
            ["Metric", "Best estimate", f"Value [{percent(metrics[0].level)}]", "P(best)"], rows,
            "The classifier with the best estimate by each metric", sides="llr", names=2,
        )])  # fmt: skip
    if metrics:
        samples = [("estimate", "estimate and interval"), ("truth", "truth")]
        known = any(block.has_truth for block in metrics)
        yield Group("loose", [Legend(samples[: 1 + known])])


def _metrics(
    report: Report, shown: Sequence[Block], brief: Sequence[str], room: _Level
) -> Iterator[Node]:
    """All items by each metric, and the groups: on the page below it, in a text by group.

    A text has the metrics that are `brief`.
    """
    metrics = [block for block in shown if block.group is None]
    groups = [block for block in shown if block.group is not None]
    for block in metrics:
        about = "; ".join(filter(None, (plain(block.description), PREFERENCES[block.direction])))
        columns: dict[str, list[Block]] = {}
        for one in groups:
            if one.metric == block.metric:
                columns.setdefault((one.group or "").partition("=")[0], []).append(one)
        yield Section(
            plain(block.metric),
            [
                *([Para(sentence(about), "soft")] if about else []),
                _forest(block, common_axis([block]), room),
                *(_missing(report.get("warnings") or (), block) if block.lacks else ()),
                *(
                    page_only(_by, column, parts, block, report, room)
                    for column, parts in columns.items()
                ),
            ],
            on="" if block.metric in brief else "page",
        )
    order = [row.model for row in metrics[0].ranked()] if metrics else []
    about_groups = {size["group"]: in_line(counts(size)) for size in report.get("groups", ())}
    for block in (one for one in groups if one.metric in brief):
        axis = common_axis(one for one in groups if one.metric == block.metric)
        yield Section(
            f"{plain(block.metric)}, {name(block.group)}",
            [_forest(block, axis, room, order)],
            about_groups.get(block.group, ""),
            on="text",
        )
    if left_out := [block.metric for block in metrics if block.metric not in brief]:
        yield Para("", on="text")
        yield Para(
            f"More: {plain(enumerated(left_out))}. Their tables are shown by "
            f"`--metrics {','.join(left_out)}`; all is in `--html PATH` and `--json PATH`.",
            on="text",
        )


def _forest(block: Block, axis: Any, room: _Level, order: Sequence[str] | None = None) -> Forest:
    every = block.ranked() if order is None else block.in_order(order)
    rows = [row for row in every if row.status != NOT_APPLICABLE] or every
    where = "all items" if block.group is None else plain(block.group)
    return Forest(block, rows, axis, f"{block.metric}, {where}", ends=room.ends,
                  folded=room.folded)  # fmt: skip


def _missing(warnings: Sequence[str], block: Block) -> Iterator[Para]:
    """Which classifiers a metric is not applicable to, and why, in place of their rows."""
    without = [name(row.model) for row in block.rows if row.status == NOT_APPLICABLE]
    start, metric = f"{NOT_APPLICABLE}: {block.metric} ", capital(plain(metric_name(block.metric)))
    why = [
        f"{metric} {plain(one.removeprefix(start))}" for one in warnings if one.startswith(start)
    ]
    yield Para(" ".join(map(sentence, why or [f"not applicable to {enumerated(without, 12)}"])))


def _by(
    column: str, parts: Sequence[Block], block: Block, report: Report, room: _Level
) -> Iterator[Fold]:
    """Groups of a column side by side: a panel per classifier, the best first, on one scale."""
    every = report.get("groups", ())
    labeled = {size["group"]: size["n_labeled"] for size in every if size["group"] is not None}
    places = [block, *parts]
    rows = [{row.model: row for row in one.rows} for one in places]
    models = [row.model for row in block.ranked() if row.status != NOT_APPLICABLE]
    panels = []
    for model in models[: max(_FEWEST_PANELS, room.group_rows // len(places))]:
        groups = [
            {
                "name": "all items" if one.group is None else one.group.partition("=")[2],
                "size": f"{labeled[one.group]:,} labeled" if one.group in labeled else "",
                "block": one, "row": by_model[model],
            }
            for one, by_model in zip(places, rows, strict=True) if model in by_model
        ]  # fmt: skip
        panels.append({"model": model, "groups": groups, "columns": max(b.columns for b in places)})
    view = {"panels": panels, "axis": common_axis(places, 4)}
    body: list[Node] = [Drawing("groups", view, f"{block.metric} by {column}")]
    if hidden := len(models) - len(panels):
        listed = "all estimates below" if len(report["estimates"]) <= room.listed else "the JSON"
        body.append(Para(f"{plural(hidden, 'more classifier')}: see {listed}.", "soft"))
    yield Fold(f"By {name(column)}", body, plural(len(parts), "group"), open=True, printed=False)


def _unshown(report: Report, unknown: Sequence[str], unfit: Sequence[str]) -> Iterator[Node]:
    """Metrics without any value."""
    why = report.get("status_messages", {}).get(NOT_APPLICABLE)
    points = [
        f"{what}: {plain(enumerated(metrics))}{more}."
        for what, metrics, more in (
            ("Undefined on these items", unknown, ""),
            ("Not applicable here", unfit, f" ({why})" if why else ""),
        )
        if metrics
    ]
    yield Section("Without a value", [*map(Para, points)])


def _statuses(report: Report, shown: Sequence[Block]) -> list[Node]:
    """What the statuses mean."""
    statuses = dict(status_notes(report, shown))
    if any(row.status != NOT_APPLICABLE for block in shown for row in block.rows):
        statuses.pop(NOT_APPLICABLE, None)  # said where the rows would be
    return [Section("What a status means", [Terms(statuses)] * bool(statuses))]


def _all_estimates(
    report: Report, shown: Sequence[Block], room: _Level, *, known: bool
) -> Iterator[Node]:
    """Every estimate as a table of the page."""
    n = len(report["estimates"])
    if not shown:
        return
    if n > room.listed:
        text = f"The {n:,} estimates are too many for a table on this page; the JSON has all."
        yield Section("All estimates", [Para(text)])
        return
    head = ["Group", "Metric", "Classifier", "Value", "Low", "High", *["Truth"] * known, "Status"]
    rows = []
    for block in shown:
        for row in block.rows:
            numbers = [row.low, row.high, *[row.truth] * known]
            rows.append([
                "all items" if block.group is None else block.group, block.metric, row.model,
                row.reason if row.value is None else block.write(row.value),
                *("-" if number is None else block.write(number) for number in numbers),
                row.status,
            ])  # fmt: skip
    table = Table(head, rows, "All estimates", "lll" + "r" * (3 + known) + "l", names=3)
    yield Section(
        "All estimates",
        [Fold("As a table", [table], plural(n, "estimate"), printed=n <= 60, style="plain")],
    )


# --- what else a page has -------------------------------------------------------------------------


def _classes(report: Report) -> Iterator[Section]:
    """How often each class occurs among the labels, and by estimate."""
    balance: Mapping[str, Mapping[str, Any]] = report.get("class_balance") or {}
    labeled, inferred = balance.get("labeled") or {}, balance.get("estimated") or {}
    classes = [*map(str, report["classes"])]
    shares = [inferred.get(one) for one in classes]
    columns = [
        ["-" if n is None else count(n) for n in map(labeled.get, classes)],
        ["-" if one is None else share(one) for one in shares],
    ]
    if labeled or inferred:
        about = "How often each class occurs among the labels, and by estimate among all items."
        yield Section("Classes", [Para(about, "soft"), Table(
            ["Class", "Labels", "Estimated share"], [*zip(classes, *columns, strict=True)],
            "Labels and estimated share of each class", bars=shares, bar_at=2,
        )])  # fmt: skip


def _profiles(
    report: Report, metrics: Sequence[Block], found: Verdict | None, room: _Level
) -> list[Node]:
    """Scores and calibration of each classifier; of too many, of the best."""
    profiles = [profile(entry) for entry in report.get("profiles") or ()]
    if not profiles:
        return []
    first = [row.model for row in metrics[0].ranked()] if metrics else []
    place = {model: k for k, model in enumerate(first)}
    best = sorted(profiles, key=lambda one: place.get(one.model, len(place)))[: room.profiles]
    drawn = {one.model for one in best}
    unfolded = sum(len(one.histograms) + 1 for one in profiles) <= _OPEN_PLOTS
    classes, two = [*map(name, report["classes"])], len(report["classes"]) == 2
    level = report["confidence_level"]
    ends = "" if level is None else f", with the {percent(level)} interval as a shaded range"
    parts: list[Node] = [
        Para(
            "The areas show the scores of the items of each inferred class: the taller, the more "
            "items. (Heights are on a square-root scale, so that rare scores stay visible.) The "
            "ticks below them are labeled items. A good classifier keeps the two apart.", "soft",
        ),
        Para(
            "The reliability diagram shows how often the event occurs at each predicted "
            f"probability{ends}; larger points hold more items. On the diagonal the classifier is "
            "calibrated; below it the predicted probabilities are too high, above it too low.",
            "soft",
        ),
        Legend([
            ("own", f"inferred to be {classes[1] if two else 'of the class'}"),
            ("other", f"inferred to be {classes[0]}" if two else "all other items"),
            ("diagonal", "perfect calibration"),
        ]),
        Group("cards" if two else "stack", [
            _plots(one, opened=unfolded or (found is not None and found.leader.model == one.model))
            for one in profiles if one.model in drawn
        ]),
    ]  # fmt: skip
    if len(drawn) < len(profiles):
        left = plural(len(profiles) - len(drawn), "more classifier")
        parts.append(Para(f"Not drawn, for the page to stay short: {left}.", "soft"))
    return [Section("Scores and calibration of each classifier", parts)]


def _plots(one: Profile, *, opened: bool) -> Fold:
    """The plots of a classifier; of several classes the scores of each are small."""
    many = len(one.histograms) > 1
    scores: list[Node] = [
        Drawing("compact_distribution" if many else "distribution", (plot, one))
        for plot in one.histograms
    ]
    reliability: list[Node] = [Drawing("reliability", one)] if one.bins else []
    inside = [*reliability, Group("multiples", scores)] if many else [*scores, *reliability]
    missing = f"no prediction for {plural(one.missing, 'item')}" if one.missing else ""
    return Fold(name(one.model), [Group("plots many" if many else "plots", inside)], missing,
                open=opened, printed=False, style="profile")  # fmt: skip


# --- predictions ----------------------------------------------------------------------------------

_KINDS = {"probabilities": "probabilities", "hard": "hard predictions", "scores": "scores"}


def predictions(report: Report) -> Document:
    """What was read of some predictions: counts, what was recognised, a line per classifier.

    `report` is the facts of the headline, `reading`, and `gives`: for each of "probabilities",
    "hard" and "scores" whether each classifier has any.
    """
    rows = []
    for place, model in enumerate(report["models"]):
        kinds = [_KINDS[kind] for kind, has in report["gives"].items() if has[place]]
        rows.append([model, " and ".join(kinds) or "no predictions"])
    table = Table(["", "gives"], rows, "What each classifier gives", "l", widest=40)
    return Document("What was read?", report, counts(report), body=[table])
