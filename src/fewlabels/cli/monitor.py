"""Performance over time: `fewlabels monitor FILE --time COL`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fewlabels.cli.input import Engine, Input, Settings
from fewlabels.cli.options import CHOICE, HOW, RUNNING, Record, comma_list, command, option, takes
from fewlabels.cli.output import (
    Output,
    check_classifiers,
    junit_text,
    progress_bar,
    stream_bar,
    verdict,
)
from fewlabels.cli.output import require as require_option
from fewlabels.errors import UsageError

if TYPE_CHECKING:
    from fewlabels.questions.over_time import Monitoring


class MonitorOptions(Record):
    """Options of `fewlabels monitor` beside the common ones."""

    time: str | None = option(
        CHOICE, "Column of the time of each item: dates, times or numbers.", "COL"
    )
    time_format: str | None = option(
        CHOICE,
        "How times are written where not as ISO 8601, such as %d/%m/%Y.",
        "FORM",
        rare=True,
    )
    every: str | None = option(
        CHOICE,
        "Length of a period: day, week (from Monday), month, year or a number of days. By "
        "default the finest of at most 60.",
        "PERIOD",
    )
    metrics: str = option(
        CHOICE, "As in `fewlabels estimate`.", "A,B,..", "default", show_default=False
    )
    tolerance: float = option(
        HOW, "A fall by more than this, in the metric's units, counts as one.", "X", 0.05
    )
    against: Literal["first", "trailing", "reference"] | None = option(
        HOW,
        "Compare each period with the first ones, the mean of all before it, or --reference. By "
        "default --reference if there is one, else first.",
        rare=True,
    )
    state: str | None = option(
        RUNNING,
        "Take earlier days from this file, and add those of FILE to it.",
        "PATH",
        file="record",
    )
    ask: int | None = option(
        CHOICE,
        "Write so many items to --out: those whose labels would tell most of the last period.",
        at_least=1,
    )
    require: tuple[str, ...] = require_option(">=", "low")


@command(short_help="Performance over time, and what changed.")
@takes("source", Input, **{n: {"rare": True} for n in ("votes", "hard", "model", "score")})
@takes(
    "settings", Settings, "models", "by", "method", "options", "confidence_level", "seed",
    "workers",
    estimand={
        "default": "sample",
        "help": "Estimate for the items of each period, or for the population they come from.",
    },
)  # fmt: skip
@takes("options", MonitorOptions)
@takes(
    "output", Output, "json", "html", "junit", "alert", "raw_cells",
    out="Write the items of --ask, for `fewlabels label`.",
    to={
        "rare": False,
        "help": "Add the estimates to a table, each period once: sqlite:///file.db#TABLE, "
        "postgresql:// or .csv.",
    },
)  # fmt: skip
def monitor(source: Input, settings: Settings, options: MonitorOptions, output: Output) -> int:
    """Estimate how good each classifier in FILE was in each period, and what changed since when.

    --require is tested on the last complete period.
    """
    from fewlabels.metrics.registry import bounds_of, check_asked

    conditions = output.conditions(options.require, bounds_of)
    metrics = list(dict.fromkeys([*comma_list(options.metrics), *(r.metric for r in conditions)]))
    if (options.ask is None) != (output.out is None):
        raise UsageError("--ask N and --out FILE go together: how many items to label, and where")
    if options.ask is not None and source.place is None:
        raise UsageError("--ask chooses rows of FILE, and there are only votes; leave it out")
    if options.time is None:
        raise UsageError("--time COL must say which column holds the time of each item")
    from fewlabels.data.options import column_options
    from fewlabels.monitoring import Asked, columns_of_state, monitor_files, rows_of, rows_to_label
    from fewlabels.monitoring import monitor as run

    check_asked(metrics)
    arguments = settings.arguments(
        "method", "confidence_level", "estimand", "random_state", reference=source.reference
    ) | {
        "time": options.time,
        "by": (groups := settings.groups(source)),
        "every": options.every,
        "metrics": metrics,
        "tolerance": options.tolerance,
        "against": options.against,
        "state": options.state,
        "time_format": options.time_format,
    }  # fmt: skip
    from fewlabels.streaming.checkpoint import held_folder

    with ExitStack() as stack:
        # No other run comes between the days that are added and the rows that are written.
        table = output.to if output.to is not None and "://" not in output.to else None
        for path in sorted(filter(None, {options.state, table})):
            stack.enter_context(held_folder(Path(path)))
        if source.classes is None and options.state is not None:
            source = source.but(columns=columns_of_state(source.columns, options.state))
        engine = Engine()
        if engine.streams(source) is not None:
            check_classifiers(conditions, lambda: engine.classifiers(source, settings.chosen()))
            asked = Asked(reference=source.reference, **arguments)
            columns = column_options(**source.arguments())
            read: Any = rows_of(
                source.place, (asked.time, *asked.columns), columns=columns,
                positive=source.positive, models=settings.chosen(),
            )  # fmt: skip
            with stream_bar() as passed:
                result = monitor_files(
                    read, asked, columns, workers=settings.workers, progress=passed
                )
        else:
            with progress_bar("reading") as progress:
                predictions = source.read([options.time, *groups])
                chosen = settings.chosen(predictions.models)
                predictions = predictions.select_models(chosen) if chosen else predictions
                check_classifiers(conditions, partial(getattr, predictions, "models"))
                reference = None
                if source.reference is not None:
                    reference = source.read_reference_for(predictions, *groups)
                result = run(
                    predictions, reference=reference, progress=progress, workers=settings.workers,
                    **arguments,
                )  # fmt: skip
                read = predictions
        failures = [line for one in conditions for line in one.failures(result)]
        output.save_all(
            result.to_dict, None, None, {"to": result.KEY}, html=result.save_html, to=result.table,
            out=lambda: rows_to_label(
                result, options.ask or 0, source.place, read, options.time_format
            ),
            junit=lambda: junit_text(conditions, result),
            alert=lambda: _alerts(result, failures),
        )  # fmt: skip
    output.show(result.to_dict, result.summary, "Items to label")
    return verdict(conditions, result)


def _alerts(result: Monitoring, failures: Sequence[str]) -> str:
    """A line of JSON for each fall that is sure, and each condition that is not met."""
    lines: list[dict[str, Any]] = [
        {"period": part.complete.name, "kind": "fall", "subgroup": name, **change._asdict()}
        for name, part in ((None, result), *result.subgroups.items())
        for change in part.alarms
    ]
    period = result.complete.name
    lines += [{"period": period, "kind": "require", "what": line} for line in failures]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
