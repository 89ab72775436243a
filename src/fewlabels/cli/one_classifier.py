"""Of one classifier: `fewlabels curve FILE`, `threshold FILE` and `label-next FILE`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from fewlabels.checks.conditions import untrusted
from fewlabels.cli.input import SELECTS, Input, Settings
from fewlabels.cli.options import CHOICE, HOW, OUTPUT, Callback, Record, command, option, takes
from fewlabels.cli.output import Output, progress_bar
from fewlabels.errors import UsageError, listed, quoted

if TYPE_CHECKING:
    from fewlabels.predictions import Predictions


@dataclass(frozen=True)
class OneModel:
    """The classifier, the method and the input of a command on one classifier."""

    source: Input
    model: str | None
    settings: Settings

    def ask(self, question: Callable[..., Any], what: str, *more: str, **settings: Any) -> Any:
        """The predictions, and the answer of `question` about the one classifier.

        `question` is `fewlabels.curves`, `threshold` or `label_next`; `more` are settings that it
        takes beside method, seed and workers, and `settings` its other arguments. `what` is shown
        beside the progress.
        """
        # Errors of the method come before a file is read.
        arguments = self.settings.arguments("method", "random_state", "workers", *more)
        from fewlabels.data.read import read_predictions

        keep = [c for name in ("group", "strata") if (c := settings.get(name)) is not None]
        predictions = read_predictions(keep=keep, **self.source.reading()).with_positive()
        with progress_bar(what) as progress:
            return predictions, question(
                predictions,
                model=self.model,
                positive=self.source.positive,
                progress=progress,
                **arguments,
                **settings,
            )


def takes_one_model(*more: str) -> Callable[[Callback], Callback]:
    """Add the options of a file and of one classifier, passed to the command as argument `chosen`.

    `more` are settings beside method, options, seed and workers.
    """

    def add(command: Callback) -> Callback:
        @takes(
            "source",
            Input,
            without=("reference",),
            hard={"rare": True},
            votes={"rare": True},
            positive="The class to find, against the rest. By default a known word (yes, spam "
            "...), else the last class.",
            # Elsewhere it maps columns alone; here a name alone chooses.
            model={
                "metavar": SELECTS,
                "help": "The classifier to look at, if the file has several. NAME=COL,COL names "
                "its probability columns, one per class.",
            },
        )
        @takes(
            "settings",
            Settings,
            *("options", "seed", "workers", *more),
            method="auto fits averaged-curves, or monotone-curves for probabilities, to the one "
            "classifier; any other method (see `fewlabels methods`) is fitted to all.",
        )
        @wraps(command)
        def wrapper(source: Input, settings: Settings, **others: Any) -> Any:
            mapped = tuple(
                value
                for value in source.model
                if "=" in value and not source.names_classifier(value)
            )
            names = list(dict.fromkeys(value for value in source.model if value not in mapped))
            if len(names) > 1:
                raise UsageError(
                    f"--model must name one classifier; got {listed(names)}; run the command once "
                    "for each"
                )
            # Naming the columns of one classifier selects this one.
            source = source.but(model=mapped)
            names += list(source.arguments()["models"]) if len(mapped) == 1 else []
            model = names[0] if names else None
            return command(chosen=OneModel(source, model, settings), **others)

        return cast(Callback, wrapper)

    return add


def _figure(output: Output) -> Callable[[str, Mapping[str, Any]], str]:
    """What draws figures of a report; that nothing can is said before the work is done."""
    from fewlabels.report.figure import class_of_figures, render_svg

    if output.svg is not None:
        class_of_figures()
    return render_svg


def _item_table(predictions: Predictions, report: Mapping[str, Any]) -> dict[str, Any]:
    """Row of the file (from 1), name, score and label of every item; a label may be None."""
    from fewlabels.methods.per_model import score_of

    classes = [str(name) for name in predictions.classes]
    j, k = predictions.models.index(report["model"]), classes.index(str(report["positive"]))
    return {
        "row": range(1, predictions.n_items + 1),
        **predictions.item_names,
        "score": score_of(predictions, j, k),
        "label": [classes[label] if label >= 0 else None for label in predictions.labels.tolist()],
    }


class Band(Record):
    """How `fewlabels curve` draws."""

    interval: Literal["shortest", "equal-tailed"] = option(
        HOW, "Kind of interval that the band shows at each point.", default="shortest"
    )


@command(short_help="Precision-recall and ROC with bands.")
@takes_one_model("confidence_level", "estimand")
@takes("band", Band)
@takes(
    "output",
    Output,
    "json",
    "svg",
    "raw_cells",
    html="Write the report as HTML.",
    out="Write the recalibrated probability of every item; .csv or .parquet.",
)
def curve(chosen: OneModel, band: Band, output: Output) -> None:
    """Draw the precision-recall and ROC curves of one classifier in FILE, with bands.

    --out gives row (from 1), score, label and recalibrated probability of every item.
    """
    from fewlabels.questions.curve import curves as run

    draw = _figure(output)
    predictions, curves = chosen.ask(
        run, "drawing curves", "confidence_level", "estimand", interval=band.interval
    )
    report = curves.report()
    output.save_all(
        lambda: report,
        html=curves.save_html,
        svg=partial(draw, "curves", report),
        out=lambda: {**_item_table(predictions, report), "probability": curves.recalibrated},
    )
    output.show(lambda: report, curves.summary)


class Conditions(Record):
    """What a threshold must meet and with which probability, what errors cost, and where it is."""

    min_precision: float | None = option(
        CHOICE, "Of items called positive, this share is positive (PPV).", "X"
    )
    min_recall: float | None = option(
        CHOICE, "Of positive items, this share is called so (sensitivity).", "X"
    )
    min_specificity: float | None = option(
        CHOICE, "Of other items, this share is not called positive.", "X"
    )
    min_sensitivity: float | None = option(CHOICE, "As --min-recall.", "X", rare=True)
    min_ppv: float | None = option(CHOICE, "As --min-precision.", "X", rare=True)
    min_npv: float | None = option(
        CHOICE, "Of items not called positive, this share is not.", "X", rare=True
    )
    condition: tuple[str, ...] = option(
        CHOICE,
        "Others, as in 'npv >= .99 and fpr <= .05': of ppv, sensitivity, fnr, f1, accuracy, "
        "balanced_accuracy, predicted_positive_rate, cost too.",
        "RATE>=X",
        (),
    )
    cost: str | None = option(
        CHOICE, "What errors cost: the threshold of the least cost.", "FP=1,FN=5"
    )
    prevalence: float | None = option(
        CHOICE, "Share of positives where it will be used, if another.", "X"
    )
    probability: float | None = option(
        OUTPUT,
        "How probable that must be, .95 unless given; exit with 1 if it is not.",
        "X",
    )

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `fewlabels.threshold`."""
        bounds = {name: value for name, value in vars(self).items() if name.startswith("min_")}
        if not self.condition and self.cost is None and bounds == dict.fromkeys(bounds):
            raise UsageError(
                "say what the threshold must meet: --min-precision .8, --min-recall .8, "
                "--condition 'fpr <= .05', or what errors cost: --cost FP=1,FN=5"
            )
        return {
            **bounds,
            "cost": None if self.cost is None else _costs(self.cost),
            "prevalence": self.prevalence,
            "condition": " and ".join(self.condition) or None,
            "probability": self.probability or None,
        }


