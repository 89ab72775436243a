"""How far estimates can be trusted on data like one's own: `fewlabels backtest FILE`."""

from __future__ import annotations

from typing import Any

from fewlabels.cli import interrupts, terminal
from fewlabels.cli.input import Input
from fewlabels.cli.options import CHOICE, HOW, Record, comma_list, command, option, takes
from fewlabels.cli.output import Output
from fewlabels.cli.settings import Settings
from fewlabels.errors import UsageError, quoted


class Hiding(Record):
    """How many labels `fewlabels backtest` leaves, how often, and which methods it tries."""

    n_labeled: str = option(
        HOW, "How many labels to leave; all others are hidden.", "N,N,..", "20,50,100",
        flag="--labels",
    )  # fmt: skip
    runs: int = option(HOW, "How often to draw the labels that are left.", default=20, at_least=1)
    method: tuple[str, ...] = option(
        HOW,
        "A method to try beside auto and labeled, with settings in brackets, as in "
        "'ssme-kde[bandwidth=scott]'. Repeatable.",
        "METHOD",
        (),
    )
    metrics: str | None = option(CHOICE, "Metrics; by default those of `estimate`.", "A,B,..")

    def sizes(self) -> list[int]:
        """The numbers of labels."""
        try:
            return [int(n) for n in comma_list(self.n_labeled)]
        except ValueError:
            raise UsageError(
                "`--labels` must be whole numbers, such as --labels 20,50; got "
                f"{quoted(self.n_labeled)}"
            ) from None


@command(short_help="How far off estimates are, on a file whose labels are known.")
@takes("source", Input, without=("reference", "labels", "labels_as"))
@takes("hiding", Hiding)
@takes(
    "settings", Settings, "models", "by", "confidence_level", "seed", "workers",
    estimand={
        "default": "sample",
        "help": "Intervals for these items, whose truth is known, or for the population.",
    },
)  # fmt: skip
@takes("output", Output, "json", "html")
def backtest(source: Input, hiding: Hiding, settings: Settings, output: Output) -> None:
    """Hide all labels of FILE but a few, again and again, and compare estimates with the truth.

    Shows the error, coverage and width of `auto`, of `labeled` and of each --method. Ctrl-C shows
    the runs that are done, and exits with 130.
    """
    sizes = hiding.sizes()
    from fewlabels.questions.backtest import Runs

    arguments: dict[str, Any] = settings.arguments(
        "confidence_level", "estimand", "random_state", "workers"
    )
    metrics = comma_list(hiding.metrics) if hiding.metrics is not None else None
    groups = settings.groups(source)
    predictions = source.read(groups)
    chosen = settings.chosen(predictions.models)
    predictions = predictions.select_models(chosen) if chosen else predictions
    runs = Runs.of(
        predictions, sizes, hiding.runs, hiding.method, metrics=metrics, by=groups or None,
        **arguments,
    )  # fmt: skip
    interrupts.advise(
        lambda: f"; {len(runs.done)} of {runs.n_runs} runs were done", interrupts.TO_SHOW
    )
    stopped = None
    with terminal.progress_bar("backtest") as progress:
        try:
            for _ in runs.each(progress):
                pass
        except KeyboardInterrupt as stop:
            if not runs.done:
                raise
            stopped = stop
    found = runs.result()
    output.save_all(found.to_dict, html=found.save_html)
    output.show(found.to_dict, found.summary)
    if stopped is not None:
        raise stopped
