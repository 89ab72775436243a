"""Commands that look at one classifier: which one, and what they write of every item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fewlabels.cli.declare import Command, takes
from fewlabels.cli.options import SELECTS, Input
from fewlabels.cli.output import Output, Writer, table_writer
from fewlabels.cli.settings import Settings
from fewlabels.errors import UsageError, listed

if TYPE_CHECKING:
    from fewlabels.predictions import Predictions

METHODS = """\b
Methods:
  auto                  monotone-curves, fitted to the one classifier
  any other             is fitted to all classifiers of the file; `fewlabels estimate --help`
                        lists them
"""


@dataclass(frozen=True)
class OneModel:
    """Which classifier is looked at, by which method, and what is read."""

    source: Input
    model: str | None
    settings: Settings

    def read(self) -> Predictions:
        """The predictions of the file; an unknown method is refused before it is read."""
        self.settings.check_method()
        from fewlabels.data import read_predictions

        return read_predictions(keep=[], **self.source.reading()).with_positive()

    def arguments(self, *more: str) -> dict[str, Any]:
        """Keyword arguments of `fewlabels.curves`, `threshold` and `label_next`."""
        return {
            "model": self.model,
            "positive": self.source.positive,
            **self.settings.arguments("method", "random_state", "workers", *more),
        }


def takes_one_model(*more: str) -> Callable[[Command], Command]:
    """Add the options of a file and of one classifier, handed over as one `chosen` argument.

    Parameters
    ----------
    more
        Settings beside method, seed and workers.
    """

    def add(command: Command) -> Command:
        @takes("settings", Settings, "method", "seed", "workers", *more)
        @takes(
            "source",
            Input,
            without=("reference",),
            positive="The class to find, against the rest; of two, that of a known word (yes, spam "
            "...), else the last.",
            # Elsewhere it maps columns alone; here a name alone chooses.
            model={
                "metavar": SELECTS,
                "help": "The classifier to look at, if the file has several. NAME=COL,COL names "
                "its probability columns, one per class. Repeatable.",
            },
        )
        @wraps(command)
        def wrapper(source: Input, settings: Settings, **others: Any) -> Any:
            model, mapped = _chosen(source.model)
            chosen = OneModel(replace(source, model=mapped), model, settings)
            return command(chosen=chosen, **others)

        return cast(Command, wrapper)

    return add


def _chosen(said: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The classifier that is meant, and the values that map columns."""
    mapped = tuple(value for value in said if "=" in value)
    names = list(dict.fromkeys(value for value in said if "=" not in value))
    if len(names) > 1:
        raise UsageError(
            f"--model must name one classifier; got {listed(names)}; run the command once for each"
        )
    if names:
        return names[0], mapped
    # Whoever says where the columns of one classifier are means this one.
    return (mapped[0].partition("=")[0] if len(mapped) == 1 else None), mapped


def save_drawn(
    output: Output,
    report: Mapping[str, Any],
    save_html: Writer,
    table: Callable[[], Mapping[str, Any]],
) -> None:
    """Write the files of a result that is drawn: JSON, page, figures, and a row per item."""

    def save_svg(path: Path) -> None:
        from fewlabels.report.curve_html import render_svg

        path.write_text(render_svg(report), encoding="utf-8")

    output.save_all(
        lambda: report, html=save_html, svg=save_svg, out=table_writer(output.out, table)
    )


def item_table(predictions: Predictions, model: str, positive: Any) -> dict[str, Any]:
    """Row of the file (from 1), name, score and label of every item; a label may be None.

    Parameters
    ----------
    predictions
        All items of the file.
    model, positive
        The classifier and the class, as results name them.
    """
    from fewlabels.methods.scores import score_of

    classes = [str(name) for name in predictions.classes]
    j, k = predictions.models.index(model), classes.index(str(positive))
    return {
        "row": range(1, predictions.n_items + 1),
        **predictions.item_names,
        "score": score_of(predictions, j, k),
        "label": [classes[label] if label >= 0 else None for label in predictions.labels.tolist()],
    }