def _costs(text: str) -> tuple[float, float]:
    """Costs of a false positive and a false negative: `FP=1,FN=5` in any order, or `1,5`."""
    parts = [part.rpartition("=") for part in text.split(",")]
    names = [name.strip().upper() for name, _, _ in parts]
    try:
        costs = [float(cost) for _, _, cost in parts]
        named = dict(zip(names if any(names) else ("FP", "FN"), costs, strict=True))
        fp, fn = named["FP"], named["FN"]
        good = len(named) == 2 and all(0 <= c < math.inf for c in costs) and fp + fn > 0
    except (KeyError, ValueError):
        good = False
    if not good:
        others = [name for name in names if name not in ("", "FP", "FN")]
        of_others = f": what is right costs nothing, so leave {listed(others)} out" * bool(others)
        raise UsageError(
            "`--cost` must be two costs, of a false positive and of a false negative, such as "
            f"--cost FP=1,FN=5; got {quoted(text)}{of_others}"
        )
    return fp, fn


@command(short_help="Where to put the threshold, and how sure that is.")
@takes_one_model("confidence_level", "estimand")
@takes("conditions", Conditions)
@takes(
    "output",
    Output,
    "json",
    "raw_cells",
    html="Write the report as HTML.",
    svg={"rare": True},
    out="Write what the threshold makes of every item; .csv or .parquet.",
)
def threshold(chosen: OneModel, conditions: Conditions, output: Output) -> int:
    """Find the best threshold of one classifier in FILE that meets all conditions.

    --out gives row (from 1), score, label and whether it is called positive.
    """
    bounds = conditions.arguments()
    from fewlabels.questions.threshold import threshold as run

    draw = _figure(output)
    predictions, result = chosen.ask(
        run, "trying thresholds", "confidence_level", "estimand", **bounds
    )
    report = result.report()

    def decisions() -> dict[str, Any]:
        columns = _item_table(predictions, report)
        best = report["best"]
        columns["called_positive"] = [
            None if best is None or math.isnan(score) else score >= best
            for score in columns["score"].tolist()
        ]
        return columns

    output.save_all(
        lambda: report,
        html=result.save_html,
        svg=partial(draw, "threshold", report),
        out=decisions,
    )
    output.show(lambda: report, result.summary)
    required, probability = conditions.probability, report["best_probability"]
    why = untrusted(result.status)
    if required is None or (why is None and probability >= required):
        return 0
    sentence = f"the best threshold meets the conditions with probability {probability:.4g}"
    sentence += "" if why is None else f", which is {why}"
    click.echo(f"not met: --probability {required:.4g}: {sentence}", err=True)
    return 1


