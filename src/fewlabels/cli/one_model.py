"""The options of commands that look at one classifier: which one, how, and what to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from fewlabels.cli import terminal
from fewlabels.cli.options import SELECTS, Input, input_options
from fewlabels.cli.output import Writer, json_text, json_writer, write_outputs
from fewlabels.cli.text import check_choice, text
from fewlabels.errors import UsageError
from fewlabels.wording import listed, one_line

if TYPE_CHECKING:
    from fewlabels.predictions import Predictions

Command = TypeVar("Command", bound=Callable[..., Any])

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
    method: str
    positive: str | None
    seed: int
    workers: int | None

    def read(self) -> Predictions:
        """The predictions of the file; an unknown method is refused before it is read."""
        from fewlabels.models import METHODS

        check_choice("method", self.method, ["auto", *(name for name in METHODS if name != "auto")])
        from fewlabels.frames import read_predictions

        said = replace(self.source, positive=self.positive)
        return read_predictions(keep=[], **said.arguments()).with_positive()

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `fewlabels.curves`, `threshold` and `label_next`."""
        return {
            "model": self.model,
            "method": self.method,
            "positive": self.positive,
            "random_state": self.seed,
            "workers": self.workers,
        }


_OPTIONS = (
    click.option("--method", type=text, default="auto", show_default=True),
    click.option(
        "--positive",
        type=text,
        metavar="CLASS",
        help="The class to find, against the rest; of two, that of a known word (yes, spam ...), "
        "else the last.",
    ),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
    click.option("--workers", type=click.IntRange(min=1), help="Threads; the answer is the same."),
)


def one_model_options(command: Command) -> Command:
    """Add the options of a file and of one classifier, handed over as one `chosen` argument."""

    @wraps(command)
    def wrapper(
        source: Input,
        method: str,
        positive: str | None,
        seed: int,
        workers: int | None,
        **others: Any,
    ) -> Any:
        model, mapped = _chosen(source.columns.model)
        source = replace(source, columns=replace(source.columns, model=mapped))
        chosen = OneModel(source, model, method, positive, seed, workers)
        return command(chosen=chosen, **others)

    decorated: Any = wrapper
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    decorated = input_options(decorated)
    for option in decorated.__click_params__:
        if option.name == "model":
            # Elsewhere it maps columns alone; here a name alone chooses.
            option.metavar = SELECTS
            option.help = (
                "The classifier to look at, if the file has several. NAME=COL,COL names its "
                "probability columns, one per class. Repeatable."
            )
    return cast(Command, decorated)


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


@dataclass(frozen=True)
class Files:
    """Where results go; `json` is "-" for standard output."""

    json: str | None
    out: str | None
    html: str | None = None
    svg: str | None = None

    def check(self, source: Input) -> None:
        """Prove that every file can be written, before the work begins.

        Raises
        ------
        UsageError
            Where one cannot, is the input, is named twice, or --out has another ending.
        """
        if self.out is not None:
            from fewlabels.frames.write import table_kind

            table_kind(self.out)
        paths = {"--json": self.json, "--html": self.html, "--svg": self.svg, "--out": self.out}
        source.check({k: None if p == "-" else p for k, p in paths.items()})

    def deliver(
        self,
        report: Mapping[str, Any],
        summary: Callable[[int], str],
        table: Callable[[], Mapping[str, Any]],
        save_html: Writer | None = None,
    ) -> None:
        """Write all of them, or none; then print the summary and what was written, or JSON."""
        writers: dict[str, Writer] = {}
        if self.json is not None and self.json != "-":
            writers[self.json] = json_writer(report)
        if self.html is not None and save_html is not None:
            writers[self.html] = save_html
        if self.svg is not None:
            writers[self.svg] = partial(_write_svg, report)
        if self.out is not None:
            from fewlabels.frames.write import table_kind, write_table

            kind, columns = table_kind(self.out), table()
            writers[self.out] = lambda path: write_table(columns, path, kind)
        write_outputs(writers)
        if self.json == "-":
            click.echo(json_text(report), nl=False)
            terminal.print_warnings(report["warnings"])
            return
        click.echo(summary(terminal.width()))
        files = {"JSON": self.json, "Report": self.html, "Figure": self.svg, "Table": self.out}
        for what, path in files.items():
            if path is not None:
                click.echo(f"\n{what}: {one_line(path)}")


def _write_svg(report: Mapping[str, Any], path: Path) -> None:
    from fewlabels.report.curve_html import render_svg

    path.write_text(render_svg(report), encoding="utf-8")


def result_options(out_help: str) -> Callable[[Command], Command]:
    """Add the options of what to write, handed over as one `files` argument."""
    options = (
        click.option("--json", "json_path", metavar="PATH", help="Write JSON; - prints it alone."),
        click.option("--html", "html_path", metavar="PATH", help="Write the report as HTML."),
        click.option("--svg", "svg_path", metavar="PATH", help="Write the figures as SVG."),
        click.option("--out", type=text, metavar="FILE", help=out_help),
    )

    def decorate(command: Command) -> Command:
        @wraps(command)
        def wrapper(
            json_path: str | None,
            html_path: str | None,
            svg_path: str | None,
            out: str | None,
            **others: Any,
        ) -> Any:
            return command(files=Files(json_path, out, html_path, svg_path), **others)

        decorated: Any = wrapper
        for option in reversed(options):
            decorated = option(decorated)
        return cast(Command, decorated)

    return decorate


def interval_options(command: Command) -> Command:
    """Add the options of an interval: its level, and what it is of."""
    level = click.option("--confidence-level", type=float, default=0.95, show_default=True)
    estimand = click.option(
        "--estimand",
        type=click.Choice(["population", "sample"]),
        default="population",
        show_default=True,
        help="The population the items come from, or these very items.",
    )
    return level(estimand(command))


def item_table(predictions: Predictions, model: str, positive: Any) -> dict[str, Any]:
    """Row of the file (from 1), name, score and label of every item; a label may be None.

    Parameters
    ----------
    predictions
        All items of the file.
    model, positive
        The classifier and the class, as results name them.
    """
    from fewlabels.models.scores import score_of

    classes = [str(name) for name in predictions.classes]
    j, k = predictions.models.index(model), classes.index(str(positive))
    return {
        "row": range(1, predictions.n_items + 1),
        **predictions.item_names,
        "score": score_of(predictions, j, k),
        "label": [classes[label] if label >= 0 else None for label in predictions.labels.tolist()],
    }
