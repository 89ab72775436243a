"""Who is best, by comparisons of two: `fewlabels rank FILE`."""

from __future__ import annotations

from fewlabels.cli.input import Input, Settings
from fewlabels.cli.options import CHOICE, INPUT, Record, check_choice, command, option, takes
from fewlabels.cli.output import Output, check_classifiers, progress_bar, verdict
from fewlabels.cli.output import require as require_option
from fewlabels.errors import UsageError


class RankOptions(Record):
    """Options of `fewlabels rank` beside the common ones."""

    first: str | None = option(
        INPUT, "Column of who was presented first. By default model_a, or a name like it.", "COL"
    )
    second: str | None = option(INPUT, "Column of who was presented second.", "COL")
    winner: str | None = option(
        INPUT,
        "Column of verdicts: model_a, model_b, tie, A, B, C, or the name of one of the two.",
        "COL",
    )
    judge: str | None = option(INPUT, "Column of who judged, where a row is one verdict.", "COL")
    human: tuple[str, ...] = option(
        INPUT,
        "A judge, or a column of verdicts, that is a person; by default where the name says so "
        "(human, expert, annotator ...).",
        "NAME",
        (),
    )
    next: int = option(
        CHOICE,
        "How many comparisons to propose for people to judge next.",
        default=10,
        at_least=0,
    )
    require: tuple[str, ...] = require_option(">=", "low")


@command(short_help="Who is best, by comparisons of two.")
@takes(
    "source",
    Input,
    "file", "where", "query", "format_name", "sheet", "no_header", "weight", "labels",
    label="Column of people's verdicts beside those of judges.",
    items={"help": "Column that names the prompt of a comparison.", "rare": False},
    cluster={
        "help": "Column that says which comparisons belong together. By default the prompt.",
        "rare": False,
    },
)  # fmt: skip
@takes("settings", Settings, "method", "options", "confidence_level", "seed", "workers")
@takes("options", RankOptions)
@takes(
    "output", Output, "json", "html", "raw_cells",
    out="Write the comparisons that people should judge next.",
)  # fmt: skip
def rank(source: Input, settings: Settings, options: RankOptions, output: Output) -> int:
    """Rank what was compared two by two, by judges' verdicts and a few of people.

    FILE has a row per comparison, or per comparison and judge: model_a, model_b, winner.
    """
    from fewlabels.data.comparisons import read_comparisons
    from fewlabels.evaluation.pair_draws import PAIR_METRICS
    from fewlabels.questions.rank import rank as run

    bounds = {name: metric.bounds for name, metric in PAIR_METRICS.items()}
    conditions = output.conditions(options.require, bounds.get)
    for condition in conditions:
        check_choice("metric", condition.metric, PAIR_METRICS)
    if output.out is not None and not options.next:
        raise UsageError("--out writes the comparisons of --next, and that is 0; leave one out")
    with progress_bar("reading"):
        comparisons = read_comparisons(
            source.place, first=options.first, second=options.second, winner=options.winner,
            judge=options.judge, people=options.human, label=source.label, item=source.item,
            labels=list(source.labels) or None, cluster=source.cluster, weight=source.weight,
        )  # fmt: skip
        check_classifiers(conditions, lambda: comparisons.contestants)
        arguments = settings.arguments("method", "confidence_level", "random_state", "workers")
        ranking = run(comparisons, size=options.next, **arguments)
    output.save_all(ranking.to_dict, html=ranking.save_html, out=ranking.next_columns)
    output.show(ranking.to_dict, ranking.summary, "Comparisons to judge")
    return verdict(conditions, ranking.estimates)