class List(Record):
    """Which items `fewlabels label-next` lists."""

    size: int = option(CHOICE, "How many items to list.", default=10, at_least=1)
    kind: Literal["precision-recall", "roc", "error-rates", "labels"] = option(
        CHOICE,
        "The curve whose band should narrow; for votes, what should become known.",
        default="precision-recall",
    )
    metric: str | None = option(CHOICE, "A metric instead, of all or of --model.", "METRIC")
    against: str | None = option(
        CHOICE, "For a metric: the difference to this classifier; best: which is best.", "NAME"
    )
    group: str | None = option(
        CHOICE,
        "For a metric: how far each group of this column is from all items.",
        "COL",
        rare=True,
    )
    strata: str | None = option(CHOICE, "How many of each stratum, and which.", "COL")
    min_precision: float | None = option(
        CHOICE,
        "For a precision-recall curve: where precision may be at least this.",
        "X",
        rare=True,
    )
    order: Literal["random", "stratified", "informative"] = option(
        CHOICE,
        "Draw items evenly, in proportion, or informative ones more often.",
        default="informative",
    )
    before: int = option(
        CHOICE, "How many items were drawn so before.", default=0, at_least=0, rare=True
    )


@command("label-next", short_help="Which items to label next.")
@takes_one_model()
@takes("wanted", List)
@takes("output", Output, "json", "html", "raw_cells", out="Write the list; .csv or .parquet.")
def label_next(chosen: OneModel, wanted: List, output: Output) -> None:
    """Draw the items of FILE to label next: informative items more often.

    Rows count from 1, after the header; `items` of the JSON from 0. The gain is the share of the
    question's variance that an item's label is expected to remove, once those above it are known;
    `drawn` is the probability with which it was drawn, which averages of the labels need.
    """
    from fewlabels.questions.label_next import label_next as run

    predictions, result = chosen.ask(run, "choosing items", **vars(wanted))
    report = result.report()
    shown = {**report, "rows": [item + 1 for item in report["items"]]}
    names = {c: [n[i] for i in report["items"]] for c, n in predictions.item_names.items()}
    column = "likeliest" if "likeliest" in shown else "score"
    numbers = {key: shown[key] for key in (column, "probability", "gain", "drawn")}
    columns = {"row": shown["rows"], **names, **numbers}
    output.save_all(lambda: shown, html=result.save_html, out=lambda: columns)
    output.show(lambda: shown, result.summary)
